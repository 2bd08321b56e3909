"""Closes the gaps of moto (5.2.5) into which ``cdk deploy`` of a SageMaker stack falls.

moto is an AWS account in one process. Its CloudFormation makes most resources for real, but was not written against the
CDK's command line; each function below makes one thing as AWS does it. The resource types that moto lacks are in
``moto_resources``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import moto.cloudformation.models as models
import moto.cloudformation.parsing as parsing
import moto.cloudformation.responses as responses
import moto.cloudformation.utils as utils
import moto.sagemaker.models as sagemaker
from moto.cloudformation.exceptions import ValidationError
from moto.core.exceptions import ServiceException
from moto.iam.models import ManagedPolicy, iam_backends
from moto.utilities.utils import get_partition

INSTANCE_TYPE = re.compile(r"ml\.[a-z0-9-]+\.(\d*x?large|medium|metal)")


def apply_all() -> None:
    """Patch the moto of this process."""
    for patch in (
        templates_by_loopback_address,
        instance_types_of_today,
        names_that_the_template_gives,
        parameters_left_at_their_default,
        change_sets,
        replaced_resources_are_passed_on,
        managed_policies_are_deleted,
        unknown_types_fail,
    ):
        patch()


def templates_by_loopback_address() -> None:
    """A template's URL on 127.0.0.1 is path style, as one on localhost is."""
    original = utils.get_stack_from_s3_url

    def get(template_url: str, account_id: str, partition: str) -> Any:
        url = re.sub(r"^https?://127\.0\.0\.1(:\d+)?/", "http://localhost/", template_url)
        return original(url, account_id, partition)

    responses.get_stack_from_s3_url = models.get_stack_from_s3_url = get


def instance_types_of_today() -> None:
    """moto's own list of instance types ends in 2020."""

    def validate(self: Any, instance_type: str) -> None:
        if not INSTANCE_TYPE.fullmatch(instance_type):
            raise sagemaker.ValidationError(message=f"'{instance_type}' at 'instanceType' is no instance type")

    sagemaker.FakeEndpointConfig.validate_instance_type = validate


def names_that_the_template_gives() -> None:
    """A name in the template is the name of the resource."""
    for kind, field in (
        (sagemaker.FakeEndpoint, "EndpointName"),
        (sagemaker.FakeEndpointConfig, "EndpointConfigName"),
        (sagemaker.Model, "ModelName"),
    ):
        kind.cloudformation_name_type = staticmethod(lambda field=field: field)


def parameters_left_at_their_default() -> None:
    """``UsePreviousValue`` is allowed for a parameter that was never given, as the CDK's BootstrapVersion is."""

    def resolve(self: Any, instance: Any, incoming_params: list[dict[str, Any]]) -> dict[str, Any]:
        before = dict(instance.resource_map.resolved_parameters) | dict(instance.parameters)
        values = {}
        for each in incoming_params:
            key = each["ParameterKey"]
            if "ParameterValue" in each:
                values[key] = each["ParameterValue"]
            elif str(each.get("UsePreviousValue", "")).lower() == "true" and key in instance.parameters:
                values[key] = before[key]
        return values

    original = models.CloudFormationBackend.create_change_set

    def create(self: Any, *arguments: Any, **named: Any) -> Any:
        if named.get("change_set_type") == "UPDATE":
            stack = self.get_stack(named["stack_name"])
            types = {name: each.get("Type", "") for name, each in (stack.template_dict.get("Parameters") or {}).items()}
            # The previous value of an SSM parameter arrives resolved; its default is what is meant.
            named["parameters"] = {
                name: value
                for name, value in (named.get("parameters") or {}).items()
                if name in stack.parameters or not types.get(name, "").startswith("AWS::SSM::Parameter")
            }
        return original(self, *arguments, **named)

    models.CloudFormationBackend._resolve_update_parameters = resolve
    models.CloudFormationBackend.create_change_set = create


