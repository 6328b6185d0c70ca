"""CiliumBGPNodeConfig: what one node has to do; the operator writes it, its name is the node's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from resources.addresses import address_errors, router_id_errors
from resources.cilium.clusterconfig import (
    AutoDiscovery,
    PeerConfigReference,
    auto_discovery_errors,
    instance_list_errors,
)
from resources.cilium.limits import AnyAsn, Asn, Name, Port, duplicate_errors
from resources.errors import FieldError
from resources.meta import Resource, Struct


class NodePeer(Struct, frozen=True):
    """One peer of an instance on this node."""

    name: Name
    peer_address: str | None = None
    peer_asn: AnyAsn | None = None
    auto_discovery: AutoDiscovery | None = None
    local_address: str | None = None
    peer_config_ref: PeerConfigReference | None = None


class NodeInstance(Struct, frozen=True):
    """One BGP router on this node."""

    name: Name
    local_asn: Asn | None = None
    router_id: str | None = None
    local_port: Port | None = None
    peers: tuple[NodePeer, ...] = ()


class NodeConfigSpec(Struct, frozen=True):
    """The specification."""

    bgp_instances: Annotated[tuple[NodeInstance, ...], Meta(min_length=1, max_length=16)]


class CiliumBGPNodeConfig(Resource, frozen=True):
    """One node's configuration."""

    spec: NodeConfigSpec
    status: dict[str, Any] = msgspec.field(default_factory=dict)


def node_config_errors(config: CiliumBGPNodeConfig) -> Iterator[FieldError]:
    """Check what a schema cannot."""
    yield from instance_list_errors([i.name for i in config.spec.bgp_instances])
    for i, instance in enumerate(config.spec.bgp_instances):
        path = f"spec.bgpInstances[{i}]"
        yield from router_id_errors(instance.router_id, f"{path}.routerID")
        yield from duplicate_errors((peer.name for peer in instance.peers), f"{path}.peers")
        for j, peer in enumerate(instance.peers):
            where = f"{path}.peers[{j}]"
            yield from address_errors(peer.peer_address, f"{where}.peerAddress", zone=True)
            yield from address_errors(peer.local_address, f"{where}.localAddress")
            yield from auto_discovery_errors(peer.auto_discovery, where)
