import pytest
from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Match, Template

from infra.config import InfraConfig
from infra.endpoint import StickyEndpoint


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
            "EndpointName": "stickysglang",
            "RetainAllVariantProperties": True,
        },
    )


def test_an_isolated_container_has_no_network(s3_template, endpoint_template):
    s3_template.has_resource_properties("AWS::SageMaker::Model", {"EnableNetworkIsolation": False})
    isolated = endpoint_template(model="s3://models/qwen/", enable_network_isolation=True)
    isolated.has_resource_properties("AWS::SageMaker::Model", {"EnableNetworkIsolation": True})


def test_a_fixed_fleet_takes_a_new_count_with_the_update(s3_template):
    s3_template.has_resource_properties(
        "AWS::SageMaker::Endpoint", {"EndpointName": "chat", "RetainAllVariantProperties": False}
    )


def test_a_hub_model_crosses_as_an_environment_variable(template):
    template.has_resource_properties(
        "AWS::SageMaker::Model",
        {
            "PrimaryContainer": {
                "Environment": {
                    "SM_SGLANG_MODEL_PATH": "Qwen/Qwen2.5-7B-Instruct",
                    "STICKY_METRICS_NAMESPACE": "StickySGLang/StickySglang",
                },
                "Image": {"Fn::Sub": Match.string_like_regexp(r"container-assets-.*:[0-9a-f]{64}$")},
                "ModelDataSource": Match.absent(),
            }
        },
    )


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


def test_the_model_waits_for_the_policy_of_its_role(template):
    template.has_resource(
        "AWS::SageMaker::Model",
        {"DependsOn": [next(iter(template.find_resources("AWS::IAM::Policy")))]},
    )


def test_the_endpoint_is_gone_before_its_log_and_the_policy_of_its_role(template):
    needed = [*template.find_resources("AWS::IAM::Policy"), *template.find_resources("AWS::Logs::LogGroup")]
    template.has_resource("AWS::SageMaker::Endpoint", {"DependsOn": needed})


def test_the_log_is_kept_for_a_month_and_goes_with_the_stack(template):
    template.has_resource(
        "AWS::Logs::LogGroup",
        {
            "DeletionPolicy": "Delete",
            "Properties": {"LogGroupName": "/aws/sagemaker/Endpoints/stickysglang", "RetentionInDays": 30},
        },
    )


def test_a_ready_image_is_taken_from_its_repository(endpoint_template):
    uri = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/team/sticky:1.0-cu126"
    template = endpoint_template(image_uri=uri)
    template.has_resource_properties("AWS::SageMaker::Model", {"PrimaryContainer": {"Image": uri}})
    ami = {"ProductionVariants": [{"InferenceAmiVersion": "al2-ami-sagemaker-inference-gpu-3-1"}]}
    template.has_resource_properties("AWS::SageMaker::EndpointConfig", ami)
    assert ":ecr:eu-west-1:111122223333:repository/team/sticky" in str(template.find_resources("AWS::IAM::Policy"))


def test_a_stack_whose_name_is_no_endpoint_name_needs_one():
    with pytest.raises(ValueError, match=r"'endpoint_name' should be given, as the stack's name '.*' is not 1 to 63"):
        StickyEndpoint(Stack(stack_name="a" * 64), "Sticky", config=InfraConfig())


def test_prefix_aware_routing_comes_with_its_settings(endpoint_template):
    template = endpoint_template(routing_strategy="PREFIX_AWARE", min_instances=2, prefix_length=2048)
    routing = {
        "RoutingStrategy": "PREFIX_AWARE",
        "PrefixAwareRoutingConfig": {"PrefixLength": 2048, "ConcurrencyThreshold": 16},
    }
    template.has_resource_properties(
        "AWS::SageMaker::EndpointConfig", {"ProductionVariants": [{"RoutingConfig": routing}]}
    )


def test_types_to_fall_back_to_are_pools_in_order(endpoint_template):
    template = endpoint_template(fallback_instance_types=("ml.g6.2xlarge",))
    pools = [{"InstanceType": "ml.g5.2xlarge", "Priority": 1}, {"InstanceType": "ml.g6.2xlarge", "Priority": 2}]
    template.has_resource_properties(
        "AWS::SageMaker::EndpointConfig",
        {"ProductionVariants": [{"InstancePools": pools, "InstanceType": Match.absent()}]},
    )


def test_data_capture_copies_both_ways_under_the_key(everything_template):
    template = everything_template
    template.has_resource_properties(
        "AWS::SageMaker::EndpointConfig",
        {
            "DataCaptureConfig": {
                "CaptureOptions": [{"CaptureMode": "Input"}, {"CaptureMode": "Output"}],
                "DestinationS3Uri": "s3://captured/chat/",
                "EnableCapture": True,
                "InitialSamplingPercentage": 100,
                "KmsKeyId": Match.string_like_regexp("^arn:aws:kms:"),
            }
        },
    )


def test_the_instances_may_stand_in_a_vpc(everything_template):
    everything_template.has_resource_properties(
        "AWS::SageMaker::Model",
        {"VpcConfig": {"Subnets": ["subnet-00000001", "subnet-00000002"], "SecurityGroupIds": ["sg-00000001"]}},
    )


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


def test_every_metric_is_of_this_endpoint():
    stack = Stack()
    endpoint = StickyEndpoint(stack, "Sticky", config=InfraConfig(endpoint_name="chat"))
    dimensions = {"EndpointName": "chat", "VariantName": "AllTraffic"}
    for metric in (endpoint.metric_invocations(), endpoint.metric_latency(), endpoint.metric_overhead()):
        assert (metric.namespace, dict(metric.dimensions)) == ("AWS/SageMaker", dimensions)
    assert endpoint.metric_gpu_memory().namespace == "/aws/sagemaker/Endpoints"
    assert dict(endpoint.metric_gpu_memory().dimensions) == dimensions
    for metric in (endpoint.metric_first_token(), endpoint.metric_open_sessions()):
        assert (metric.namespace, metric.dimensions) == ("StickySGLang/Default", None)
    assert endpoint.metric_model_errors().using_metrics["calls"].metric_name == "Invocations"
