"""No secret in plain text, in any spelling; and no message repeats one."""

import json

import pytest

from infra.context import read_config
from infra.pipeline import PipelineConfig

TOKEN = "hf_" + "a1B2" * 8


def refusal(**settings) -> str:
    with pytest.raises(ValueError, match="should") as caught:
        read_config(settings)
    return str(caught.value)


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"hf_token_secret_arn": TOKEN}, "hf_token_secret_arn"),
        ({"engine_arguments": {"api_key": "abc"}}, "api_key"),
        ({"engine_arguments": {"admin_api_key": "abc"}}, "admin_api_key"),
        ({"engine_arguments": {"ssl_keyfile_password": "abc"}}, "ssl_keyfile_password"),
        ({"engine_arguments": {"file_storage_path": TOKEN}}, "file_storage_path"),
        ({"engine_arguments": {"model_loader_extra_config": {"secretAccessKey": "abc"}}}, "model_loader_extra_config"),
        (
            {"engine_arguments": {"model_loader_extra_config": [{"s3": {"API-Key": "abc"}}]}},
            "model_loader_extra_config",
        ),
        ({"tags": {"owner": TOKEN}}, "owner"),
        ({"tags": {TOKEN: "owner"}}, "tags"),
        ({"model": TOKEN}, "model"),
        ({"engine_arguments": {"model": "x"}, "model": TOKEN}, "model"),
        ({"base_image": f"{TOKEN}:cu130"}, "base_image"),
        ({"fallback_instance_types": ["ml.g6.2xlarge", TOKEN]}, "fallback_instance_types"),
        ({"endpoint_name": TOKEN}, "endpoint_name"),
    ],
)
def test_a_secret_in_plain_text_is_refused_and_not_repeated(settings, key):
    message = refusal(**settings)
    assert f"'{key}' should" in message
    assert TOKEN not in message
    assert "abc" not in message


@pytest.mark.parametrize("name", ["API_KEY", "Api_Key", "api-key", "HF_TOKEN"])
def test_a_secret_is_refused_in_any_spelling_of_its_name(name):
    message = refusal(engine_arguments={name: "abc"})
    assert f"'engine_arguments' should have names in lower case such as 'context_length', got '{name}'" in message
    assert "abc" not in message


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-abcdefghijklmnop1234",
        "ghp_abcdefghijklmnopqrst1234",
        "github_pat_abcdefghijklmnopqrst1234",
        "glpat-abcdefghijklmnopqrst",
        "xoxb-1234567890-abcdef",
        "AKIAABCDEFGHIJKLMNOP",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.x",
        "-----BEGIN RSA PRIVATE KEY-----",
    ],
)
def test_secrets_are_known_by_their_look(secret):
    message = refusal(tags={"note": f"see {secret}"})
    assert "'note' should not hold a secret" in message
    assert secret not in message


@pytest.mark.parametrize(
    "settings",
    [
        {"max_instances": TOKEN},
        {"enable_network_isolation": TOKEN},
        {"subnet_ids": {"a": TOKEN}},
        {"schedules": [{"cron": TOKEN, "min_instances": 1, "max_instances": 2}]},
        {"engine_arguments": json.dumps({"api_key": "abc"})[:-1]},
        {"tags": "abc"},
        {TOKEN: 1},
    ],
)
def test_a_value_of_the_wrong_kind_is_not_repeated_where_it_looks_like_a_secret(settings):
    with pytest.raises(ValueError, match=r"should|is not a setting") as caught:
        read_config(settings)
    assert TOKEN not in str(caught.value)
    assert "abc" not in str(caught.value)


def test_a_pipelines_settings_do_not_repeat_one_either():
    with pytest.raises(ValueError, match="should") as caught:
        PipelineConfig.from_context({"repository": TOKEN, "connection_arn": TOKEN, "stages": TOKEN, "branch": 1})
    assert TOKEN not in str(caught.value)


def test_engine_arguments_that_only_sound_like_secrets_pass():
    quantization = {"tokens": 1, "keyed": {"tokenizer": "x"}}
    arguments = {"max_total_tokens": 4096, "tokenizer_path": "x", "tokenizer_mode": "auto", "bucket": quantization}
    read_config({"engine_arguments": arguments})
