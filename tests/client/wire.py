"""The far side of boto3's ``sagemaker-runtime`` client: a loopback HTTP server that answers what a test tells it to.

It stands on nothing but the standard library and the protocol, so that these tests run wherever the client does.
"""

from __future__ import annotations

import json
import struct
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from sagemaker_sticky_protocol import NEW_SESSION_ID_HEADER, SESSION_ID_HEADER, SSE_DONE, ErrorCode, error_body

REQUEST_ID = "11111111-2222-3333-4444-555555555555"
CONTENT_TYPE = "application/vnd.amazon.eventstream"
EXPIRES_AT = "2100-01-01T00:00:00Z"


@dataclass(frozen=True)
class Request:
    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def session_id(self) -> str | None:
        return self.headers.get(SESSION_ID_HEADER)

    @property
    def body(self) -> dict[str, Any]:
        return json.loads(self.raw)

    @property
    def streams(self) -> bool:
        return self.path.endswith("/invocations-response-stream")


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    frames: list[bytes] | None = None
    """Messages of an event stream, instead of a body."""
    ending: Literal["whole", "dropped", "held"] = "whole"
    """After the frames: a proper end, a cut connection, or nothing until the client hangs up."""


class Wire:
    """What the server was asked, and what it answers: ``replies`` in turn, or what ``handle`` makes of a request."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.replies: deque[Reply] = deque()
        self.handle: Callable[[Request], Reply] = lambda request: self.replies.popleft()
        self.requests: list[Request] = []
        self.connections = 0
        self.hung_up = threading.Event()


def frame(headers: dict[str, str], payload: bytes) -> bytes:
    """One message of an event stream, with string headers."""
    encoded = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack("!II", 16 + len(encoded) + len(payload), len(encoded))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + encoded + payload
    return message + struct.pack("!I", zlib.crc32(message))


def payload_part(content: bytes) -> bytes:
    return frame({":message-type": "event", ":event-type": "PayloadPart"}, content)


def stream_exception(name: str, message: str, *, code: str | None = None) -> bytes:
    members = {"Message": message, "ErrorCode": code}
    return frame({":message-type": "exception", ":exception-type": name}, json.dumps(members).encode())


def answer(body: Any, **headers: str) -> Reply:
    return Reply(
        body=json.dumps(body).encode(), headers={name.replace("_", "-"): value for name, value in headers.items()}
    )


def opened(session_id: str = "s-1", *, expires: str = f"; Expires={EXPIRES_AT}") -> Reply:
    return Reply(
        body=json.dumps({"session": session(session_id, turn=0)}).encode(),
        headers={NEW_SESSION_ID_HEADER: session_id + expires},
    )


def session(session_id: str = "s-1", *, turn: int = 1) -> dict[str, Any]:
    return {"id": session_id, "expires_at": EXPIRES_AT, "turn": turn, "context_tokens": 10, "served_by": "i-1"}


def meta_info(prompt: int = 5, cached: int = 2, completion: int = 3) -> dict[str, Any]:
    counts = {"prompt_tokens": prompt, "cached_tokens": cached, "completion_tokens": completion}
    return {**counts, "finish_reason": {"type": "stop", "matched": 2}}


def generated(text: str, *, turn: int = 1, **counts: int) -> Reply:
    return answer({"generation": {"text": text, "meta_info": meta_info(**counts)}, "session": session(turn=turn)})


def completed(message: dict[str, Any], *, turn: int = 1, finish_reason: str = "stop") -> Reply:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    return answer({"choices": [choice], "usage": openai_usage(), "session": session(turn=turn)})


def openai_usage() -> dict[str, Any]:
    return {"prompt_tokens": 5, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}


def generation_events(*pieces: str, turn: int | None = 1) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [{"generation": {"text": piece}} for piece in pieces]
    events[-1]["generation"]["meta_info"] = meta_info()
    if turn is not None:
        events[-1]["session"] = session(turn=turn)
    return events


def sse(events: Iterable[Any], *, done: bool = True) -> bytes:
    lines = [json.dumps(event, ensure_ascii=False) for event in events] + ([SSE_DONE] if done else [])
    return "".join(f"data: {line}\n\n" for line in lines).encode()


def streamed(content: bytes, **rest: Any) -> Reply:
    return Reply(frames=[payload_part(content)], **rest)


def aws_error(name: str, status: int, message: str, **members: Any) -> Reply:
    return Reply(status, json.dumps({"Message": message, **members}).encode(), {"x-amzn-errortype": name})


def model_error(status: int, original: str, message: str = "from primary", **members: Any) -> Reply:
    return aws_error("ModelError", 424, message, OriginalStatusCode=status, OriginalMessage=original, **members)


def container_error(code: ErrorCode, message: str = "why") -> Reply:
    return model_error(code.status, json.dumps(error_body(code, message)))


def make_server(wire: Wire) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            wire.connections += 1

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            request = Request(self.path, dict(self.headers), raw)
            wire.requests.append(request)
            reply = wire.handle(request)
            self.send_response(reply.status)
            self.send_header("x-amzn-requestid", REQUEST_ID)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if reply.frames is not None:
                self._stream(reply)
            else:
                self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)

        def _stream(self, reply: Reply) -> None:
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for frame in reply.frames or ():
                self.wfile.write(b"%x\r\n%s\r\n" % (len(frame), frame))
            if reply.ending == "whole":
                self.wfile.write(b"0\r\n\r\n")
                return
            self.close_connection = True
            if reply.ending == "held":
                with suppress(OSError):
                    self.rfile.read(1)
                wire.hung_up.set()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that hangs up is what some tests are about."""

    return Server(("127.0.0.1", 0), Handler)
