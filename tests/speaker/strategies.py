"""Hypothesis strategies for every value that goes over the wire; each builds what an encoder accepts.

One strategy for each kind: NLRI, path attributes, capabilities, messages. A new capability or field of
`PathAttributes` needs one here: the tests of this module's completeness name a missing one.
"""

from __future__ import annotations

from hypothesis import strategies as st
from msgspec.structs import replace

from speaker.attribute import (
    AS_CONFED_SEQUENCE,
    AS_CONFED_SET,
    AS_SEQUENCE,
    AS_SET,
    Aggregator,
    AsPath,
    PathAttributes,
    Segment,
    UnknownAttribute,
)
from speaker.capability import (
    AddPath,
    Capability,
    EnhancedRouteRefresh,
    ExtendedMessage,
    ExtendedNextHop,
    FourOctetAs,
    Fqdn,
    GracefulRestartCapability,
    Ignored,
    LongLivedGracefulRestart,
    Multiprotocol,
    RoleCapability,
    RouteRefreshCapability,
    SoftwareVersion,
    Unknown,
)
from speaker.capability.codec import sanitize
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST, Afi, AttributeType, CapabilityCode, Family
from speaker.message import KEEPALIVE, Notification, Open, RefreshKind, RouteRefresh
from speaker.nlri import ADDRESS_BITS, PathNlri

U8 = st.integers(0, 0xFF)
U16 = st.integers(0, 0xFFFF)
U24 = st.integers(0, 0xFFFFFF)
U32 = st.integers(0, 0xFFFFFFFF)
ASN = st.one_of(st.integers(1, 0xFFFF), st.integers(1, 0xFFFFFFFF))


def octets(size: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=size, max_size=size)


# NLRI


def prefixes(family: Family) -> st.SearchStrategy[bytes]:
    """Prefixes in wire form, trailing bits zero."""
    bits = ADDRESS_BITS[Afi(family.afi)]

    def make(length: int, value: int) -> bytes:
        size = (length + 7) // 8
        masked = value >> (bits - length) << (size * 8 - length) if length else 0
        return bytes((length,)) + masked.to_bytes(size, "big")

    return st.builds(make, st.integers(0, bits), st.integers(0, 2**bits - 1))


def paths(family: Family) -> st.SearchStrategy[PathNlri]:
    """Prefixes with a path identifier (RFC 7911)."""
    return st.tuples(U32, prefixes(family))


FAMILIES = st.sampled_from([IPV4_UNICAST, IPV6_UNICAST])
ANY_FAMILY = st.one_of(FAMILIES, st.builds(Family, U16, U8))


# Path attributes


def _segments(
    kinds: list[int], asns: st.SearchStrategy[int], longest: int
) -> st.SearchStrategy[AsPath]:
    segment = st.builds(
        Segment,
        st.sampled_from(kinds),
        st.lists(asns, min_size=1, max_size=longest).map(tuple),
    )
    return st.lists(segment, max_size=4).map(joined)


def joined(segments: list[Segment]) -> AsPath:
    # As a decoder does: sequences behind one another are one run.
    found: list[Segment] = []
    for segment in segments:
        if found and found[-1].kind == segment.kind == AS_SEQUENCE:
            found[-1] = Segment(AS_SEQUENCE, found[-1].asns + segment.asns)
        else:
            found.append(segment)
    return tuple(found)


AS_PATHS = st.one_of(
    st.just(()),
    st.lists(ASN, min_size=1, max_size=300).map(lambda a: (Segment(AS_SEQUENCE, tuple(a)),)),
    _segments([AS_SEQUENCE, AS_SET, AS_CONFED_SEQUENCE, AS_CONFED_SET], ASN, 6),
)

