"""CiliumBGPClusterConfig: who peers with whom, on which nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from msgspec import Meta

from resources.addresses import address_errors
from resources.cilium.limits import AnyAsn, Asn, Name, Port, duplicate_errors
from resources.errors import FieldError
from resources.labels import LabelSelector, selector_errors
from resources.meta import Resource, Struct


class DefaultGateway(Struct, frozen=True):
    """Which default route leads to the peer."""

    address_family: Literal["ipv4", "ipv6"]


class AutoDiscovery(Struct, frozen=True):
    """How the peer's address is found."""

    mode: Literal["DefaultGateway"]
    default_gateway: DefaultGateway | None = None


class PeerConfigReference(Struct, frozen=True):
    """Names a CiliumBGPPeerConfig; group and kind existed in v2alpha1 and mean nothing else."""

    name: Name
    group: str = "cilium.io"
    kind: str = "CiliumBGPPeerConfig"


class Peer(Struct, frozen=True):
    """One peer of an instance."""

    name: Name
    peer_address: str | None = None
    peer_asn: AnyAsn | None = None
    """0 accepts any AS."""
    auto_discovery: AutoDiscovery | None = None
    peer_config_ref: PeerConfigReference | None = None


class Instance(Struct, frozen=True):
    """One BGP router on each selected node."""

    name: Name
    local_asn: Asn | None = None
    local_port: Port | None = None
    peers: tuple[Peer, ...] = ()


class ClusterConfigSpec(Struct, frozen=True):
    """The specification; without a node selector every node is selected."""

    bgp_instances: Annotated[tuple[Instance, ...], Meta(min_length=1, max_length=16)]
    node_selector: LabelSelector | None = None


class CiliumBGPClusterConfig(Resource, frozen=True):
    """One cluster-wide configuration."""

    spec: ClusterConfigSpec


def auto_discovery_errors(discovery: AutoDiscovery | None, path: str) -> Iterator[FieldError]:
    """Check the CEL rule of auto-discovery."""
    if discovery is not None and discovery.default_gateway is None:
        yield FieldError(
            f"{path}.autoDiscovery.defaultGateway", "is required with mode DefaultGateway"
        )


def instance_list_errors(names: Sequence[str]) -> Iterator[FieldError]:
    """Check that instances have different names."""
    yield from duplicate_errors(names, "spec.bgpInstances")


def cluster_config_errors(config: CiliumBGPClusterConfig) -> Iterator[FieldError]:
    """Check what a schema cannot."""
    yield from selector_errors(config.spec.node_selector, "spec.nodeSelector")
    yield from instance_list_errors([i.name for i in config.spec.bgp_instances])
    for i, instance in enumerate(config.spec.bgp_instances):
        path = f"spec.bgpInstances[{i}]"
        yield from duplicate_errors((peer.name for peer in instance.peers), f"{path}.peers")
        for j, peer in enumerate(instance.peers):
            where = f"{path}.peers[{j}]"
            yield from address_errors(peer.peer_address, f"{where}.peerAddress", zone=True)
            yield from auto_discovery_errors(peer.auto_discovery, where)
