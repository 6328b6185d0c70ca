"""Prefixes into UPDATE messages: as few and as full as the negotiated size permits.

The hot path of sending. Attributes come encoded, prefixes as the RIBs hold them; the result is octets
that are the same for every peer of an update group. Works per message, not per prefix.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from speaker.iana import IPV4_UNICAST, Family, MessageType

MARKER: Final = b"\xff" * 16
_HEADER: Final = 19
_FIXED: Final = _HEADER + 4
"""The header and the two length fields of an UPDATE."""
_MP_REACH_FLAGS: Final = b"\x90\x0e"
_MP_UNREACH_FLAGS: Final = b"\x90\x0f"
# Optional, with extended length: the length field then has two octets for every size.


class AttributesTooLong(ValueError):  # noqa: N818  the name says what happened
    """Attributes that leave no room for a prefix in the largest message of a session."""


def chunks(nlri: Sequence[bytes], room: int) -> list[bytes]:
    """Put prefixes into fields of at most ``room`` octets. Raises `AttributesTooLong`."""
    field = b"".join(nlri)
    if len(field) <= room:
        return [field] if nlri else []
    found: list[bytes] = []
    sizes = set(map(len, nlri))
    if len(sizes) == 1 and (size := sizes.pop()) <= room:
        step = room - room % size
        return [field[start : start + step] for start in range(0, len(field), step)]
    ends = list(accumulate(map(len, nlri)))
    first = 0
    start = 0
    while first < len(nlri):
        last = bisect_right(ends, start + room)
        if last == first:
            raise AttributesTooLong(f"{room} octets are left for a prefix of {len(nlri[first])}")
        found.append(field[start : ends[last - 1]])
        start = ends[last - 1]
        first = last
    return found


def _update(withdrawn: bytes, attributes: bytes, nlri: bytes) -> bytes:
    size = _FIXED + len(withdrawn) + len(attributes) + len(nlri)
    return b"".join(
        (
            MARKER,
            size.to_bytes(2, "big"),
            _UPDATE,
            len(withdrawn).to_bytes(2, "big"),
            withdrawn,
            len(attributes).to_bytes(2, "big"),
            attributes,
            nlri,
        )
    )


_UPDATE: Final = bytes((MessageType.UPDATE,))


def _family(family: Family) -> bytes:
    return family.afi.to_bytes(2, "big") + bytes((family.safi,))


def announce(attributes: bytes, nlri: Sequence[bytes], limit: int) -> list[bytes]:
    """Return UPDATEs with the classic fields for IPv4 unicast (RFC 4271 section 4.3).

    ``attributes`` include the NEXT_HOP. Raises `AttributesTooLong`.
    """
    room = limit - _FIXED - len(attributes)
    return [_update(b"", attributes, field) for field in chunks(nlri, room)]


def announce_mp(
    family: Family, next_hop: bytes, attributes: bytes, nlri: Sequence[bytes], limit: int
) -> list[bytes]:
    """Return UPDATEs with MP_REACH_NLRI (RFC 4760 section 3), as the first attribute (RFC 7606).

    ``attributes`` are without NEXT_HOP; ``next_hop`` has 4, 16 or 32 octets.

    Raises `AttributesTooLong`.
    """
    head = _family(family) + bytes((len(next_hop),)) + next_hop + b"\x00"
    room = limit - _FIXED - 4 - len(head) - len(attributes)
    return [
        _update(
            b"",
            b"".join((_MP_REACH_FLAGS, (len(head) + len(field)).to_bytes(2, "big"), head, field))
            + attributes,
            b"",
        )
        for field in chunks(nlri, room)
    ]


def withdraw(nlri: Sequence[bytes], limit: int) -> list[bytes]:
    """Return UPDATEs that withdraw IPv4 unicast prefixes by the classic field."""
    return [_update(field, b"", b"") for field in chunks(nlri, limit - _FIXED)]


def withdraw_mp(family: Family, nlri: Sequence[bytes], limit: int) -> list[bytes]:
    """Return UPDATEs with MP_UNREACH_NLRI (RFC 4760 section 4)."""
    head = _family(family)
    room = limit - _FIXED - 4 - len(head)
    return [
        _update(
            b"",
            b"".join((_MP_UNREACH_FLAGS, (len(head) + len(field)).to_bytes(2, "big"), head, field)),
            b"",
        )
        for field in chunks(nlri, room)
    ]


def end_of_rib(family: Family) -> bytes:
    """Return the End-of-RIB marker of a family (RFC 4724 section 2)."""
    if family == IPV4_UNICAST:
        return _update(b"", b"", b"")
    return _update(b"", b"\x80\x0f\x03" + _family(family), b"")
