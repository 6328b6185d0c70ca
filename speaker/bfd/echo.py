"""The echo function of one session: what is sent, and what of it returns (RFC 5880 section 6.8.9).

An echo packet is for its sender alone. Its payload has the session's discriminator, a number, and
octets that are secret, so that a stranger's packets keep no session Up.
"""

from __future__ import annotations

import struct
from typing import Final

from speaker.bfd.schedule import NEVER

_PAYLOAD: Final = struct.Struct("!IQI")
"""Local discriminator, secret, number."""
_NUMBERS: Final = 1 << 32


def discriminator_of(payload: bytes) -> bytes:
    """Return the discriminator of a received payload, or what stands in its place."""
    return payload[:4]


class EchoFunction:
    """The packets of a session while its echo function is active."""

    def __init__(self, discriminator: int, secret: int) -> None:
        """``secret``: 64 random bits."""
        self.next = 0
        """When the next packet is due."""
        self.deadline = NEVER
        """When the function has failed, unless a packet returns."""
        self._discriminator, self._secret = discriminator, secret
        self._last = 0
        """The number of the packet that was sent last."""
        self._unanswered = 0
        """Packets since the last returned one."""

    def send(self, now: int, interval: int, jittered: int, multiplier: int) -> bytes:
        """Return the payload of the packet that is due; times in microseconds."""
        self._last = (self._last + 1) % _NUMBERS
        if not self._unanswered:
            self.deadline = now + multiplier * interval
        self._unanswered += 1
        self.next = now + jittered
        return _PAYLOAD.pack(self._discriminator, self._secret, self._last)

    def returned(self, payload: bytes, now: int, interval: int, multiplier: int) -> bool:
        """Take a packet that has returned; False for one of others, of former times, or again."""
        if len(payload) != _PAYLOAD.size:
            return False
        discriminator, secret, number = _PAYLOAD.unpack(payload)
        behind = (self._last - number) % _NUMBERS
        if (discriminator, secret) != (self._discriminator, self._secret):
            return False
        if behind >= self._unanswered:
            return False
        self._unanswered = behind
        self.deadline = now + multiplier * interval if behind else NEVER
        return True

    def failed(self, now: int, multiplier: int) -> bool:
        """Return whether enough packets in sequence are lost (6.8.5).

        Both their number and the time decide: while this process stood still, none was sent.
        """
        return self.deadline <= now and self._unanswered >= multiplier

    def due(self, multiplier: int) -> int:
        """Return when something is to be done next."""
        return min(self.next, self.deadline if self._unanswered >= multiplier else NEVER)
