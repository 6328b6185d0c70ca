"""Path attributes to octets, in ascending order of type (RFC 4271 appendix F.3).

NEXT_HOP and MP_REACH_NLRI are not encoded here: they depend on the family and on the session
(`speaker.rib.export`, `speaker.rib.pack`).
"""

from __future__ import annotations

from typing import Final

from speaker.attribute.as_path import encode_as_path, needs_as4, without_confederation
from speaker.attribute.path_attributes import Aggregator, PathAttributes
from speaker.errors import EncodingError
from speaker.iana import AS_TRANS, AttributeType

_WELL_KNOWN: Final = 0x40
_OPTIONAL: Final = 0x80
_OPTIONAL_TRANSITIVE: Final = 0xC0
_EXTENDED_LENGTH: Final = 0x10
_PARTIAL: Final = 0x20
_KEPT_FLAGS: Final = 0xE0
"""Optional, Transitive and Partial: the flags of an unknown attribute that are passed on."""


def encode_attribute(flags: int, kind: int, value: bytes) -> bytes:
    """Encode one attribute: header, then ``value``; extended length where it is needed.

    Raises `EncodingError` for more than 65,535 octets.
    """
    if len(value) > 255:
        if len(value) > 0xFFFF:
            raise EncodingError(f"attribute {kind} takes {len(value)} octets")
        return bytes((flags | _EXTENDED_LENGTH, kind)) + len(value).to_bytes(2, "big") + value
    return bytes((flags, kind, len(value))) + value


def encode_attributes(attributes: PathAttributes, *, as4: bool) -> tuple[bytes, bytes]:
    """Encode all attributes but NEXT_HOP: the attributes of lower types, and of higher types.

    ``as4`` is whether AS numbers have four octets on the session (RFC 6793). Raises `EncodingError`.
    """
    width = 4 if as4 else 2
    head = encode_attribute(
        _WELL_KNOWN, AttributeType.ORIGIN, bytes((attributes.origin,))
    ) + encode_attribute(
        _WELL_KNOWN, AttributeType.AS_PATH, encode_as_path(attributes.as_path, width)
    )
    parts: list[tuple[int, bytes]] = []
    _encode_base(parts, attributes)
    _encode_communities(parts, attributes)
    if attributes.aggregator is not None:
        _encode_aggregator(parts, attributes.aggregator, as4=as4)
    if not as4 and needs_as4(attributes.as_path):
        octets = encode_as_path(without_confederation(attributes.as_path), 4)
        _add(parts, _OPTIONAL_TRANSITIVE, AttributeType.AS4_PATH, octets)
    for unknown in attributes.unknown:
        _add(parts, unknown.flags & _KEPT_FLAGS, unknown.type, unknown.value)
    parts.sort()
    if attributes.partial:
        parts = [_with_partial_bit(part, attributes.partial) for part in parts]
    return head, b"".join([octets for _, octets in parts])


def _add(parts: list[tuple[int, bytes]], flags: int, kind: int, value: bytes) -> None:
    parts.append((kind, encode_attribute(flags, kind, value)))


def _with_partial_bit(part: tuple[int, bytes], partial: tuple[int, ...]) -> tuple[int, bytes]:
    """Set the Partial bit of an attribute that came with it (RFC 4271 section 5)."""
    kind, octets = part
    return (kind, bytes((octets[0] | _PARTIAL,)) + octets[1:]) if kind in partial else part


def _encode_base(parts: list[tuple[int, bytes]], a: PathAttributes) -> None:
    """Add the attributes of RFC 4271 but AGGREGATOR, of RFC 4456 (route reflection) and RFC 9234."""
    if a.med is not None:
        _add(parts, _OPTIONAL, AttributeType.MULTI_EXIT_DISC, a.med.to_bytes(4, "big"))
    if a.local_preference is not None:
        octets = a.local_preference.to_bytes(4, "big")
        _add(parts, _WELL_KNOWN, AttributeType.LOCAL_PREF, octets)
    if a.atomic_aggregate:
        _add(parts, _WELL_KNOWN, AttributeType.ATOMIC_AGGREGATE, b"")
    if a.originator_id is not None:
        _add(parts, _OPTIONAL, AttributeType.ORIGINATOR_ID, a.originator_id)
    if a.cluster_list:
        _add(parts, _OPTIONAL, AttributeType.CLUSTER_LIST, b"".join(a.cluster_list))
    if a.otc is not None:
        _add(parts, _OPTIONAL_TRANSITIVE, AttributeType.OTC, a.otc.to_bytes(4, "big"))


def _encode_communities(parts: list[tuple[int, bytes]], a: PathAttributes) -> None:
    """Add the communities of RFC 1997, 4360, 5701 and 8092."""
    if a.communities:
        octets = b"".join([value.to_bytes(4, "big") for value in a.communities])
        _add(parts, _OPTIONAL_TRANSITIVE, AttributeType.COMMUNITIES, octets)
    if a.extended_communities:
        octets = b"".join(a.extended_communities)
        _add(parts, _OPTIONAL_TRANSITIVE, AttributeType.EXTENDED_COMMUNITIES, octets)
    if a.ipv6_extended_communities:
        octets = b"".join(a.ipv6_extended_communities)
        _add(parts, _OPTIONAL_TRANSITIVE, AttributeType.IPV6_EXTENDED_COMMUNITIES, octets)
    if a.large_communities:
        octets = b"".join([n.to_bytes(4, "big") for value in a.large_communities for n in value])
        _add(parts, _OPTIONAL_TRANSITIVE, AttributeType.LARGE_COMMUNITIES, octets)


def _encode_aggregator(
    parts: list[tuple[int, bytes]], aggregator: Aggregator, *, as4: bool
) -> None:
    """Add AGGREGATOR, and AS4_AGGREGATOR where its AS number needs one (RFC 6793 section 4.2.2)."""
    asn = aggregator.asn
    octets = asn.to_bytes(4, "big") + aggregator.address
    if as4:
        _add(parts, _OPTIONAL_TRANSITIVE, AttributeType.AGGREGATOR, octets)
    elif asn <= 0xFFFF:
        _add(parts, _OPTIONAL_TRANSITIVE, AttributeType.AGGREGATOR, octets[2:])
    else:
        short = AS_TRANS.to_bytes(2, "big") + aggregator.address
        _add(parts, _OPTIONAL_TRANSITIVE, AttributeType.AGGREGATOR, short)
        _add(parts, _OPTIONAL_TRANSITIVE, AttributeType.AS4_AGGREGATOR, octets)
