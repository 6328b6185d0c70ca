"""Export of a path: whether it is advertised, and with which attributes.

Pure functions of a path and of `ExportRules`, the key of an update group: sessions with equal rules
get equal octets. RFC 4271 sections 5.1 and 9.1.3, RFC 1997, RFC 4760.
"""

from __future__ import annotations

from typing import Final, final

import msgspec

from speaker.api import Export, Policy
from speaker.attribute import (
    PathAttributes,
    UnknownAttribute,
    encode_attribute,
    encode_attributes,
    prepend,
)
from speaker.attribute.as_path import AS_CONFED_SEQUENCE, without_confederation
from speaker.iana import IPV4_UNICAST, WELL_KNOWN_COMMUNITIES, AttributeType, Family, Role
from speaker.rib.path import (
    DEFAULT_LOCAL_PREFERENCE,
    LLGR_STALE,
    MED_SET,
    NEXT_HOP_KEPT,
    NEXT_HOP_SELF,
    NEXT_HOP_SET,
    Path,
    same_export,
)

NO_ADVERTISE: Final = WELL_KNOWN_COMMUNITIES["no-advertise"]
NO_EXPORT: Final = WELL_KNOWN_COMMUNITIES["no-export"]
NO_EXPORT_SUBCONFED: Final = WELL_KNOWN_COMMUNITIES["no-export-subconfed"]
_NOT_UPWARDS: Final = frozenset({Role.CUSTOMER, Role.PEER, Role.ROUTE_SERVER_CLIENT})
"""Our roles towards a provider, a peer and a route server."""
_MARKS: Final = frozenset({Role.PROVIDER, Role.PEER, Role.ROUTE_SERVER})
"""Our roles towards peers that must not pass our routes on upwards (RFC 9234 section 5)."""
_WELL_KNOWN_TRANSITIVE: Final = 0x40
_NOT_TRANSITIVE: Final = 0x40
"""The T bit of an extended community's first octet: non-transitive across ASes (RFC 4360)."""


class NextHop(msgspec.Struct, frozen=True):
    """This router as the next hop of a family on a session."""

    family: Family
    octets: bytes
    """4, 16 or 32 octets; empty where the session cannot carry the family."""
    mp: bool
    """Whether it is sent in MP_REACH_NLRI."""


