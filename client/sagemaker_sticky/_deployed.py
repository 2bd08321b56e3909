"""What ``sticky smoke`` asks the control plane: is the endpoint in service, and does it run what was deployed?

A deployment that SageMaker rolled back ends in service as well, with the configuration it had before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from ._checks import CheckFailed, CheckResult


def endpoint_in_service(sagemaker: Any, endpoint_name: str) -> str:
    """The endpoint takes requests.

    Args:
        sagemaker: A boto3 client of the service ``sagemaker``.
        endpoint_name: Name of the endpoint.

    Raises:
        CheckFailed: It does not; the message has SageMaker's reason.
    """
    endpoint = sagemaker.describe_endpoint(EndpointName=endpoint_name)
    status = endpoint["EndpointStatus"]
    if status != "InService":
        raise CheckFailed(f"the endpoint is {status}: {endpoint.get('FailureReason', 'SageMaker gives no reason')}")
    counts = [each.get("CurrentInstanceCount", 0) for each in endpoint.get("ProductionVariants", [])]
    return f"InService, {sum(counts)} instances" if any(counts) else "InService"


def config_is_live(sagemaker: Any, endpoint_name: str, endpoint_config_name: str) -> str:
    """The endpoint runs the configuration that was deployed.

    Raises:
        CheckFailed: It runs another one.
    """
    live: str = sagemaker.describe_endpoint(EndpointName=endpoint_name)["EndpointConfigName"]
    if live != endpoint_config_name:
        raise CheckFailed(f"the endpoint runs {live}, not {endpoint_config_name}: SageMaker may have rolled back")
    return live


def deployed_checks(sagemaker: Any, endpoint_name: str, endpoint_config_name: str) -> Iterator[CheckResult]:
    """Run both; a call that fails is a failed check."""
    checks: tuple[Callable[[], str], ...] = (
        lambda: endpoint_in_service(sagemaker, endpoint_name),
        lambda: config_is_live(sagemaker, endpoint_name, endpoint_config_name),
    )
    for name, check in zip(("endpoint_in_service", "config_is_live"), checks, strict=True):
        yield control_plane_check(name, check)


def control_plane_check(name: str, check: Callable[[], str]) -> CheckResult:
    """Run one check that asks AWS; whatever is wrong is in the result."""
    started = time.monotonic()
    try:
        passed, detail = True, check()
    except CheckFailed as error:
        passed, detail = False, str(error)
    except (BotoCoreError, ClientError) as error:
        passed, detail = False, f"{type(error).__name__}: {error}"
    return CheckResult(name, passed, detail, time.monotonic() - started)
