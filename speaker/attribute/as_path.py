"""AS_PATH and AS4_PATH (RFC 4271 section 4.3, RFC 5065, RFC 6793): segments, lengths, merging, text."""

from __future__ import annotations

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
"""Hops beyond which a path is not a path but an attack; the Internet's longest have tens."""

_BRACKETS: Final = {AS_SET: "{}", AS_CONFED_SEQUENCE: "()", AS_CONFED_SET: "[]"}


class Segment(NamedTuple):
    """One segment: its kind and its AS numbers."""

    kind: int
    asns: tuple[int, ...]


AsPath = tuple[Segment, ...]


def decode_as_path(value: bytes, width: int) -> AsPath:
    """Read segments of AS numbers of 2 or 4 octets. Raises `Truncated` naming the rule.

    A path that is too long is given up before it is read, so that no path costs more than a long one.
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
        octets = reader.take(count * width)
        asns = tuple(
            int.from_bytes(octets[i : i + width], "big") for i in range(0, len(octets), width)
        )
        if segments and segments[-1].kind == kind == AS_SEQUENCE:
            segments[-1] = Segment(kind, segments[-1].asns + asns)
        else:
            segments.append(Segment(kind, asns))
    return tuple(segments)


def encode_as_path(path: AsPath, width: int) -> bytes:
    """Write segments; AS numbers that two octets cannot hold become AS_TRANS."""
    parts = []
    for kind, asns in path:
        for start in range(0, len(asns), 255):
            run = asns[start : start + 255]
            parts.append(bytes((kind, len(run))))
            for asn in run:
                shown = asn if width == 4 or asn <= 0xFFFF else AS_TRANS
                parts.append(shown.to_bytes(width, "big"))
    return b"".join(parts)


def hop_count(path: AsPath) -> int:
    """Count as the decision process does: a set is one, confederation segments none (RFC 5065)."""
    return sum(
        1 if kind == AS_SET else len(asns) for kind, asns in path if kind not in CONFEDERATION
    )


def needs_as4(path: AsPath) -> bool:
    """Tell whether an AS number that belongs into AS4_PATH does not fit two octets."""
    return any(asn > 0xFFFF for kind, asns in path if kind not in CONFEDERATION for asn in asns)


def without_confederation(path: AsPath) -> AsPath:
    """Leave out the confederation's segments."""
    return tuple(segment for segment in path if segment.kind not in CONFEDERATION)


def prepend(path: AsPath, asn: int, kind: int = AS_SEQUENCE) -> AsPath:
    """Put an AS number in front (RFC 4271 section 5.1.2)."""
    if path and path[0].kind == kind:
        return (Segment(kind, (asn, *path[0].asns)), *path[1:])
    return (Segment(kind, (asn,)), *path)


def merge_as4(path: AsPath, as4_path: AsPath) -> AsPath:
    """Rebuild a path that came through a two-octet speaker (RFC 6793 section 4.2.3)."""
    as4_path = without_confederation(as4_path)
    extra = hop_count(path) - hop_count(as4_path)
    if extra < 0:
        return path
    leading: list[Segment] = []
    for kind, asns in path:
        if kind in CONFEDERATION and extra >= 0:
            # In front, or next to a segment that is taken whole.
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
    """Spell a path: ``65001 65002 {64512,64513}``, confederation segments in () and []."""
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
