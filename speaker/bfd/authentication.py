"""Keyed SHA1 and meticulous keyed SHA1: RFC 5880 sections 4.4 and 6.7.4.

Keyed MD5 (6.7.3) and simple passwords (6.7.2) are not offered: the RFC has the first one for old
systems alone, and the second one is readable on the wire.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from speaker.bfd.packet import HEADER, SHA1_SECTION, Packet
from speaker.bfd.session_values import Discard, Key

KEYED_SHA1: Final = 4
METICULOUS_KEYED_SHA1: Final = 5
_MODULUS: Final = 1 << 32


def auth_type(key: Key) -> int:
    """Return the number of a key's authentication type."""
    return METICULOUS_KEYED_SHA1 if key.meticulous else KEYED_SHA1


def sign(octets: bytes, key: Key, sequence: int) -> bytes:
    """Return an encoded packet with its authentication section."""
    head = (auth_type(key), SHA1_SECTION.size, key.key_id, 0, sequence)
    signed = octets + SHA1_SECTION.pack(*head, key.secret.ljust(20, b"\0"))
    return octets + SHA1_SECTION.pack(*head, hashlib.sha1(signed, usedforsecurity=False).digest())


def accepted_sequence(packet: Packet, key: Key, received: int | None) -> int | None:
    """Return the sequence number of a packet that is authentic, or None.

    ``received`` is the last accepted one, None if none is known (bfd.AuthSeqKnown is 0). How far ahead
    of it a number may be follows from the packet's Detect Mult, as the detection time does: the packets
    that the neighbor may send before it is lost.
    """
    section = packet.octets[HEADER.size :]
    if len(section) != SHA1_SECTION.size:
        return None
    kind, length, key_id, _, sequence, digest = SHA1_SECTION.unpack(section)
    if (kind, length, key_id) != (auth_type(key), SHA1_SECTION.size, key.key_id):
        return None
    if received is not None:
        ahead = (sequence - received) % _MODULUS
        if not int(key.meticulous) <= ahead <= 3 * packet.detect_multiplier:
            return None
    signed = packet.octets[:-20] + key.secret.ljust(20, b"\0")
    expected = hashlib.sha1(signed, usedforsecurity=False).digest()
    return sequence if hmac.compare_digest(expected, digest) else None


class ReceivedSequence:
    """The sequence number of the last authentic packet of a session (bfd.RcvAuthSeq, 6.8.1)."""

    __slots__ = ("number",)

    def __init__(self) -> None:
        self.number: int | None = None
        """None: not known (bfd.AuthSeqKnown is 0)."""

    def check(self, packet: Packet, key: Key | None, *, silent: bool) -> Discard | None:
        """Return why a packet is discarded, or take its sequence number (6.7).

        ``key`` is the session's; ``silent``: twice the detection time has passed without a packet, and
        any sequence number is accepted.
        """
        if key is None:
            return Discard.AUTHENTICATION_UNEXPECTED if packet.authenticated else None
        if not packet.authenticated:
            return Discard.AUTHENTICATION_MISSING
        if silent:
            self.number = None
        sequence = accepted_sequence(packet, key, self.number)
        if sequence is None:
            return Discard.AUTHENTICATION_FAILED
        self.number = sequence
        return None
