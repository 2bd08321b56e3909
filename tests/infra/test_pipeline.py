import json

import pytest
from aws_cdk.assertions import Match, Template

from app import build_app

PIPELINE = {
    "repository": "team/chat",
    "connection_arn": "arn:aws:codeconnections:us-east-1:111122223333:connection/1",
    "stages": ["test", "prod"],
}


@pytest.fixture(scope="module")
def template():
    app = build_app({"pipeline": PIPELINE})
    return Template.from_stack(app.node.find_child("StickySglangPipeline"))


def test_each_stage_is_deployed_and_smoked_before_the_next(template):
    (pipeline,) = template.find_resources("AWS::CodePipeline::Pipeline").values()
    stages = {
        stage["Name"]: [action["Name"] for action in stage["Actions"]] for stage in pipeline["Properties"]["Stages"]
    }
    assert list(stages) == ["Source", "Build", "UpdatePipeline", "Assets", "test", "prod"]
    assert stages["test"][-1] == "Smoke-test"
    assert stages["prod"][-1] == "Smoke-prod"


def test_a_smoke_is_the_command_and_may_call_its_endpoint_only(template):
    projects = template.find_resources("AWS::CodeBuild::Project").values()
    smokes = [each for each in projects if "sticky smoke" in str(each["Properties"]["Source"]["BuildSpec"])]
    assert len(smokes) == 2
    commands = json.loads(smokes[0]["Properties"]["Source"]["BuildSpec"])["phases"]["build"]["commands"]
    assert commands[-1].startswith('sticky smoke --endpoint-name "$ENDPOINT" --endpoint-config-name "$CONFIG"')
    actions = ["InvokeEndpoint", "InvokeEndpointWithResponseStream", "DescribeEndpoint"]
    template.has_resource_properties(
        "AWS::IAM::Policy",
        {
            "PolicyDocument": {
                "Statement": Match.array_with(
                    [
                        {
                            "Action": [f"sagemaker:{each}" for each in actions],
                            "Effect": "Allow",
                            "Resource": {"Fn::Join": ["", Match.array_with([":endpoint/prod-stickysglang"])]},
                        }
                    ]
                )
            }
        },
    )


def test_a_pipeline_does_not_see_the_command_line():
    with pytest.raises(ValueError, match=r"^'max_instances' should stand in stages/NAME\.json"):
        build_app({"pipeline": PIPELINE, "max_instances": 2})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (PIPELINE | {"stages": []}, "'stages' should name at least one"),
        (PIPELINE | {"stages": ["nope"]}, "'stage' should be a file of stages/"),
        ("main", "should be an object of names and values, got 'main'"),
        ({"repositry": "x"}, r"'repositry' is not a setting \(did you mean 'repository'\?\)"),
        ({"repository": "team/chat"}, "connection_arn, stages should be given"),
    ],
)
def test_a_bad_pipeline_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        build_app({"pipeline": given})
