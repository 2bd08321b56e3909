"""``POST /_emulator/…``: make things go wrong while the endpoint serves. JSON in and out, on the runtime API's port.

| path | body | what it does |
| --- | --- | --- |
| ``/_emulator/instances`` | ``{"count": 1}`` | starts instances, and answers when they are in service |
| ``/_emulator/instances/NAME/kill`` | | the container dies at once; its sessions are lost |
| ``/_emulator/instances/NAME/drain`` | | nothing new goes there; SIGTERM: the container refuses turns, and ends |
| ``/_emulator/sessions/ID/forget`` | | the router does not know the session any more; its container does |
| ``/_emulator/sessions/ID/expire`` | | the session is over, for the router and, as far as callers see, its container |
| ``/_emulator/faults`` | a :class:`~emulator.faults.Fault` | the fault waits for the requests that it meets |
| ``/_emulator/clear`` | | no fault waits, no session is said to be over |

``GET /_emulator`` tells instances, sessions and waiting faults. Tests have :class:`emulator.pytest_plugin.Control`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

from aiohttp import web

from emulator.faults import Fault, Faults
from emulator.fleet import Fleet
from emulator.router import Router


def add_fault_api(app: web.Application, router: Router, fleet: Fleet, faults: Faults) -> None:
    """Add the routes to the application of the runtime API."""
    api = _FaultApi(router, fleet, faults)
    app.router.add_get("/_emulator", _answered(api.state))
    app.router.add_post("/_emulator/instances", _answered(api.add_instances))
    app.router.add_post("/_emulator/instances/{name}/{what:kill|drain}", _answered(api.end_instance))
    app.router.add_post("/_emulator/sessions/{session_id}/{what:forget|expire}", _answered(api.end_session))
    app.router.add_post("/_emulator/faults", _answered(api.add_fault))
    app.router.add_post("/_emulator/clear", _answered(api.clear))


class _FaultApi:
    def __init__(self, router: Router, fleet: Fleet, faults: Faults) -> None:
        self._router = router
        self._fleet = fleet
        self._faults = faults

    async def state(self, _request: web.Request) -> dict[str, Any]:
        return {
            "instances": list(self._router.instances),
            "sessions": self._router.sessions,
            "faults": [asdict(each) for each in self._faults.waiting],
        }

    async def add_instances(self, request: web.Request) -> dict[str, Any]:
        count = (await _body(request)).get("count", 1)
        if not isinstance(count, int) or not 1 <= count <= 16:
            raise ValueError(f"'count' should be from 1 to 16, got {count!r}")
        return {"instances": await self._fleet.add(count)}

    async def end_instance(self, request: web.Request) -> dict[str, Any]:
        name = request.match_info["name"]
        if name not in self._fleet.instances:
            raise KeyError(f"no instance {name!r}; there are {', '.join(self._fleet.instances) or 'none'}")
        if request.match_info["what"] == "kill":
            await self._fleet.kill(name)
        else:
            self._fleet.drain(name)
        return {}

    async def end_session(self, request: web.Request) -> dict[str, Any]:
        session_id = request.match_info["session_id"]
        if session_id not in self._router.sessions:
            raise KeyError(f"no session {session_id!r}")
        self._router.closed(session_id)
        if request.match_info["what"] == "expire":
            self._faults.expired.add(session_id)
        return {}

    async def add_fault(self, request: web.Request) -> dict[str, Any]:
        self._faults.waiting.append(Fault.from_dict(await _body(request)))
        return {}

    async def clear(self, _request: web.Request) -> dict[str, Any]:
        self._faults.clear()
        return {}


async def _body(request: web.Request) -> dict[str, Any]:
    raw = await request.read()
    try:
        body = json.loads(raw or b"{}")
    except ValueError:
        raise ValueError("the body is not JSON") from None
    if not isinstance(body, dict):
        raise ValueError(f"the body should be a JSON object, got {type(body).__name__}")
    return body


def _answered(
    handler: Callable[[web.Request], Awaitable[dict[str, Any]]],
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    """``handler`` with its errors as answers: 400 for what is wrong, 404 for what is not there."""

    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            return web.json_response(await handler(request))
        except ValueError as error:
            return web.json_response({"error": str(error)}, status=400)
        except KeyError as error:
            return web.json_response({"error": error.args[0]}, status=404)

    return answer
