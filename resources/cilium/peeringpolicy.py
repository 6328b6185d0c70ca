"""CiliumBGPPeeringPolicy: the whole of Cilium's first BGP API (v1), in one kind.

A policy has virtual routers, each with its neighbors and with selectors of what is advertised to all of
them. Settings of single nodes are in annotations of the Node (``reconcilers.cilium.v1.annotations``).
Source: group cilium.io, version v2alpha1; deprecated there, read here as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from resources.addresses import canonical_prefix
from resources.cilium.advertisement import Communities, community_errors
from resources.cilium.communities import WELL_KNOWN
from resources.cilium.field_rules import AnyAsn, ConnectRetryTime, LocalPreference, Port
from resources.cilium.peerconfig import AFIS, SAFIS, Afi, GracefulRestart, Safi, timer_errors
from resources.crds.patterns import HOST_PREFIX
from resources.crds.schema_markers import ATOMIC_MAP, SchemaPart, doc
from resources.empty_fields import empty_is_absent
from resources.errors import FieldError
from resources.label_selectors import LabelSelector, selector_errors
from resources.meta import Resource, Struct

_BY_ASN: SchemaPart = {
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["localASN"],
}
SelectorType = Literal["PodCIDR", "CiliumLoadBalancerIPPool", "CiliumPodIPPool"]
AddressType = Literal["LoadBalancerIP", "ClusterIP", "ExternalIP"]
"""No later release adds a value to v1: an unknown one is an error of the object."""


class NeighborFamily(Struct, frozen=True):
    """One address family."""

    afi: Annotated[Afi, doc("The address family.")]
    safi: Annotated[Safi, doc("The subsequent address family.")]


DEFAULT_NEIGHBOR_FAMILIES = (
    NeighborFamily(afi="ipv4", safi="unicast"),
    NeighborFamily(afi="ipv6", safi="unicast"),
)
"""The meaning of an empty list."""
DEFAULT_SERVICE_ADDRESSES: tuple[AddressType, ...] = ("LoadBalancerIP",)
"""The meaning of an empty list."""


class PathAttributes(Struct, frozen=True):
    """Attributes of selected routes to a neighbor; without a selector of all routes of the type."""

    selector_type: Annotated[
        SelectorType,
        doc(
            "Which routes get the attributes. PodCIDR: the node's pod networks. "
            "CiliumLoadBalancerIPPool: addresses of Services that are in a pool. CiliumPodIPPool: "
            "pod networks that are cut from a pool."
        ),
    ]
    selector: Annotated[
        LabelSelector | None,
        doc(
            "Which pools, by their labels; with PodCIDR, which CiliumNodes. Absent selects all.",
            ATOMIC_MAP,
        ),
    ] = None
    communities: Annotated[Communities, doc("Communities of the routes.")] = msgspec.field(
        default_factory=Communities
    )
    local_preference: LocalPreference = None


class Neighbor(Struct, frozen=True):
    """One peer, with all parameters of the session."""

    peer_address: Annotated[
        str, doc("The router's address as a host prefix, for example 192.0.2.1/32.", HOST_PREFIX)
    ]
    peer_asn: Annotated[AnyAsn, doc("The AS number that the router has to have; 0 accepts any.")]
    peer_port: Annotated[Port, doc("The TCP port on which the peer listens.")] = 179
    auth_secret_ref: Annotated[
        str | None,
        doc(
            "The name of a Secret, in the namespace for BGP secrets, whose key password is the TCP "
            "MD5 password of the session (RFC 2385). Without it the session has none."
        ),
    ] = None
    ebgp_multihop_ttl: Annotated[
        int,
        Meta(ge=1, le=255),
        doc(
            "The TTL of what is sent to an eBGP peer: 1 reaches a directly connected one. Without "
            "meaning for iBGP."
        ),
    ] = msgspec.field(default=1, name="eBGPMultihopTTL")
    connect_retry_time_seconds: ConnectRetryTime = 120
    hold_time_seconds: Annotated[
        int,
        Meta(ge=3, le=65535),
        doc("How long the peer may be silent before the session ends (RFC 4271 section 4.2)."),
    ] = 90
    keep_alive_time_seconds: Annotated[
        int,
        Meta(ge=1, le=65535),
        doc("How often a KEEPALIVE is sent; not more than holdTimeSeconds."),
    ] = 30
    graceful_restart: Annotated[
        GracefulRestart | None,
        doc("Whether the peer keeps our routes while the agent restarts (RFC 4724)."),
    ] = None
    families: Annotated[
        tuple[NeighborFamily, ...],
        doc(
            "The address families that are negotiated. Without any: ipv4/unicast and ipv6/unicast."
        ),
    ] = ()
    advertised_path_attributes: Annotated[
        tuple[PathAttributes, ...], doc("Attributes of selected routes to this peer.")
    ] = ()

    def __post_init__(self) -> None:
        """Take an empty authSecretRef as none."""
        empty_is_absent(self, "auth_secret_ref")

    @property
    def address(self) -> str:
        """The canonical address of a CiliumBGPPeeringPolicy's neighbor, without its length.

        Raises `ValueError` if it is no host prefix.
        """
        return host_address(self.peer_address)

    @property
    def chosen_families(self) -> tuple[NeighborFamily, ...]:
        """The families of a CiliumBGPPeeringPolicy's neighbor, with the default."""
        return self.families or DEFAULT_NEIGHBOR_FAMILIES


