import pytest
from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Match, Template

from infra.config import InfraConfig
from infra.endpoint import StickyEndpoint


def statements(template: Template) -> list[dict]:
    (policy,) = template.find_resources("AWS::IAM::Policy").values()
    return policy["Properties"]["PolicyDocument"]["Statement"]


def as_text(value) -> str:
    """An ARN as CloudFormation would join it, with pseudo parameters by name."""
    if isinstance(value, str):
        return value
    if "Fn::Join" in value:
        separator, parts = value["Fn::Join"]
        return separator.join(as_text(part) for part in parts)
    return "{" + (value.get("Ref") or value.get("Fn::Sub") or ".".join(value["Fn::GetAtt"])) + "}"


def test_the_variant_says_everything_that_matters(template):
    template.has_resource_properties(
        "AWS::SageMaker::EndpointConfig",
        {
            "ProductionVariants": [
                {
                    "VariantName": "AllTraffic",
                    "ModelName": {"Fn::GetAtt": [Match.string_like_regexp("Model"), "ModelName"]},
                    "InstanceType": "ml.g5.2xlarge",
                    "InitialInstanceCount": 1,
                    "InitialVariantWeight": 1,
                    "InferenceAmiVersion": "al2023-ami-sagemaker-inference-gpu-4-1",
                    "ContainerStartupHealthCheckTimeoutInSeconds": 1800,
                    "ModelDataDownloadTimeoutInSeconds": 1800,
                    "RoutingConfig": {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"},
                }
            ]
        },
    )


@pytest.mark.parametrize("kind", ["Model", "EndpointConfig"])
def test_what_an_update_replaces_has_no_name_of_its_own(s3_template, kind):
    s3_template.has_resource_properties(f"AWS::SageMaker::{kind}", {f"{kind}Name": Match.absent()})


def test_the_endpoint_runs_the_configuration_and_keeps_the_count_that_autoscaling_chose(template):
    template.has_resource_properties(
        "AWS::SageMaker::Endpoint",
        {
            "EndpointConfigName": {"Fn::GetAtt": [Match.string_like_regexp("EndpointConfig"), "EndpointConfigName"]},
            "EndpointName": Match.absent(),
            "RetainAllVariantProperties": True,
        },
    )


def test_a_fixed_fleet_takes_a_new_count_with_the_update(s3_template):
    s3_template.has_resource_properties(
        "AWS::SageMaker::Endpoint", {"EndpointName": "chat", "RetainAllVariantProperties": False}
    )


def test_a_hub_model_crosses_as_an_environment_variable(template):
    template.has_resource_properties(
        "AWS::SageMaker::Model",
        {
            "PrimaryContainer": {
                "Environment": {"SM_SGLANG_MODEL_PATH": "Qwen/Qwen2.5-7B-Instruct"},
                "Image": {"Fn::Sub": Match.string_like_regexp(r"container-assets-.*:[0-9a-f]{64}$")},
                "ModelDataSource": Match.absent(),
            }
        },
    )
    assert not any("s3:" in str(each["Action"]) for each in statements(template))


def test_a_model_in_s3_is_mounted_uncompressed(s3_template):
    s3_template.has_resource_properties(
        "AWS::SageMaker::Model",
        {
            "PrimaryContainer": {
                "Environment": {"SM_SGLANG_MODEL_PATH": "/opt/ml/model"},
                "ModelDataSource": {
                    "S3DataSource": {
                        "S3Uri": "s3://models/qwen/7b/",
                        "S3DataType": "S3Prefix",
                        "CompressionType": "None",
                    }
                },
            }
        },
    )


def test_a_model_in_s3_opens_its_prefix_and_no_more(s3_template):
    get, list_ = (each for each in statements(s3_template) if "s3:" in str(each["Action"]))
    assert (get["Action"], as_text(get["Resource"])) == ("s3:GetObject", "arn:{AWS::Partition}:s3:::models/qwen/7b/*")
    assert (list_["Action"], as_text(list_["Resource"])) == ("s3:ListBucket", "arn:{AWS::Partition}:s3:::models")
    assert list_["Condition"] == {"StringLike": {"s3:prefix": ["qwen/7b/*"]}}


def test_the_model_waits_for_the_policy_of_its_role(template):
    template.has_resource(
        "AWS::SageMaker::Model",
        {"DependsOn": Match.array_with([next(iter(template.find_resources("AWS::IAM::Policy")))])},
    )


def test_the_role_is_sagemakers_and_has_no_managed_policy(template):
    template.has_resource_properties(
        "AWS::IAM::Role",
        {
            "AssumeRolePolicyDocument": {
                "Statement": [Match.object_like({"Principal": {"Service": "sagemaker.amazonaws.com"}})]
            },
            "ManagedPolicyArns": Match.absent(),
        },
    )


def test_the_role_may_do_only_this(template):
    allowed = {
        (as_text(each["Resource"]), action)
        for each in statements(template)
        for action in ([each["Action"]] if isinstance(each["Action"], str) else each["Action"])
    }
    in_account = "{AWS::Region}:{AWS::AccountId}"
    repository = "cdk-hnb659fds-container-assets-${AWS::AccountId}-${AWS::Region}"
    repository = f"arn:{{AWS::Partition}}:ecr:{in_account}:repository/{{{repository}}}"
    logs = f"arn:{{AWS::Partition}}:logs:{in_account}:log-group:/aws/sagemaker/Endpoints/*"
    assert allowed == {
        (repository, "ecr:BatchCheckLayerAvailability"),
        (repository, "ecr:GetDownloadUrlForLayer"),
        (repository, "ecr:BatchGetImage"),
        ("*", "ecr:GetAuthorizationToken"),
        (logs, "logs:CreateLogGroup"),
        (logs, "logs:CreateLogStream"),
        (logs, "logs:DescribeLogStreams"),
        (logs, "logs:PutLogEvents"),
        ("*", "cloudwatch:PutMetricData"),
    }


def test_metrics_are_held_to_sagemakers_namespaces(template):
    (metrics,) = (each for each in statements(template) if each["Action"] == "cloudwatch:PutMetricData")
    assert metrics["Condition"] == {
        "StringEquals": {"cloudwatch:namespace": ["AWS/SageMaker", "/aws/sagemaker/Endpoints"]}
    }


def test_a_named_endpoint_writes_to_its_own_log_group(s3_template):
    (logs,) = (each for each in statements(s3_template) if "logs:PutLogEvents" in each["Action"])
    assert as_text(logs["Resource"]).endswith(":log-group:/aws/sagemaker/Endpoints/chat*")


def test_grant_invoke_allows_the_two_calls_on_this_endpoint():
    stack = Stack()
    endpoint = StickyEndpoint(stack, "Sticky", config=InfraConfig())
    user = iam.User(stack, "Caller")

    grant = endpoint.grant_invoke(user)

    assert grant.success
    template = Template.from_stack(stack)
    template.has_resource_properties(
        "AWS::IAM::Policy",
        {
            "PolicyDocument": {
                "Statement": [
                    {
                        "Effect": "Allow",
                        "Action": ["sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream"],
                        # Ref is the ARN that SageMaker made, whose name is in lower case.
                        "Resource": {"Ref": next(iter(template.find_resources("AWS::SageMaker::Endpoint")))},
                    }
                ]
            },
            "Users": [Match.any_value()],
        },
    )
