from dataclasses import fields

import pytest
from sagemaker_sticky.cli.preflight import Plan

from container.config import ContainerConfig
from infra.config import CONTAINER_KEYS, OWN_KEYS, InfraConfig

SECRET = "arn:aws:secretsmanager:us-east-1:111122223333:secret:hub-AbCdEf"


def test_defaults_are_valid():
    config = InfraConfig()
    assert (config.min_instances, config.max_instances, config.autoscales) == (1, 4, True)
    assert config.environment() == {"SM_SGLANG_MODEL_PATH": "Qwen/Qwen2.5-7B-Instruct"}


def test_the_container_reads_back_what_was_meant():
    config = InfraConfig(container=ContainerConfig(session_ttl_minutes=5.0, max_sessions=3))
    read = ContainerConfig.from_env(config.environment(metrics_namespace="StickySGLang/mine"))
    assert (read.session_ttl_minutes, read.max_sessions, read.metrics_namespace) == (5.0, 3, "StickySGLang/mine")
    assert read.engine_arguments == {"model_path": "Qwen/Qwen2.5-7B-Instruct"}


def test_a_model_in_s3_is_read_where_sagemaker_mounts_it():
    config = InfraConfig(model="s3://models/qwen/")
    assert ContainerConfig.from_env(config.environment()).engine_arguments == {"model_path": "/opt/ml/model"}


def test_the_token_of_a_gated_model_crosses_as_the_name_of_its_secret():
    assert (
        InfraConfig(container=ContainerConfig(hf_token_secret_arn=SECRET)).environment()["HF_TOKEN_SECRET_ARN"]
        == SECRET
    )


@pytest.mark.parametrize(
    ("settings", "ami"),
    [
        ({}, "al2023-ami-sagemaker-inference-gpu-4-1"),
        ({"base_image": "lmsysorg/sglang:v0.5.2-cu126"}, "al2-ami-sagemaker-inference-gpu-3-1"),
        (
            {"base_image": "lmsysorg/sglang:v0.5.2-cu129", "cuda_version": "13.0"},
            "al2023-ami-sagemaker-inference-gpu-4-1",
        ),
        ({"base_image": "lmsysorg/sglang:v0.4.1-cu121"}, "al2-ami-sagemaker-inference-gpu-2-1"),
        (
            {"base_image": "mine:1", "inference_ami_version": "al2-ami-sagemaker-inference-gpu-2"},
            "al2-ami-sagemaker-inference-gpu-2",
        ),
    ],
)
def test_the_host_image_follows_the_cuda_of_the_image(settings, ami):
    assert InfraConfig(**settings).ami_version == ami


@pytest.mark.parametrize(("ttl_minutes", "seconds"), [(1, 300), (30, 1800), (240, 3600)])
def test_an_instance_is_not_taken_again_within_the_life_of_a_session(ttl_minutes, seconds):
    container = ContainerConfig(session_ttl_minutes=ttl_minutes)
    assert InfraConfig(container=container).scale_in_pause_seconds == seconds
    assert InfraConfig(container=container, scale_in_cooldown_seconds=60).scale_in_pause_seconds == 60


def test_no_key_is_both_of_the_stack_and_of_the_container():
    assert not OWN_KEYS & CONTAINER_KEYS


def test_the_doctor_plans_with_the_same_defaults():
    config = InfraConfig()
    for each in fields(Plan):
        owner = config if each.name in OWN_KEYS else config.container
        assert each.default == getattr(owner, each.name), each.name
