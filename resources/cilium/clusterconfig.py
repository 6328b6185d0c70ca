"""CiliumBGPClusterConfig: BGP instances and their peers, on selected nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Final

from msgspec import Meta
from msgspec.structs import force_setattr

from resources.addresses import address_errors
from resources.cilium.field_rules import AnyAsn, Asn, ListenPort, Name, duplicate_errors
from resources.crds.patterns import PEER_ADDRESS
from resources.crds.schema_markers import ATOMIC_MAP, NAMED_LIST, Rule, doc, known_values
from resources.errors import FieldError
from resources.label_selectors import LabelSelector, selector_errors
from resources.meta import Resource, Struct

DEFAULT_GATEWAY: Final = "DefaultGateway"
UNNUMBERED: Final = "Unnumbered"
MODES: Final = (DEFAULT_GATEWAY, UNNUMBERED)
GATEWAY_FAMILIES: Final = ("ipv4", "ipv6")


class DefaultGateway(Struct, frozen=True):
    """The default route that leads to the peer."""

    address_family: Annotated[
        str,
        known_values(*GATEWAY_FAMILIES),
        doc(
            "The family whose default route is followed. Of several, the one with the lowest metric "
            "is used."
        ),
    ]


class Unnumbered(Struct, frozen=True):
    """The interface that leads to the peer."""

    interface: Annotated[
        Name,
        doc("The interface of the node on which the peer's link-local address is discovered."),
    ]


class AutoDiscovery(Struct, frozen=True):
    """How the peer's address is found."""

    cel: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self.mode != 'DefaultGateway' || has(self.defaultGateway)",
            "is required with mode DefaultGateway",
            "defaultGateway",
        ),
        Rule(
            "self.mode != 'Unnumbered' || has(self.unnumbered)",
            "is required with mode Unnumbered",
            "unnumbered",
        ),
    )
    mode: Annotated[
        str,
        known_values(*MODES),
        doc(
            "DefaultGateway: the peer is the gateway of the node's default route. Unnumbered: it is "
            "the router on an interface, by its IPv6 link-local address."
        ),
    ]
    default_gateway: Annotated[
        DefaultGateway | None, doc("Which default route. Required with mode DefaultGateway.")
    ] = None
    unnumbered: Annotated[
        Unnumbered | None, doc("Which interface. Required with mode Unnumbered.")
    ] = None


class PeerConfigReference(Struct, frozen=True):
    """Names a CiliumBGPPeerConfig; group and kind existed in v2alpha1 and mean nothing else."""

    name: Annotated[str, doc("The name of a CiliumBGPPeerConfig; empty is no reference.")]
    group: Annotated[str, doc("Always cilium.io.", versions=("v2alpha1",))] = "cilium.io"
    kind: Annotated[str, doc("Always CiliumBGPPeerConfig.", versions=("v2alpha1",))] = (
        "CiliumBGPPeerConfig"
    )


def without_empty_reference(peer: Struct) -> None:
    """Replace a peer's empty reference to a CiliumBGPPeerConfig by None, as Cilium reads it."""
    reference = getattr(peer, "peer_config_ref", None)
    if reference is not None and not reference.name:
        force_setattr(peer, "peer_config_ref", None)


PeerAddress = Annotated[
    str,
    doc(
        "The router's IPv4 or IPv6 address, for example 192.0.2.1. A link-local IPv6 address has the "
        "interface behind it: fe80::1%eth0.",
        PEER_ADDRESS,
    ),
]
PeerAsn = Annotated[
    AnyAsn,
    doc(
        "The AS number that the router has to have, of two or four octets; 0, the default, accepts "
        "any. Equal to the instance's own it makes the session iBGP."
    ),
]
PeerInterface = Annotated[
    Name,
    doc(
        "The interface of a link-local IPv6 peerAddress that is written without it. Without "
        "peerAddress, use autoDiscovery with mode Unnumbered."
    ),
]
PeerDiscovery = Annotated[
    AutoDiscovery, doc("How the router's address is found where peerAddress is not given.")
]
ConfigReference = Annotated[
    PeerConfigReference,
    doc(
        "The parameters of the session, and the selectors of what is advertised. Without a reference "
        "all parameters have their defaults, and nothing is advertised."
    ),
]


