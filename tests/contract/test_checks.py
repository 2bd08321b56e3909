"""The checks of `sticky smoke`, as a deployed endpoint has to pass them."""

import pytest
from sagemaker_sticky import StickyClient
from sagemaker_sticky.cli.contract import CHECKS, Check


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_smoke(client: StickyClient, check: Check) -> None:
    check(client)
