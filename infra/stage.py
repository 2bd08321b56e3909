"""One deployment stage: ``cdk deploy -c stage=prod`` takes what ``stages/prod.json`` says over what cdk.json says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aws_cdk import Stage
from constructs import Construct
from sagemaker_sticky_protocol import nearest

from infra.config import InfraConfig
from infra.context import read_config
from infra.stack import StickyStack

REPOSITORY = Path(__file__).resolve().parents[1]


class StickyStage(Stage):
    """The stack under the stage's name, such as ``prod-StickySglang``, beside those of other stages.

    Attributes:
        stack: The one stack.
    """

    def __init__(self, scope: Construct, id: str, *, config: InfraConfig) -> None:
        super().__init__(scope, id)
        self.stack = StickyStack(self, config=config)


def stage_config(name: str, context: Mapping[str, Any], *, directory: Path = REPOSITORY) -> InfraConfig:
    """The configuration of a stage: cdk.json, over it the stage's file, over it what ``-c`` changed.

    Args:
        name: Of the stage; its file is ``stages/NAME.json``.
        context: What the CDK gives: cdk.json with ``-c`` over it.
        directory: The root of the repository.

    Raises:
        ValueError: there is no such stage, or every problem of its configuration.
    """
    file = directory / "stages" / f"{name}.json"
    known = sorted(each.stem for each in file.parent.glob("*.json"))
    if name not in known:
        listed = ", ".join(known) or "none"
        raise ValueError(
            f"'stage' should be a file of {file.parent.name}/ ({listed}), got {name!r}{nearest(name, known)}"
        )
    written = json.loads((directory / "cdk.json").read_text())["context"]
    written.pop("pipeline", None)
    # The CDK does not tell cdk.json from the command line: what differs from the one came from the other.
    commanded = {key: value for key, value in context.items() if key not in written or written[key] != value}
    return read_config(written | json.loads(file.read_text()) | commanded)
