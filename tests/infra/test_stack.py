import re

from aws_cdk import App
from aws_cdk.assertions import Template

from infra.config import InfraConfig
from infra.stack import StickyStack


def test_logical_ids_stay(template):
    """A changed id of the endpoint is a new endpoint, and the end of all sessions of the old one."""
    resources = template.to_json()["Resources"]
    assert {name: resource["Type"] for name, resource in resources.items()} == {
        "StickyLog8CCDEB82": "AWS::Logs::LogGroup",
        "StickyExecutionRole147D98F6": "AWS::IAM::Role",
        "StickyExecutionRoleDefaultPolicyC553C193": "AWS::IAM::Policy",
        "StickyModel086319BA": "AWS::SageMaker::Model",
        "StickyEndpointConfig8145F742": "AWS::SageMaker::EndpointConfig",
        "StickyEndpointEA47C7C3": "AWS::SageMaker::Endpoint",
        "StickyAlarmsModelErrors1BE8F915": "AWS::CloudWatch::Alarm",
        "StickyAlarmsLatencyCF760F74": "AWS::CloudWatch::Alarm",
        "StickyAlarmsDisk14EDFD31": "AWS::CloudWatch::Alarm",
        "StickyAlarmsGpuMemory0B58A536": "AWS::CloudWatch::Alarm",
        "StickyAlarmsNoHealthyInstanceD06EDC16": "AWS::CloudWatch::Alarm",
        "ScalingTarget6760FBAF": "AWS::ApplicationAutoScaling::ScalableTarget",
        "ScalingTargetConcurrency82F7C689": "AWS::ApplicationAutoScaling::ScalingPolicy",
        "Dashboard9E4231ED": "AWS::CloudWatch::Dashboard",
        "Callers8F14BAB6": "AWS::IAM::ManagedPolicy",
    }


def test_outputs_say_how_to_try_it(template):
    outputs = {name: each["Value"] for name, each in template.to_json()["Outputs"].items()}
    region, config = {"Ref": "AWS::Region"}, {"Fn::GetAtt": ["StickyEndpointConfig8145F742", "EndpointConfigName"]}
    smoke = ["sticky smoke --endpoint-name stickysglang --region ", region, " --endpoint-config-name ", config]
    assert outputs == {
        "EndpointName": "stickysglang",
        "EndpointConfigName": config,
        "Region": region,
        "SmokeCommand": {"Fn::Join": ["", smoke]},
        "CallerPolicyArn": {"Ref": "Callers8F14BAB6"},
    }


def test_the_policy_for_callers_allows_the_two_calls(template):
    template.has_resource_properties(
        "AWS::IAM::ManagedPolicy",
        {
            "PolicyDocument": {
                "Statement": [
                    {
                        "Action": ["sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream"],
                        "Effect": "Allow",
                        "Resource": {"Ref": "StickyEndpointEA47C7C3"},
                    }
                ]
            }
        },
    )


def test_tags_reach_what_takes_tags():
    app = App()
    stack = StickyStack(app, config=InfraConfig(tags={"team": "chat"}))
    template = Template.from_stack(stack)
    for kind in ("AWS::SageMaker::Endpoint", "AWS::SageMaker::Model", "AWS::IAM::Role", "AWS::Logs::LogGroup"):
        template.has_resource_properties(kind, {"Tags": [{"Key": "team", "Value": "chat"}]})


def test_account_and_region_may_be_fixed():
    stack = StickyStack(App(), config=InfraConfig(account="111122223333", region="eu-central-1"))
    assert (stack.account, stack.region) == ("111122223333", "eu-central-1")
    outputs = Template.from_stack(stack).to_json()["Outputs"]
    assert re.search(r"--region eu-central-1 ", str(outputs["SmokeCommand"]["Value"]))
