"""CiliumBGPPeeringPolicy: the whole of Cilium's first BGP API (v1), in one kind.

A policy holds virtual routers, each with its neighbours and with what all of them are told. What
differs between nodes is in annotations of the Node (``reconcilers.intent.cilium.v1.annotations``).
Source: group cilium.io, version v2alpha1; deprecated there, read here as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from resources.addresses import canonical_prefix
from resources.cilium.advertisement import AddressType, Communities, community_errors
from resources.cilium.limits import AnyAsn, Name, Port
from resources.cilium.peerconfig import Afi, GracefulRestart, Safi, timer_errors
from resources.errors import FieldError
from resources.labels import LabelSelector, selector_errors
from resources.meta import Resource, Struct

SelectorType = Literal["PodCIDR", "CiliumLoadBalancerIPPool", "CiliumPodIPPool"]


class NeighborFamily(Struct, frozen=True):
    """One address family."""

    afi: Afi
    safi: Safi


DEFAULT_NEIGHBOR_FAMILIES = (
    NeighborFamily(afi="ipv4", safi="unicast"),
    NeighborFamily(afi="ipv6", safi="unicast"),
)
"""What an empty list means."""
DEFAULT_SERVICE_ADDRESSES: tuple[AddressType, ...] = ("LoadBalancerIP",)
"""What an empty list means."""


class PathAttributes(Struct, frozen=True):
    """Attributes for some of what a neighbour is told; without a selector for all of that type."""

    selector_type: SelectorType
    selector: LabelSelector | None = None
    communities: Communities = msgspec.field(default_factory=Communities)
    local_preference: Annotated[int, Meta(ge=0, le=4294967295)] | None = None


class Neighbor(Struct, frozen=True):
    """One peer, with everything about the session."""

    peer_address: str
    """A host prefix: ``192.0.2.1/32``."""
    peer_asn: AnyAsn
    """0 accepts any AS."""
    peer_port: Port = 179
    auth_secret_ref: Name | None = None
    ebgp_multihop_ttl: Annotated[int, Meta(ge=1, le=255)] = msgspec.field(
        default=1, name="eBGPMultihopTTL"
    )
    connect_retry_time_seconds: Annotated[int, Meta(ge=1, le=2147483647)] = 120
    hold_time_seconds: Annotated[int, Meta(ge=3, le=65535)] = 90
    keep_alive_time_seconds: Annotated[int, Meta(ge=1, le=65535)] = 30
    graceful_restart: GracefulRestart | None = None
    families: tuple[NeighborFamily, ...] = ()
    advertised_path_attributes: tuple[PathAttributes, ...] = ()

    @property
    def address(self) -> str:
        """The address alone, canonical. Raises ValueError where it is no host prefix."""
        return host_address(self.peer_address)

    @property
    def chosen_families(self) -> tuple[NeighborFamily, ...]:
        """The families, with the default."""
        return self.families or DEFAULT_NEIGHBOR_FAMILIES


class VirtualRouter(Struct, frozen=True):
    """One BGP router on each selected node; its AS number is what names it."""

    local_asn: AnyAsn
    neighbors: Annotated[tuple[Neighbor, ...], Meta(min_length=1)]
    export_pod_cidr: bool = False
    pod_ip_pool_selector: LabelSelector | None = None
    service_selector: LabelSelector | None = None
    service_advertisements: tuple[AddressType, ...] = ()

    @property
    def service_addresses(self) -> tuple[AddressType, ...]:
        """Which addresses of the selected Services, with the default."""
        return self.service_advertisements or DEFAULT_SERVICE_ADDRESSES


class PeeringPolicySpec(Struct, frozen=True):
    """The specification; without a node selector every node is selected."""

    virtual_routers: Annotated[tuple[VirtualRouter, ...], Meta(min_length=1)]
    node_selector: LabelSelector | None = None


class CiliumBGPPeeringPolicy(Resource, frozen=True):
    """One policy."""

    spec: PeeringPolicySpec


def host_address(text: str) -> str:
    """Take the address out of a host prefix. Raises ValueError naming the rule."""
    prefix = canonical_prefix(text)
    address, _, length = prefix.partition("/")
    if length != ("128" if ":" in address else "32"):
        raise ValueError(f"{text!r} is not one address: the length has to be /32 or /128")
    return address


def _neighbor_errors(neighbor: Neighbor, path: str) -> Iterator[FieldError]:
    try:
        host_address(neighbor.peer_address)
    except ValueError as error:
        message = str(error)
        shown = repr(neighbor.peer_address)
        yield FieldError(
            f"{path}.peerAddress", message if shown in message else f"{shown}: {message}"
        )
    yield from timer_errors(neighbor.keep_alive_time_seconds, neighbor.hold_time_seconds, path)
    for i, attributes in enumerate(neighbor.advertised_path_attributes):
        where = f"{path}.advertisedPathAttributes[{i}]"
        yield from selector_errors(attributes.selector, f"{where}.selector")
        yield from community_errors(attributes.communities, f"{where}.communities")


def peering_policy_errors(policy: CiliumBGPPeeringPolicy) -> Iterator[FieldError]:
    """Check what a schema cannot."""
    yield from selector_errors(policy.spec.node_selector, "spec.nodeSelector")
    seen: dict[int, int] = {}
    for i, router in enumerate(policy.spec.virtual_routers):
        path = f"spec.virtualRouters[{i}]"
        first = seen.setdefault(router.local_asn, i)
        if first != i:
            yield FieldError(
                f"{path}.localASN",
                f"{router.local_asn} is that of spec.virtualRouters[{first}] too, it has to be "
                "unique",
            )
        yield from selector_errors(router.pod_ip_pool_selector, f"{path}.podIPPoolSelector")
        yield from selector_errors(router.service_selector, f"{path}.serviceSelector")
        for j, neighbor in enumerate(router.neighbors):
            yield from _neighbor_errors(neighbor, f"{path}.neighbors[{j}]")
