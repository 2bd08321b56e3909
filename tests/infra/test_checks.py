"""What is refused at synth, and that the message says what is allowed."""

import pytest

from infra.config import InfraConfig
from infra.context import read_config

KEY = "arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d-0000-1111-2222-333344445555"


def refusal(**settings) -> str:
    with pytest.raises(ValueError, match="should") as caught:
        read_config(settings)
    return str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"min_instances": 0},
            "'min_instances' should be from 1 to 10000, got 0: scaling to zero needs inference compon",
        ),
        ({"min_instances": 3, "max_instances": 2}, "'max_instances' should be at least 'min_instances' (3), got 2"),
        (
            {"routing_strategy": "PREFIX_AWARE"},
            "'min_instances' should be at least 2 with 'routing_strategy' PREFIX_AWARE, got 1",
        ),
        (
            {"instance_type": "ml.m5.xlarge"},
            "'instance_type' should be a GPU type that SGLang runs on, such as ml.g5.2xl",
        ),
        ({"instance_type": "ml.p3.2xlarge"}, "'instance_type' should be a GPU type that SGLang runs on"),
        ({"instance_type": "g5.2xlarge"}, "got 'g5.2xlarge' (did you mean 'ml.g5.2xlarge'?)"),
        ({"fallback_instance_types": "ml.g6.2xlrge"}, "'fallback_instance_types' should be a GPU type"),
        (
            {"fallback_instance_types": ["ml.g6.2xlarge", "ml.g5.2xlarge"]},
            "'fallback_instance_types' should be other types than 'instance_type', got 'ml.g5.2xlarge'",
        ),
        (
            {"instance_type": "ml.g5.12xlarge", "engine_arguments": {"tp_size": 4, "dp_size": 2}},
            "'engine_arguments' should use at most the 4 GPUs of ml.g5.12xlarge, got tp 4 x dp 2 x pp 1 = 8",
        ),
        (
            {
                "instance_type": "ml.g7.12xlarge",
                "fallback_instance_types": ["ml.g6.2xlarge"],
                "engine_arguments": {"tensor_parallel_size": 4},
            },
            "at most the 1 GPUs of ml.g6.2xlarge, got tp 4",
        ),
        ({"engine_arguments": {"tp_size": "two"}}, "'tp_size' should be a whole number of GPUs, got 'two'"),
        ({"model_size_gib": 30}, "'model_size_gib' should fit 1 x A10G of ml.g5.2xlarge, which leave 19.7 GiB, got 30"),
        (
            {"model_size_gib": 15.2, "engine_arguments": {"mem_fraction_static": 0.5}},
            "'model_size_gib' should fit 1 x A10G of ml.g5.2xlarge, which leave 11.2 GiB",
        ),
        (
            {"volume_size_in_gb": 100},
            "'volume_size_in_gb' should be null with ml.g5.2xlarge, whose disk is its own NVMe",
        ),
        ({"volume_kms_key_arn": KEY}, "'volume_kms_key_arn' should be null with ml.g5.2xlarge"),
        ({"enable_network_isolation": True}, "'model' should be in S3 with 'enable_network_isolation'"),
        ({"subnet_ids": "subnet-00000001"}, "'subnet_ids' and 'security_group_ids' should be given together"),
        (
            {"inference_ami_version": "al2-ami-sagemaker-inference-gpu-3-1"},
            "'inference_ami_version' should be al2023-ami-sagemaker-inference-gpu-4-1 for CUDA 13.0, got 'al2-ami-",
        ),
        (
            {"base_image": "x:cu126", "inference_ami_version": "al2023-ami-sagemaker-inference-gpu-4-1"},
            "'inference_ami_version' should be al2-ami-sagemaker-inference-gpu-3-1 for CUDA 12.6",
        ),
        (
            {"base_image": "mine:1"},
            "'cuda_version' should be given, such as 13.0, because the tag of 'mine:1' does not say",
        ),
        ({"base_image": "mine:cu999"}, "'cuda_version' should be one that a host image of SageMaker fits"),
        (
            {"image_uri": "111122223333.dkr.ecr.us-east-1.amazonaws.com/sticky:1-cu130", "base_image": "mine:cu130"},
            "'base_image' should be null with 'image_uri'",
        ),
        (
            {"instance_type": "ml.p5.4xlarge", "fallback_instance_types": ["ml.p5.48xlarge"]},
            "'fallback_instance_types' should have as many GPUs as 'instance_type', got ml.p5.4xlarge with 1, ml",
        ),
        (
            {"deployment_strategy": "CANARY", "deployment_wait_seconds": 0},
            "'deployment_wait_seconds' should be at least 240, before which no alarm can roll the update back, got 0",
        ),
        ({"deployment_wait_seconds": 239}, "'deployment_wait_seconds' should be at least 240"),
        (
            {"deployment_strategy": "LINEAR", "deployment_step_percent": 10, "deployment_wait_seconds": 3600},
            "'deployment_wait_seconds' should make less than 28800 over all steps, got 10 x 3600, 36300 in all",
        ),
        (
            {"deployment_strategy": "LINEAR", "deployment_step_percent": 15, "deployment_wait_seconds": 3600}
            | {"deployment_termination_wait_seconds": 3600},
            "got 7 x 3600, 28800 in all",
        ),
        (
            {"deployment_strategy": "ROLLING", "deployment_step_percent": 5, "deployment_wait_seconds": 1440},
            "got 20 x 1440, 28800 in all",
        ),
        (
            {"region": "eu-central-1", "kms_key_arn": KEY},
            "'kms_key_arn' should be in one region with the stack, eu-central-1 is the stack's, got us-east-1",
        ),
        (
            {"region": "eu-central-1", "alarm_topic_arn": "arn:aws:sns:us-east-1:111122223333:alarms"},
            "'alarm_topic_arn' should be in one region with the stack",
        ),
        (
            {"region": "eu-central-1", "hf_token_secret_arn": "arn:aws:secretsmanager:us-east-1:111122223333:secret:h"},
            "'hf_token_secret_arn' should be in one region with the stack",
        ),
        (
            {"region": "eu-central-1", "image_uri": "111122223333.dkr.ecr.us-east-1.amazonaws.com/sticky:1-cu130"},
            "'image_uri' should be in one region with the stack",
        ),
        (
            {"alarm_topic_arn": "arn:aws:sns:eu-west-1:111122223333:alarms", "kms_key_arn": KEY},
            "'kms_key_arn' should be in one region with the stack, eu-west-1 is that of the others, got us-east-1",
        ),
        (
            {"alarm_topic_arn": "arn:aws:sns:cn-north-1:111122223333:alarms"},
            "'alarm_topic_arn' should be in the partition aws-cn, as cn-north-1 is, got aws",
        ),
        (
            {"deployment_strategy": "LINEAR", "deployment_step_percent": 5},
            "should be from 10 to 50, got 5, with LINEAR",
        ),
        ({"engine_arguments": {"a": "x" * 1025}}, "'SM_SGLANG_A' should be at most 1024 bytes, got 1025"),
        ({"engine_arguments": {f"a{n}": "x" for n in range(100)}}, "should be at most 100, got 101"),
        ({"engine_arguments": {f"a{n}": "x" * 1000 for n in range(33)}}, "should be at most 32768 bytes in all, got"),
    ],
)
def test_what_cannot_work_together_is_refused(settings, message):
    assert message in refusal(**settings)