_UNKNOWN_TYPES = [28, 40, 99, 128, 200, 254, 255]
UNKNOWN_ATTRIBUTES = st.lists(
    st.one_of(
        st.builds(
            UnknownAttribute,
            st.sampled_from([0xC0, 0xE0]),
            st.sampled_from([kind for kind in _UNKNOWN_TYPES if kind != AttributeType.PREFIX_SID]),
            st.binary(max_size=300),
        ),
        # Known by their form only, and passed on as they came.
        st.just(UnknownAttribute(0xC0, AttributeType.PREFIX_SID, b"\x01\x00\x07" + bytes(7))),
        st.just(UnknownAttribute(0xC0, AttributeType.PMSI_TUNNEL, bytes(5))),
        st.just(UnknownAttribute(0xC0, AttributeType.TUNNEL_ENCAPSULATION, b"\0\1\0\1x")),
    ),
    unique_by=lambda attribute: attribute.type,
    max_size=4,
).map(lambda found: tuple(sorted(found, key=lambda attribute: attribute.type)))

ATTRIBUTE_FIELDS: dict[str, st.SearchStrategy[object]] = {
    "origin": st.integers(0, 2),
    "as_path": AS_PATHS,
    "med": st.none() | U32,
    "local_preference": st.none() | U32,
    "atomic_aggregate": st.booleans(),
    "aggregator": st.none() | st.builds(Aggregator, ASN, octets(4)),
    "communities": st.lists(U32, unique=True, max_size=100).map(tuple),
    "large_communities": st.lists(st.tuples(U32, U32, U32), unique=True, max_size=5).map(tuple),
    "extended_communities": st.lists(octets(8), unique=True, max_size=5).map(tuple),
    "ipv6_extended_communities": st.lists(octets(20), unique=True, max_size=3).map(tuple),
    "originator_id": st.none() | octets(4),
    "cluster_list": st.lists(octets(4), max_size=3).map(tuple),
    "otc": st.none() | U32,
    "unknown": UNKNOWN_ATTRIBUTES,
    "partial": st.just(()),
}
"""Each field of `PathAttributes` but the next hop, which belongs to the NLRI.

Of which attributes there is a Partial bit depends on the others: `ATTRIBUTES` has it.
"""

_OPTIONAL_TRANSITIVE = {
    AttributeType.AGGREGATOR: "aggregator",
    AttributeType.COMMUNITIES: "communities",
    AttributeType.EXTENDED_COMMUNITIES: "extended_communities",
    AttributeType.IPV6_EXTENDED_COMMUNITIES: "ipv6_extended_communities",
    AttributeType.LARGE_COMMUNITIES: "large_communities",
    AttributeType.OTC: "otc",
}


def _with_partial_bits(found: PathAttributes) -> st.SearchStrategy[PathAttributes]:
    present = [
        kind
        for kind, field in sorted(_OPTIONAL_TRANSITIVE.items())
        if getattr(found, field) not in (None, ())
    ]
    if not present:
        return st.just(found)
    partial = st.lists(st.sampled_from(present), unique=True).map(
        lambda kinds: tuple(sorted(kinds))
    )
    return partial.map(lambda kinds: replace(found, partial=kinds))


ATTRIBUTES: st.SearchStrategy[PathAttributes] = st.builds(
    PathAttributes, **ATTRIBUTE_FIELDS
).flatmap(_with_partial_bits)

_HOST = st.integers(0x01000000, 0x7EFFFFFF).map(lambda n: n.to_bytes(4, "big"))
_GLOBAL = octets(14).map(lambda rest: b"\x20\x01" + rest)
_LINK_LOCAL = octets(8).map(lambda rest: b"\xfe\x80" + bytes(6) + rest)
NEXT_HOPS: dict[Family, st.SearchStrategy[bytes]] = {
    IPV4_UNICAST: _HOST,
    IPV6_UNICAST: st.one_of(_GLOBAL, st.tuples(_GLOBAL, _LINK_LOCAL).map(b"".join)),
}


# Capabilities

_TEXT = st.binary(max_size=60)
_NAMED = {int(code) for code in CapabilityCode}


def _fqdn(host: bytes, domain: bytes) -> Fqdn:
    raw = bytes((len(host),)) + host + bytes((len(domain),)) + domain
    return Fqdn(sanitize(host), sanitize(domain), raw)


