"""Path attributes from octets, with RFC 7606's outcomes as values: a total function of the octets.

One table row per attribute: its flags, who may send it, and how its value is read. What cannot be
located any more, and so needs a reset, is the only thing that raises.
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
    merge_as4,
)
from speaker.attribute.values import (
    Aggregator,
    AttributeFault,
    ErrorHandling,
    PathAttributes,
    UnknownAttribute,
)
from speaker.errors import Truncated, update_error
from speaker.iana import AS_TRANS, AttributeType, UpdateSubcode
from speaker.negotiated import Negotiated

OPTIONAL: Final = 0x80
TRANSITIVE: Final = 0x40
_EXTENDED: Final = 0x10
_DISCARD: Final = ErrorHandling.ATTRIBUTE_DISCARD
_WITHDRAW: Final = ErrorHandling.TREAT_AS_WITHDRAW


class RawAttribute(NamedTuple):
    """One attribute as it is framed."""

    flags: int
    type: int
    value: bytes
    octets: bytes


class MalformedValue(Exception):  # noqa: N818  a signal within this module
    """A value that its attribute cannot have, with the outcome where it is not the usual one."""

    def __init__(self, rule: str, subcode: int = UpdateSubcode.ATTRIBUTE_LENGTH) -> None:
        super().__init__(rule)
        self.subcode = subcode


class DecodedAttributes(NamedTuple):
    """What a path attribute field holds."""

    attributes: PathAttributes
    present: frozenset[int]
    """The types that were there and were used."""
    faults: tuple[AttributeFault, ...]


def frame_attributes(data: bytes) -> tuple[list[RawAttribute], AttributeFault | None]:
    """Cut a path attribute field; what overruns it is told as a fault (RFC 7606 section 4)."""
    found: list[RawAttribute] = []
    position, end = 0, len(data)
    while position < end:
        header = 4 if data[position] & _EXTENDED else 3
        if position + header > end:
            rule = f"{end - position} octets left, an attribute's header has {header}"
            subcode = UpdateSubcode.MALFORMED_ATTRIBUTE_LIST
            return found, AttributeFault(_WITHDRAW, 0, rule, subcode, data[position:])
        kind = data[position + 1]
        length = int.from_bytes(data[position + 2 : position + header], "big")
        after = position + header + length
        if after > end:
            rule = f"the value overruns the attributes by {after - end} octets"
            subcode = UpdateSubcode.ATTRIBUTE_LENGTH
            return found, AttributeFault(_WITHDRAW, kind, rule, subcode, data[position:])
        value = data[position + header : after]
        found.append(RawAttribute(data[position], kind, value, data[position:after]))
        position = after
    return found, None


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
    if session.ebgp and not session.confederation:
        if any(kind in CONFEDERATION for kind, _ in path):
            raise MalformedValue(
                "a confederation segment (RFC 5065)", UpdateSubcode.MALFORMED_AS_PATH
            )
        if session.peer_asn:
            first = path[0].asns[0] if path and path[0].kind == AS_SEQUENCE else None
            expected = session.peer_asn
            if not session.as4 and expected > 0xFFFF:
                expected = AS_TRANS
            if first != expected:
                raise MalformedValue(
                    f"the first AS is {first}, the peer's is {session.peer_asn}",
                    UpdateSubcode.MALFORMED_AS_PATH,
                )
    elif session.confederation:
        # RFC 5065 section 5: a member of another AS has put itself in front, in a sequence.
        allowed = (AS_CONFED_SEQUENCE,) if session.ebgp else CONFEDERATION
        if not path or path[0].kind not in allowed:
            raise MalformedValue(
                "no confederation segment first (RFC 5065)", UpdateSubcode.MALFORMED_AS_PATH
            )
    return path


def _next_hop(value: bytes, _: Negotiated) -> bytes:
    if is_not_unicast_ipv4(_exact_length(value, 4)):
        raise MalformedValue("not a unicast address", UpdateSubcode.INVALID_NEXT_HOP)
    return value


def is_not_unicast_ipv4(octets: bytes) -> bool:
    """Tell whether four octets are 0.0.0.0 or a multicast address."""
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
    """RFC 1997; each once, in the order in which they came."""
    return tuple({int.from_bytes(item, "big"): None for item in _items_of(value, 4)})


def _large(value: bytes, _: Negotiated) -> tuple[tuple[int, int, int], ...]:
    """RFC 8092; section 5 takes those that are there twice as one."""
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
    """RFC 4360."""
    return tuple(dict.fromkeys(_items_of(value, 8)))


def _ipv6_extended(value: bytes, _: Negotiated) -> tuple[bytes, ...]:
    """RFC 5701."""
    return tuple(dict.fromkeys(_items_of(value, 20)))


def _originator(value: bytes, _: Negotiated) -> bytes:
    return _exact_length(value, 4)


def _cluster_list(value: bytes, _: Negotiated) -> tuple[bytes, ...]:
    return tuple(_items_of(value, 4))


def _as4_path(value: bytes, _: Negotiated) -> AsPath:
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
    """Check only that a value is made of TLVs; used for what is passed on but not understood."""

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
            raise MalformedValue("a TLV that cannot be")
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
    """How one attribute is read."""

    flags: int
    """Optional and Transitive, as they have to be."""
    read: Callable[[bytes, Negotiated], Any]
    field: str | None = None
    """The field of `PathAttributes`; None for those that are passed on as octets, or merged."""
    malformed: ErrorHandling = _WITHDRAW
    internal: bool = False
    """Whether an external peer may not send it: discarded then."""
    wrong_flags: ErrorHandling = _WITHDRAW
    """RFC 7606 section 3(c), where the attribute's own RFC does not say otherwise."""


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