class VirtualRouter(Struct, frozen=True):
    """One BGP router on each selected node, named by its AS number."""

    local_asn: Annotated[AnyAsn, doc("The AS number of this router; unique within the policy.")]
    neighbors: Annotated[
        tuple[Neighbor, ...],
        Meta(min_length=1),
        doc("The routers that this one has sessions with; the same routes are advertised to all."),
    ]
    export_pod_cidr: Annotated[bool, doc("Whether the node's pod networks are advertised.")] = False
    pod_ip_pool_selector: Annotated[
        LabelSelector | None,
        doc(
            "The CiliumPodIPPools of which the node's networks are advertised. Absent selects none.",
            ATOMIC_MAP,
        ),
    ] = None
    service_selector: Annotated[
        LabelSelector | None,
        doc("The Services that are advertised. Absent selects none.", ATOMIC_MAP),
    ] = None
    service_advertisements: Annotated[
        tuple[AddressType, ...],
        doc("Which addresses of the selected Services. Without any: LoadBalancerIP."),
    ] = ()

    @property
    def service_addresses(self) -> tuple[AddressType, ...]:
        """The Service addresses that a CiliumBGPPeeringPolicy's router advertises."""
        return self.service_advertisements or DEFAULT_SERVICE_ADDRESSES


class PeeringPolicySpec(Struct, frozen=True):
    """The specification; without a node selector every node is selected."""

    virtual_routers: Annotated[
        tuple[VirtualRouter, ...],
        Meta(min_length=1),
        doc("The BGP routers that run on each selected node; usually one.", _BY_ASN),
    ]
    node_selector: Annotated[
        LabelSelector | None,
        doc("The nodes that this is for, by their labels. Absent selects every node.", ATOMIC_MAP),
    ] = None


class CiliumBGPPeeringPolicy(Resource, frozen=True):
    """One policy."""

    spec: Annotated[PeeringPolicySpec, doc("The desired state.")]


def host_address(text: str) -> str:
    """Return the address of the host prefix that a CiliumBGPPeeringPolicy has as peer address.

    Raises `ValueError` naming the rule.
    """
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
        for j, name in enumerate(attributes.communities.well_known):
            yield from _closed(name, WELL_KNOWN, f"{where}.communities.wellKnown[{j}]")
    for i, family in enumerate(neighbor.families):
        yield from _closed(family.afi, AFIS, f"{path}.families[{i}].afi")
        yield from _closed(family.safi, SAFIS, f"{path}.families[{i}].safi")


def _closed(value: str, known: Iterable[str], path: str) -> Iterator[FieldError]:
    """Check an enumeration that no later release extends."""
    if value not in known:
        yield FieldError(path, f"{value!r} is not one of {', '.join(known)}")


def peering_policy_errors(policy: CiliumBGPPeeringPolicy) -> Iterator[FieldError]:
    """Yield the rules that a CiliumBGPPeeringPolicy (v1) breaks, beyond its schema."""
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
