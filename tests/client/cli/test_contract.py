from __future__ import annotations

from typing import Any

import pytest
from sagemaker_sticky import StickyClient
from sagemaker_sticky.cli.checks import CheckFailed
from sagemaker_sticky.cli.contract import (
    CHECKS,
    Check,
    run_check,
    run_checks,
    session_closes,
    session_opens,
    session_remembers,
    session_streams,
)

from tests.client.house import House
from tests.client.wire import Wire, aws_error


@pytest.mark.parametrize("check", CHECKS)
def test_an_endpoint_of_ours_passes(client: StickyClient, house: House, check: Check) -> None:
    result = run_check(check, client)

    assert result.passed, result.detail
    assert result.name == check.__name__
    assert house.tokens == {}, "a check closes what it opens"


def test_the_checks_run_in_order(client: StickyClient, house: House) -> None:
    assert [result.name for result in run_checks(client)] == [
        "session_opens",
        "session_remembers",
        "session_streams",
        "session_recovers",
        "session_closes",
    ]


def test_an_expiry_that_is_over_fails(client: StickyClient, house: House) -> None:
    house.expires = "; Expires=2001-01-01T00:00:00Z"

    with pytest.raises(CheckFailed, match="expired before it was opened"):
        session_opens(client)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"prompt_tokens": 30}, "though turn 1 alone had"),
        ({"cached_tokens": 0}, "were found in the cache"),
    ],
)
def test_a_session_that_forgets_fails(
    client: StickyClient, house: House, change: dict[str, int], complaint: str
) -> None:
    house.spoil = lambda kind, body: body["generation"]["meta_info"].update(change)

    with pytest.raises(CheckFailed, match=complaint):
        session_remembers(client)


def test_turns_that_are_not_counted_fail(client: StickyClient, house: House) -> None:
    house.spoil = lambda kind, body: body["session"].update(turn=0)

    for check in (session_remembers, session_streams):
        result = run_check(check, client)
        assert not result.passed
        assert "the answer is turn 0 of session" in result.detail


def test_a_stream_without_text_fails(client: StickyClient, house: House) -> None:
    house.pieces = 0

    with pytest.raises(CheckFailed, match="no text"):
        session_streams(client)


def test_a_session_that_stays_open_fails(client: StickyClient, house: House) -> None:
    house.closes = False

    with pytest.raises(CheckFailed, match="was answered"):
        session_closes(client)


def test_an_error_of_the_endpoint_is_a_failed_check(client: StickyClient, wire: Wire) -> None:
    wire.replies.append(aws_error("ValidationError", 400, "Endpoint house not found."))

    result = run_check(session_opens, client)

    assert (result.passed, result.detail) == (False, "InvalidRequest: Endpoint house not found.")


def test_an_error_of_this_package_is_not_a_failed_check(client: StickyClient) -> None:
    def broken(client: Any) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_check(broken, client)
