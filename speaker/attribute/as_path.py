"""AS_PATH and AS4_PATH (RFC 4271 section 4.3, RFC 5065, RFC 6793): segments, length, merging, text."""

from __future__ import annotations

from collections.abc import Collection
from struct import unpack
from typing import Final, NamedTuple

from speaker.errors import Truncated
from speaker.iana import AS_TRANS
from speaker.wire import Reader

AS_SET: Final = 1
AS_SEQUENCE: Final = 2
AS_CONFED_SEQUENCE: Final = 3
AS_CONFED_SET: Final = 4
CONFEDERATION: Final = frozenset({AS_CONFED_SEQUENCE, AS_CONFED_SET})

MAX_ASNS: Final = 750
"""The largest number of AS numbers in an AS_PATH; the longest paths of the Internet have tens."""

_FORMATS: Final = {2: "H", 4: "I"}
"""Of an AS number, by its octets (`struct`)."""
_BRACKETS: Final = {AS_SET: "{}", AS_CONFED_SEQUENCE: "()", AS_CONFED_SET: "[]"}


class Segment(NamedTuple):
    """A path segment: type and AS numbers."""

    kind: int
    asns: tuple[int, ...]


AsPath = tuple[Segment, ...]


def decode_as_path(value: bytes, width: int) -> AsPath:
    """Decode segments whose AS numbers have ``width`` octets, 2 or 4; merge adjacent AS_SEQUENCEs.

    Raises `Truncated` with the violated rule: also for more than `MAX_ASNS` AS numbers, which are
    counted before they are decoded, so that the cost of a path has a bound.
    """
    reader = Reader(value)
    segments: list[Segment] = []
    total = 0
    while reader.remaining:
        kind, count = reader.u8(), reader.u8()
        if kind not in (AS_SET, AS_SEQUENCE, AS_CONFED_SEQUENCE, AS_CONFED_SET):
            raise Truncated(f"segment type {kind}")
        if not count:
            raise Truncated("a segment without AS numbers")
        total += count
        if total > MAX_ASNS:
            raise Truncated(f"more than {MAX_ASNS} AS numbers")
        asns: tuple[int, ...] = unpack(f">{count}{_FORMATS[width]}", reader.take(count * width))
        if segments and segments[-1].kind == kind == AS_SEQUENCE:
            segments[-1] = Segment(kind, segments[-1].asns + asns)
        else:
            segments.append(Segment(kind, asns))
    return tuple(segments)


def encode_as_path(path: AsPath, width: int) -> bytes:
    """Encode segments; with a width of 2, AS numbers beyond 65,535 become AS_TRANS (RFC 6793)."""
    parts = []
    for kind, asns in path:
        for start in range(0, len(asns), 255):
            run = asns[start : start + 255]
            parts.append(bytes((kind, len(run))))
            for asn in run:
                encoded = asn if width == 4 or asn <= 0xFFFF else AS_TRANS
                parts.append(encoded.to_bytes(width, "big"))
    return b"".join(parts)


def hop_count(path: AsPath) -> int:
    """Return the length for route selection: an AS_SET counts one (RFC 4271 section 9.1.2.2).

    Confederation segments have no length (RFC 5065 section 5.3).
    """
    return sum(
        1 if kind == AS_SET else len(asns) for kind, asns in path if kind not in CONFEDERATION
    )


def needs_as4(path: AsPath) -> bool:
    """Return whether a two-octet session needs AS4_PATH beside the AS_PATH (RFC 6793 section 4.2.2)."""
    return any(asn > 0xFFFF for kind, asns in path if kind not in CONFEDERATION for asn in asns)


def without_confederation(path: AsPath) -> AsPath:
    """Return a path without its confederation segments (RFC 5065)."""
    return tuple(segment for segment in path if segment.kind not in CONFEDERATION)


def is_originated_in(path: AsPath, asns: Collection[int]) -> bool:
    """True if the origin AS of a path, the last of a sequence, is one of these."""
    return bool(path) and path[-1].kind == AS_SEQUENCE and path[-1].asns[-1] in asns


def occurrences(path: AsPath, asn: int) -> int:
    """Return how often an AS number is in a path."""
    return sum(asns.count(asn) for _, asns in path)


def prepend(path: AsPath, asn: int, kind: int = AS_SEQUENCE) -> AsPath:
    """Prepend an AS number, in a segment of type ``kind`` (RFC 4271 section 5.1.2)."""
    if path and path[0].kind == kind:
        return (Segment(kind, (asn, *path[0].asns)), *path[1:])
    return (Segment(kind, (asn,)), *path)


def merge_as4(path: AsPath, as4_path: AsPath) -> AsPath:
    """Restore the AS_PATH of a route that passed two-octet speakers (RFC 6793 section 4.2.3)."""
    as4_path = without_confederation(as4_path)
    extra = hop_count(path) - hop_count(as4_path)
    if extra < 0:
        return path
    leading: list[Segment] = []
    for kind, asns in path:
        if kind in CONFEDERATION and extra >= 0:
            # Leading confederation segments, and those adjacent to a segment that is kept whole.
            leading.append(Segment(kind, asns))
        elif extra <= 0:
            break
        elif kind == AS_SET:
            leading.append(Segment(kind, asns))
            extra -= 1
        else:
            leading.append(Segment(kind, asns[:extra]))
            extra -= len(asns)
    if leading and as4_path and leading[-1].kind == as4_path[0].kind == AS_SEQUENCE:
        joined = Segment(AS_SEQUENCE, leading[-1].asns + as4_path[0].asns)
        return (*leading[:-1], joined, *as4_path[1:])
    return (*leading, *as4_path)


def as_path_text(path: AsPath) -> str:
    """Format a path: ``65001 65002 {64512,64513}``, confederation segments in () and []."""
    parts = []
    for kind, asns in path:
        brackets = _BRACKETS.get(kind)
        if brackets is None:
            parts.append(" ".join(str(asn) for asn in asns))
        elif kind == AS_CONFED_SEQUENCE:
            parts.append(f"({' '.join(str(asn) for asn in asns)})")
        else:
            inner = ",".join(str(asn) for asn in sorted(set(asns)))
            parts.append(f"{brackets[0]}{inner}{brackets[1]}")
    return " ".join(parts)
