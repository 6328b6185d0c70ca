"""CiliumBGPNodeConfig: what one node has to do; the operator writes it, its name is the node's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from resources.addresses import address_errors, router_id_errors
from resources.cilium.clusterconfig import (
    ConfigReference,
    PeerAddress,
    PeerAsn,
    PeerDiscovery,
    auto_discovery_errors,
    instance_list_errors,
)
from resources.cilium.limits import Asn, ListenPort, Name, duplicate_errors
from resources.crds.patterns import ADDRESS, ROUTER_ID
from resources.crds.schema_markers import NAMED_LIST, doc
from resources.errors import FieldError
from resources.meta import Resource, Struct


class NodePeer(Struct, frozen=True):
    """One peer of an instance on this node."""

    name: Annotated[Name, doc("The peer's name, from the CiliumBGPClusterConfig.")]
    peer_address: PeerAddress | None = None
    peer_asn: PeerAsn | None = None
    auto_discovery: PeerDiscovery | None = None
    local_address: Annotated[
        str | None,
        doc(
            "The address of this node that the session is opened from. Without one the kernel's "
            "route decides.",
            ADDRESS,
        ),
    ] = None
    peer_config_ref: ConfigReference | None = None


class NodeInstance(Struct, frozen=True):
    """One BGP router on this node."""

    name: Annotated[Name, doc("The instance's name, from the CiliumBGPClusterConfig.")]
    local_asn: Annotated[Asn | None, doc("The AS number of this router.")] = None
    router_id: Annotated[
        str | None,
        doc(
            "The BGP identifier of this router, written as an IPv4 address. Without one the node's "
            "IPv4 address is used.",
            ROUTER_ID,
        ),
    ] = None
    local_port: ListenPort = None
    peers: Annotated[
        tuple[NodePeer, ...], doc("The routers that this instance has sessions with.", NAMED_LIST)
    ] = ()


class NodeConfigSpec(Struct, frozen=True):
    """The specification."""

    bgp_instances: Annotated[
        tuple[NodeInstance, ...],
        Meta(min_length=1, max_length=16),
        doc("The BGP routers that run on this node.", NAMED_LIST),
    ]


class CiliumBGPNodeConfig(Resource, frozen=True):
    """One node's configuration; its status is written, never read."""

    spec: Annotated[NodeConfigSpec, doc("What the node has to do.")]


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
