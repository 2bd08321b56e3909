"""Which value wins, and what is said of a file that is not right."""

import json
from pathlib import Path

import pytest
from sagemaker_sticky.cli.preflight import read_plan

from app import build_app
from infra.config import InfraConfig
from infra.files import REPOSITORY, refuse_settings, stage_config


@pytest.fixture
def tree(tmp_path) -> Path:
    (tmp_path / "stages").mkdir()
    (tmp_path / "stages" / "blue.json").write_text(json.dumps({"max_instances": 6, "instance_type": "ml.g6.2xlarge"}))
    return tmp_path


def refusal(tree: Path, text: str | bytes, **commanded) -> str:
    (tree / "stages" / "blue.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ValueError, match=r"stages/blue\.json") as caught:
        stage_config("blue", commanded, directory=tree)
    return str(caught.value)


def test_a_stage_wins_over_the_defaults_and_the_command_line_over_both(tree):
    config = stage_config("blue", {"instance_type": "ml.g6e.2xlarge"}, directory=tree)
    assert config == InfraConfig(max_instances=6, instance_type="ml.g6e.2xlarge")


def test_the_command_line_wins_with_the_defaults_own_value(tree):
    default = InfraConfig().instance_type
    assert stage_config("blue", {"instance_type": default}, directory=tree).instance_type == default


@pytest.mark.parametrize("name", ["blu", "", "../cdk", "blue.json", "BLUE", 5, None, ["blue"], {"blue": 1}])
def test_an_unknown_stage_is_an_error_with_those_that_are_there(tree, name):
    (tree / "cdk.json").write_text("{}")
    with pytest.raises(ValueError, match=r"^'stage' should be a file of stages/ \(blue\), got ") as caught:
        stage_config(name, {}, directory=tree)
    assert ("did you mean 'blue'?" in str(caught.value)) == (name in ("blu", "blue.json", ["blue"]))


@pytest.mark.parametrize("name", ["my_stage", "1st", "a" * 51, "a b"])
def test_a_stage_must_be_able_to_name_a_stack_and_an_endpoint(tree, name):
    (tree / "stages" / f"{name}.json").write_text("{}")
    with pytest.raises(
        ValueError, match="'stage' should be 1 to 50 letters, digits and hyphens, from a letter on, got"
    ):
        stage_config(name, {}, directory=tree)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "should be an object of names and values, got []"),
        ("null", "should be an object of names and values, got null"),
        ('"max_instances"', 'should be an object of names and values, got "max_instances"'),
        ("", "should be JSON: Expecting value: line 1 column 1"),
        ('{"max_instances": 2,}', "should be JSON: "),
        ('{"max_instances": 2', "should be JSON: "),
        (b"\xff\xfe", "cannot be read: "),
        ("[" * 100_000, "cannot be read: "),
        ('{"max_instances": 2, "max_instances": 3}', "'max_instances' stands there twice"),
        ('{"tags": {"a": "1", "a": "2"}}', "'a' stands there twice"),
        ('{"max_instances": 0}', "'max_instances' should be from 1 to 10000, got 0"),
        ('{"model": null}', "'model' should be text, got None"),
        ('{"model": "../.."}', "'model' should be a model of the Hugging Face hub"),
        ('{"max-instances": 2}', "'max-instances' is not a setting (did you mean 'max_instances'?)"),
        ('{"stage": "prod"}', "'stage' is not a setting"),
        ('{"@aws-cdk/core:bootstrapQualifier": "x"}', "'@aws-cdk/core:bootstrapQualifier' is not a setting"),
    ],
)
def test_a_file_that_is_not_right_is_named_with_the_problem(tree, text, problem):
    assert refusal(tree, text).startswith(f"stages/blue.json: {problem}")


def test_where_the_command_line_takes_part_it_is_said(tree):
    found = refusal(tree, '{"min_instances": 3}', max_instances=2)
    assert found.startswith("stages/blue.json with the command line over it: 'max_instances' should be at least")


@pytest.mark.parametrize("name", ["prod", "test"])
def test_the_stages_of_this_repository_are_valid(name):
    app = build_app({"stage": name})
    stack = app.node.find_child(f"{name}-StickySglang")
    assert stack.stack_name == f"{name}-StickySglang"
    assert stack.endpoint.endpoint_name == f"{name}-stickysglang" == read_plan(REPOSITORY, stage=name).endpoint_name


def test_the_cdks_files_may_choose_what_is_deployed_and_hold_what_the_cdk_reads(tmp_path):
    context = {"stage": "prod", "pipeline": None, "@aws-cdk/core:bootstrapQualifier": "mine"}
    (tmp_path / "cdk.json").write_text(json.dumps({"app": "x", "context": context}))
    (tmp_path / "cdk.context.json").write_text(json.dumps({"availability-zones:account=1:region=x": ["a"]}))
    for name in ("cdk.json", "cdk.context.json", ".cdk.json"):
        refuse_settings(tmp_path / name)
    refuse_settings(REPOSITORY / "cdk.json")


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("cdk.json", {"context": {"instance_type": "x"}}, "'context' should hold no setting, got 'instance_type'"),
        (".cdk.json", {"context": {"max-instances": 1}}, "'context' should hold no setting, got 'max-instances'"),
        ("cdk.context.json", {"model": "x"}, "'context' should hold no setting, got 'model'"),
        ("cdk.json", {"context": []}, "'context' should be an object"),
        ("cdk.json", [], "should be an object of names and values, got []"),
    ],
)
def test_a_setting_in_a_file_of_the_cdk_is_refused(tmp_path, name, content, problem):
    (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(ValueError, match=f"^{name}: ") as caught:
        refuse_settings(tmp_path / name)
    assert problem in str(caught.value)
