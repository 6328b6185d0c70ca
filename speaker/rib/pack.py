"""Update packing: prefixes into UPDATEs, as few and as full as the negotiated message size permits.

Takes encoded attributes and prefixes in wire form. The messages are the same octets for every peer of
an update group. Work is per message, not per prefix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from speaker.iana import IPV4_UNICAST, Family, MessageType
from speaker.message import HEADER_SIZE, MARKER
from speaker.rib.pack_fast_path import fill_fields
from speaker.rib.pack_fields import AttributesTooLong

__all__ = [
    "AttributesTooLong",
    "announce",
    "announce_mp",
    "end_of_rib",
    "room_for_nlri",
    "withdraw",
    "withdraw_mp",
]

_FIXED_SIZE: Final = HEADER_SIZE + 4
"""The header and the two length fields of an UPDATE."""
# Optional non-transitive, with extended length: the length field has two octets for every size.
_MP_REACH_HEADER: Final = b"\x90\x0e"
_MP_UNREACH_HEADER: Final = b"\x90\x0f"
_MP_REACH_FIXED_SIZE: Final = 4 + 3 + 1 + 1
"""MP_REACH_NLRI without next hop and prefixes: header, family, next hop length, reserved octet."""
_UPDATE: Final = bytes((MessageType.UPDATE,))


def _update(withdrawn: bytes, attributes: bytes, nlri: bytes) -> bytes:
    size = _FIXED_SIZE + len(withdrawn) + len(attributes) + len(nlri)
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


def _family(family: Family) -> bytes:
    return family.afi.to_bytes(2, "big") + bytes((family.safi,))


def room_for_nlri(next_hop: bytes | None, attributes: bytes, limit: int) -> int:
    """Return how many octets of prefixes an UPDATE holds beside its attributes; may be negative.

    ``next_hop`` is that of MP_REACH_NLRI, None if prefixes are in the NLRI field; ``limit`` is the
    largest message in octets.
    """
    mp_octets = 0 if next_hop is None else _MP_REACH_FIXED_SIZE + len(next_hop)
    return limit - _FIXED_SIZE - mp_octets - len(attributes)


def announce(attributes: bytes, nlri: Sequence[bytes], limit: int) -> list[bytes]:
    """Return UPDATEs that announce IPv4 unicast prefixes in the NLRI field (RFC 4271 section 4.3).

    ``attributes`` include NEXT_HOP; ``limit`` is the largest message in octets. Raises
    `AttributesTooLong`.
    """
    room = room_for_nlri(None, attributes, limit)
    return [_update(b"", attributes, field) for field in fill_fields(nlri, room)]


def announce_mp(
    family: Family, next_hop: bytes, attributes: bytes, nlri: Sequence[bytes], limit: int
) -> list[bytes]:
    """Return UPDATEs with MP_REACH_NLRI (RFC 4760 section 3), as the first attribute (RFC 7606).

    ``attributes`` are without NEXT_HOP; ``next_hop`` has 4, 16 or 32 octets; ``limit`` is the largest
    message in octets. Raises `AttributesTooLong`.
    """
    head = _family(family) + bytes((len(next_hop),)) + next_hop + b"\x00"
    room = room_for_nlri(next_hop, attributes, limit)
    return [
        _update(
            b"",
            b"".join((_MP_REACH_HEADER, (len(head) + len(field)).to_bytes(2, "big"), head, field))
            + attributes,
            b"",
        )
        for field in fill_fields(nlri, room)
    ]


def withdraw(nlri: Sequence[bytes], limit: int) -> list[bytes]:
    """Return UPDATEs that withdraw IPv4 unicast prefixes in the Withdrawn Routes field."""
    return [_update(field, b"", b"") for field in fill_fields(nlri, limit - _FIXED_SIZE)]


def withdraw_mp(family: Family, nlri: Sequence[bytes], limit: int) -> list[bytes]:
    """Return UPDATEs with MP_UNREACH_NLRI (RFC 4760 section 4)."""
    head = _family(family)
    room = limit - _FIXED_SIZE - 4 - len(head)
    return [
        _update(
            b"",
            b"".join(
                (_MP_UNREACH_HEADER, (len(head) + len(field)).to_bytes(2, "big"), head, field)
            ),
            b"",
        )
        for field in fill_fields(nlri, room)
    ]


def end_of_rib(family: Family) -> bytes:
    """Return the End-of-RIB marker of a family (RFC 4724 section 2)."""
    if family == IPV4_UNICAST:
        return _update(b"", b"", b"")
    return _update(b"", b"\x80\x0f\x03" + _family(family), b"")
