"""The CDK app, which ``cdk synth`` and ``cdk deploy`` run. The only CDK code that reads context."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aws_cdk import App

from infra.context import read_config, without_cdk_keys
from infra.files import refuse_settings, stage_config
from infra.pipeline import PipelineConfig, PipelineStack
from infra.stack import STACK_ID, StickyStack

CDK_FILES = (Path("cdk.json"), Path("cdk.context.json"), Path("~/.cdk.json").expanduser())
"""From where the CDK, which runs this where it found them, fills the context, beside its command line."""


def build_app(context: Mapping[str, Any]) -> App:
    """The app for ``context``, to which the CDK's command line adds what its files and ``-c`` say.

    ``stage`` names a file in ``stages/`` whose stack it is; ``pipeline`` describes a pipeline that deploys several.

    Raises:
        ValueError: every problem found, in one message.
    """
    # The CDK's own check of the template would take twice as long as all the rest. tests/infra/test_lint.py runs it on
    # every option instead, with cfn-lint and cdk-nag.
    app = App(context=dict(context), builtin_cloud_formation_validation=False)
    given = without_cdk_keys(app.node.get_all_context())
    stage, pipeline = given.pop("stage", None), given.pop("pipeline", None)
    if stage is not None:
        # The stack of a pipeline's stage without the CDK's Stage around it, in which only what is named is deployed.
        settings = stage_config(stage, given)
        StickyStack(app, f"{stage}-{STACK_ID}", config=settings)
    elif pipeline is not None:
        if given:
            raise ValueError(
                f"'{min(given)}' should stand in stages/NAME.json: a pipeline does not see the command line"
            )
        config = PipelineConfig.from_context(pipeline)
        stages = {name: stage_config(name, {}) for name in config.stages}
        PipelineStack(app, "StickySglangPipeline", config=config, stages=stages)
    else:
        StickyStack(app, config=read_config(given))
    return app


if __name__ == "__main__":
    try:
        for file in CDK_FILES:
            refuse_settings(file)
        build_app({}).synth()
    except ValueError as error:
        sys.exit(f"Not a valid configuration: {error}")
