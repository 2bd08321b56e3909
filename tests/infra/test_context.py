import pytest

from container.config import ContainerConfig
from infra.config import InfraConfig
from infra.context import read_config, without_cdk_keys
from infra.schedule import Schedule


def problems(**settings) -> str:
    with pytest.raises(ValueError, match=r"should|is not a setting") as caught:
        read_config(settings)
    return str(caught.value)


def test_an_empty_context_gives_the_defaults():
    assert read_config({}) == InfraConfig()


def test_command_line_strings_become_the_types_of_their_fields():
    config = read_config(
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
    config = read_config({"engine_arguments": arguments})
    assert config.environment() == {
        "SM_SGLANG_CONTEXT_LENGTH": "4096",
        "SM_SGLANG_ENABLE_METRICS": "true",
        "SM_SGLANG_DTYPE": "auto",
        "SM_SGLANG_JSON_MODEL_OVERRIDE_ARGS": '{"a": 1}',
        "SM_SGLANG_MODEL_PATH": "Qwen/Qwen2.5-7B-Instruct",
    }


@pytest.mark.parametrize(
    "key",
    [
        "@aws-cdk/core:bootstrapQualifier",
        "@aws-cdk/core:permissionsBoundary",
        "@aws-cdk-containers/ecs-service-extensions:enableDefaultLogDriver",
        "aws:cdk:enable-path-metadata",
        "aws-cdk:enableDiffNoFail",
        "vpc-provider:account=111122223333:filter.vpc-id=vpc-1:region=eu-central-1:returnAsymmetricSubnets=true",
    ],
)
def test_keys_of_the_cdk_are_its_own(key):
    assert without_cdk_keys({key: True, "max_instances": 2}) == {"max_instances": 2}


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("instance-type", "instance_type"),
        ("instanceType", "instance_type"),
        ("max-instances", "max_instances"),
        ("MaxInstances", "max_instances"),
        ("aws:max_instances", "max_instances"),
        ("instance_type ", "instance_type"),
        ("stages", "stage"),
        ("bootstrapQualifier", "@aws-cdk/core:bootstrapQualifier"),
        ("permissionsBoundary", "@aws-cdk/core:permissionsBoundary"),
    ],
)
def test_a_key_that_nobody_reads_is_refused_with_the_nearest(key, hint):
    given = without_cdk_keys({key: "x"})
    assert problems(**given) == f"'{key}' is not a setting (did you mean '{hint}'?)"


@pytest.mark.parametrize("key", ["", "-", "@other/core:flag", "cdk:x", "1", "host", "metrics_namespace", "container"])
def test_a_key_that_is_near_to_none_is_refused_too(key):
    assert f"'{key}' is not a setting" in problems(**without_cdk_keys({key: "x"}))


def test_an_unknown_key_is_an_error_with_the_nearest_name():
    assert problems(min_instance=2) == "'min_instance' is not a setting (did you mean 'min_instances'?)"
    assert problems(max_session=2) == "'max_session' is not a setting (did you mean 'max_sessions'?)"


@pytest.mark.parametrize("key", ["host", "port", "instance", "metrics_namespace", "container"])
def test_what_sagemaker_decides_is_no_key(key):
    assert f"'{key}' is not a setting" in problems(**{key: "x"})


def test_all_problems_come_in_one_message():
    message = problems(
        min_instances=0, max_instances="ten", routing_strategy="LEAST_OUTSTANDING", max_sessions=-1, modle="x"
    )
    for part in (
        "'modle' is not a setting (did you mean 'model'?)",
        "'max_instances' should be a whole number, got 'ten'",
        "'max_sessions' should be from 0 to",
        "'min_instances' should be from 1 to 10000, got 0",
        "RANDOM, PREFIX_AWARE, got 'LEAST_OUTSTANDING' (did you mean 'LEAST_OUTSTANDING_REQUESTS'?)",
    ):
        assert part in message


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("endpoint_name", 5, "'endpoint_name' should be text or null, got 5"),
        ("min_instances", 1.5, "'min_instances' should be a whole number, got 1.5"),
        ("min_instances", True, "'min_instances' should be a whole number, got True"),
        ("min_instances", None, "'min_instances' should be a whole number, got None"),
        ("model_size_gib", "big", "'model_size_gib' should be a number or null, got 'big'"),
        ("enable_network_isolation", "yes", "'enable_network_isolation' should be true or false, got 'yes'"),
        ("enable_network_isolation", 1, "'enable_network_isolation' should be true or false, got 1"),
        ("engine_arguments", "context_length", "'engine_arguments' should be an object of names and values, got"),
        ("engine_arguments", [1], "'engine_arguments' should be an object of names and values, got [1]"),
        (
            "engine_arguments",
            "[" * 100_000,
            "'engine_arguments' should be an object of names and values, got other text",
        ),
        ("engine_arguments", {"dtype": None}, "'engine_arguments': 'dtype' should have a value, got null"),
        ("tags", {"team": None}, "'tags': 'team' should have a value, got null"),
        ("min_instances", "9" * 400, "'min_instances' should be a whole number, got '999"),
        ("model_size_gib", 10**400, "'model_size_gib' should be a number or null, got 1000"),
        ("max_instances", "inf", "'max_instances' should be a whole number, got 'inf'"),
        ("subnet_ids", "[" * 100_000, "'subnet_ids' should be a list of texts, got '[["),
        ("subnet_ids", [None], "'subnet_ids' should be a list of texts, got [None]"),
        ("schedules", "[" * 100_000, "'schedules' should be a list of objects, got '[["),
        ("schedules", [None], "'schedules' should be a list of objects, got [None]"),
        ("subnet_ids", 5, "'subnet_ids' should be a list of texts, got 5"),
        ("schedules", "night", "'schedules' should be a list of objects, got 'night'"),
        ("schedules", [{"cron": "0 8 ? * * *"}], "min_instances, max_instances should be given"),
        ("schedules", [{"corn": "x"}], "'corn' is not a setting (did you mean 'cron'?)"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named_with_what_is_allowed(key, value, message):
    assert message in problems(**{key: value})


@pytest.mark.parametrize("key", ["endpoint_name", "subnet_ids", "max_instances", "tags", "model", "schedules"])
def test_a_long_value_makes_no_long_message(key):
    assert len(problems(**{key: "[" * 100_000})) < 500


@pytest.mark.parametrize(
    "value",
    [
        "subnet-00000001,subnet-00000002",
        '["subnet-00000001", "subnet-00000002"]',
        ["subnet-00000001", "subnet-00000002"],
    ],
)
def test_a_list_may_be_json_or_have_commas(value):
    config = read_config({"subnet_ids": value, "security_group_ids": "sg-00000001"})
    assert (config.subnet_ids, config.security_group_ids) == (("subnet-00000001", "subnet-00000002"), ("sg-00000001",))


def test_a_schedule_is_an_object():
    given = [{"cron": "0 8 ? * MON-FRI *", "min_instances": 2, "max_instances": 6, "timezone": "Europe/Berlin"}]
    expected = Schedule(cron="0 8 ? * MON-FRI *", min_instances=2, max_instances=6, timezone="Europe/Berlin")
    assert read_config({"schedules": given}).schedules == (expected,)


@pytest.mark.parametrize("value", [True, "true"])
def test_a_switch_may_be_json_or_text(value):
    assert read_config({"enable_network_isolation": value, "model": "s3://models/qwen/"}).enable_network_isolation


def test_no_value_is_the_default():
    assert read_config({"volume_size_in_gb": "", "kms_key_arn": None}) == InfraConfig()
