"""The CDK app, which ``cdk synth`` and ``cdk deploy`` run. The only CDK code that reads context."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from aws_cdk import App

from infra.context import read, read_config, without_cdk_keys
from infra.pipeline import PipelineConfig, PipelineStack
from infra.stack import STACK_ID, StickyStack
from infra.stage import stage_config


def build_app(context: Mapping[str, Any]) -> App:
    """The app for ``context``, over which cdk.json and ``-c`` win where the CDK's command line runs this.

    ``stage`` names a file in ``stages/`` whose stack it is; ``pipeline`` describes a pipeline that deploys several.
    """
    # The CDK's own check of the template would take twice as long as all the rest. tests/infra/test_lint.py runs it on
    # every option instead, with cfn-lint and cdk-nag.
    app = App(context=dict(context), builtin_cloud_formation_validation=False)
    given = without_cdk_keys(app.node.get_all_context())
    stage, pipeline = given.pop("stage", None), given.pop("pipeline", None)
    if stage:
        # The stack of a pipeline's stage without the CDK's Stage around it, in which only what is named is deployed.
        StickyStack(app, f"{stage}-{STACK_ID}", config=stage_config(stage, given))
    elif pipeline:
        config = read(PipelineConfig, pipeline)
        stages = {name: stage_config(name, given) for name in config.stages}
        PipelineStack(app, "StickySglangPipeline", config=config, stages=stages)
    else:
        StickyStack(app, config=read_config(given))
    return app


if __name__ == "__main__":
    try:
        build_app({}).synth()
    except ValueError as error:
        sys.exit(f"Not a valid configuration: {error}")