class ExportRules(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """Everything that the octets for a session depend on, besides the table."""

    export: Export
    route_set: str | None
    policy: Policy | None
    ebgp: bool
    confederation: bool
    """Whether the peer is in another member AS of our confederation (RFC 5065)."""
    role: int | None
    """Our role towards the peer (RFC 9234)."""
    local_asn: int
    as4: bool
    max_message: int
    long_lived: bool
    """Whether the peer supports long-lived graceful restart (RFC 9494)."""
    families: tuple[Family, ...]
    """The negotiated families, in order."""
    add_path: tuple[Family, ...]
    """The families in which all paths of a prefix are advertised (RFC 7911)."""
    next_hops: tuple[NextHop, ...]

    @property
    def exports_received(self) -> bool:
        """Whether received routes are exported: then the initial table waits for route selection."""
        return self.export == "all"

    @property
    def transparent(self) -> bool:
        """Whether this router is a route server for the peer (RFC 7947)."""
        return self.ebgp and not self.confederation and self.role == Role.ROUTE_SERVER

    @property
    def sendable(self) -> tuple[Family, ...]:
        """The families for which there is a next hop."""
        return tuple(hop.family for hop in self.next_hops if hop.octets)

    def next_hop(self, family: Family) -> NextHop | None:
        """Return our next hop of a family, or None for a family without prefixes."""
        for hop in self.next_hops:
            if hop.family == family:
                return hop
        return None

    def uses_mp(self, family: Family) -> bool:
        """Return whether a family is sent in MP_REACH_NLRI and MP_UNREACH_NLRI."""
        hop = self.next_hop(family)
        return hop is None or hop.mp

    def exports(self, path: Path) -> bool:
        """Return whether a path is exported, before policy and to sessions other than its source."""
        attributes = path.attributes
        if attributes.otc is not None and self.role in _NOT_UPWARDS:
            # RFC 9234 section 5: only to customers, never to providers and peers.
            return False
        if path.source.local:
            return True
        if self.export != "all":
            return False
        if not self.ebgp and path.source.internal:
            # RFC 4271 section 9.2: routes from an internal peer are not advertised to internal peers.
            return False
        communities = attributes.communities
        if communities:
            if LLGR_STALE in communities and not self.long_lived:
                # RFC 9494 section 4.3
                return False
            if self.transparent:
                # RFC 7947 section 2.2.4: a route server passes communities on, for its clients.
                return True
            if NO_ADVERTISE in communities:
                return False
            if self.ebgp and NO_EXPORT_SUBCONFED in communities:
                return False
            if self.ebgp and not self.confederation and NO_EXPORT in communities:
                return False
        return True


def export_attributes(path: Path, rules: ExportRules) -> PathAttributes:
    """Return the attributes with which a path is advertised, except for the next hop."""
    attributes = path.attributes
    if rules.ebgp and not rules.confederation:
        # RFC 7947 section 2.2: a route server leaves AS path, MED and communities of received routes
        # unchanged.
        transparent = rules.transparent and not path.source.local
        as_path = without_confederation(attributes.as_path)
        keeps_med = transparent or path.source.local or bool(path.overrides & MED_SET)
        return msgspec.structs.replace(
            attributes,
            as_path=as_path if transparent else prepend(as_path, rules.local_asn),
            otc=(
                rules.local_asn
                if attributes.otc is None and rules.role in _MARKS
                else attributes.otc
            ),
            local_preference=None,
            # RFC 4271 section 5.1.4: a received MED is not advertised to another AS.
            med=attributes.med if keeps_med else None,
            originator_id=None,
            cluster_list=(),
            unknown=_partial(attributes),
            **({} if transparent else _within_the_as(path)),
        )
    preference = attributes.local_preference
    if rules.confederation:
        # RFC 5065 section 5.2: LOCAL_PREF and MED cross member ASes; the attributes of route
        # reflection belong to one AS.
        attributes = msgspec.structs.replace(
            attributes,
            as_path=prepend(attributes.as_path, rules.local_asn, AS_CONFED_SEQUENCE),
            originator_id=None,
            cluster_list=(),
        )
    return msgspec.structs.replace(
        attributes,
        local_preference=DEFAULT_LOCAL_PREFERENCE if preference is None else preference,
        unknown=_partial(attributes),
    )


def _within_the_as(path: Path) -> dict[str, tuple[bytes, ...]]:
    """Return what `without_non_transitive` does, but keep locally configured communities."""
    return {} if path.source.local else without_non_transitive(path.attributes)


def without_non_transitive(attributes: PathAttributes) -> dict[str, tuple[bytes, ...]]:
    """Return the fields of extended communities, without non-transitive communities.

    RFC 4360 section 6 and RFC 5701 section 2.
    """
    return {
        field: tuple(value for value in values if not value[0] & _NOT_TRANSITIVE)
        for field, values in (
            ("extended_communities", attributes.extended_communities),
            ("ipv6_extended_communities", attributes.ipv6_extended_communities),
        )
        if values
    }


def _partial(attributes: PathAttributes) -> tuple[UnknownAttribute, ...]:
    # RFC 4271 section 5: an unrecognized transitive attribute is passed on with the Partial bit.
    return tuple(
        msgspec.structs.replace(unknown, flags=unknown.flags | 0x20)
        for unknown in attributes.unknown
    )


def export_next_hop(path: Path, family: Family, rules: ExportRules) -> bytes:
    """Return the next hop with which a path is advertised: 4 or 16 octets, 32 only as configured."""
    hop = rules.next_hop(family)
    own = b"" if hop is None else hop.octets
    theirs = path.attributes.next_hop
    keep = bool(theirs) and (
        path.source.local
        or not rules.ebgp
        or rules.confederation
        or rules.transparent
        or bool(path.overrides & (NEXT_HOP_SET | NEXT_HOP_KEPT))
    )
    if not keep or path.overrides & NEXT_HOP_SELF:
        return own
    if len(theirs) != 4 and not path.source.local and not path.overrides & NEXT_HOP_SET:
        # RFC 2545 section 3: a link-local address is a next hop on its own link only. Behind a global
        # address it is removed; alone it is replaced, unless the peer is a route server's client on a
        # link-local session, too.
        theirs = theirs[:16]
        if _is_link_local(theirs) and not (rules.transparent and _is_link_local(own[:16])):
            return own
    # A third-party next hop of the other address family needs RFC 8950.
    same_kind = (len(theirs) == 4) == (len(own) == 4)
    if same_kind:
        return theirs
    if len(theirs) == 4 and family != IPV4_UNICAST:
        return b"\x00" * 10 + b"\xff\xff" + theirs
    return own


def same_update(one: Path, other: Path, family: Family, rules: ExportRules) -> bool:
    """Return whether two paths of one source are advertised alike.

    A received MED or next hop is not advertised to external peers, for example: its change is no
    change for them.
    """
    before, after = one.attributes, other.attributes
    if (
        # What mostly differs is compared first.
        before.as_path != after.as_path
        or before.communities != after.communities
        or one.source.session is not other.source.session
        or export_next_hop(one, family, rules) != export_next_hop(other, family, rules)
    ):
        return False
    return _without_next_hop(one, rules) == _without_next_hop(other, rules)


@final
class ComparedPaths:
    """Paths of two groups, compared once for each pair of paths, not for each prefix."""

    __slots__ = ("_after", "_before", "_family", "_known")

    def __init__(self, before: ExportRules, after: ExportRules, family: Family) -> None:
        self._before = before
        self._after = after
        self._family = family
        self._known: dict[tuple[Path, Path], bool] = {}

    def are_alike(self, before: Path, after: Path) -> bool:
        """Return whether a path of the group before is what one of the group after is for a peer."""
        known = self._known.get((before, after))
        if known is None:
            known = self._known[before, after] = same_export(before, after) and (
                export_next_hop(before, self._family, self._before)
                == export_next_hop(after, self._family, self._after)
            )
        return known


def _without_next_hop(path: Path, rules: ExportRules) -> PathAttributes:
    return msgspec.structs.replace(export_attributes(path, rules), next_hop=b"")


def _is_link_local(address: bytes) -> bool:
    """Return whether an IPv6 address is link-local (fe80::/10), or unspecified."""
    if len(address) != 16:
        return False
    return (address[0] == 0xFE and address[1] & 0xC0 == 0x80) or not any(address)


def rewrite(path: Path, family: Family, rules: ExportRules) -> tuple[bytes, bytes, bool]:
    """Return the next hop, the encoded attributes, and whether MP_REACH_NLRI is used.

    The attributes include NEXT_HOP if MP_REACH_NLRI is not used. Raises `EncodingError`.
    """
    before, behind = encode_attributes(export_attributes(path, rules), as4=rules.as4)
    next_hop = export_next_hop(path, family, rules)
    if rules.uses_mp(family):
        return next_hop, before + behind, True
    field = encode_attribute(_WELL_KNOWN_TRANSITIVE, AttributeType.NEXT_HOP, next_hop)
    return next_hop, before + field + behind, False
