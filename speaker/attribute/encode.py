"""Path attributes to octets, in ascending order of type (RFC 4271 appendix F.3).

NEXT_HOP and MP_REACH_NLRI are not written here: they belong to the NLRI (`speaker.rib.pack`).
"""

from __future__ import annotations

from speaker.attribute.as_path import encode_as_path, needs_as4, without_confederation
from speaker.attribute.values import PathAttributes
from speaker.errors import EncodingError
from speaker.iana import AS_TRANS, AttributeType

_WELL_KNOWN = 0x40
_OPTIONAL = 0x80
_OPTIONAL_TRANSITIVE = 0xC0


def encode_attribute(flags: int, kind: int, value: bytes) -> bytes:
    """Frame one attribute."""
    if len(value) > 255:
        if len(value) > 0xFFFF:
            raise EncodingError(f"attribute {kind} takes {len(value)} octets")
        return bytes((flags | 0x10, kind)) + len(value).to_bytes(2, "big") + value
    return bytes((flags, kind, len(value))) + value


def encode_attributes(attributes: PathAttributes, *, as4: bool) -> tuple[bytes, bytes]:
    """Write all but the next hop: what stands before NEXT_HOP's place, and what stands behind it."""
    width = 4 if as4 else 2
    before = encode_attribute(
        _WELL_KNOWN, AttributeType.ORIGIN, bytes((attributes.origin,))
    ) + encode_attribute(
        _WELL_KNOWN, AttributeType.AS_PATH, encode_as_path(attributes.as_path, width)
    )
    return before, b"".join(value for _, value in sorted(_behind(attributes, as4=as4)))


def _behind(  # noqa: C901  one line an attribute
    attributes: PathAttributes, *, as4: bool
) -> list[tuple[int, bytes]]:
    parts: list[tuple[int, bytes]] = []

    def add(flags: int, kind: int, value: bytes) -> None:
        parts.append((kind, encode_attribute(flags, kind, value)))

    a = attributes
    if a.med is not None:
        add(_OPTIONAL, AttributeType.MULTI_EXIT_DISC, a.med.to_bytes(4, "big"))
    if a.local_preference is not None:
        add(_WELL_KNOWN, AttributeType.LOCAL_PREF, a.local_preference.to_bytes(4, "big"))
    if a.atomic_aggregate:
        add(_WELL_KNOWN, AttributeType.ATOMIC_AGGREGATE, b"")
    if a.aggregator is not None:
        asn = a.aggregator.asn
        full = asn.to_bytes(4, "big") + a.aggregator.address
        if as4:
            add(_OPTIONAL_TRANSITIVE, AttributeType.AGGREGATOR, full)
        else:
            shown = AS_TRANS if asn > 0xFFFF else asn
            octets = shown.to_bytes(2, "big") + a.aggregator.address
            add(_OPTIONAL_TRANSITIVE, AttributeType.AGGREGATOR, octets)
            if asn > 0xFFFF:
                add(_OPTIONAL_TRANSITIVE, AttributeType.AS4_AGGREGATOR, full)
    if a.communities:
        octets = b"".join(c.to_bytes(4, "big") for c in a.communities)
        add(_OPTIONAL_TRANSITIVE, AttributeType.COMMUNITIES, octets)
    if a.originator_id is not None:
        add(_OPTIONAL, AttributeType.ORIGINATOR_ID, a.originator_id)
    if a.cluster_list:
        add(_OPTIONAL, AttributeType.CLUSTER_LIST, b"".join(a.cluster_list))
    if a.extended_communities:
        octets = b"".join(a.extended_communities)
        add(_OPTIONAL_TRANSITIVE, AttributeType.EXTENDED_COMMUNITIES, octets)
    if not as4 and needs_as4(a.as_path):
        octets = encode_as_path(without_confederation(a.as_path), 4)
        add(_OPTIONAL_TRANSITIVE, AttributeType.AS4_PATH, octets)
    if a.ipv6_extended_communities:
        octets = b"".join(a.ipv6_extended_communities)
        add(_OPTIONAL_TRANSITIVE, AttributeType.IPV6_EXTENDED_COMMUNITIES, octets)
    if a.large_communities:
        octets = b"".join(n.to_bytes(4, "big") for c in a.large_communities for n in c)
        add(_OPTIONAL_TRANSITIVE, AttributeType.LARGE_COMMUNITIES, octets)
    if a.otc is not None:
        add(_OPTIONAL_TRANSITIVE, AttributeType.OTC, a.otc.to_bytes(4, "big"))
    for unknown in a.unknown:
        add(unknown.flags & 0xE0, unknown.type, unknown.value)
    return parts
