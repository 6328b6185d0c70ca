"""The attributes that most routes have, recognised at one look: the hot path of a full table.

One regular expression knows the attribute fields without any mistake in them that are made of the
attributes below, in ascending order, with one AS_SEQUENCE. It says only that such a field is good
and complete, which `speaker.attribute.decode` would say, too, at twenty times the cost; the values are
read when somebody wants them. Whatever it does not know goes the long way: it must never know more than
the long way accepts.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Final

from speaker.negotiated import Negotiated

_PATH_AT: Final = 9
"""Where the first AS number stands: ORIGIN comes first and always takes four octets."""
_HEADER: Final = 3
_HOPS: Final = 40


def _counted(kind: bytes, size: int, most: int) -> bytes:
    """Return what matches an attribute of 1 to ``most`` items of ``size`` octets, in one octet."""
    lengths = (
        re.escape(bytes((count * size,))) + b".{%d}" % (count * size)
        for count in range(1, min(most, 255 // size) + 1)
    )
    return b"(?:%s(?:%s)|)" % (kind, b"|".join(lengths))


def _paths(shortest: int) -> bytes:
    """Return what matches the value of an AS_PATH, its length in front."""
    usual = (
        re.escape(bytes((2 + 4 * count, 2, count))) + b".{%d}" % (4 * count)
        for count in range(1, _HOPS + 1)
    )
    return b"|".join([b"\\x00"] * (not shortest) + list(usual))


@functools.cache
def _pattern(*, ebgp: bool) -> re.Pattern[bytes]:
    # "This or nothing" is written as two alternatives: a repeat costs three times as much.
    parts = (
        rb"\x40\x01\x01[\x00-\x02]",
        rb"\x40\x02(?:%s)" % _paths(1 if ebgp else 0),
        # The next hop's own rules, and whose it is, are for who judges it.
        rb"\x40\x03\x04(.{4})",
        rb"(?:\x80\x04\x04.{4}|)",
        b"" if ebgp else rb"(?:\x40\x05\x04.{4}|)",
        rb"(?:\x40\x06\x00|)",
        rb"(?:\xc0\x07\x08(?!\x00\x00\x00\x00).{8}|)",
        _counted(rb"\xc0\x08", 4, 32),
        _counted(rb"\xc0\x10", 8, 8),
        _counted(rb"\xc0\x20", 12, 12),
    )
    return re.compile(b"".join(parts), re.DOTALL)


class AttributeFastPath:
    """What is usual in one session."""

    __slots__ = ("_first_as", "_match", "_never")

    def __init__(self, session: Negotiated, never: Iterable[int] = ()) -> None:
        """Know a session; a path that may have one of the AS numbers in ``never`` is not usual."""
        self._first_as = session.peer_asn.to_bytes(4, "big") if session.ebgp else b""
        self._match = _pattern(ebgp=session.ebgp).fullmatch
        # AS 0: RFC 7607.
        self._never = [asn.to_bytes(4, "big") for asn in sorted({0, *never})]

    @staticmethod
    def of(session: Negotiated, never: Iterable[int] = ()) -> AttributeFastPath | None:
        """Return a session's, or None where all of its attributes go the long way."""
        if not session.as4 or session.confederation or (session.ebgp and not session.peer_asn):
            return None
        return AttributeFastPath(session, never)

    def match_next_hop(self, field: bytes) -> bytes | None:
        """Return the next hop of a path attribute field, or None where the field is not usual."""
        found = self._match(field)
        if found is None or not field.startswith(self._first_as, _PATH_AT):
            return None
        for asn in self._never:
            # Octets of the path that only happen to be in a row are not worth a closer look here.
            # (``in`` takes its left side for a number first, and writes an error text each time.)
            if field.partition(asn)[1] and field.find(asn, _PATH_AT, found.start(1) - _HEADER) >= 0:
                return None
        return found[1]
