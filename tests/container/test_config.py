from dataclasses import fields
from pathlib import Path

import pytest

from container.config import ContainerConfig


def test_what_goes_into_the_environment_comes_out_the_same() -> None:
    config = ContainerConfig(
        engine="echo",
        port=9000,
        session_ttl_minutes=12.5,
        max_sessions=7,
        engine_arguments={"model_path": "Qwen/Qwen2.5-7B-Instruct", "tp_size": "2", "trust_remote_code": "true"},
    )
    assert ContainerConfig.from_env(config.to_env()) == config


def test_defaults_need_no_environment() -> None:
    assert ContainerConfig().to_env() == {}
    assert ContainerConfig.from_env({}) == ContainerConfig()


def test_aws_and_sample_names_are_read() -> None:
    config = ContainerConfig.from_env({"SES_TTL_MIN": "20", "SM_SGLANG_CONTEXT_LENGTH": "4096", "HOME": "/root"})
    assert config.session_ttl_minutes == 20
    assert config.engine_arguments == {"context_length": "4096"}


def test_every_problem_is_named_at_once() -> None:
    with pytest.raises(ValueError, match="'engine' should be one of") as problem:
        ContainerConfig(engine="sglagn", port=0, session_queue=-1)
    message = str(problem.value)
    assert "did you mean 'sglang'?" in message
    assert "'port' should be from 1 to 65,535, got 0" in message
    assert "'session_queue' should be from 0 to 1,000, got -1" in message


def test_a_value_of_the_wrong_type_names_its_variable() -> None:
    with pytest.raises(ValueError, match="'MAX_SESSIONS' should be a whole number, got 'many'"):
        ContainerConfig.from_env({"MAX_SESSIONS": "many"})


@pytest.mark.parametrize("name", ["API_KEY", "context-length", "Tp", "", "_x", "1x", "a b"])
def test_an_engine_argument_has_one_spelling(name: str) -> None:
    with pytest.raises(ValueError, match="'engine_arguments' should have names in lower case such as") as problem:
        ContainerConfig(engine_arguments={name: "secret"})
    assert f"got '{name}'" in str(problem.value)
    assert "secret" not in str(problem.value)


@pytest.mark.parametrize(
    ("one", "other", "first"),
    [
        ("tp", "tp_size", "tp_size"),
        ("tensor_parallel_size", "tp", "tp_size"),
        ("ep", "expert_parallel_size", "ep_size"),
    ],
)
def test_an_engine_argument_is_given_once_whatever_its_name(one: str, other: str, first: str) -> None:
    message = f"'engine_arguments' should name an argument once, got '{one}' and '{other}' for '{first}'"
    with pytest.raises(ValueError, match=message):
        ContainerConfig(engine_arguments={one: "1", other: "8"})


def test_every_setting_is_documented() -> None:
    text = (Path(__file__).parents[2] / "container" / "README.md").read_text()
    for each in fields(ContainerConfig):
        if "env" in each.metadata:
            assert f"`{each.metadata['env']}`" in text
