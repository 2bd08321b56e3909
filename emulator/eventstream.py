"""The frames of ``application/vnd.amazon.eventstream``, in which SageMaker sends a response stream.

A message is: total length, length of the headers, CRC of these two, headers, payload, CRC of all before. Numbers are
big-endian. Source: the format's description in the AWS SDK documentation; every header here is a string (type 7).
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from itertools import cycle

CONTENT_TYPE = "application/vnd.amazon.eventstream"

_STRING = 7
_OVERHEAD_BYTES = 16
"""Two lengths and two checksums."""


def encode(headers: dict[str, str], payload: bytes) -> bytes:
    """One message."""
    encoded = bytearray()
    for name, value in headers.items():
        raw_name, raw_value = name.encode(), value.encode()
        encoded += struct.pack("!B", len(raw_name)) + raw_name
        encoded += struct.pack("!BH", _STRING, len(raw_value)) + raw_value
    prelude = struct.pack("!II", _OVERHEAD_BYTES + len(encoded) + len(payload), len(encoded))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + encoded + payload
    return message + struct.pack("!I", zlib.crc32(message))


def payload_part(content: bytes) -> bytes:
    """A ``PayloadPart`` event: bytes of the answer, cut anywhere."""
    headers = {":message-type": "event", ":event-type": "PayloadPart", ":content-type": "application/octet-stream"}
    return encode(headers, content)


def stream_exception(name: str, message: str, *, code: str | None = None) -> bytes:
    """The exception that ends a stream: ``ModelStreamError``, which has a ``code``, or ``InternalStreamFailure``."""
    members = {"Message": message} | ({} if code is None else {"ErrorCode": code})
    headers = {":message-type": "exception", ":exception-type": name, ":content-type": "application/json"}
    return encode(headers, json.dumps(members).encode())


async def frames(chunks: AsyncIterator[bytes], *, part_bytes: Sequence[int] = ()) -> AsyncGenerator[bytes]:
    """The payload parts for what a container writes.

    Args:
        chunks: the bytes, as they come.
        part_bytes: sizes of the parts, taken in turn for ever; a part then waits until it is full or the stream ends.
            Empty: a part for each chunk.

    An error of ``chunks`` is raised after all bytes that came before it.
    """
    if not part_bytes:
        async for chunk in chunks:
            yield payload_part(chunk)
        return
    sizes = cycle(part_bytes)
    size, pending = next(sizes), bytearray()
    try:
        async for chunk in chunks:
            pending += chunk
            while len(pending) >= size:
                yield payload_part(bytes(pending[:size]))
                del pending[:size]
                size = next(sizes)
    except Exception:
        if pending:
            yield payload_part(bytes(pending))
        raise
    if pending:
        yield payload_part(bytes(pending))
