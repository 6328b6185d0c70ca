"""The ends of a session: the peer's address, configured or discovered, and the local one. Pure."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple

from reconcilers.cilium.sessions import invalid_host
from reconcilers.model import ObjectRef, ProblemCategory
from resources.addresses import canonical_address
from resources.cilium import CiliumBGPPeerConfig
from resources.cilium.clusterconfig import DEFAULT_GATEWAY, GATEWAY_FAMILIES, MODES, UNNUMBERED
from resources.cilium.nodeconfig import NodePeer
from resources.host.network import Host, default_gateway, source_address


class InvalidNodeConfigError(Exception):
    """An instance or peer that cannot be compiled: the field within it, and the other objects."""

    def __init__(
        self, field: str, message: str, *objects: ObjectRef, category: ProblemCategory = "invalid"
    ) -> None:
        super().__init__(message)
        self.field = field
        self.objects = objects
        self.category: ProblemCategory = category


class PeerEnds(NamedTuple):
    """The ends of a session."""

    address: str | None
    """The peer's; None if it is discovered on the interface."""
    interface: str | None
    """Of a link-local address."""
    local_address: str | None = None


def peer_end(peer: NodePeer, host: Host) -> PeerEnds:
    """Return a peer's end of a session, configured or discovered. Raises `InvalidNodeConfigError`."""
    if peer.peer_address is not None:
        return _configured_end(peer, peer.peer_address)
    discovery = peer.auto_discovery
    if discovery is None:
        raise InvalidNodeConfigError("peerAddress", "it has no address")
    if discovery.mode == UNNUMBERED and discovery.unnumbered is not None:
        return PeerEnds(None, discovery.unnumbered.interface)
    if discovery.mode != DEFAULT_GATEWAY or discovery.default_gateway is None:
        text = f"the mode {discovery.mode!r} is not known; {', '.join(MODES)} are"
        raise InvalidNodeConfigError("autoDiscovery.mode", text, category="unsupported")
    family = discovery.default_gateway.address_family
    if family not in GATEWAY_FAMILIES:
        text = f"the address family {family!r} is not known; {', '.join(GATEWAY_FAMILIES)} are"
        where = "autoDiscovery.defaultGateway.addressFamily"
        raise InvalidNodeConfigError(where, text, category="unsupported")
    try:
        return PeerEnds(default_gateway(host, 4 if family == "ipv4" else 6), None)
    except ValueError as error:
        raise InvalidNodeConfigError("peerAddress", str(error)) from None


def _configured_end(peer: NodePeer, text: str) -> PeerEnds:
    """Return a configured address; a link-local one has an interface (RFC 4007 section 6)."""
    base, _, zone = text.partition("%")
    interface = peer.peer_interface
    address = ipaddress.ip_address(base)
    if not (address.version == 6 and address.is_link_local):
        if interface is not None:
            raise InvalidNodeConfigError(
                "peerInterface", f"it is for link-local IPv6 addresses, not for {text}"
            )
    elif zone and interface is not None and zone != interface:
        raise InvalidNodeConfigError(
            "peerInterface", f"{interface} differs from the interface of {text}"
        )
    elif not (zone or interface):
        reason = f"{text} is link-local and needs its interface: {text}%eth0, or peerInterface"
        raise InvalidNodeConfigError("peerAddress", reason)
    invalid = invalid_host(base)
    if invalid is not None:
        raise InvalidNodeConfigError("peerAddress", invalid)
    return PeerEnds(canonical_address(base), zone or interface)


def local_address(
    peer: NodePeer, end: PeerEnds, config: CiliumBGPPeerConfig, host: Host
) -> str | None:
    """Return the local end of a session with a peer; an override precedes the source interface.

    Raises `ValueError` with the reason if there is none.
    """
    version = 6 if end.address is None else ipaddress.ip_address(end.address).version
    if peer.local_address:
        local = canonical_address(peer.local_address)
        if ipaddress.ip_address(local).version != version:
            raise ValueError(f"its localAddress {local} is no IPv{version} address")
        invalid = invalid_host(local)
        if invalid is not None:
            raise ValueError(invalid)
        return local
    interface = config.spec.transport.source_interface
    if interface is None or end.address is None:
        # On an unnumbered session both addresses are link-local.
        return None
    return source_address(host, interface, version)
