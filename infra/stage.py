"""One deployment stage of a pipeline."""

from __future__ import annotations

from aws_cdk import Stage
from constructs import Construct

from infra.config import InfraConfig
from infra.stack import StickyStack


class StickyStage(Stage):
    """The stack under the stage's name, such as ``prod-StickySglang``, beside those of other stages.

    Attributes:
        stack: The one stack.
    """

    def __init__(self, scope: Construct, id: str, *, config: InfraConfig) -> None:
        super().__init__(scope, id)
        self.stack = StickyStack(self, config=config)
