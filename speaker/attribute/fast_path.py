"""Fast path for the path attributes of most routes: recognised by one regular expression.

The slow path is `speaker.attribute.decode`. The expression matches fields that consist of the
attributes below, well-formed, in ascending order of type, with one AS_SEQUENCE. A match means that
the slow path finds no fault except, perhaps, in the next hop's address, which the caller checks; the
values are decoded when they are needed first. A field that does not match takes the slow path. A
field that the slow path rejects must never match (tests/speaker/attribute/test_fast_path.py).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Final

from speaker.iana import AttributeType
from speaker.negotiated import Negotiated

_FIRST_AS_OFFSET: Final = 9
"""Offset of the first AS number: behind ORIGIN (4 octets), AS_PATH's header and the segment's."""
_HEADER_SIZE: Final = 3
_AS_PATH_LENGTH: Final = 6
"""Offset of the length of AS_PATH: behind ORIGIN, flags and type."""
_AS_PATH_END: Final = 7
"""Offset behind an empty AS_PATH."""
_MAX_HOPS: Final = 40
"""The longest AS_SEQUENCE that the expression matches."""


def _list_attribute(kind: bytes, size: int, most: int) -> bytes:
    """Return a pattern for an optional attribute of 1 to ``most`` items of ``size`` octets each.

    ``kind`` matches flags and type. The attribute has at most 255 octets: no extended length.
    """
    lengths = (
        re.escape(bytes((count * size,))) + b".{%d}" % (count * size)
        for count in range(1, min(most, 255 // size) + 1)
    )
    return b"(?:%s(?:%s)|)" % (kind, b"|".join(lengths))


def _paths(shortest: int) -> bytes:
    """Return a pattern for length and value of an AS_PATH: one AS_SEQUENCE, or empty."""
    sequences = (
        re.escape(bytes((2 + 4 * count, 2, count))) + b".{%d}" % (4 * count)
        for count in range(1, _MAX_HOPS + 1)
    )
    return b"|".join([b"\\x00"] * (not shortest) + list(sequences))


@functools.cache
def _pattern(*, ebgp: bool) -> re.Pattern[bytes]:
    # An optional part is written as two alternatives, (?:x|): a repeat takes three times as long.
    parts = (
        rb"\x40\x01\x01[\x00-\x02]",
        rb"\x40\x02(?:%s)" % _paths(1 if ebgp else 0),
        # Any next hop: `match_next_hop` returns it for the caller to check.
        rb"\x40\x03\x04(.{4})",
        rb"(?:\x80\x04\x04.{4}|)",
        b"" if ebgp else rb"(?:\x40\x05\x04.{4}|)",
        rb"(?:\x40\x06\x00|)",
        rb"(?:\xc0\x07\x08(?!\x00\x00\x00\x00).{8}|)",
        _list_attribute(rb"\xc0\x08", 4, 32),
        _list_attribute(rb"\xc0\x10", 8, 8),
        _list_attribute(rb"\xc0\x20", 12, 12),
    )
    return re.compile(b"".join(parts), re.DOTALL)


class AttributeFastPath:
    """The fast path of one session."""

    __slots__ = ("_excluded_asns", "_first_as", "_match")

    def __init__(self, session: Negotiated, excluded_asns: Iterable[int] = ()) -> None:
        """Prepare for a session; paths that may contain an AS of ``excluded_asns`` never match."""
        enforced = session.ebgp and session.enforce_first_as
        self._first_as = session.peer_asn.to_bytes(4, "big") if enforced else b""
        self._match = _pattern(ebgp=session.ebgp).fullmatch
        # AS 0: RFC 7607.
        self._excluded_asns = [asn.to_bytes(4, "big") for asn in sorted({0, *excluded_asns})]

    @staticmethod
    def of(session: Negotiated, excluded_asns: Iterable[int] = ()) -> AttributeFastPath | None:
        """Return the fast path of a session, or None where every field takes the slow path.

        That is so with two-octet AS numbers, in a confederation, and with an unknown peer AS.
        """
        if not session.as4 or session.confederation or (session.ebgp and not session.peer_asn):
            return None
        return AttributeFastPath(session, excluded_asns)

    def match_next_hop(self, field: bytes) -> bytes | None:
        """Return the NEXT_HOP (4 octets) of a well-formed field, or None for the slow path."""
        known = self._match(field)
        if known is None or not field.startswith(self._first_as, _FIRST_AS_OFFSET):
            return None
        for asn in self._excluded_asns:
            # A match across the border of two AS numbers takes the slow path, too: correct, and rare.
            # (``asn in field`` tries an integer first and formats an exception text for each miss.)
            if (
                field.partition(asn)[1]
                and field.find(asn, _FIRST_AS_OFFSET, known.start(1) - _HEADER_SIZE) >= 0
            ):
                return None
        return known[1]


def forwarding_values(field: bytes) -> tuple[bytes, bytes]:
    """Return NEXT_HOP (4 octets) and the value of COMMUNITIES of a field that has matched."""
    at = _AS_PATH_END + field[_AS_PATH_LENGTH]
    next_hop = field[at + _HEADER_SIZE : at + 7]
    at += 7
    while at < len(field):
        end = at + _HEADER_SIZE + field[at + 2]
        if field[at + 1] == AttributeType.COMMUNITIES:
            return next_hop, field[at + _HEADER_SIZE : end]
        at = end
    return next_hop, b""
