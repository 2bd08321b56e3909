"""Request bodies: read once, checked, and turned into what the rest of the container works with.

Dispatch goes by the session header and the field ``requestType``, never by trying one shape after another. Every
problem is an ``invalid_request`` that names the field, the value got and what is allowed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
from sagemaker_sticky_protocol import NEW_SESSION, SESSION_ID_HEADER, RequestType, is_session_id

from container import sampling
from container.engine import Message
from container.errors import invalid, nearest, shown
from container.sampling import read_sampling

ROLES = ("system", "developer", "user", "assistant", "tool")


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """Asks for a session."""

    proposed_id: str | None
    messages: Sequence[Message]
    ttl_seconds: float | None
    """Asks for a shorter life than the server's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """Ends a session."""

    session_id: str


@dataclass(slots=True, kw_only=True)
class Ask:
    """Asks for words: a turn of a session, or a request without one (``session_id`` None).

    ``inputs`` is answered with a ``generation``, ``openai`` (which has ``messages`` or ``prompt``) in OpenAI's objects.
    """

    session_id: str | None
    inputs: str | None = None
    openai: Mapping[str, Any] | None = None
    """OpenAI's fields; the engine knows which there are."""
    history: str = "append"
    rewind: int | None = None
    turn: int | None = None
    """The number that this turn is to have, which is one more than the turns that stay before it."""
    answer_prefix: str = ""
    """How the answer begins: the caller has that much of it from a stream that broke, and wants what follows."""
    sampling_params: Mapping[str, Any] = field(default_factory=dict)
    """By SGLang's names; of ``inputs`` only."""
    stream: bool = False

    @property
    def messages(self) -> Sequence[Message] | None:
        """What is said, as chat messages; None for a raw prompt."""
        if self.openai is not None:
            messages: Sequence[Message] | None = self.openai.get("messages")
            return messages
        return [{"role": "user", "content": self.inputs}] if self.session_id is not None else None

    @property
    def said_in(self) -> str:
        """The field that holds what is said, for error messages."""
        if self.inputs is not None:
            return "inputs"
        return "messages" if self.messages is not None else "prompt"


_REQUEST_TYPES = {each.value: each for each in RequestType}
_OPEN_FIELDS = ("requestType", "extSessionID", "messages", "ttlSeconds")
_CLOSE_FIELDS = ("requestType", "extSessionID")
_TURN_FIELDS = ("requestType", "extSessionID", "history", "rewind", "turn")
_GENERATE_FIELDS = ("inputs", "parameters", "sampling_params", "stream", "answerPrefix")
_GENERATE_TURN_FIELDS = (*_GENERATE_FIELDS, *_TURN_FIELDS)
_SHAPES = ("inputs", "messages", "prompt")
_GRAMMARS = ("json_schema", "regex", "ebnf", "structural_tag", "response_format")


