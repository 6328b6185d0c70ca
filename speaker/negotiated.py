"""The negotiated parameters of a session, a pure function of the two OPENs.

`Negotiated` is the whole context of the codecs, so `waggle decode` works without a session.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict

import msgspec

from speaker.capability.capabilities import (
    AddPath,
    Capability,
    EnhancedRouteRefresh,
    ExtendedMessage,
    ExtendedNextHop,
    FourOctetAs,
    GracefulRestartCapability,
    LongLivedGracefulRestart,
    Multiprotocol,
    RoleCapability,
    RouteRefreshCapability,
)
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST, Afi, Family, Role

MAX_MESSAGE = 4096
MAX_EXTENDED_MESSAGE = 65535


class Negotiated(msgspec.Struct, frozen=True, kw_only=True):
    """The negotiated parameters; the defaults are a modern eBGP session's."""

    local_asn: int = 0
    peer_asn: int = 0
    """0 if unknown, which is possible only without a session: the first AS is not checked."""
    ebgp: bool = True
    confederation: bool = False
    """Whether the peer is in the same confederation (RFC 5065)."""
    as4: bool = True
    families: frozenset[Family] = frozenset({IPV4_UNICAST, IPV6_UNICAST})
    add_path_receive: frozenset[Family] = frozenset()
    add_path_send: frozenset[Family] = frozenset()
    extended_message: bool = False
    extended_next_hop: frozenset[Family] = frozenset()
    """IPv4 families whose next hop may be an IPv6 address (RFC 8950)."""
    route_refresh: bool = False
    enhanced_route_refresh: bool = False
    hold_time: int = 90
    keepalive_time: int = 30
    local_router_id: int = 0
    peer_router_id: int = 0
    enforce_first_as: bool = True
    """Whether the AS path of an external peer has to begin with its AS (RFC 4271 section 6.3)."""
    local_role: int | None = None
    peer_role: int | None = None
    peer_graceful_restart: GracefulRestartCapability | None = None
    """The peer's capability, if both sides have it (RFC 4724)."""
    graceful_notification: bool = False
    """Whether routes are retained after a NOTIFICATION other than Hard Reset (RFC 8538)."""
    peer_long_lived: LongLivedGracefulRestart | None = None

    @property
    def max_message_size(self) -> int:
        """The largest message on the session, in octets (RFC 8654)."""
        return MAX_EXTENDED_MESSAGE if self.extended_message else MAX_MESSAGE


class ConfiguredParameters(TypedDict):
    """The parameters of a session that its own configuration decides, whatever the peer's OPEN says."""

    local_asn: int
    local_router_id: int
    confederation: bool
    enforce_first_as: bool
    local_role: int | None


def reconfigured(negotiated: Negotiated, parameters: ConfiguredParameters) -> Negotiated:
    """Return the parameters of a session that has ended, by the present configuration."""
    changed: Negotiated = msgspec.structs.replace(
        negotiated, ebgp=parameters["local_asn"] != negotiated.peer_asn, **parameters
    )
    return changed


def _families(capabilities: Iterable[Capability]) -> frozenset[Family]:
    families = frozenset(c.family for c in capabilities if isinstance(c, Multiprotocol))
    # Without the capability: IPv4 unicast (RFC 4760 section 8).
    return families or frozenset({IPV4_UNICAST})


def _add_path(capabilities: Iterable[Capability], bit: int) -> frozenset[Family]:
    return frozenset(
        family
        for c in capabilities
        if isinstance(c, AddPath)
        for family, mode in c.entries
        if mode & bit
    )


def _extended_next_hop(capabilities: Iterable[Capability]) -> frozenset[Family]:
    return frozenset(
        family
        for c in capabilities
        if isinstance(c, ExtendedNextHop)
        for family, afi in c.entries
        if afi == Afi.IPV6
    )


def negotiate(
    *,
    local_asn: int,
    peer_asn: int,
    local_capabilities: tuple[Capability, ...],
    peer_capabilities: tuple[Capability, ...],
    local_hold_time: int,
    peer_hold_time: int,
    keepalive_time: int,
    local_router_id: int,
    peer_router_id: int,
    confederation: bool = False,
    enforce_first_as: bool = True,
    local_role: int | None = None,
) -> Negotiated:
    """Return the parameters that both OPENs permit.

    ``local_role`` applies whether it was sent as a capability or not (RFC 9234 section 5). Times are in
    seconds. The hold time is the smaller of the two (RFC 4271 section 4.2); the keepalive time is the
    configured one, at most a third of the hold time, and 0 with a hold time of 0.
    """
    ours, theirs = local_capabilities, peer_capabilities

    def both(kind: type) -> bool:
        return any(isinstance(c, kind) for c in ours) and any(isinstance(c, kind) for c in theirs)

    def first(kind: type, capabilities: tuple[Capability, ...]) -> Capability | None:
        return next((c for c in reversed(capabilities) if isinstance(c, kind)), None)

    families = _families(ours) & _families(theirs)
    hold = min(local_hold_time, peer_hold_time)
    peer_role = first(RoleCapability, theirs)
    restart = first(GracefulRestartCapability, theirs)
    our_restart = first(GracefulRestartCapability, ours)
    if not isinstance(restart, GracefulRestartCapability) or not isinstance(
        our_restart, GracefulRestartCapability
    ):
        restart = our_restart = None
    # RFC 9494 section 4.1: ignored without the graceful restart capability.
    long_lived = first(LongLivedGracefulRestart, theirs) if restart is not None else None
    return Negotiated(
        local_asn=local_asn,
        peer_asn=peer_asn,
        ebgp=local_asn != peer_asn,
        confederation=confederation,
        enforce_first_as=enforce_first_as,
        as4=both(FourOctetAs),
        families=families,
        add_path_receive=_add_path(ours, 1) & _add_path(theirs, 2) & families,
        add_path_send=_add_path(ours, 2) & _add_path(theirs, 1) & families,
        extended_message=both(ExtendedMessage),
        extended_next_hop=_extended_next_hop(ours) & _extended_next_hop(theirs) & families,
        route_refresh=both(RouteRefreshCapability),
        enhanced_route_refresh=both(EnhancedRouteRefresh),
        hold_time=hold,
        keepalive_time=min(keepalive_time, hold // 3) if hold else 0,
        local_router_id=local_router_id,
        peer_router_id=peer_router_id,
        local_role=local_role,
        peer_role=peer_role.role if isinstance(peer_role, RoleCapability) else None,
        peer_graceful_restart=restart,
        graceful_notification=restart is not None
        and our_restart is not None
        and restart.notification
        and our_restart.notification,
        peer_long_lived=long_lived if isinstance(long_lived, LongLivedGracefulRestart) else None,
    )


_ROLE_PAIRS = {
    (Role.PROVIDER, Role.CUSTOMER),
    (Role.CUSTOMER, Role.PROVIDER),
    (Role.ROUTE_SERVER, Role.ROUTE_SERVER_CLIENT),
    (Role.ROUTE_SERVER_CLIENT, Role.ROUTE_SERVER),
    (Role.PEER, Role.PEER),
}


def roles_match(local: int, peer: int) -> bool:
    """Return whether two roles are a permitted pair (RFC 9234 section 4.2)."""
    return (local, peer) in _ROLE_PAIRS
