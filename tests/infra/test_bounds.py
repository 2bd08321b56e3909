"""What each field may be, alone."""

import pytest

from infra.context import read_config

KEY = "arn:aws:kms:us-east-1:111122223333:key/"
ECR = "111122223333.dkr.ecr.us-east-1.amazonaws.com/"


def refusal(**settings) -> str:
    with pytest.raises(ValueError, match="should") as caught:
        read_config(settings)
    return str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("endpoint_name", "a_b", "'endpoint_name' should be 1 to 63 letters, digits and inner hyphens, got 'a_b'"),
        ("account", "1234", "'account' should be the 12 digits of an AWS account, got '1234'"),
        ("region", "frankfurt", "'region' should be an AWS region such as eu-central-1, got 'frankfurt'"),
        (
            "model",
            "s3://models/qwen/model.tar.gz",
            "s3://bucket/prefix/ with a / at the end, got 's3://models/qwen/mod",
        ),
        ("model", "s3://models/*/", "s3://bucket/prefix/ with a / at the end, got 's3://models/*/'"),
        ("model", "", "'model' should be a model of the Hugging Face hub"),
        ("image_uri", "lmsysorg/sglang:v0.5.23-cu130", "'image_uri' should be an image in ECR such as"),
        ("inference_ami_version", "al2023", "'inference_ami_version' should be one of al2023-ami-"),
        ("container_startup_health_check_timeout_in_seconds", 30, "should be from 60 to 3600, got 30"),
        ("model_data_download_timeout_in_seconds", 3601, "should be from 60 to 3600, got 3601"),
        ("session_ttl_minutes", 0, "'session_ttl_minutes' should be from 0.01 to 1,440, got 0"),
        ("turn_timeout_seconds", 4000, "'turn_timeout_seconds' should be from 1 to 3,600, got 4,000"),
        ("prefix_length", 100, "'prefix_length' should be from 1024 to 65536, got 100"),
        ("target_concurrent_requests_per_instance", "nan", "should be from 1 to 10000, got nan"),
        ("scale_in_cooldown_seconds", -1, "'scale_in_cooldown_seconds' should be from 0 to 3600, got -1"),
        ("deployment_strategy", "CANARI", "got 'CANARI' (did you mean 'CANARY'?)"),
        ("log_retention_days", 31, "'log_retention_days' should be one of 1, 3, 5"),
        ("data_capture_s3_uri", "s3://bucket/prefix", "'data_capture_s3_uri' should be s3://bucket/prefix/ of at"),
        ("kms_key_arn", "alias/mine", "'kms_key_arn' should be the ARN of a KMS key, got 'alias/mine'"),
        ("alarm_topic_arn", "me@example.com", "'alarm_topic_arn' should be the ARN of an SNS topic"),
        ("engine", "sglnag", "did you mean 'sglang'?"),
    ],
)
def test_a_bad_value_is_named_with_what_is_allowed(key, value, message):
    assert message in refusal(**{key: value})


SUBNETS = [f"subnet-{n:08x}" for n in range(17)]
GROUPS = [f"sg-{n:08x}" for n in range(6)]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model", "../.."),
        ("model", ".."),
        ("model", "-a/b"),
        ("model", "a/b."),
        ("model", "a--b"),
        ("model", "a/b/c"),
        ("model", "a" * 97),
        ("model", "s3://a..b/c/"),
        ("model", "s3://10.0.0.1/c/"),
        ("model", f"s3://models/{'a' * 1024}/"),
        ("base_image", "a b:cu130"),
        ("base_image", f"a:cu130{'x' * 128}"),
        ("base_image", "-f:cu130"),
        ("image_uri", f"{ECR}a//b:1-cu130"),
        ("image_uri", f"{ECR}sticky:"),
        ("image_uri", f"{ECR}{'a' * 250}:1-cu130"),
        ("image_uri", "1.dkr.ecr.us-east-1.amazonaws.com/sticky:1-cu130"),
        ("data_capture_s3_uri", f"s3://captured/{'a' * 512}/"),
        ("kms_key_arn", f"{KEY}{'-' * 36}"),
        ("kms_key_arn", "arn:aws:kms:nowhere:111122223333:key/0a1b2c3d-0000-1111-2222-333344445555"),
        ("alarm_topic_arn", "arn:aws:sns:us-east-1:111122223333:alarms.fifo"),
        ("fallback_instance_types", ["ml.g6.2xlarge"] * 2),
        (
            "fallback_instance_types",
            ["ml.g6.2xlarge", "ml.g6.4xlarge", "ml.g6.8xlarge", "ml.g5.4xlarge", "ml.g5.8xlarge"],
        ),
        ("subnet_ids", ["default"]),
        ("subnet_ids", SUBNETS),
        ("subnet_ids", SUBNETS[:1] * 2),
        ("security_group_ids", GROUPS),
        ("security_group_ids", ["sg-0000000g"]),
    ],
)
def test_what_aws_does_not_take_is_refused(key, value):
    assert f"'{key}' should " in refusal(**{key: value})


@pytest.mark.parametrize(
    "settings",
    [
        {"model": "gpt2"},
        {"model": "deepseek-ai/DeepSeek-V3.1"},
        {"model": "s3://models.of.mine/qwen/7b/"},
        {"model": "s3://models/"},
        {"base_image": "registry.local:5000/team/sglang:v1-cu130"},
        {"base_image": f"lmsysorg/sglang:v0.5.23-cu130@sha256:{'0a' * 32}"},
        {"image_uri": f"{ECR}team/sticky@sha256:{'0a' * 32}", "cuda_version": "13.0"},
        {"kms_key_arn": f"{KEY}mrk-{'0a' * 16}"},
        {"subnet_ids": SUBNETS[:16], "security_group_ids": GROUPS[:5]},
        {"tags": {f"key{n}": "x" for n in range(50)}},
        {"tags": {"team/Größe": "+-=._:/@ 1", "a" * 128: "b" * 256}},
    ],
)
def test_what_aws_takes_is_taken(settings):
    read_config(settings)


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ({"aws:x": "1"}, "not from aws: on, got 'aws:x'"),
        ({"AWS:x": "1"}, "not from aws: on, got 'AWS:x'"),
        ({"": "1"}, "'tags' should have keys of 1 to 128"),
        ({"a" * 129: "1"}, "'tags' should have keys of 1 to 128"),
        ({"a\nb": "1"}, "'tags' should have keys of 1 to 128"),
        ({"a": ""}, "'tags' should have values of 1 to 256 letters, digits and .:/=+-@_, got '' for 'a'"),
        ({"a": "x" * 257}, "'tags' should have values of 1 to 256"),
        ({"a": "b;c"}, "'tags' should have values of 1 to 256"),
        ({"Team": "1", "team": "2"}, "does not tell upper from lower case, got 'team' again"),
        ({f"key{n}": "x" for n in range(60)}, "'tags' should be at most 50, got 60"),
    ],
)
def test_a_tag_that_aws_does_not_take_is_refused(tags, message):
    assert message in refusal(tags=tags)
