"""The BFD session that a peer shall have: its identity and its settings. Pure.

Both depend on the peer and on the networks of the node alone, never on the state of the BGP session: a
session that comes up, or ends, changes nothing of BFD. So the source address is the configured one, or
the kernel's choice, which is that of the BGP connection, too.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Container, Iterable, Sequence
from typing import Final

from msgspec.structs import astuple, replace

from reconcilers.model import Instance, Peer
from resources.host.network import Host
from speaker.api import BfdProfile
from speaker.bfd.session_values import SessionKey, Settings

MICROSECONDS: Final = 1000
"""Of a millisecond."""
SINGLE_HOP_TTL: Final = 255


def wanted_session(
    peer: Peer,
    instance: Instance,
    address: str | None,
    host: Host,
    before: Container[SessionKey] = (),
) -> tuple[SessionKey, Settings] | None:
    """Return the BFD session that a peer shall have; None without a profile, or an address.

    ``address`` is that of a peer which is discovered on its interface, once it is known. ``before``
    are the present sessions: a single hop stays one while its interface is gone.
    """
    end = peer.address or address
    if peer.bfd is None or end is None:
        return None
    parsed = ipaddress.ip_address(end.partition("%")[0])
    link_local = parsed.version == 6 and parsed.is_link_local
    device = peer.interface if link_local else instance.vrf
    key = SessionKey(
        str(parsed),
        "" if peer.local_address is None else str(ipaddress.ip_address(peer.local_address)),
        device or "",
    )
    multihop = not link_local and _is_multihop(peer, instance, parsed, host, known=key in before)
    if multihop:
        key = SessionKey(key.peer, key.local, key.device, multihop=True)
    return key, bfd_settings(peer.bfd, multihop=multihop)


def _is_multihop(
    peer: Peer,
    instance: Instance,
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
    host: Host,
    *,
    known: bool,
) -> bool:
    """True if routers may be between the ends, as FRR decides; ``known``: a session has none.

    An external peer is one hop away unless it has a TTL, an internal one if it is in a network of the
    node.
    """
    if peer.bfd is not None and peer.bfd.multihop is not None:
        return peer.bfd.multihop
    if peer.peer_asn not in ("internal", peer.local_asn or instance.local_asn):
        return peer.ebgp_multihop > 1
    return not (known or _is_within(address, host, instance.vrf or ""))


def _is_within(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address, host: Host, vrf: str
) -> bool:
    networks: Iterable[str] = (
        text for device in host.devices if device.vrf == vrf for text in device.networks
    )
    return any(address in ipaddress.ip_network(text) for text in networks)


def bfd_settings(profile: BfdProfile, *, multihop: bool) -> Settings:
    """Return the settings of the BFD session that a peer shall have, by its profile.

    The echo function is for a single hop (RFC 5883 section 3). With it the kernel returns the packets
    of the neighbor, too, in the same interval.
    """
    echo = profile.echo_interval * MICROSECONDS if profile.echo_mode and not multihop else 0
    return Settings(
        desired_min_tx=profile.transmit_interval * MICROSECONDS,
        required_min_rx=profile.receive_interval * MICROSECONDS,
        detect_multiplier=profile.detect_multiplier,
        passive=profile.passive,
        minimum_ttl=profile.minimum_ttl if multihop else SINGLE_HOP_TTL,
        echo_interval=echo,
        required_min_echo_rx=echo,
    )


def shared_settings(settings: Sequence[Settings]) -> Settings:
    """Return the settings of one BFD session for several peers (RFC 5882 section 4.4).

    The values that notice a loss first: no peer has less than its object demands, and no values of two
    peers are mixed to a detection time that is shorter than each of theirs. A peer that is not passive
    has the first packet sent, and no TTL passes that one of them does not allow.
    """
    first = min(settings, key=lambda each: (_detection(each), astuple(replace(each, key=None))))
    return replace(
        first,
        passive=all(each.passive for each in settings),
        minimum_ttl=max(each.minimum_ttl for each in settings),
    )


def _detection(settings: Settings) -> int:
    """Return the detection time of two ends with these settings, in microseconds."""
    slower = max(settings.desired_min_tx, settings.required_min_rx)
    return settings.detect_multiplier * slower
