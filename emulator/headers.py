"""Which headers cross SageMaker's router, and what it checks in them.

"SageMaker AI strips all POST headers except those supported by the API" (``InvokeEndpoint`` API reference); the names
and limits are those of botocore's ``sagemaker-runtime`` service model.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass

from sagemaker_sticky_protocol import (
    CUSTOM_ATTRIBUTES_HEADER,
    MAX_SESSION_ID_LENGTH,
    NEW_SESSION,
    NEW_SESSION_ID_HEADER,
    SESSION_ID_HEADER,
    is_session_id,
    parse_new_session,
    parse_time,
)

from emulator.errors import constraint_violated

CONTENT_TYPE_HEADER = "Content-Type"
REQUEST_ID_HEADER = "x-amzn-RequestId"
ERROR_TYPE_HEADER = "x-amzn-errortype"
VARIANT_HEADER = "x-Amzn-Invoked-Production-Variant"
STREAM_CONTENT_TYPE_HEADER = "X-Amzn-SageMaker-Content-Type"
STREAM_ACCEPT_HEADER = "X-Amzn-SageMaker-Accept"
PREFIX_AWARE_ID_HEADER = "X-Amzn-SageMaker-Prefix-Aware-Id"

_ALWAYS = (
    CONTENT_TYPE_HEADER,
    CUSTOM_ATTRIBUTES_HEADER,
    SESSION_ID_HEADER,
    PREFIX_AWARE_ID_HEADER,
    "X-Amzn-SageMaker-Target-Variant",
    "X-Amzn-SageMaker-Target-Container-Hostname",
    "X-Amzn-SageMaker-Inference-Id",
    "X-Amzn-SageMaker-Inference-Component",
)
_INVOKE = (*_ALWAYS, "Accept", "X-Amzn-SageMaker-Target-Model", "X-Amzn-SageMaker-Enable-Explanations")

_SESSION_ID_PATTERN = "^[a-zA-Z0-9](-*[a-zA-Z0-9])*$"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Announcement:
    """A session that a container announced in its answer."""

    session_id: str
    expires_at: float
    """Unix time in seconds."""


def for_invoke(headers: Mapping[str, str]) -> dict[str, str]:
    """What a container sees of the headers of InvokeEndpoint."""
    return {name: headers[name] for name in _INVOKE if name in headers}


def for_stream(headers: Mapping[str, str]) -> dict[str, str]:
    """What a container sees of the headers of InvokeEndpointWithResponseStream."""
    kept = {name: headers[name] for name in _ALWAYS if name in headers}
    if STREAM_ACCEPT_HEADER in headers:
        kept["Accept"] = headers[STREAM_ACCEPT_HEADER]
    return kept


def check(headers: Mapping[str, str], *, may_open: bool) -> None:
    """Check the headers of a request as the API does.

    Args:
        headers: of the caller's request.
        may_open: whether the call takes ``NEW_SESSION``: a stream does not.

    Raises:
        AwsError: ValidationError, with the rule that is broken.
    """
    session_id = headers.get(SESSION_ID_HEADER)
    if session_id is not None and not is_session_id(session_id) and not (may_open and session_id == NEW_SESSION):
        if len(session_id) > MAX_SESSION_ID_LENGTH:
            rule = f"have length less than or equal to {MAX_SESSION_ID_LENGTH}"
        else:
            pattern = f"^({NEW_SESSION})$|{_SESSION_ID_PATTERN}" if may_open else _SESSION_ID_PATTERN
            rule = f"satisfy regular expression pattern: {pattern}"
        raise constraint_violated("sessionId", session_id, rule)
    attributes = headers.get(CUSTOM_ATTRIBUTES_HEADER, "")
    if len(attributes) > 1024:
        raise constraint_violated("customAttributes", attributes, "have length less than or equal to 1024")
    if not attributes.isascii():
        raise constraint_violated("customAttributes", attributes, r"satisfy regular expression pattern: \p{ASCII}*")
    prefix_id = headers.get(PREFIX_AWARE_ID_HEADER)
    if prefix_id is not None and re.fullmatch(r"\S[ -~]{0,63}", prefix_id) is None:
        raise constraint_violated("prefixAwareId", prefix_id, r"satisfy regular expression pattern: \A\S[\p{Print}]*\z")


def announced(headers: Mapping[str, str]) -> Announcement | None:
    """The session that a container's answer announces, under the documented header or the one that an AWS library uses.

    A value without a valid id and ``Expires`` announces nothing: the API allows no other form.
    """
    value = headers.get(SESSION_ID_HEADER) or headers.get(NEW_SESSION_ID_HEADER)
    if value is None:
        return None
    session_id, expires = parse_new_session(value)
    try:
        if expires is not None and is_session_id(session_id):
            return Announcement(session_id, parse_time(expires))
    except ValueError:
        pass
    logger.warning("a container announced a session in a form that SageMaker does not document: %r", value)
    return None


def passed_back(headers: Mapping[str, str]) -> dict[str, str]:
    """What a caller sees of the headers of a container's answer, sessions aside."""
    return {name: headers[name] for name in (CONTENT_TYPE_HEADER, CUSTOM_ATTRIBUTES_HEADER) if name in headers}