class Peer(Struct, frozen=True):
    """One peer of an instance."""

    name: Annotated[
        Name, doc("A name of your choice, unique within the instance; it is in status and output.")
    ]
    peer_address: PeerAddress | None = None
    peer_asn: PeerAsn = 0
    auto_discovery: PeerDiscovery | None = None
    peer_interface: PeerInterface | None = None
    peer_config_ref: ConfigReference | None = None

    def __post_init__(self) -> None:
        """Take a reference without a name as none."""
        without_empty_reference(self)


PeerList = Annotated[
    tuple[Peer, ...], doc("The routers that this instance has sessions with.", NAMED_LIST)
]


class Instance(Struct, frozen=True):
    """One BGP router on each selected node."""

    name: Annotated[
        Name,
        doc("A name of your choice, unique within this object; overrides refer to it."),
    ]
    local_asn: Annotated[
        Asn | None,
        doc(
            "The AS number of this router, of two or four octets. It may be omitted where each "
            "node's CiliumBGPNodeConfigOverride has one."
        ),
    ] = None
    local_port: ListenPort = None
    peers: PeerList = ()


class ClusterConfigSpec(Struct, frozen=True):
    """The specification; without a node selector every node is selected."""

    bgp_instances: Annotated[
        tuple[Instance, ...],
        Meta(min_length=1, max_length=16),
        doc("The BGP routers that run on each selected node; usually one.", NAMED_LIST),
    ]
    node_selector: Annotated[
        LabelSelector | None,
        doc(
            "The nodes that this is for, by their labels. Absent or empty selects every node. A node "
            "that two objects select stays with the first of them.",
            ATOMIC_MAP,
        ),
    ] = None


class CiliumBGPClusterConfig(Resource, frozen=True):
    """One cluster-wide configuration."""

    spec: Annotated[ClusterConfigSpec, doc("The desired state.")]


def auto_discovery_errors(discovery: AutoDiscovery | None, path: str) -> Iterator[FieldError]:
    """Check the CEL rules of the auto-discovery of a CiliumBGPClusterConfig's peer."""
    if discovery is None:
        return
    if discovery.mode == DEFAULT_GATEWAY and discovery.default_gateway is None:
        yield FieldError(
            f"{path}.autoDiscovery.defaultGateway", "is required with mode DefaultGateway"
        )
    if discovery.mode == UNNUMBERED and discovery.unnumbered is None:
        yield FieldError(f"{path}.autoDiscovery.unnumbered", "is required with mode Unnumbered")


def instance_list_errors(names: Sequence[str]) -> Iterator[FieldError]:
    """Check that the instances of a CiliumBGPClusterConfig have different names."""
    yield from duplicate_errors(names, "spec.bgpInstances")


def cluster_config_errors(config: CiliumBGPClusterConfig) -> Iterator[FieldError]:
    """Yield the rules that a CiliumBGPClusterConfig breaks, and a schema cannot express."""
    yield from selector_errors(config.spec.node_selector, "spec.nodeSelector")
    yield from instance_list_errors([i.name for i in config.spec.bgp_instances])
    for i, instance in enumerate(config.spec.bgp_instances):
        path = f"spec.bgpInstances[{i}]"
        yield from duplicate_errors((peer.name for peer in instance.peers), f"{path}.peers")
        for j, peer in enumerate(instance.peers):
            where = f"{path}.peers[{j}]"
            yield from address_errors(peer.peer_address, f"{where}.peerAddress", zone=True)
            yield from auto_discovery_errors(peer.auto_discovery, where)