def read_json(body: bytes) -> dict[str, Any]:
    """The JSON object of a request body."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as problem:
        raise invalid(f"the body should be a JSON object, got {len(body)} bytes that are not JSON: {problem}") from None
    if not isinstance(value, dict):
        raise invalid(f"the body should be a JSON object, got {shown(value)}")
    return value


def read_invocation(session: str | None, body: Mapping[str, Any]) -> Open | Close | Ask:
    """What a POST to ``/invocations`` asks for.

    Args:
        session: the session header, None where absent.
        body: the JSON body.
    """
    kind = _request_type(body)
    if session is None:
        if kind is not None:
            raise invalid(f"'requestType' {kind.value!r} needs the header {SESSION_ID_HEADER}, which is absent")
        return _ask(None, body)
    if session == NEW_SESSION:
        if kind is not RequestType.OPEN:
            got = "absent" if kind is None else repr(kind.value)
            raise invalid(
                f"'requestType' should be 'NEW_SESSION' with the header {SESSION_ID_HEADER}: NEW_SESSION, got {got}"
            )
        return _open(body)
    if not is_session_id(session):
        raise invalid(f"the header {SESSION_ID_HEADER} should be NEW_SESSION or a session id, got {shown(session)}")
    named = body.get("extSessionID")
    if named is not None and named != session:
        raise invalid(f"'extSessionID' should be the session of the header, {session!r}, got {shown(named)}")
    if kind is RequestType.OPEN:
        raise invalid(f"'requestType' 'NEW_SESSION' needs the header {SESSION_ID_HEADER}: NEW_SESSION, got {session!r}")
    if kind in (RequestType.CLOSE, RequestType.CLOSE_SESSION):
        _refuse_unknown(body, _CLOSE_FIELDS)
        return Close(session_id=session)
    return _ask(session, body)


def read_openai(body: Mapping[str, Any], shape: str) -> Ask:
    """What a POST to ``/v1/chat/completions`` (``shape`` "messages") or ``/v1/completions`` ("prompt") asks for."""
    if shape not in body:
        raise invalid(f"'{shape}' is missing{_near_shape(body)}")
    return _ask(None, body)


def _request_type(body: Mapping[str, Any]) -> RequestType | None:
    value = body.get("requestType")
    if value is None:
        return None
    kind = _REQUEST_TYPES.get(value) if isinstance(value, str) else None
    if kind is None:
        known = list(_REQUEST_TYPES)
        raise invalid(
            f"'requestType' should be one of {', '.join(known)}, got {shown(value)}{nearest(str(value), known)}"
        )
    return kind


def _open(body: Mapping[str, Any]) -> Open:
    _refuse_unknown(body, _OPEN_FIELDS)
    messages = body.get("messages")
    ttl = _typed(body, "ttlSeconds", (int, float), "a number above 0")
    if ttl is not None and not ttl > 0:
        raise invalid(f"'ttlSeconds' should be a number above 0, got {shown(ttl)}")
    return Open(
        proposed_id=_typed(body, "extSessionID", (str,), "a string"),
        messages=() if messages is None else read_messages(messages),
        ttl_seconds=ttl,
    )


def _ask(session: str | None, body: Mapping[str, Any]) -> Ask:
    shapes = [name for name in _SHAPES if name in body]
    if len(shapes) != 1:
        got = " and ".join(f"'{name}'" for name in shapes) or "none of them"
        raise invalid(
            f"the body should have exactly one of {', '.join(map(repr, _SHAPES))}, got {got}" + _near_shape(body)
        )
    (shape,) = shapes
    if shape == "inputs":
        _refuse_unknown(body, _GENERATE_FIELDS if session is None else _GENERATE_TURN_FIELDS, inner=True)
    if shape == "prompt" and session is not None:
        raise invalid("'prompt' is for requests without a session; in a session say 'inputs' or 'messages'")
    history = body.get("history", "append")
    if history not in ("append", "full"):
        near = nearest(str(history), ("append", "full"))
        raise invalid(f"'history' should be 'append' or 'full', got {shown(history)}{near}")
    if history == "full" and shape != "messages":
        raise invalid("'history' 'full' needs 'messages', the whole conversation")
    rewind = _typed(body, "rewind", (int,), "a whole number from 0")
    if rewind is not None and (rewind < 0 or history == "full"):
        raise invalid(f"'rewind' should be a whole number from 0, and goes with 'history' 'append' only, got {rewind}")
    turn = _typed(body, "turn", (int,), "a whole number from 1")
    if turn is not None and turn < 1:
        raise invalid(f"'turn' should be a whole number from 1, got {turn}")
    if turn is not None and rewind is not None and turn != rewind + 1:
        raise invalid(f"'turn' should be {rewind + 1} after 'rewind' {rewind}, got {turn}")
    answer_prefix = _typed(body, "answerPrefix", (str,), "a string") or ""
    if answer_prefix and shape == "prompt":
        raise invalid("'answerPrefix' goes with 'inputs' or 'messages'; put it at the end of 'prompt'")
    stream = bool(_typed(body, "stream", (bool,), "true or false"))
    if shape == "inputs":
        given, field_name = _parameters(body)
        if answer_prefix:
            _refuse_grammar(given)
        return Ask(
            session_id=session,
            inputs=_text(body, "inputs"),
            rewind=rewind,
            turn=turn,
            answer_prefix=answer_prefix,
            sampling_params=read_sampling(given, field_name),
            stream=stream,
        )
    if shape == "messages":
        read_messages(body["messages"])
    if answer_prefix:
        _refuse_grammar(body)
    ours = ("answerPrefix", *(_TURN_FIELDS if session is not None else ()))
    return Ask(
        session_id=session,
        openai={name: value for name, value in body.items() if name not in ours},
        history=history,
        rewind=rewind,
        turn=turn,
        answer_prefix=answer_prefix,
        stream=stream,
    )


def _refuse_grammar(given: Mapping[str, Any]) -> None:
    """Refuse to go on with an answer that has to follow a grammar: that would begin anew after the prefix."""
    for name in _GRAMMARS:
        if given.get(name) not in (None, {"type": "text"}):
            raise invalid(f"'answerPrefix' does not go with '{name}': ask for the whole answer again")
    if given.get("tool_choice") not in (None, "none", "auto"):
        raise invalid("'answerPrefix' goes with 'tool_choice' 'none' or 'auto' only: ask for the whole answer again")


def read_messages(value: object) -> Sequence[Message]:
    """Check a list of chat messages: a role each, and content that is text or a list of parts."""
    if not isinstance(value, list) or not value:
        raise invalid(f"'messages' should be a list of at least one message, got {shown(value)}")
    for place, message in enumerate(value):
        if not isinstance(message, dict):
            raise invalid(f"'messages[{place}]' should be an object with role and content, got {shown(message)}")
        role = message.get("role")
        if role not in ROLES:
            raise invalid(f"'messages[{place}].role' should be one of {', '.join(ROLES)}, got {shown(role)}")
        content = message.get("content")
        if not isinstance(content, (str, list)) and not (content is None and role == "assistant"):
            raise invalid(f"'messages[{place}].content' should be a string or a list of parts, got {shown(content)}")
    return value


def _parameters(body: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """The parameters of ``inputs``, and the field that holds them."""
    if "parameters" in body and "sampling_params" in body:
        raise invalid("'parameters' and 'sampling_params' mean the same; give one of them, got both")
    name = "sampling_params" if "sampling_params" in body else "parameters"
    return _typed(body, name, (dict,), "an object") or {}, name


def _text(body: Mapping[str, Any], name: str) -> str | None:
    if name not in body:
        return None
    value = body[name]
    if not isinstance(value, str) or not value:
        raise invalid(f"'{name}' should be a string of at least one character, got {shown(value)}")
    return value


def _typed(body: Mapping[str, Any], name: str, kinds: tuple[type, ...], allowed: str) -> Any:
    value = body.get(name)
    if value is not None and (not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)):
        raise invalid(f"'{name}' should be {allowed}, got {shown(value)}")
    return value


def _refuse_unknown(body: Mapping[str, Any], known: Collection[str], *, inner: bool = False) -> None:
    for name in body:
        if name not in known:
            if inner and name in sampling.NAMES:
                raise invalid(f"'{name}' belongs inside 'parameters'")
            raise invalid(f"'{name}' is not a known field here{nearest(name, known)}; known: {', '.join(known)}")


def _near_shape(body: Mapping[str, Any]) -> str:
    return next((hint for name in body if (hint := nearest(name, _SHAPES))), "")
