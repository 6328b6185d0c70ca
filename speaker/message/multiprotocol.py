"""MP_REACH_NLRI and MP_UNREACH_NLRI (RFC 4760 sections 3 and 4): their fields and their errors.

A malformed one resets the session: its NLRI cannot be located, so there is nothing to treat as
withdrawn (RFC 7606 sections 5.3 and 7.11 to 7.12).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from speaker.attribute import AttributeFault, ErrorHandling, RawAttribute
from speaker.attribute.attribute_rules import is_not_unicast_ipv4
from speaker.errors import NotificationError, update_error
from speaker.iana import Afi, AttributeType, Family, UpdateSubcode
from speaker.negotiated import Negotiated
from speaker.nlri import has_prefixes

_IPV6_UNSPECIFIED: Final = bytes(16)
_LINK_LOCAL_ONLY: Final = _IPV6_UNSPECIFIED + b"\xfe\x80"


class MpReach(NamedTuple):
    """The fields of an MP_REACH_NLRI; ``nlri`` is not decoded."""

    family: Family
    next_hop: bytes
    nlri: bytes


def session_reset(
    attribute: int, rule: str, subcode: UpdateSubcode, data: bytes = b""
) -> NotificationError:
    """Return the UPDATE Message Error for an attribute type; 0 for the UPDATE itself."""
    error = update_error(subcode, data, f"attribute {attribute}: {rule}" if attribute else rule)
    error.attribute = attribute  # type: ignore[attr-defined]  # read by `reset_attribute`
    return error


def reset_attribute(error: NotificationError) -> int | None:
    """Return the type of the attribute whose error resets the session, or None."""
    attribute: int | None = getattr(error, "attribute", None)
    return attribute


def decode_mp_unreach(raw: RawAttribute) -> tuple[Family, bytes]:
    """Return the family and the NLRI field of an MP_UNREACH_NLRI.

    Raises `NotificationError`.
    """
    if len(raw.value) < 3:
        rule = f"{len(raw.value)} octets"
        raise session_reset(15, rule, UpdateSubcode.OPTIONAL_ATTRIBUTE, raw.octets)
    return Family(int.from_bytes(raw.value[:2], "big"), raw.value[2]), raw.value[3:]


def decode_mp_reach(raw: RawAttribute, session: Negotiated) -> MpReach:
    """Return the fields of an MP_REACH_NLRI; a next hop's size is checked for negotiated families.

    Raises `NotificationError`.
    """
    value = raw.value
    if len(value) < 5:
        rule = f"{len(value)} octets"
        raise session_reset(14, rule, UpdateSubcode.OPTIONAL_ATTRIBUTE, raw.octets)
    family = Family(int.from_bytes(value[:2], "big"), value[2])
    size = value[3]
    known = family in session.families and has_prefixes(family)
    if 4 + size + 1 > len(value) or (known and size not in _next_hop_sizes(family, session)):
        rule = f"a next hop of {size} octets"
        raise session_reset(14, rule, UpdateSubcode.OPTIONAL_ATTRIBUTE, raw.octets)
    next_hop = value[4 : 4 + size]
    if known and size == 32 and next_hop.startswith(_LINK_LOCAL_ONLY):
        # RFC 2545 leaves open how to encode a next hop without a global address: some speakers send
        # the link-local address alone, BIRD sends an unspecified global address before it.
        next_hop = next_hop[16:]
    return MpReach(family, next_hop, value[5 + size :])


def _next_hop_sizes(family: Family, session: Negotiated) -> tuple[int, ...]:
    """Return the permitted sizes of a next hop (RFC 2545 section 3, RFC 8950 section 3)."""
    if family.afi != Afi.IPV4:
        return (16, 32)
    return (4, 16, 32) if family in session.extended_next_hop else (4,)


def next_hop_faults(mp: MpReach) -> tuple[AttributeFault, ...]:
    """Return the fault of a next hop that is no unicast address, or nothing."""
    hop = mp.next_hop[:16]
    if not (is_not_unicast_ipv4(hop) if len(hop) == 4 else hop == _IPV6_UNSPECIFIED):
        return ()
    return (
        AttributeFault(
            ErrorHandling.TREAT_AS_WITHDRAW,
            AttributeType.MP_REACH_NLRI,
            "the next hop is not a unicast address",
            UpdateSubcode.OPTIONAL_ATTRIBUTE,
        ),
    )


def flag_faults(*attributes: RawAttribute | None) -> tuple[AttributeFault, ...]:
    """Return a fault for each attribute that is not optional and non-transitive."""
    return tuple(
        AttributeFault(
            ErrorHandling.TREAT_AS_WITHDRAW,
            raw.type,
            f"flags {raw.flags:#04x}, an optional non-transitive attribute has 0x80",
            UpdateSubcode.ATTRIBUTE_FLAGS,
            raw.octets,
        )
        for raw in attributes
        if raw is not None and raw.flags & 0xC0 != 0x80
    )