class ChangeSetNotFound(ServiceException):
    """What AWS answers for a change set that is not there."""

    code = "ChangeSetNotFound"


def change_sets() -> None:
    """A change set that is not there is an error of its own; outputs and template follow the one that is executed."""
    describe_original = models.CloudFormationBackend.describe_change_set

    def found(backend: Any, name: str) -> str | None:
        return next((key for key, each in backend.change_sets.items() if name in (key, each.change_set_name)), None)

    def delete(self: Any, change_set_name: str) -> None:
        key = found(self, change_set_name)
        if key:
            del self.change_sets[key]

    def describe(self: Any, change_set_name: str) -> Any:
        if not found(self, change_set_name):
            raise ChangeSetNotFound(f"ChangeSet [{change_set_name}] does not exist")
        return describe_original(self, change_set_name)

    def apply(self: Any) -> None:
        stack = self.stack
        stack.template = self.template
        stack._parse_template()
        stack.resource_map.update(stack.template_dict, self.parameters)
        stack.output_map = stack._create_output_map()
        stack.parameters = self.parameters

    models.CloudFormationBackend.delete_change_set = delete
    models.CloudFormationBackend.describe_change_set = describe
    models.ChangeSet.apply = apply


def replaced_resources_are_passed_on() -> None:
    """A resource that was replaced has a new physical id, which reaches all that refer to it."""
    original = parsing.ResourceMap.update

    def physical_id(resource: Any) -> Any:
        return getattr(resource, "physical_resource_id", None)

    def update(self: Any, template: dict[str, Any], parameters: Any = None) -> None:
        before = {name: physical_id(each) for name, each in self._parsed_resources.items()}
        touched = set(self.build_resource_diff(template, parameters)["Modify"])
        original(self, template, parameters)
        queue = [name for name in touched if before.get(name) != physical_id(self._parsed_resources.get(name))]
        seen = set(queue)
        while queue:
            replaced = queue.pop(0)
            for name, body in template["Resources"].items():
                if name in seen or name not in before or replaced not in _references(body.get("Properties", {})):
                    continue
                fresh = parsing.parse_and_update_resource(
                    name, body, self, account_id=self._account_id, region_name=self._region_name
                )
                if fresh is None:
                    continue
                self._parsed_resources[name] = fresh
                seen.add(name)
                if physical_id(fresh) != before[name]:
                    queue.append(name)

    parsing.ResourceMap.update = update


def managed_policies_are_deleted() -> None:
    """A managed policy goes with its stack."""

    def delete(self: Any, account_id: str, region_name: str) -> None:
        iam_backends[account_id][get_partition(region_name)].delete_policy(self.arn)

    ManagedPolicy.delete = delete


def unknown_types_fail() -> None:
    """A type that is not implemented fails the stack, instead of being there in name only."""
    original = parsing.parse_resource

    def parse(resource_json: dict[str, Any], resources_map: Any) -> Any:
        parsed = original(resource_json, resources_map)
        if not parsed and resource_json["Type"] != "AWS::CDK::Metadata":
            raise ValidationError(message=f"unknown resource type {resource_json['Type']}")
        return parsed

    parsing.parse_resource = parse


def _references(value: Any) -> set[str]:
    """The logical ids that a template's value refers to."""
    return set(_referred(value))


def _referred(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _referred(each)
    if not isinstance(value, dict):
        return
    if isinstance(value.get("Ref"), str):
        yield value["Ref"]
    attribute = value.get("Fn::GetAtt")
    if attribute:
        yield attribute[0] if isinstance(attribute, list) else attribute.split(".")[0]
    text = value.get("Fn::Sub")
    text = text[0] if isinstance(text, list) else text
    if isinstance(text, str):
        yield from (each.split(".")[0] for each in re.findall(r"\$\{([^!}]+)\}", text))
    for each in value.values():
        yield from _referred(each)
