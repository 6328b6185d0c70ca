"""How each path attribute is decoded: one table row for each type (RFC 7606 section 7).

A row has the flags that the attribute must carry, the function that decodes its value, and the error
handling for a malformed value, for wrong flags, and for a sender that may not send the attribute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from speaker.attribute.as_path import (
    AS_CONFED_SEQUENCE,
    AS_SEQUENCE,
    CONFEDERATION,
    AsPath,
    decode_as_path,
)
from speaker.attribute.path_attributes import Aggregator, ErrorHandling
from speaker.errors import Truncated
from speaker.iana import AS_TRANS, AttributeType, UpdateSubcode
from speaker.negotiated import Negotiated

OPTIONAL: Final = 0x80
TRANSITIVE: Final = 0x40
_DISCARD: Final = ErrorHandling.ATTRIBUTE_DISCARD
_WITHDRAW: Final = ErrorHandling.TREAT_AS_WITHDRAW


class MalformedValue(Exception):  # noqa: N818  a signal between this table and the decoder
    """A value that its attribute's RFC does not permit."""

    def __init__(self, rule: str, subcode: int = UpdateSubcode.ATTRIBUTE_LENGTH) -> None:
        super().__init__(rule)
        self.subcode = subcode


def _exact_length(value: bytes, size: int) -> bytes:
    if len(value) != size:
        raise MalformedValue(f"{len(value)} octets instead of {size}")
    return value


def _items_of(value: bytes, size: int) -> list[bytes]:
    if not value or len(value) % size:
        raise MalformedValue(f"{len(value)} octets are no positive multiple of {size}")
    return [value[i : i + size] for i in range(0, len(value), size)]


def _origin(value: bytes, _: Negotiated) -> int:
    origin = _exact_length(value, 1)[0]
    if origin > 2:
        raise MalformedValue(f"value {origin}", UpdateSubcode.INVALID_ORIGIN)
    return origin


def _as_path(value: bytes, session: Negotiated) -> AsPath:
    try:
        path = decode_as_path(value, 4 if session.as4 else 2)
    except Truncated as error:
        raise MalformedValue(str(error), UpdateSubcode.MALFORMED_AS_PATH) from None
    if any(0 in asns for _, asns in path):
        raise MalformedValue("AS 0 (RFC 7607)", UpdateSubcode.MALFORMED_AS_PATH)
    if session.confederation:
        _check_confederation(path, session)
    elif session.ebgp:
        _check_external(path, session)
    return path


def _check_external(path: AsPath, session: Negotiated) -> None:
    """Check the AS_PATH of an external peer: its own AS comes first (RFC 4271 section 6.3).

    That of a route server does not (RFC 7947 section 2.2.2.1): there it is not enforced.
    """
    if any(kind in CONFEDERATION for kind, _ in path):
        raise MalformedValue("a confederation segment (RFC 5065)", UpdateSubcode.MALFORMED_AS_PATH)
    if is_wrong_first_as(path, session):
        first = _first_as(path)
        begin = "there is no first AS" if first is None else f"the first AS is {first}"
        raise MalformedValue(
            f"{begin}, the peer's is {session.peer_asn}; for a route server switch"
            " enforce-first-AS off",
            UpdateSubcode.MALFORMED_AS_PATH,
        )


def is_wrong_first_as(path: AsPath, session: Negotiated) -> bool:
    """Return whether the AS_PATH of an external peer begins with another AS, which is enforced."""
    if not session.peer_asn or not session.enforce_first_as:
        return False
    expected = session.peer_asn
    if not session.as4 and expected > 0xFFFF:
        # Behind AS_TRANS, AS4_PATH has the peer's own number (RFC 6793 section 4.2.3).
        return _first_as(path) not in (AS_TRANS, expected)
    return _first_as(path) != expected


def _first_as(path: AsPath) -> int | None:
    return path[0].asns[0] if path and path[0].kind == AS_SEQUENCE else None


def _check_confederation(path: AsPath, session: Negotiated) -> None:
    """Check the AS_PATH of a confederation peer (RFC 5065 section 5).

    A peer in another member AS has prepended its own in an AS_CONFED_SEQUENCE.
    """
    allowed = (AS_CONFED_SEQUENCE,) if session.ebgp else CONFEDERATION
    if not path or path[0].kind not in allowed:
        raise MalformedValue(
            "no confederation segment first (RFC 5065)", UpdateSubcode.MALFORMED_AS_PATH
        )


