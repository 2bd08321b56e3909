import pytest

from infra.context import read_config
from infra.engine_arguments import Parallelism, parallelism


def refusal(**settings) -> str:
    with pytest.raises(ValueError, match="should") as caught:
        read_config(settings)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("model_path", "set 'model'"),
        ("model", "set 'model'"),
        ("host", "the container listens where SageMaker calls it"),
        ("port", "the container listens where SageMaker calls it"),
        ("nnodes", "each instance holds the whole model"),
        ("node_rank", "each instance holds the whole model"),
        ("dist_init_addr", "each instance holds the whole model"),
        ("nccl_init_addr", "each instance holds the whole model"),
    ],
)
def test_an_argument_that_is_not_a_users_is_refused_with_the_reason(name, reason):
    assert refusal(engine_arguments={name: "2"}) == f"'engine_arguments' should not hold '{name}': {reason}"


@pytest.mark.parametrize("name", ["HOST", "PORT", "NNODES", "TP_SIZE", "Model-Path"])
def test_no_spelling_gets_past_a_check(name):
    assert f"'engine_arguments' should have names in lower case such as 'context_length', got '{name}'" in refusal(
        engine_arguments={name: "8"}
    )


@pytest.mark.parametrize("name", ["tp", "tp_size", "tensor_parallel_size", "dp", "dp_size", "pp", "pp_size"])
def test_gpus_are_counted_under_each_of_their_names(name):
    assert "'engine_arguments' should use at most the 1 GPUs of ml.g5.2xlarge, got tp" in refusal(
        engine_arguments={name: 8}
    )


@pytest.mark.parametrize(("one", "other"), [("tp_size", "tp"), ("data_parallel_size", "dp")])
def test_two_names_of_one_argument_are_refused(one, other):
    message = refusal(instance_type="ml.p5.48xlarge", engine_arguments={one: 1, other: 8})
    assert f"'engine_arguments' should name an argument once, got '{one}' and '{other}' for" in message


@pytest.mark.parametrize("value", ["two", "0", "-1", "1.5", "", "12345", "true"])
def test_a_number_of_gpus_is_a_whole_number(value):
    assert f"'tp' should be a whole number of GPUs, got {value!r}" in refusal(engine_arguments={"tp": value})


@pytest.mark.parametrize(
    ("arguments", "gpus", "gpus_a_copy"),
    [
        ({}, 1, 1),
        ({"tp": "2", "dp_size": "2", "pipeline_parallel_size": "2"}, 8, 4),
        ({"tp_size": "8", "dp_size": "8", "enable_dp_attention": "True"}, 8, 8),
    ],
)
def test_the_gpus_of_an_instance_and_of_a_copy(arguments, gpus, gpus_a_copy):
    asked = parallelism(arguments)
    assert (asked.gpus, asked.gpus_a_copy, asked.chosen) == (gpus, gpus_a_copy, bool(arguments))
    assert parallelism({}) == Parallelism()
