import json

import pytest
from aws_cdk import App
from aws_cdk.assertions import Match, Template

from app import build_app
from infra.config import InfraConfig
from infra.pipeline import PipelineConfig, PipelineStack

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
        ({"stages": []}, "'stages' should name at least one"),
        ({"stages": ["test", "prod", "test"]}, "'stages' should name each once, got 'test' more than once"),
        ({"stages": [f"s{n}" for n in range(47)]}, "'stages' should be at most 46, got 47"),
        ({"repository": "a"}, "'repository' should be owner/name, got 'a'"),
        ({"connection_arn": "x"}, "'connection_arn' should be the ARN of a connection of AWS CodeConnections, got 'x'"),
        ({"branch": "a..b"}, "'branch' should be the name of a branch, got 'a..b'"),
        ({"branch": ""}, "'branch' should be the name of a branch, got ''"),
        ({"account": "111122223333"}, "'account' and 'region' should be given together, got '111122223333' and None"),
        ({"region": "eu-central-1"}, "'account' and 'region' should be given together, got None and 'eu-central-1'"),
        ({"account": "1", "region": "eu-central-1"}, "'account' should be the 12 digits"),
        ({"branch": 5}, "'branch' should be text, got 5"),
        ({"brunch": "x"}, "'brunch' is not a setting (did you mean 'branch'?)"),
    ],
)
def test_a_bad_pipeline_is_refused(given, message):
    with pytest.raises(ValueError, match=r"^'pipeline': ") as caught:
        build_app({"pipeline": PIPELINE | given})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        ("main", "'pipeline': should be an object of names and values, got 'main'"),
        ([], "'pipeline': should be an object of names and values, got []"),
        ({"repository": "team/chat"}, "'pipeline': connection_arn, stages should be given"),
        (PIPELINE | {"stages": ["nope"]}, "'stage' should be a file of stages/"),
    ],
)
def test_what_is_no_pipeline_is_refused(pipeline, message):
    with pytest.raises(ValueError, match="should") as caught:
        build_app({"pipeline": pipeline})
    assert str(caught.value).startswith(message)


def stack(stages: dict[str, dict[str, str]], **pipeline: str) -> PipelineStack:
    config = PipelineConfig(**PIPELINE | {"stages": tuple(stages)} | pipeline)
    return PipelineStack(App(), "Pipeline", config=config, stages={k: InfraConfig(**v) for k, v in stages.items()})


HERE = {"account": "111122223333", "region": "eu-central-1"}


@pytest.mark.parametrize("place", [HERE, {"region": "eu-central-1"}, {"account": "111122223333"}])
def test_a_placed_stage_needs_a_placed_pipeline(place):
    with pytest.raises(ValueError, match=r"'account' and 'region' should be given, as stages/a\.json has"):
        stack({"a": place})
    stack({"a": place}, **HERE)


@pytest.mark.parametrize(
    ("one", "other", "endpoint"),
    [
        ({"endpoint_name": "chat"}, {"endpoint_name": "Chat"}, "chat"),
        ({"endpoint_name": "b-stickysglang"}, {}, "b-stickysglang"),
        ({"endpoint_name": "chat", **HERE}, {"endpoint_name": "chat"}, "chat"),
    ],
)
def test_two_stages_do_not_share_an_endpoint(one, other, endpoint):
    message = rf"'endpoint_name' should differ in stages/a\.json and stages/b\.json .*, got '{endpoint}' in both"
    with pytest.raises(ValueError, match=message):
        stack({"a": one, "b": other}, **HERE)


def test_the_same_name_elsewhere_is_another_endpoint():
    stack({"a": {"endpoint_name": "chat"}, "b": {"endpoint_name": "chat", "region": "us-east-1"}}, **HERE)
