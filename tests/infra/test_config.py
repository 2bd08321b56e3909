import pytest

from container.config import ContainerConfig
from infra.config import InfraConfig


def problems(**settings) -> str:
    with pytest.raises(ValueError, match=r"should|is not a setting") as caught:
        InfraConfig.from_context(settings)
    return str(caught.value)


def test_defaults_are_valid():
    config = InfraConfig()
    assert (config.min_instances, config.max_instances, config.autoscales) == (1, 4, True)
    assert config.environment() == {"SM_SGLANG_MODEL_PATH": "Qwen/Qwen2.5-7B-Instruct"}


def test_an_empty_context_gives_the_defaults():
    assert InfraConfig.from_context({}) == InfraConfig()


def test_cdk_json_shows_the_defaults(cdk_json):
    assert InfraConfig.from_context(cdk_json["context"]) == InfraConfig()


def test_command_line_strings_become_the_types_of_their_fields():
    config = InfraConfig.from_context(
        {
            "endpoint_name": "",
            "max_instances": "6",
            "target_concurrent_requests_per_instance": "2.5",
            "max_sessions": "7",
            "engine_arguments": '{"context_length": 4096}',
        }
    )
    assert config == InfraConfig(
        max_instances=6,
        target_concurrent_requests_per_instance=2.5,
        container=ContainerConfig(max_sessions=7, engine_arguments={"context_length": "4096"}),
    )


def test_engine_arguments_cross_as_text():
    arguments = {"context_length": 4096, "enable_metrics": True, "dtype": "auto", "json_model_override_args": {"a": 1}}
    config = InfraConfig.from_context({"engine_arguments": arguments})
    assert config.environment() == {
        "SM_SGLANG_CONTEXT_LENGTH": "4096",
        "SM_SGLANG_ENABLE_METRICS": "true",
        "SM_SGLANG_DTYPE": "auto",
        "SM_SGLANG_JSON_MODEL_OVERRIDE_ARGS": '{"a": 1}',
        "SM_SGLANG_MODEL_PATH": "Qwen/Qwen2.5-7B-Instruct",
    }


def test_the_container_reads_back_what_was_meant():
    config = InfraConfig(container=ContainerConfig(session_ttl_minutes=5.0, max_sessions=3))
    read = ContainerConfig.from_env(config.environment())
    assert (read.session_ttl_minutes, read.max_sessions, read.model_path) == (5.0, 3, "Qwen/Qwen2.5-7B-Instruct")


def test_a_model_in_s3_is_read_where_sagemaker_mounts_it():
    config = InfraConfig(model="s3://models/qwen/")
    assert ContainerConfig.from_env(config.environment()).model_path == "/opt/ml/model"


def test_keys_of_the_cdk_are_left_alone():
    context = {"@aws-cdk/core:someFlag": True, "aws:cdk:enable-path-metadata": True, "vpc-provider:account=1": {}}
    assert InfraConfig.from_context(context) == InfraConfig()


def test_an_unknown_key_is_an_error_with_the_nearest_name():
    assert problems(min_instance=2) == "'min_instance' is not a setting (did you mean 'min_instances'?)"
    assert problems(max_session=2) == "'max_session' is not a setting (did you mean 'max_sessions'?)"


@pytest.mark.parametrize("key", ["host", "port", "instance", "container"])
def test_what_sagemaker_decides_is_no_key(key):
    assert f"'{key}' is not a setting" in problems(**{key: "x"})


def test_all_problems_come_in_one_message():
    message = problems(
        min_instances=0, max_instances="ten", routing_strategy="LEAST_OUTSTANDING", max_sessions=0, modle="x"
    )
    for part in (
        "'modle' is not a setting (did you mean 'model'?)",
        "'max_instances' should be a whole number, got 'ten'",
        "'max_sessions' should be from 1 to",
        "'min_instances' should be from 1 to 10000, got 0",
        "'routing_strategy' should be one of LEAST_OUTSTANDING_REQUESTS, RANDOM, got 'LEAST_OUTSTANDING' (did you mean",
    ):
        assert part in message


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("endpoint_name", "a_b", "'endpoint_name' should be 1 to 63 letters, digits and inner hyphens, got 'a_b'"),
        ("endpoint_name", 5, "'endpoint_name' should be text or null, got 5"),
        ("instance_type", "g5.2xlarge", "such as ml.g5.2xlarge, got 'g5.2xlarge'"),
        ("inference_ami_version", "al2023", "'inference_ami_version' should be one of al2023-ami-"),
        (
            "model",
            "s3://models/qwen/model.tar.gz",
            "s3://bucket/prefix/ with a / at the end, got 's3://models/qwen/mod",
        ),
        ("model", "s3://models/*/", "s3://bucket/prefix/ with a / at the end, got 's3://models/*/'"),
        ("model", "", "'model' should be a model of the Hugging Face hub"),
        ("max_instances", 0, "'max_instances' should be at least 'min_instances' (1), got 0"),
        ("min_instances", 1.5, "'min_instances' should be a whole number, got 1.5"),
        ("min_instances", True, "'min_instances' should be a whole number, got True"),
        ("min_instances", None, "'min_instances' should be a whole number, got None"),
        ("target_concurrent_requests_per_instance", "nan", "should be from 1 to 10000, got nan"),
        ("scale_in_cooldown_seconds", -1, "'scale_in_cooldown_seconds' should be from 0 to 3600, got -1"),
        ("container_startup_health_check_timeout_in_seconds", 30, "should be from 60 to 3600, got 30"),
        ("model_data_download_timeout_in_seconds", 3601, "should be from 60 to 3600, got 3601"),
        ("engine", "sglnag", "did you mean 'sglang'?"),
        ("engine_arguments", "context_length", "'engine_arguments' should be an object of names and values, got"),
        ("engine_arguments", [1], "'engine_arguments' should be an object of names and values, got [1]"),
        (
            "engine_arguments",
            {"model_path": "x"},
            "'engine_arguments' should not hold 'model_path', got 'x': set 'model'",
        ),
        (
            "engine_arguments",
            {"context-length": 1},
            "'SM_SGLANG_CONTEXT-LENGTH' should be letters, digits and underscor",
        ),
        ("engine_arguments", {"a": "x" * 1025}, "'SM_SGLANG_A' should be at most 1024 bytes, got 1025"),
        ("engine_arguments", {f"a{n}": "x" * 1000 for n in range(33)}, "should be at most 32768 bytes in all, got"),
    ],
)
def test_a_bad_value_is_named_with_what_is_allowed(key, value, message):
    assert message in problems(**{key: value})
