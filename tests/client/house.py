"""An endpoint of ours in forty lines, which a test may spoil."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sagemaker_sticky_protocol import CLOSED_SESSION_ID_HEADER, NEW_SESSION, ErrorCode

from tests.client.wire import Reply, Request, answer, container_error, meta_info, opened, session, sse, streamed

Spoil = Callable[[str, dict[str, Any]], None]


class House:
    """Answers ``words`` tokens to anything. ``spoil(kind, body)`` may change the body of a turn before it goes out."""

    def __init__(self) -> None:
        self.tokens: dict[str, list[int]] = {}
        """What each session held after its open and after each of its turns."""
        self.opened = 0
        self.spoil: Spoil = lambda kind, body: None
        self.closes = True
        self.expires = "; Expires=2100-01-01T00:00:00Z"
        self.pieces = 3

    def __call__(self, request: Request) -> Reply:
        body, session_id = request.body, request.session_id
        if session_id == NEW_SESSION:
            session_id = body.get("extSessionID", f"s-{self.opened}")
            self.tokens[session_id] = [sum(len(each["content"]) for each in body.get("messages", ()))]
            self.opened += 1
            return opened(session_id, expires=self.expires)
        assert session_id is not None
        if session_id not in self.tokens:
            return container_error(ErrorCode.SESSION_NOT_FOUND)
        if body["requestType"] == "CLOSE":
            if self.closes:
                del self.tokens[session_id]
            return answer({}, **{CLOSED_SESSION_ID_HEADER.replace("-", "_"): session_id})
        return self._turn(session_id, body)

    def _turn(self, session_id: str, body: dict[str, Any]) -> Reply:
        held, said = self.tokens[session_id], len(body["inputs"])
        del held[body.get("rewind", len(held)) + 1 :]
        if body["turn"] != len(held):
            return container_error(ErrorCode.SESSION_CONFLICT)
        earlier = held[-1]
        held.append(earlier + said + self.pieces)
        meta = meta_info(prompt=earlier + said, cached=earlier, completion=self.pieces)
        events: list[dict[str, Any]] = [{"generation": {"text": "a"}} for _ in range(self.pieces)]
        whole = {
            "generation": {"text": "a" * self.pieces, "meta_info": meta},
            "session": session(session_id, turn=len(held) - 1),
        }
        self.spoil("stream" if body.get("stream") else "turn", whole)
        if not body.get("stream"):
            return answer(whole)
        whole["generation"]["text"] = ""
        return streamed(sse([*events, whole]))


def control_plane(house: House, **described: Any) -> Callable[[Request], Reply]:
    """The house, and a control plane that describes its endpoint."""
    endpoint = {"EndpointName": "house", "EndpointConfigName": "config-1", "EndpointStatus": "InService", **described}

    def handle(request: Request) -> Reply:
        return answer(endpoint) if request.path == "/" else house(request)

    return handle
