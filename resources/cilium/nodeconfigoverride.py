"""CiliumBGPNodeConfigOverride: what a person sets for one node; its name is the node's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from resources.addresses import address_errors, router_id_errors
from resources.cilium.clusterconfig import instance_list_errors
from resources.cilium.limits import Asn, Name, Port, duplicate_errors
from resources.errors import FieldError
from resources.meta import Resource, Struct


class PeerOverride(Struct, frozen=True):
    """Of one peer; localPort is deprecated and has no effect."""

    name: Name
    local_address: str | None = None
    local_port: int | None = None


class InstanceOverride(Struct, frozen=True):
    """Of one instance."""

    name: Name
    router_id: str | None = None
    local_port: Port | None = None
    local_asn: Asn | None = None
    peers: tuple[PeerOverride, ...] = ()


class NodeConfigOverrideSpec(Struct, frozen=True):
    """The specification."""

    bgp_instances: Annotated[tuple[InstanceOverride, ...], Meta(min_length=1)]


class CiliumBGPNodeConfigOverride(Resource, frozen=True):
    """One node's overrides."""

    spec: NodeConfigOverrideSpec


def node_config_override_errors(override: CiliumBGPNodeConfigOverride) -> Iterator[FieldError]:
    """Check what a schema cannot."""
    yield from instance_list_errors([i.name for i in override.spec.bgp_instances])
    for i, instance in enumerate(override.spec.bgp_instances):
        path = f"spec.bgpInstances[{i}]"
        yield from router_id_errors(instance.router_id, f"{path}.routerID")
        yield from duplicate_errors((peer.name for peer in instance.peers), f"{path}.peers")
        for j, peer in enumerate(instance.peers):
            yield from address_errors(peer.local_address, f"{path}.peers[{j}].localAddress")