def _next_hop(value: bytes, _: Negotiated) -> bytes:
    if is_not_unicast_ipv4(_exact_length(value, 4)):
        raise MalformedValue("not a unicast address", UpdateSubcode.INVALID_NEXT_HOP)
    return value


def is_not_unicast_ipv4(octets: bytes) -> bool:
    """Return whether an IPv4 address is 0.0.0.0 or multicast (RFC 7606 section 7.3)."""
    return octets == b"\0\0\0\0" or octets[0] & 0xF0 == 0xE0


def _u32(value: bytes, _: Negotiated) -> int:
    return int.from_bytes(_exact_length(value, 4), "big")


def _atomic_aggregate(value: bytes, _: Negotiated) -> bool:
    _exact_length(value, 0)
    return True


def _aggregator(value: bytes, session: Negotiated) -> Aggregator:
    _exact_length(value, 8 if session.as4 else 6)
    asn = int.from_bytes(value[:-4], "big")
    if not asn:
        raise MalformedValue("AS 0 (RFC 7607)", UpdateSubcode.OPTIONAL_ATTRIBUTE)
    return Aggregator(asn, value[-4:])


def _communities(value: bytes, _: Negotiated) -> tuple[int, ...]:
    """Decode COMMUNITIES (RFC 1997): in received order, duplicates removed."""
    return tuple({int.from_bytes(item, "big"): None for item in _items_of(value, 4)})


def _large(value: bytes, _: Negotiated) -> tuple[tuple[int, int, int], ...]:
    """Decode LARGE_COMMUNITIES: duplicates are removed (RFC 8092 section 5)."""
    items = {
        (
            int.from_bytes(item[:4], "big"),
            int.from_bytes(item[4:8], "big"),
            int.from_bytes(item[8:], "big"),
        ): None
        for item in _items_of(value, 12)
    }
    return tuple(items)


def _extended(value: bytes, _: Negotiated) -> tuple[bytes, ...]:
    """Decode EXTENDED COMMUNITIES (RFC 4360)."""
    return tuple(dict.fromkeys(_items_of(value, 8)))


def _ipv6_extended(value: bytes, _: Negotiated) -> tuple[bytes, ...]:
    """Decode IPv6 Address Specific Extended Communities (RFC 5701)."""
    return tuple(dict.fromkeys(_items_of(value, 20)))


def _originator(value: bytes, _: Negotiated) -> bytes:
    return _exact_length(value, 4)


def _cluster_list(value: bytes, _: Negotiated) -> tuple[bytes, ...]:
    return tuple(_items_of(value, 4))


def _as4_path(value: bytes, _: Negotiated) -> AsPath:
    if not value:
        # RFC 6793 section 6: too short for a single AS number.
        raise MalformedValue("no AS numbers")
    try:
        path = decode_as_path(value, 4)
    except Truncated as error:
        raise MalformedValue(str(error)) from None
    if any(0 in asns for _, asns in path):
        raise MalformedValue("AS 0 (RFC 7607)")
    return path


def _as4_aggregator(value: bytes, _: Negotiated) -> Aggregator:
    _exact_length(value, 8)
    if value[:4] == b"\0\0\0\0":
        raise MalformedValue("AS 0 (RFC 7607)")
    return Aggregator(int.from_bytes(value[:4], "big"), value[4:])


def _tlvs(type_size: int, length_size: int) -> Callable[[bytes, Negotiated], bytes]:
    """Return a check that a value consists of whole TLVs: for attributes that are only passed on.

    ``type_size`` and ``length_size`` are in octets; the length covers the TLV's value alone.
    """

    def check(value: bytes, _: Negotiated) -> bytes:
        position = 0
        head = type_size + length_size
        while position < len(value):
            if position + head > len(value):
                raise MalformedValue("a TLV without its header")
            length = int.from_bytes(value[position + type_size : position + head], "big")
            position += head + length
        if position != len(value):
            raise MalformedValue("a TLV overruns the attribute")
        return value

    return check


