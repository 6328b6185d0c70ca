"""Our OPEN, and the judgement of the peer's (RFC 4271 sections 4.2 and 6.2, RFC 5492, 6286).

Pure: what a peer says is accepted with what both can do, or refused with the NOTIFICATION that
the RFC names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from speaker.api import PeerConfig
from speaker.capability import (
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
from speaker.errors import open_error
from speaker.iana import AS_TRANS, IPV4_UNICAST, Afi, OpenSubcode
from speaker.negotiated import Negotiated, negotiate, roles_match

if TYPE_CHECKING:
    from speaker.message import Open


_ADD_PATH = {"none": 0, "receive": 1, "send": 2, "both": 3}


def offered_capabilities(
    config: PeerConfig,
    local_asn: int,
    *,
    plain: bool = False,
    restarting: bool = False,
    external: bool = True,
) -> tuple[Capability, ...]:
    """Return what we offer a peer; ``plain`` leaves out what is not needed.

    ``external``: the peer is in another AS, and in no confederation with us: it is told our role.

    ``restarting`` sets the R bit of graceful restart: we have just started again (RFC 4724).
    """
    offered: list[Capability] = [Multiprotocol(family) for family in config.families]
    offered.append(FourOctetAs(local_asn))
    if plain:
        return tuple(offered)
    offered.append(RouteRefreshCapability())
    offered.append(EnhancedRouteRefresh())
    over_ipv6 = config.address is None or ":" in config.address
    if IPV4_UNICAST in config.families and over_ipv6:
        # IPv4 prefixes on an IPv6 session have our IPv6 address as their next hop (RFC 8950).
        offered.append(ExtendedNextHop(((IPV4_UNICAST, Afi.IPV6),)))
    offered.append(ExtendedMessage())
    if config.role is not None and external:
        offered.append(RoleCapability(config.role))
    mode = _ADD_PATH[config.add_path]
    if mode:
        offered.append(AddPath(tuple((family, mode) for family in config.families)))
    restart = config.graceful_restart
    if restart is not None:
        offered.append(
            GracefulRestartCapability(
                restart.restart_time,
                restarting=restarting,
                notification=restart.notification,
                families=tuple(
                    (family, restart.forwarding_preserved) for family in config.families
                ),
            )
        )
        if restart.long_lived_time:
            offered.append(
                LongLivedGracefulRestart(
                    tuple(
                        (family, restart.forwarding_preserved, restart.long_lived_time)
                        for family in config.families
                    )
                )
            )
    return tuple(offered)


def accept_open(
    config: PeerConfig,
    opened: Open,
    *,
    local_asn: int,
    local_router_id: int,
    offered: tuple[Capability, ...],
    confederation: bool = False,
) -> Negotiated:
    """Return what the session may use. Raises `NotificationError` for an OPEN that cannot be had."""
    role = config.role if opened.asn != local_asn and not confederation else None
    check_open(
        opened,
        peer_asn=config.peer_asn,
        local_asn=local_asn,
        local_router_id=local_router_id,
        role=role,
        role_strict=config.role_strict,
    )
    if opened.asn == AS_TRANS:
        # RFC 6793 section 9: it is reserved, and stands for an AS number that is not said.
        raise open_error(OpenSubcode.BAD_PEER_AS, detail="AS_TRANS is nobody's AS")
    negotiated = negotiate(
        local_asn=local_asn,
        peer_asn=opened.asn,
        local_capabilities=offered,
        peer_capabilities=opened.capabilities,
        local_hold_time=config.hold_time,
        peer_hold_time=opened.hold_time,
        keepalive_time=config.keepalive_time,
        local_router_id=local_router_id,
        peer_router_id=opened.router_id,
        confederation=confederation,
        local_role=role,
    )
    if not negotiated.families:
        ours = ", ".join(str(family) for family in config.families)
        raise open_error(
            OpenSubcode.UNSUPPORTED_CAPABILITY,
            b"".join(
                bytes((Multiprotocol.code, 4))
                + family.afi.to_bytes(2, "big")
                + bytes((0, family.safi))
                for family in config.families
            ),
            f"the peer speaks none of {ours}",
        )
    return negotiated


def check_open(
    opened: Open,
    *,
    peer_asn: int,
    local_asn: int,
    local_router_id: int,
    role: int | None = None,
    role_strict: bool = False,
) -> None:
    """Refuse an OPEN that is not this peer's (RFC 4271 section 6.2). Raises `NotificationError`.

    A ``peer_asn`` of 0 takes any AS; ``role`` is what we are to a peer in another AS.
    """
    asn = opened.asn
    if peer_asn and asn != peer_asn:
        raise open_error(OpenSubcode.BAD_PEER_AS, detail=f"peer AS {asn}, expected {peer_asn}")
    if asn == local_asn and opened.router_id == local_router_id:
        # RFC 6286 section 2.2: within an AS identifiers are unique.
        raise open_error(
            OpenSubcode.BAD_BGP_IDENTIFIER, detail="the peer has our own BGP identifier"
        )
    if role is not None:
        _check_role(opened, role, strict=role_strict)


def _check_role(opened: Open, local: int, *, strict: bool) -> None:
    """Refuse a peer whose role does not go with ours (RFC 9234 section 4.2)."""
    theirs = {c.role for c in opened.capabilities if isinstance(c, RoleCapability)}
    if not theirs and strict:
        raise open_error(OpenSubcode.ROLE_MISMATCH, detail="the peer says no role")
    if len(theirs) > 1:
        raise open_error(OpenSubcode.ROLE_MISMATCH, detail="the peer says several roles")
    for role in theirs:
        if not roles_match(local, role):
            raise open_error(
                OpenSubcode.ROLE_MISMATCH,
                detail=f"peer: {RoleCapability(role)}, ours: {RoleCapability(local)}",
            )
