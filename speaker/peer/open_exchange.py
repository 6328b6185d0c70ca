"""The capabilities that are offered, and the validation of the peer's OPEN.

RFC 4271 sections 4.2 and 6.2, RFC 5492, RFC 6286. Pure: an OPEN is accepted with the negotiated
parameters, or rejected with the NOTIFICATION that the RFC requires.
"""

from __future__ import annotations

from speaker.api import PeerAs, PeerConfig
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
from speaker.message import Open
from speaker.negotiated import ConfiguredParameters, Negotiated, negotiate, roles_match

_ADD_PATH = {"none": 0, "receive": 1, "send": 2, "both": 3}


def offered_capabilities(
    config: PeerConfig,
    local_asn: int,
    *,
    plain: bool = False,
    restarting: bool = False,
    external: bool = True,
) -> tuple[Capability, ...]:
    """Return the capabilities to offer a peer (RFC 5492).

    ``plain`` omits all that are optional, for a peer that refused them. ``restarting`` sets the R
    bit of graceful restart (RFC 4724 section 3). ``external``: the peer is in another AS and not in
    the same confederation, so the role is offered (RFC 9234).
    """
    offered: list[Capability] = [Multiprotocol(family) for family in config.families]
    offered.append(FourOctetAs(local_asn))
    if plain:
        return tuple(offered)
    offered.append(RouteRefreshCapability())
    offered.append(EnhancedRouteRefresh())
    over_ipv6 = config.address is None or ":" in config.address
    if IPV4_UNICAST in config.families and over_ipv6:
        # IPv4 prefixes on an IPv6 session have its IPv6 address as their next hop (RFC 8950).
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


def configured_parameters(
    config: PeerConfig,
    peer_asn: int,
    *,
    local_asn: int,
    local_router_id: int,
    confederation: bool,
) -> ConfiguredParameters:
    """Return the parameters that are not negotiated, with a peer of an AS; see `accept_open`."""
    external = peer_asn != local_asn and not confederation
    return {
        "local_asn": local_asn,
        "local_router_id": local_router_id,
        "confederation": confederation,
        "enforce_first_as": config.first_as_enforced,
        "local_role": config.role if external else None,
    }


def accept_open(
    config: PeerConfig,
    opened: Open,
    *,
    local_asn: int,
    local_router_id: int,
    offered: tuple[Capability, ...],
    instance_asn: int = 0,
    confederation: bool = False,
) -> Negotiated:
    """Validate the peer's OPEN and return the negotiated parameters. Raises `NotificationError`.

    ``local_asn`` is the AS number that the peer sees, ``instance_asn`` that of the instance.
    ``offered`` are the capabilities of the OPEN that is sent; ``confederation``: the peer is in
    another member AS of the confederation (RFC 5065).
    """
    configured = configured_parameters(
        config,
        opened.asn,
        local_asn=local_asn,
        local_router_id=local_router_id,
        confederation=confederation,
    )
    check_open(
        opened,
        peer_asn=config.peer_asn,
        local_asn=local_asn,
        instance_asn=instance_asn,
        local_router_id=local_router_id,
        role=configured["local_role"],
        role_strict=config.role_strict,
    )
    negotiated = negotiate(
        peer_asn=opened.asn,
        local_capabilities=offered,
        peer_capabilities=opened.capabilities,
        local_hold_time=config.hold_time,
        peer_hold_time=opened.hold_time,
        keepalive_time=config.keepalive_time,
        peer_router_id=opened.router_id,
        **configured,
    )
    if not negotiated.families:
        local = ", ".join(str(family) for family in config.families)
        raise open_error(
            OpenSubcode.UNSUPPORTED_CAPABILITY,
            b"".join(
                bytes((Multiprotocol.code, 4))
                + family.afi.to_bytes(2, "big")
                + bytes((0, family.safi))
                for family in config.families
            ),
            f"the peer supports none of {local}",
        )
    return negotiated


def check_open(
    opened: Open,
    *,
    peer_asn: PeerAs,
    local_asn: int,
    instance_asn: int = 0,
    local_router_id: int,
    role: int | None = None,
    role_strict: bool = False,
) -> None:
    """Reject an OPEN that is not this peer's (RFC 4271 section 6.2). Raises `NotificationError`.

    ``role`` is the local role towards an external peer. With a local AS of its own for the peer,
    an internal peer has that one; an external one has neither that nor the instance's.
    """
    asn = opened.asn
    expected: str | None = None
    if peer_asn == "internal":
        expected = None if asn == local_asn else str(local_asn)
    elif peer_asn == "external":
        expected = "another than the local one" if asn in (local_asn, instance_asn) else None
    elif peer_asn not in (0, asn):
        expected = str(peer_asn)
    if expected is not None:
        raise open_error(OpenSubcode.BAD_PEER_AS, detail=f"peer AS {asn}, expected {expected}")
    if opened.asn == AS_TRANS:
        # RFC 6793 section 9: it is reserved, and stands for an AS number of four octets.
        raise open_error(OpenSubcode.BAD_PEER_AS, detail="AS_TRANS is reserved (RFC 6793)")
    if asn == local_asn and opened.router_id == local_router_id:
        # RFC 6286 section 2.2: within an AS identifiers are unique.
        raise open_error(
            OpenSubcode.BAD_BGP_IDENTIFIER, detail="the peer has the local BGP identifier"
        )
    if role is not None:
        _check_role(opened, role, strict=role_strict)


def _check_role(opened: Open, local: int, *, strict: bool) -> None:
    """Reject a peer whose role does not correspond to the local one (RFC 9234 section 4.2)."""
    theirs = {c.role for c in opened.capabilities if isinstance(c, RoleCapability)}
    if not theirs and strict:
        raise open_error(OpenSubcode.ROLE_MISMATCH, detail="the peer sent no role")
    if len(theirs) > 1:
        raise open_error(OpenSubcode.ROLE_MISMATCH, detail="the peer sent several roles")
    for role in theirs:
        if not roles_match(local, role):
            raise open_error(
                OpenSubcode.ROLE_MISMATCH,
                detail=f"peer: {RoleCapability(role)}, local: {RoleCapability(local)}",
            )
