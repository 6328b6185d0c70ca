"""The fast path for a run of UPDATEs yields what the slow path yields, one message at a time."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from speaker.errors import NotificationError
from speaker.message import HEADER_SIZE, check_header, frame_message
from speaker.peer.message_stream import MessageStream

Outcome = tuple[list[tuple[int, bytes]], tuple[int, int, bytes] | None]

MESSAGES = st.one_of(
    st.binary(max_size=40).map(lambda body: frame_message(2, body)),
    st.binary(max_size=12).map(lambda body: frame_message(4, body)),
    st.sampled_from([frame_message(4, b""), frame_message(3, b"\6\2"), frame_message(9, b"")]),
    st.integers(4070, 4090).map(lambda size: frame_message(2, bytes(size))),
)


def slow(octets: bytes) -> Outcome:
    """Split octets by `check_header` alone."""
    found: list[tuple[int, bytes]] = []
    position = 0
    while len(octets) - position >= HEADER_SIZE:
        try:
            kind, length = check_header(octets, position)
        except NotificationError as error:
            return found, (error.code, error.subcode, error.data)
        if position + length > len(octets):
            break
        found.append((kind, octets[position + HEADER_SIZE : position + length]))
        position += length
    return found, None


def pieces(octets: bytes, sizes: list[int]) -> Iterator[bytes]:
    position = 0
    for size in (*sizes, len(octets)):
        yield octets[position : position + size]
        position += size


def fast(octets: bytes, sizes: list[int]) -> Outcome:
    stream = MessageStream()
    found: list[tuple[int, bytes]] = []
    try:
        for piece in pieces(octets, sizes):
            for kind, bodies in stream.messages(piece):
                found += [(kind, body) for body in bodies]
    except NotificationError as error:
        return found, (error.code, error.subcode, error.data)
    return found, None


@given(
    st.lists(MESSAGES, max_size=12),
    st.lists(st.integers(1, 300), max_size=12),
    st.integers(0, 2000),
    st.integers(0, 255),
)
def test_a_run_of_updates_is_split_as_single_messages_are(
    messages: list[bytes], sizes: list[int], place: int, change: int
) -> None:
    octets = bytearray(b"".join(messages))
    if place < len(octets):
        octets[place] ^= change
    assert fast(bytes(octets), sizes) == slow(bytes(octets))
