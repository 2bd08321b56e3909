"""The CDK app, which ``cdk synth`` and ``cdk deploy`` run. The only CDK code that reads context."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from aws_cdk import App

from infra.config import InfraConfig
from infra.stack import StickyStack


def build_app(context: Mapping[str, Any]) -> App:
    """The app for ``context``, over which cdk.json and ``-c`` win where the CDK's command line runs this."""
    app = App(context=dict(context))
    StickyStack(app, "StickySglang", config=InfraConfig.from_context(app.node.get_all_context()))
    return app


if __name__ == "__main__":
    try:
        build_app({}).synth()
    except ValueError as error:
        sys.exit(f"Not a valid configuration: {error}")