def _aigp(value: bytes, _: Negotiated) -> bytes:
    # RFC 7311 section 3: the length counts the TLV's own header; type 1 is 11 octets long.
    position = 0
    while position < len(value):
        length = int.from_bytes(value[position + 1 : position + 3], "big")
        if position + 3 > len(value) or length < 3 or position + length > len(value):
            raise MalformedValue("a TLV with an impossible length")
        if value[position] == 1 and length != 11:
            raise MalformedValue(f"an AIGP TLV of {length} octets instead of 11")
        position += length
    return value


def _pmsi(value: bytes, _: Negotiated) -> bytes:
    if len(value) < 5:
        raise MalformedValue(f"{len(value)} octets, at least 5 (RFC 6514)")
    return value


def _tunnel(value: bytes, session: Negotiated) -> bytes:
    return _tlvs(2, 2)(value, session)


def _otc(value: bytes, _: Negotiated) -> int:
    return int.from_bytes(_exact_length(value, 4), "big")


class AttributeRule(NamedTuple):
    """How the attributes of one type are decoded."""

    flags: int
    """The required values of the Optional and Transitive bits."""
    read: Callable[[bytes, Negotiated], Any]
    """Decodes the value. Raises `MalformedValue`."""
    field: str | None = None
    """The field of `PathAttributes`; None for AS4_PATH, AS4_AGGREGATOR and opaque attributes."""
    malformed: ErrorHandling = _WITHDRAW
    """The error handling for a malformed value."""
    internal: bool = False
    """Whether the attribute is discarded from an external peer (RFC 7606 sections 7.5, 7.9, 7.10)."""
    wrong_flags: ErrorHandling = _WITHDRAW
    """The error handling for wrong flags (RFC 7606 section 3, item c)."""


_WELL_KNOWN: Final = TRANSITIVE
_BOTH: Final = OPTIONAL | TRANSITIVE
A = AttributeType

ATTRIBUTE_RULES: Final[dict[int, AttributeRule]] = {
    A.ORIGIN: AttributeRule(_WELL_KNOWN, _origin, "origin"),
    A.AS_PATH: AttributeRule(_WELL_KNOWN, _as_path, "as_path"),
    A.NEXT_HOP: AttributeRule(_WELL_KNOWN, _next_hop, "next_hop"),
    A.MULTI_EXIT_DISC: AttributeRule(OPTIONAL, _u32, "med"),
    A.LOCAL_PREF: AttributeRule(_WELL_KNOWN, _u32, "local_preference", internal=True),
    A.ATOMIC_AGGREGATE: AttributeRule(_WELL_KNOWN, _atomic_aggregate, "atomic_aggregate", _DISCARD),
    A.AGGREGATOR: AttributeRule(_BOTH, _aggregator, "aggregator", _DISCARD),
    A.COMMUNITIES: AttributeRule(_BOTH, _communities, "communities"),
    A.ORIGINATOR_ID: AttributeRule(OPTIONAL, _originator, "originator_id", internal=True),
    A.CLUSTER_LIST: AttributeRule(OPTIONAL, _cluster_list, "cluster_list", internal=True),
    A.EXTENDED_COMMUNITIES: AttributeRule(_BOTH, _extended, "extended_communities"),
    A.AS4_PATH: AttributeRule(_BOTH, _as4_path, None, _DISCARD),
    A.AS4_AGGREGATOR: AttributeRule(_BOTH, _as4_aggregator, None, _DISCARD),
    A.PMSI_TUNNEL: AttributeRule(_BOTH, _pmsi),
    A.TUNNEL_ENCAPSULATION: AttributeRule(_BOTH, _tunnel),
    A.IPV6_EXTENDED_COMMUNITIES: AttributeRule(_BOTH, _ipv6_extended, "ipv6_extended_communities"),
    A.AIGP: AttributeRule(
        OPTIONAL, _aigp, None, _DISCARD, wrong_flags=_DISCARD
    ),  # RFC 7311 section 3
    A.BGP_LS: AttributeRule(OPTIONAL, _tlvs(2, 2), None, _DISCARD),
    A.LARGE_COMMUNITIES: AttributeRule(_BOTH, _large, "large_communities"),
    A.OTC: AttributeRule(_BOTH, _otc, "otc"),
    A.PREFIX_SID: AttributeRule(_BOTH, _tlvs(1, 2), None, _DISCARD),
}
