"""Intent rows to the speaker's values."""

from __future__ import annotations

import functools
import ipaddress
from collections.abc import Callable

from reconcilers.apply.import_policy import accepted_prefixes, import_policy
from reconcilers.apply.received_limits import NO_RECEIVED_LIMITS, ReceivedLimits
from reconcilers.model import Attributes, Instance, PasswordRef, Peer
from speaker.api import (
    GracefulRestart,
    InstanceConfig,
    InstanceImport,
    PeerConfig,
    Policy,
    RouteAttributes,
    Secret,
    Set,
    Term,
)
from speaker.api.secret import InvalidSecret
from speaker.attribute import address_text
from speaker.iana import Origin
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST

GRACEFUL_SHUTDOWN = "65535:0"
LISTEN_ADDRESSES = ("0.0.0.0", "::")  # noqa: S104  a BGP router listens on all its addresses


def instance_config(instance: Instance) -> InstanceConfig:
    """Return an instance of the intent converted to the speaker's configuration."""
    listen: tuple[tuple[str, int], ...] = ()
    if instance.listen_port is not None:
        listen = tuple((address, instance.listen_port) for address in LISTEN_ADDRESSES)
    return InstanceConfig(
        name=instance.name,
        local_asn=instance.local_asn,
        router_id=instance.router_id,
        listen=listen,
        vrf=instance.vrf,
        confederation=instance.confederation,
        originate=instance.originates,
        imports=tuple(
            InstanceImport(row.instance, accepted_prefixes(row.accept)) for row in instance.imports
        ),
    )


def _password(peer: Peer, password_of: Callable[[PasswordRef], bytes | None]) -> bytes | None:
    """Return the password of a peer. Raises LookupError where it is withheld."""
    if peer.held_password is not None:
        return peer.held_password.reveal()
    return None if peer.password is None else password_of(peer.password)


def peer_config(
    peer: Peer,
    local_asn: int,
    password_of: Callable[[PasswordRef], bytes | None],
    received: ReceivedLimits = NO_RECEIVED_LIMITS,
) -> PeerConfig:
    """Return a peer of the intent converted to the speaker's configuration; its instance has this AS.

    A peer whose password is missing or invalid is disabled, with the reason; so is a peer whose
    password is withheld, for which ``password_of`` raises LookupError. Raises
    `speaker.api.InvalidConfig`.
    """
    down = peer.down_reason
    password: Secret | None = None
    if peer.password is not None and down is None:
        try:
            octets = _password(peer, password_of)
            password = None if octets is None else Secret(octets)
        except InvalidSecret as error:
            down = f"{peer.password}: {error}"
        except LookupError:
            down = f"{peer.password}: not known until the API server can be read"
        else:
            down = f"no {peer.password}" if octets is None else None
    return PeerConfig(
        name=peer.name,
        address=peer.address,
        interface=peer.interface,
        peer_asn=peer.peer_asn,
        local_asn=peer.local_asn,
        port=peer.peer_port,
        local_address=peer.local_address,
        hold_time=peer.hold_time,
        # With a hold time and without keepalives the router would end each session.
        keepalive_time=peer.keepalive_time or peer.hold_time // 3,
        connect_retry_time=peer.connect_retry_time,
        idle_hold_time=peer.idle_hold_time,
        ebgp_multihop=peer.ebgp_multihop,
        password=password,
        graceful_restart=(
            GracefulRestart(peer.graceful_restart.restart_time)
            if peer.graceful_restart is not None
            else None
        ),
        families=peer.families,
        maximum_prefixes=received.maximum_prefixes(),
        keep_received=received.keep,
        enforce_first_as=received.enforce_first_as,
        allowas_in_origin=peer.allowas_in_origin,
        allowas_in=peer.allowas_in,
        route_set=peer.route_set,
        export="set",
        export_policy=_graceful_shutdown(peer, peer.local_asn or local_asn),
        import_=import_policy(peer),
        next_hop_ipv4=peer.next_hop(IPV4_UNICAST, configured=True),
        next_hop_ipv6=peer.next_hop(IPV6_UNICAST, configured=True),
        default_next_hop_ipv4=peer.next_hop(IPV4_UNICAST, configured=False),
        default_next_hop_ipv6=peer.next_hop(IPV6_UNICAST, configured=False),
        bfd=peer.bfd,
        disabled_reason=down,
    )


def _graceful_shutdown(peer: Peer, asn: int) -> Policy | None:
    """Return the export policy of a peer whose routes are depreferred (RFC 8326 section 4.2)."""
    if peer.graceful_shutdown is None:
        return None
    # An iBGP peer rejects a path with its own AS as a loop (RFC 4271 section 9.1.2). A peer AS of 0 is
    # any AS, so possibly our own.
    external = peer.peer_asn not in (0, asn, "internal")
    changes = Set(
        local_preference=0,
        add_communities=(GRACEFUL_SHUTDOWN,),
        prepend=(asn,) * peer.graceful_shutdown.prepend if external else (),
    )
    return Policy(name="drain", terms=(Term(name="last choice", set=changes),))


@functools.lru_cache(maxsize=4096)
def route_attributes(attributes: Attributes) -> RouteAttributes:
    """Return the attributes of a local route converted to the speaker's, as it returns them.

    Routes share few sets of attributes: most calls are answered from a cache.
    """
    next_hop = attributes.next_hop
    return RouteAttributes(
        origin=Origin.INCOMPLETE if attributes.incomplete else Origin.IGP,
        local_preference=attributes.local_preference,
        med=attributes.med,
        communities=tuple(dict.fromkeys(attributes.communities)),
        large_communities=tuple(dict.fromkeys(attributes.large_communities)),
        next_hop=None if next_hop is None else address_text(ipaddress.ip_address(next_hop).packed),
    )
