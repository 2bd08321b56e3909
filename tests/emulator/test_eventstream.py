from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
from botocore.eventstream import EventStreamBuffer

from emulator.eventstream import encode, frames, payload_part, stream_exception

TEXT = 'data: {"text": "Grüße, 世界 👋"}\n\ndata: [DONE]\n\n'.encode()


def decode(wire: bytes) -> list[tuple[dict[str, str], bytes]]:
    """What botocore reads; it checks lengths and both checksums."""
    buffer = EventStreamBuffer()
    buffer.add_data(wire)
    return [(message.headers, message.payload) for message in buffer]


def cut(chunks: Sequence[bytes], part_bytes: Sequence[int] = (), error: Exception | None = None) -> list[bytes]:
    """The payloads of the parts, as botocore reads them; an error of the source is kept as the last item's text."""

    async def source() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk
        if error is not None:
            raise error

    async def collect() -> bytes:
        wire = b""
        try:
            async for frame in frames(source(), part_bytes=part_bytes):
                wire += frame
        except ConnectionError as broken:
            wire += payload_part(str(broken).encode())
        return wire

    return [payload for _, payload in decode(asyncio.run(collect()))]


def test_a_message_is_what_botocore_decodes() -> None:
    headers = {":event-type": "PayloadPart", "leer": "", "gruß": "Grüße"}
    assert decode(encode(headers, b"\x00payload\xff")) == [(headers, b"\x00payload\xff")]
    assert decode(encode({}, b"")) == [({}, b"")]


def test_a_message_byte_for_byte() -> None:
    # 16 bytes of frame, a header of 1 + 1 + 1 + 2 + 1 bytes, a payload of 1.
    message = encode({"a": "b"}, b"c")
    assert message[:8] == bytes([0, 0, 0, 23, 0, 0, 0, 6])
    assert message[12:19] == b"\x01a\x07\x00\x01bc"


def test_messages_stand_back_to_back() -> None:
    wire = payload_part(b"one") + payload_part(b"two")
    assert [payload for _, payload in decode(wire)] == [b"one", b"two"]


def test_a_payload_part() -> None:
    [(headers, payload)] = decode(payload_part(TEXT))
    assert (headers[":message-type"], headers[":event-type"], payload) == ("event", "PayloadPart", TEXT)


def test_an_exception() -> None:
    [(headers, payload)] = decode(stream_exception("ModelStreamError", "broke", code="StreamBroken"))
    assert (headers[":message-type"], headers[":exception-type"]) == ("exception", "ModelStreamError")
    assert payload == b'{"Message": "broke", "ErrorCode": "StreamBroken"}'
    assert decode(stream_exception("InternalStreamFailure", "broke"))[0][1] == b'{"Message": "broke"}'


def test_chunks_pass_as_they_come() -> None:
    assert cut([b"one", b"two", TEXT]) == [b"one", b"two", TEXT]


@pytest.mark.parametrize("chunks", [[TEXT], [bytes([each]) for each in TEXT], [TEXT[:20], TEXT[20:]]])
@pytest.mark.parametrize("part_bytes", [(1,), (7,), (1, 2, 3), (1000,), (40, 1)])
def test_parts_of_given_sizes_carry_the_same_bytes(chunks: list[bytes], part_bytes: tuple[int, ...]) -> None:
    parts = cut(chunks, part_bytes)
    assert b"".join(parts) == TEXT
    sizes = [len(each) for each in parts]
    assert sizes[:-1] == [part_bytes[number % len(part_bytes)] for number in range(len(sizes) - 1)]


def test_one_byte_parts_split_characters() -> None:
    with pytest.raises(UnicodeDecodeError):
        [each.decode() for each in cut([TEXT], (1,))]


def test_large_parts_merge_chunks() -> None:
    assert cut([b"one", b"two", b"three"], (100,)) == [b"onetwothree"]


@pytest.mark.parametrize("part_bytes", [(), (4,), (100,)])
def test_what_came_before_an_error_comes_first(part_bytes: tuple[int, ...]) -> None:
    parts = cut([b"one", b"two"], part_bytes, ConnectionError("broke"))
    assert b"".join(parts) == b"onetwobroke"
    assert parts[-1] == b"broke"


def test_nothing_gives_no_part() -> None:
    assert cut([]) == cut([], (5,)) == []
