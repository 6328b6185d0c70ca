"""CiliumBGPNodeConfigOverride: a user's overrides for one node; named after the node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from resources.addresses import address_errors, router_id_errors
from resources.cilium.clusterconfig import PeerInterface, instance_list_errors
from resources.cilium.field_rules import Asn, Name, Port, duplicate_errors
from resources.crds.patterns import ADDRESS, ROUTER_ID
from resources.crds.schema_markers import NAMED_LIST, doc
from resources.errors import FieldError
from resources.meta import Resource, Struct


class PeerOverride(Struct, frozen=True):
    """Of one peer; localPort is deprecated and has no effect."""

    name: Annotated[Name, doc("The peer's name in the CiliumBGPClusterConfig.")]
    local_address: Annotated[
        str | None,
        doc("The address of this node that the session is opened from.", ADDRESS),
    ] = None
    local_port: Annotated[int | None, doc("Deprecated; has no effect.")] = None
    peer_interface: PeerInterface | None = None


class InstanceOverride(Struct, frozen=True):
    """Of one instance."""

    name: Annotated[Name, doc("The instance's name in the CiliumBGPClusterConfig.")]
    router_id: Annotated[
        str | None,
        doc(
            "The BGP identifier, written as an IPv4 address. Each router of the network needs one of "
            "its own; nodes without an IPv4 address have to be given one here.",
            ROUTER_ID,
        ),
    ] = None
    local_port: Annotated[
        Port | None, doc("The TCP port on which incoming sessions are accepted.")
    ] = None
    local_asn: Annotated[Asn | None, doc("The AS number of the router on this node.")] = None
    peers: Annotated[
        tuple[PeerOverride, ...], doc("What is different for single peers.", NAMED_LIST)
    ] = ()


class NodeConfigOverrideSpec(Struct, frozen=True):
    """The specification."""

    bgp_instances: Annotated[
        tuple[InstanceOverride, ...],
        Meta(min_length=1),
        doc(
            "What is different on this node, by instance. What is not named here stays as the "
            "CiliumBGPClusterConfig has it; names that it does not have are ignored.",
            NAMED_LIST,
        ),
    ]


class CiliumBGPNodeConfigOverride(Resource, frozen=True):
    """One node's overrides."""

    spec: Annotated[NodeConfigOverrideSpec, doc("What is different on this node.")]


def node_config_override_errors(override: CiliumBGPNodeConfigOverride) -> Iterator[FieldError]:
    """Yield the rules that a CiliumBGPNodeConfigOverride breaks, beyond its schema."""
    yield from instance_list_errors([i.name for i in override.spec.bgp_instances])
    for i, instance in enumerate(override.spec.bgp_instances):
        path = f"spec.bgpInstances[{i}]"
        yield from router_id_errors(instance.router_id, f"{path}.routerID")
        yield from duplicate_errors((peer.name for peer in instance.peers), f"{path}.peers")
        for j, peer in enumerate(instance.peers):
            yield from address_errors(peer.local_address, f"{path}.peers[{j}].localAddress")
