"""Every truncation and every changed octet of a message of each kind, sent to an Established session.

Reading alone is tested with the codecs; here the whole engine takes the octets, beside a session
that must not notice.
"""

from __future__ import annotations

import pytest

from speaker.message import HEADER_SIZE, KEEPALIVE
from tests.speaker.hostile import BASIC, RICH, SEEDS, Arena, open_of

KINDS = ["open", "keepalive", "update-rich", "notification", "refresh"]
PROFILE = "plain"


class Sessions:
    """One Established session after another: a new one when the old one is hurt."""

    def __init__(self, profile: str = PROFILE) -> None:
        self.arena = Arena(profile)
        self.offered = RICH if profile == "rich" else BASIC
        self.begun = 0
        self._begin()

    def _begin(self) -> None:
        arena = self.arena
        arena.drop()
        while arena.status().state != "Active":
            arena.wait(arena.status().retry_in or 0.0)
        arena.accept()
        arena.send(open_of(self.offered) + KEEPALIVE)
        assert arena.status().established
        self.begun += 1

    def send(self, octets: bytes) -> None:
        """Send octets to an Established session without an incomplete message."""
        arena = self.arena
        arena.send(octets)
        whole = len(octets) >= HEADER_SIZE and int.from_bytes(octets[16:18], "big") == len(octets)
        if not whole or not arena.status().established:
            # Half a message: what follows belongs to it.
            arena.send(b"\xff" * 40)
            self._begin()

    def done(self) -> None:
        self.arena.check()


@pytest.mark.parametrize("kind", KINDS)
def test_h30_every_truncation_with_and_without_its_length(kind: str) -> None:
    seed = SEEDS[kind]
    sessions = Sessions()
    for size in range(len(seed)):
        sessions.send(seed[:size])
        if size >= HEADER_SIZE:
            sessions.send(seed[:16] + size.to_bytes(2, "big") + seed[18:size])
    sessions.done()


def _values(message: bytes, place: int) -> set[int]:
    """Return what an octet is changed to: all there is in a short message, else what is likely."""
    right = message[place]
    if len(message) < 24:
        return set(range(256)) - {right}
    return {0, 255, *(right ^ 1 << bit for bit in range(8))} - {right}


@pytest.mark.parametrize("kind", KINDS)
def test_h31_every_octet_changed(kind: str) -> None:
    """Behind the marker, bit by bit; the decoders alone meet all 255 other values."""
    seed = SEEDS[kind]
    sessions = Sessions()
    for place in range(16, len(seed)):
        for value in _values(seed, place):
            sessions.send(seed[:place] + bytes((value,)) + seed[place + 1 :])
    sessions.done()


def test_h31_every_octet_of_the_marker() -> None:
    sessions = Sessions()
    for place in range(16):
        for value in (0, 1, 0x7F, 0xFE):
            sessions.send(KEEPALIVE[:place] + bytes((value,)) + KEEPALIVE[place + 1 :])
    assert sessions.begun == 1 + 64
    sessions.done()


def _lengths(message: bytes) -> list[tuple[int, int]]:
    """Return place and width of each length field of the rich UPDATE, outermost first."""
    found = [(16, 2), (19, 2)]
    attributes_at = 21 + int.from_bytes(message[19:21], "big")
    found.append((attributes_at, 2))
    position = attributes_at + 2
    end = position + int.from_bytes(message[attributes_at : attributes_at + 2], "big")
    while position < end:
        found.append((position + 2, 1))
        if message[position + 1] == 14:
            found.append((position + 6, 1))
        position += 3 + message[position + 2]
    return found


@pytest.mark.parametrize("profile", ["plain", "rich"])
def test_h31_every_length_field_with_another_value(profile: str) -> None:
    seed = SEEDS["update-rich"]
    sessions = Sessions(profile)
    for place, width in _lengths(seed):
        right = int.from_bytes(seed[place : place + width], "big")
        for value in (0, 1, right - 1, right + 1, 255, 65535):
            if 0 <= value < 256**width:
                sessions.send(seed[:place] + value.to_bytes(width, "big") + seed[place + width :])
    sessions.done()