def test_everything_that_is_wrong_comes_in_one_message():
    message = refusal(
        min_instances=0,
        instance_type="ml.m5.xlarge",
        routing_strategy="PREFIX_AWARE",
        enable_network_isolation=True,
        deployment_strategy="SLOW",
        subnet_ids="subnet-00000001",
    )
    assert message.count(" should ") >= 6


@pytest.mark.parametrize(
    "settings",
    [
        {"instance_type": "ml.g5.12xlarge", "engine_arguments": {"tp": 2, "dp": 2}},
        {"instance_type": "ml.p5.48xlarge", "engine_arguments": {"tp": 8, "dp": 8, "enable_dp_attention": True}},
        {"instance_type": "ml.g5.12xlarge", "model_size_gib": 60, "engine_arguments": {"tp_size": 4}},
        {"model_size_gib": 15.2},
        {"routing_strategy": "PREFIX_AWARE", "min_instances": 2},
        {"enable_network_isolation": True, "model": "s3://models/qwen/"},
        {"deployment_strategy": "ROLLING", "deployment_step_percent": 5},
        {"deployment_strategy": "LINEAR", "deployment_step_percent": 10, "deployment_wait_seconds": 2849},
        {"fallback_instance_types": ["ml.g6.2xlarge", "ml.p5.4xlarge"]},
        {"region": "us-east-1", "kms_key_arn": KEY, "alarm_topic_arn": "arn:aws:sns:us-east-1:111122223333:alarms"},
        {"region": "cn-north-1", "alarm_topic_arn": "arn:aws-cn:sns:cn-north-1:111122223333:alarms"},
    ],
)
def test_what_works_is_not_refused(settings):
    read_config(settings)


def test_the_dataclass_checks_itself():
    with pytest.raises(ValueError, match="'max_instances' should be at least"):
        InfraConfig(min_instances=2, max_instances=1)
