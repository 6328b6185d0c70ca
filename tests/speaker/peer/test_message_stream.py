"""A byte stream in pieces of any size yields the same messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speaker.errors import NotificationError
from speaker.message import KEEPALIVE, frame_message
from speaker.peer.message_stream import MessageStream

BODIES = st.lists(st.binary(min_size=4, max_size=200), max_size=8)


@given(BODIES, st.lists(st.integers(1, 60), min_size=1, max_size=40))
def test_h09_messages_are_the_same_in_pieces_of_any_size(
    bodies: list[bytes], sizes: list[int]
) -> None:
    octets = b"".join(frame_message(2, body) for body in bodies)
    stream = MessageStream()
    found: list[bytes] = []
    position = 0
    for size in (*sizes, len(octets)):
        for kind, some in stream.messages(octets[position : position + size]):
            assert kind == 2
            found += some
        position += size
    assert found == bodies


def test_updates_in_a_row_are_yielded_together_and_other_messages_alone() -> None:
    one, two = frame_message(2, b"\0\0\0\0"), frame_message(2, bytes(5))
    octets = one + two + KEEPALIVE + KEEPALIVE + two + one[:20]
    assert list(MessageStream().messages(octets)) == [
        (2, [b"\0\0\0\0", bytes(5)]),
        (4, [b""]),
        (4, [b""]),
        (2, [bytes(5)]),
    ]


def test_messages_before_a_bad_header_are_processed() -> None:
    messages = MessageStream().messages(frame_message(2, bytes(4)) + frame_message(9, b""))
    assert next(messages) == (2, [bytes(4)])
    with pytest.raises(NotificationError):
        next(messages)


def test_the_limit_may_rise_between_two_messages_rfc_8654() -> None:
    long = frame_message(2, bytes(5000))
    stream = MessageStream()
    with pytest.raises(NotificationError):
        list(stream.messages(long))
    stream = MessageStream()
    kinds = []
    for kind, _ in stream.messages(KEEPALIVE + long):
        kinds.append(kind)
        stream.maximum = 65535
    assert kinds == [4, 2]