def _version(text: bytes) -> SoftwareVersion:
    return SoftwareVersion(sanitize(text), bytes((len(text),)) + text)


CAPABILITY_KINDS: dict[type, st.SearchStrategy[Capability]] = {
    Multiprotocol: st.builds(Multiprotocol, ANY_FAMILY),
    RouteRefreshCapability: st.just(RouteRefreshCapability()),
    ExtendedMessage: st.just(ExtendedMessage()),
    EnhancedRouteRefresh: st.just(EnhancedRouteRefresh()),
    ExtendedNextHop: st.builds(
        ExtendedNextHop, st.lists(st.tuples(ANY_FAMILY, U16), max_size=4).map(tuple)
    ),
    RoleCapability: st.builds(RoleCapability, U8),
    FourOctetAs: st.builds(FourOctetAs, U32),
    GracefulRestartCapability: st.builds(
        GracefulRestartCapability,
        st.integers(0, 4095),
        st.booleans(),
        st.booleans(),
        st.lists(st.tuples(ANY_FAMILY, st.booleans()), max_size=4).map(tuple),
    ),
    AddPath: st.builds(
        AddPath, st.lists(st.tuples(ANY_FAMILY, st.integers(1, 3)), max_size=4).map(tuple)
    ),
    LongLivedGracefulRestart: st.builds(
        LongLivedGracefulRestart,
        st.lists(st.tuples(ANY_FAMILY, st.booleans(), U24), max_size=4).map(tuple),
    ),
    Fqdn: st.builds(_fqdn, _TEXT, _TEXT),
    SoftwareVersion: st.builds(_version, _TEXT),
    Unknown: st.builds(
        Unknown,
        U8.filter(lambda code: code not in _NAMED),
        st.binary(max_size=60),
    ),
    Ignored: st.just(Ignored(CapabilityCode.FOUR_OCTET_AS, b"\0\1", "2 octets instead of 4")),
}

CAPABILITIES: st.SearchStrategy[Capability] = st.one_of(*CAPABILITY_KINDS.values())


# Messages


def _known(capability: Capability) -> bool:
    return not isinstance(capability, FourOctetAs | Ignored)


OPENS = st.one_of(
    # A speaker with four-octet AS numbers has its own in the capability ...
    st.builds(
        lambda asn, hold, identifier, offered: Open(
            asn=asn,
            hold_time=hold,
            router_id=identifier,
            capabilities=(*offered, FourOctetAs(asn)),
        ),
        ASN,
        U16.filter(lambda hold: hold not in (1, 2)),
        st.integers(1, 0xFFFFFFFF),
        st.lists(CAPABILITIES.filter(_known), max_size=12),
    ),
    # ... and one without has no more than two octets.
    st.builds(
        lambda asn, hold, identifier, offered: Open(
            asn=asn, hold_time=hold, router_id=identifier, capabilities=tuple(offered)
        ),
        st.integers(1, 0xFFFF),
        U16.filter(lambda hold: hold not in (1, 2)),
        st.integers(1, 0xFFFFFFFF),
        st.lists(CAPABILITIES.filter(_known), max_size=12),
    ),
)
NOTIFICATIONS = st.builds(Notification, U8, U8, st.binary(max_size=300))
ROUTE_REFRESHES = st.one_of(
    st.builds(RouteRefresh, ANY_FAMILY, st.sampled_from(RefreshKind)),
    st.builds(RouteRefresh, ANY_FAMILY, st.just(RefreshKind.REQUEST), st.binary(max_size=40)),
)
MESSAGES: st.SearchStrategy[bytes] = st.one_of(
    st.just(KEEPALIVE),
    OPENS.map(Open.encode),
    NOTIFICATIONS.map(Notification.encode),
    ROUTE_REFRESHES.map(RouteRefresh.encode),
)
"""Whole messages of every kind but UPDATE, which `speaker.rib.pack` writes."""