class _AttributeDecoder:
    """What has been read so far of one block."""

    def __init__(self, session: Negotiated) -> None:
        self.session = session
        self.fields: dict[str, Any] = {}
        self.present: set[int] = set()
        self.seen: set[int] = set()
        self.twice: set[int] = set()
        self.faults: list[AttributeFault] = []
        self.unknown: list[UnknownAttribute] = []
        self.as4_path: AsPath | None = None
        self.as4_aggregator: Aggregator | None = None

    def fault(self, outcome: ErrorHandling, raw: RawAttribute, rule: str, subcode: int) -> None:
        self.faults.append(AttributeFault(outcome, raw.type, rule, subcode, raw.octets))

    def add(self, raw: RawAttribute) -> None:
        if raw.type in self.seen:
            # RFC 7606 section 3(g): the first one counts. It is told once, however often it comes.
            if raw.type not in self.twice:
                self.twice.add(raw.type)
                subcode = UpdateSubcode.MALFORMED_ATTRIBUTE_LIST
                self.fault(_DISCARD, raw, "it is there twice", subcode)
            return
        self.seen.add(raw.type)
        rule = ATTRIBUTE_RULES.get(raw.type)
        if rule is None:
            self._add_unknown(raw)
            return
        session = self.session
        if rule.internal and session.ebgp and not session.confederation:
            self.fault(_DISCARD, raw, "not for an external peer to send", 0)
            return
        if raw.type in (A.AS4_PATH, A.AS4_AGGREGATOR) and session.as4:
            # RFC 6793 section 4.1: not between speakers with four-octet AS numbers.
            self.fault(_DISCARD, raw, "not between four-octet AS speakers", 0)
            return
        if raw.flags & _BOTH != rule.flags:
            rule_text = (
                f"flags {raw.flags:#04x}, Optional and Transitive have to be {rule.flags:#x}"
            )
            self.fault(rule.wrong_flags, raw, rule_text, UpdateSubcode.ATTRIBUTE_FLAGS)
            return
        try:
            value = rule.read(raw.value, session)
        except MalformedValue as error:
            self.fault(rule.malformed, raw, str(error), error.subcode)
            return
        self.present.add(raw.type)
        if rule.field is not None:
            self.fields[rule.field] = value
        elif raw.type == A.AS4_PATH:
            self.as4_path = value
        elif raw.type == A.AS4_AGGREGATOR:
            self.as4_aggregator = value
        else:
            self._keep(raw)

    def _add_unknown(self, raw: RawAttribute) -> None:
        if not raw.flags & OPTIONAL:
            raise update_error(
                UpdateSubcode.UNRECOGNIZED_WELL_KNOWN_ATTRIBUTE,
                raw.octets,
                f"attribute {raw.type} is not optional and not known",
            )
        self._keep(raw)

    def _keep(self, raw: RawAttribute) -> None:
        if raw.flags & TRANSITIVE:
            flags = _BOTH | (raw.flags & 0x20)
            self.unknown.append(UnknownAttribute(flags, raw.type, raw.value))

    def finish(self) -> DecodedAttributes:
        self._merge_as4()
        self.fields["unknown"] = tuple(sorted(self.unknown, key=lambda u: u.type))
        attributes = PathAttributes(**self.fields)
        return DecodedAttributes(attributes, frozenset(self.present), tuple(self.faults))

    def _merge_as4(self) -> None:
        # RFC 6793 section 4.2.3
        aggregator = self.fields.get("aggregator")
        if aggregator is not None and self.as4_aggregator is not None:
            if aggregator.asn != AS_TRANS:
                return
            self.fields["aggregator"] = self.as4_aggregator
        if self.as4_path is not None and "as_path" in self.fields:
            self.fields["as_path"] = merge_as4(self.fields["as_path"], self.as4_path)


def decode_attributes(raws: list[RawAttribute], session: Negotiated) -> DecodedAttributes:
    """Read attributes, MP_REACH_NLRI and MP_UNREACH_NLRI left out.

    Raises `NotificationError` for an unknown well-known attribute (RFC 4271 section 6.3).
    """
    collector = _AttributeDecoder(session)
    for raw in raws:
        collector.add(raw)
    return collector.finish()
