from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import aiohttp
import pytest

from emulator.errors import ModelErrors
from emulator.faults import NO_FAULT, Cut, Fault, Faults

ERRORS = ModelErrors(endpoint="sticky", region="us-east-1")


async def spoilt(fault: Fault, chunks: list[bytes]) -> tuple[bytes, str]:
    async def source() -> AsyncGenerator[bytes]:
        for chunk in chunks:
            yield chunk

    passed = b""
    try:
        async for chunk in fault.spoil(source()):
            passed += chunk
    except (Cut, aiohttp.ClientPayloadError) as error:
        return passed, type(error).__name__
    return passed, "whole"


@pytest.mark.parametrize("chunks", [[b"abcdef"], [b"ab", b"cd", b"ef"], [b"a", b"bcdef"]])
@pytest.mark.parametrize(
    ("fault", "passed", "ending"),
    [
        (NO_FAULT, b"abcdef", "whole"),
        (Fault(break_after_bytes=0), b"", "ClientPayloadError"),
        (Fault(break_after_bytes=3), b"abc", "ClientPayloadError"),
        (Fault(break_after_bytes=6), b"abcdef", "ClientPayloadError"),
        (Fault(break_after_bytes=7), b"abcdef", "whole"),
        (Fault(cut_after_bytes=3), b"abc", "Cut"),
        (Fault(cut_after_bytes=0), b"", "Cut"),
    ],
)
def test_bytes_pass_until_the_fault(fault: Fault, passed: bytes, ending: str, chunks: list[bytes]) -> None:
    assert asyncio.run(spoilt(fault, chunks)) == (passed, ending)


def test_a_fault_meets_what_it_is_for_and_is_used_up() -> None:
    faults = Faults()
    faults.waiting += [Fault(session="a", operation="stream", times=2), Fault(delay_seconds=1)]

    assert faults.take("a", "invoke").delay_seconds == 1
    assert faults.take("a", "invoke") is NO_FAULT
    assert faults.take("b", "stream") is NO_FAULT
    assert [faults.take("a", "stream").times for _ in range(2)] == [2, 1]
    assert faults.waiting == []


def test_a_400_is_the_routers() -> None:
    error = Fault(answer=400, message="No.").refusal(ERRORS)
    assert error is not None
    assert (error.name, error.status, error.message) == ("ValidationError", 400, "No.")


@pytest.mark.parametrize(
    ("code", "original"), [(None, "No."), ("internal", {"error": {"code": "internal", "message": "No."}})]
)
def test_a_424_is_the_models(code: str | None, original: Any) -> None:
    error = Fault(answer=424, status=503, code=code, message="No.").refusal(ERRORS)
    assert error is not None
    assert (error.name, error.status, error.members["OriginalStatusCode"]) == ("ModelError", 424, 503)
    said = error.members["OriginalMessage"]
    assert (json.loads(said) if code else said) == original


def test_an_expired_session_is_the_containers_to_tell() -> None:
    faults = Faults()
    assert faults.expiry("a", ERRORS) is None
    faults.expired.add("a")
    error = faults.expiry("a", ERRORS)
    assert error is not None
    assert json.loads(error.members["OriginalMessage"])["error"]["code"] == "session_expired"
    faults.clear()
    assert faults.expiry("a", ERRORS) is None


def test_every_problem_of_a_fault_is_told_at_once() -> None:
    with pytest.raises(ValueError, match=r"'operation' .*'answer' .*'times' .*'delay_seconds' .*exclude.*'part_bytes'"):
        Fault(
            operation="open",
            answer=500,
            times=0,
            delay_seconds=-1,
            break_after_bytes=1,
            cut_after_bytes=1,
            part_bytes=(0,),
        )


@pytest.mark.parametrize(
    ("body", "message"),
    [({"delay": 1}, "'delay' is not known; known: answer"), ({"times": "two"}, "a value has the wrong type")],
)
def test_a_fault_from_json_that_is_not_right(body: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Fault.from_dict(body)


def test_a_fault_from_json() -> None:
    assert Fault.from_dict({"part_bytes": [1, 2]}) == Fault(part_bytes=(1, 2))
