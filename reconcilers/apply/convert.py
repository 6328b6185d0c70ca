"""Intent rows to the speaker's values."""

from __future__ import annotations

from collections.abc import Callable

from reconcilers.model import Attributes, Instance, Peer, SecretRef
from speaker.api import (
    GracefulRestart,
    InstanceConfig,
    PeerConfig,
    Policy,
    PrefixRule,
    RouteAttributes,
    Secret,
    Set,
    Term,
)
from speaker.api.secret import InvalidSecret
from speaker.iana import Origin

GRACEFUL_SHUTDOWN = "65535:0"
LISTEN_ADDRESSES = ("0.0.0.0", "::")  # noqa: S104  a BGP router listens on all its addresses


def instance_config(instance: Instance) -> InstanceConfig:
    """Make an instance; it listens only where a port is set."""
    listen: tuple[tuple[str, int], ...] = ()
    if instance.listen_port is not None:
        listen = tuple((address, instance.listen_port) for address in LISTEN_ADDRESSES)
    return InstanceConfig(
        name=instance.name,
        local_asn=instance.local_asn,
        router_id=instance.router_id,
        listen=listen,
        vrf=instance.vrf,
    )


def peer_config(
    peer: Peer, local_asn: int, password_of: Callable[[SecretRef], bytes | None]
) -> PeerConfig:
    """Make a peer of an instance with this AS; without the password that it must have it stays down."""
    down = peer.down_reason
    password: Secret | None = None
    if peer.password is not None and down is None:
        octets = password_of(peer.password)
        where = f"{peer.password.namespace}/{peer.password.name}"
        if octets is None:
            down = f"no Secret {where}"
        else:
            try:
                password = Secret(octets)
            except InvalidSecret as error:
                down = f"Secret {where}: {error}"
    return PeerConfig(
        name=peer.name,
        address=peer.address,
        interface=peer.interface,
        peer_asn=peer.peer_asn,
        local_asn=peer.local_asn,
        port=peer.peer_port,
        local_address=peer.local_address,
        hold_time=peer.hold_time,
        keepalive_time=peer.keepalive_time,
        connect_retry_time=peer.connect_retry_time,
        ebgp_multihop=peer.ebgp_multihop,
        password=password,
        graceful_restart=(
            GracefulRestart(peer.graceful_restart.restart_time)
            if peer.graceful_restart is not None
            else None
        ),
        families=peer.families,
        route_set=peer.route_set,
        export="set",
        export_policy=_last_choice(peer, peer.local_asn or local_asn),
        import_=(
            "all"
            if peer.accept is None
            else tuple(PrefixRule(r.prefix, r.ge, r.le) for r in peer.accept) or "none"
        ),
        next_hop_ipv6=peer.next_hop_ipv6,
        disabled_reason=down,
    )


def _last_choice(peer: Peer, asn: int) -> Policy | None:
    """Make the policy by which all routes are told as a last choice (RFC 8326 section 4.2)."""
    if peer.last_choice is None:
        return None
    # Within one AS a path with it in is a loop, and one that anybody may have may be within it.
    external = peer.peer_asn not in (0, asn)
    changes = Set(
        local_preference=0,
        add_communities=(GRACEFUL_SHUTDOWN,),
        prepend=(asn,) * peer.last_choice.prepend if external else (),
    )
    return Policy(name="drain", terms=(Term(name="last choice", set=changes),))


def route_attributes(attributes: Attributes) -> RouteAttributes:
    """Make a local route's attributes."""
    return RouteAttributes(
        origin=Origin.INCOMPLETE if attributes.incomplete else Origin.IGP,
        local_preference=attributes.local_preference,
        communities=attributes.communities,
        large_communities=attributes.large_communities,
        next_hop=attributes.next_hop,
    )
