"""ClusterUserDefinedNetwork and UserDefinedNetwork: networks of Pods beside the default one.

The limits are from ``k8s.ovn.org/v1``.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from resources.addresses import address_errors, prefix_errors
from resources.crds.schema_markers import Rule, SchemaPart, doc
from resources.errors import FieldError
from resources.label_selectors import LabelSelector, strict_selector_errors
from resources.meta import Resource, Struct
from resources.metav1 import ConditionsStatus
from resources.ovnk.evpn import NetworkEvpn, evpn_errors

Role: TypeAlias = Literal["Primary", "Secondary"]
Topology: TypeAlias = Literal["Layer2", "Layer3", "Localnet"]
Transport: TypeAlias = Literal["NoOverlay", "EVPN"]
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
_IMMUTABLE: Final[SchemaPart] = {
    "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "is immutable"}]
}
_NONE_REMOVED: Final[SchemaPart] = {
    "x-kubernetes-validations": [
        {
            "rule": "oldSelf.all(before, self.exists(after, after.cidr == before.cidr))",
            "message": "subnets cannot be removed",
        }
    ]
}
_Cidr = Annotated[str, Meta(max_length=43)]
_Mtu = Annotated[int, Meta(ge=576, le=65536)]
_OF_TOPOLOGY: Final = {"Layer2": "layer2", "Layer3": "layer3", "Localnet": "localnet"}


def _topology_rules(topologies: Sequence[str]) -> tuple[Rule, ...]:
    return tuple(
        Rule(
            f"self.topology == '{name}' ? has(self.{_OF_TOPOLOGY[name]}) "
            f": !has(self.{_OF_TOPOLOGY[name]})",
            f"is required with topology {name}, and with no other",
            _OF_TOPOLOGY[name],
        )
        for name in topologies
    )


class Layer3Subnet(Struct, frozen=True):
    """A subnet of a Layer3 network."""

    cidr: Annotated[_Cidr, doc("The subnet.")]
    host_subnet: Annotated[
        Annotated[int, Meta(ge=1, le=127)] | None,
        doc("The length of the subnet of each host; 24 for IPv4, 64 for IPv6."),
    ] = None


class Layer3Config(Struct, frozen=True):
    """A network with a subnet for each host."""

    role: Annotated[Role, doc("Primary: in place of the default network.", _IMMUTABLE)]
    subnets: Annotated[
        tuple[Layer3Subnet, ...],
        Meta(min_length=1, max_length=400),
        doc("The subnets.", _NONE_REMOVED),
    ]
    mtu: Annotated[_Mtu | None, doc("The MTU; at least 1280 with IPv6.")] = None
    join_subnets: Annotated[
        tuple[_Cidr, ...],
        Meta(max_length=2),
        doc("The subnets of the transit between routers; for Primary alone."),
    ] = ()


class Ipam(Struct, frozen=True):
    """The assignment of addresses."""

    mode: Annotated[Literal["Enabled", "Disabled"], doc("Disabled: for Secondary alone.")] = (
        "Enabled"
    )
    lifecycle: Annotated[
        Literal["Persistent"] | None, doc("Persistent: addresses outlive their Pods.")
    ] = None


class Layer2Config(Struct, frozen=True):
    """A network with one subnet for all hosts."""

    role: Annotated[Role, doc("Primary: in place of the default network.")]
    mtu: Annotated[_Mtu | None, doc("The MTU; at least 1280 with IPv6.")] = None
    subnets: Annotated[
        tuple[_Cidr, ...], Meta(max_length=2), doc("The subnets, of different families.")
    ] = ()
    reserved_subnets: Annotated[
        tuple[_Cidr, ...], Meta(max_length=25), doc("Parts of the subnets that are not assigned.")
    ] = ()
    infrastructure_subnets: Annotated[
        tuple[_Cidr, ...],
        Meta(max_length=4),
        doc("Parts of the subnets for OVN-Kubernetes itself."),
    ] = ()
    default_gateway_ips: Annotated[
        tuple[str, ...], Meta(max_length=2), doc("The default gateways, within the subnets.")
    ] = msgspec.field(name="defaultGatewayIPs", default=())
    join_subnets: Annotated[
        tuple[_Cidr, ...], Meta(max_length=2), doc("The subnets of the transit between routers.")
    ] = ()
    ipam: Annotated[Ipam | None, doc("The assignment of addresses.")] = None


class Localnet(Struct, frozen=True):
    """A network of the provider; it is not advertised, and not validated."""

    role: Annotated[Literal["Secondary"], doc("Secondary.")] = "Secondary"


class NoOverlay(Struct, frozen=True):
    """A network without tunnels."""

    outbound_snat: Annotated[
        Literal["Enabled", "Disabled"], doc("Whether Pods leave with the address of the node.")
    ] = msgspec.field(name="outboundSNAT")
    routing: Annotated[
        Literal["Managed", "Unmanaged"],
        doc("Managed: the nodes exchange the routes in a full mesh of BGP sessions."),
    ]


class NetworkSpec(Struct, frozen=True):
    """A network of a ClusterUserDefinedNetwork."""

    cel: ClassVar[tuple[Rule, ...]] = (
        *_topology_rules(("Layer2", "Layer3", "Localnet")),
        Rule(
            "has(self.transport) && self.transport == 'NoOverlay' ? has(self.noOverlay) "
            ": !has(self.noOverlay)",
            "is required with transport NoOverlay, and with no other",
            "noOverlay",
        ),
        Rule(
            "has(self.transport) && self.transport == 'EVPN' ? has(self.evpn) : !has(self.evpn)",
            "is required with transport EVPN, and with no other",
            "evpn",
        ),
        Rule(
            "!has(self.transport) || self.transport != 'NoOverlay' || self.topology == 'Layer3'",
            "NoOverlay requires topology Layer3",
            "transport",
        ),
        Rule(
            "has(self.transport) == has(oldSelf.transport) && "
            "(!has(self.transport) || self.transport == oldSelf.transport)",
            "is immutable",
        ),
    )
    topology: Annotated[Topology, doc("Layer2, Layer3 or Localnet.", _IMMUTABLE)]
    layer2: Annotated[Layer2Config | None, doc("With topology Layer2.", _IMMUTABLE)] = None
    layer3: Annotated[Layer3Config | None, doc("With topology Layer3.")] = None
    localnet: Annotated[
        Localnet | None,
        doc("With topology Localnet.", {"x-kubernetes-preserve-unknown-fields": True}),
    ] = None
    transport: Annotated[
        Transport | None, doc("How Pods of different nodes are connected; tunnels by default.")
    ] = None
    no_overlay: Annotated[NoOverlay | None, doc("With transport NoOverlay.", _IMMUTABLE)] = None
    evpn: Annotated[NetworkEvpn | None, doc("With transport EVPN.", _IMMUTABLE)] = None

    @property
    def role(self) -> str:
        """The role of the user-defined network: Primary or Secondary."""
        layer = self.layer3 or self.layer2
        return layer.role if layer is not None else "Secondary"


class ClusterUserDefinedNetworkSpec(Struct, frozen=True):
    """The specification."""

    cel: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.uplinks) == has(oldSelf.uplinks) && "
            "(!has(self.uplinks) || self.uplinks == oldSelf.uplinks)",
            "is immutable",
        ),
        Rule(
            "!has(self.uplinks) || !has(self.network.transport) || self.network.transport != 'EVPN'",
            "is not supported with transport EVPN",
            "uplinks",
        ),
    )
    namespace_selector: Annotated[
        LabelSelector, doc("The namespaces of the network, by their labels.")
    ]
    network: Annotated[NetworkSpec, doc("The network.")]
    uplinks: Annotated[
        tuple[str, ...],
        Meta(min_length=1, max_length=1),
        doc("The name of the Uplink of the network."),
    ] = ()


class ClusterUserDefinedNetwork(Resource, frozen=True):
    """A network of the cluster."""

    spec: Annotated[ClusterUserDefinedNetworkSpec, doc("The network, and its namespaces.")]


class UserDefinedNetworkSpec(Struct, frozen=True):
    """The specification."""

    cel: ClassVar[tuple[Rule, ...]] = _topology_rules(("Layer2", "Layer3"))
    topology: Annotated[Literal["Layer2", "Layer3"], doc("Layer2 or Layer3.", _IMMUTABLE)]
    layer2: Annotated[Layer2Config | None, doc("With topology Layer2.", _IMMUTABLE)] = None
    layer3: Annotated[Layer3Config | None, doc("With topology Layer3.")] = None


class UserDefinedNetwork(Resource, frozen=True):
    """A network of one namespace; it cannot be advertised."""

    spec: Annotated[UserDefinedNetworkSpec, doc("The network.")]


class NetworkStatus(ConditionsStatus, frozen=True):
    """The status."""


def cluster_network_errors(row: ClusterUserDefinedNetwork) -> Iterator[FieldError]:
    """Yield the rules that a ClusterUserDefinedNetwork breaks, beyond its schema."""
    spec = row.spec
    yield from strict_selector_errors(spec.namespace_selector, "spec.namespaceSelector")
    network, path = spec.network, "spec.network"
    yield from _topology_errors(network, ("Layer2", "Layer3", "Localnet"), path)
    blocks: tuple[tuple[Transport, str, Any], ...] = (
        ("NoOverlay", "noOverlay", network.no_overlay),
        ("EVPN", "evpn", network.evpn),
    )
    for transport, name, block in blocks:
        if (block is not None) is not (network.transport == transport):
            text = f"is required with transport {transport}, and with no other"
            yield FieldError(f"{path}.{name}", text)
    if network.transport is not None:
        if network.role != "Primary":
            yield FieldError(f"{path}.transport", f"{network.transport} requires role Primary")
        if network.transport == "NoOverlay" and network.topology != "Layer3":
            yield FieldError(f"{path}.transport", "NoOverlay requires topology Layer3")
    if network.evpn is not None:
        yield from evpn_errors(network.evpn, network.topology, f"{path}.evpn")
    if spec.uplinks:
        if network.role != "Primary":
            yield FieldError("spec.uplinks", "requires role Primary")
        if network.transport == "EVPN":
            yield FieldError("spec.uplinks", "is not supported with transport EVPN")


def user_network_errors(row: UserDefinedNetwork) -> Iterator[FieldError]:
    """Yield the rules that a UserDefinedNetwork breaks, beyond its schema."""
    yield from _topology_errors(row.spec, ("Layer2", "Layer3"), "spec")


def _topology_errors(
    spec: NetworkSpec | UserDefinedNetworkSpec, topologies: Sequence[str], path: str
) -> Iterator[FieldError]:
    for name in topologies:
        field = _OF_TOPOLOGY[name]
        block = getattr(spec, field)
        if (block is not None) is not (spec.topology == name):
            text = f"is required with topology {name}, and with no other"
            yield FieldError(f"{path}.{field}", text)
    if spec.layer3 is not None:
        yield from _layer3_errors(spec.layer3, f"{path}.layer3")
    if spec.layer2 is not None:
        yield from _layer2_errors(spec.layer2, f"{path}.layer2")


def _layer3_errors(config: Layer3Config, path: str) -> Iterator[FieldError]:
    networks: list[tuple[str, Network]] = []
    for i, subnet in enumerate(config.subnets):
        where = f"{path}.subnets[{i}]"
        errors = list(prefix_errors(subnet.cidr, f"{where}.cidr", host_bits=True))
        yield from errors
        if errors:
            continue
        network = ipaddress.ip_network(subnet.cidr, strict=False)
        networks.append((f"{where}.cidr", network))
        host = subnet.host_subnet
        if host is not None and host <= network.prefixlen:
            text = f"{host} is not longer than that of {subnet.cidr}"
            yield FieldError(f"{where}.hostSubnet", text)
        if host is not None and network.version == 4 and host >= 32:
            yield FieldError(f"{where}.hostSubnet", f"{host} is not below 32")
    yield from _overlaps(networks)
    if config.role == "Secondary":
        yield from _one_per_family(networks)
    yield from _primary_subnets(config, f"{path}.joinSubnets")
    yield from _mtu_errors(config.mtu, networks, f"{path}.mtu")


def _layer2_errors(config: Layer2Config, path: str) -> Iterator[FieldError]:
    networks: list[tuple[str, Network]] = []
    for i, text in enumerate(config.subnets):
        where = f"{path}.subnets[{i}]"
        errors = list(prefix_errors(text, where, host_bits=True))
        yield from errors
        if not errors:
            networks.append((where, ipaddress.ip_network(text, strict=False)))
    yield from _one_per_family(networks)
    assigned = config.ipam is None or config.ipam.mode == "Enabled"
    if assigned and not config.subnets:
        yield FieldError(f"{path}.subnets", "is required unless ipam.mode is Disabled")
    if not assigned and config.role == "Primary":
        yield FieldError(f"{path}.ipam.mode", "Disabled is for role Secondary alone")
    for name, texts in (
        ("reservedSubnets", config.reserved_subnets),
        ("infrastructureSubnets", config.infrastructure_subnets),
    ):
        if texts and config.role != "Primary":
            yield FieldError(f"{path}.{name}", "requires role Primary")
        for i, text in enumerate(texts):
            yield from _within(text, networks, f"{path}.{name}[{i}]")
    yield from _gateway_errors(config, networks, f"{path}.defaultGatewayIPs")
    yield from _primary_subnets(config, f"{path}.joinSubnets")
    yield from _mtu_errors(config.mtu, networks, f"{path}.mtu")


def _gateway_errors(
    config: Layer2Config, networks: Sequence[tuple[str, Network]], path: str
) -> Iterator[FieldError]:
    if config.default_gateway_ips and config.role != "Primary":
        yield FieldError(path, "requires role Primary")
    for i, text in enumerate(config.default_gateway_ips):
        errors = list(address_errors(text, f"{path}[{i}]"))
        yield from errors
        if errors:
            continue
        address = ipaddress.ip_address(text)
        if not any(address in network for _, network in networks):
            yield FieldError(f"{path}[{i}]", f"{text} is in none of the subnets")


def _within(text: str, networks: Sequence[tuple[str, Network]], path: str) -> Iterator[FieldError]:
    errors = list(prefix_errors(text, path))
    yield from errors
    if errors:
        return
    part: Any = ipaddress.ip_network(text)
    if not any(
        part.version == network.version and part.subnet_of(network) for _, network in networks
    ):
        yield FieldError(path, f"{text} is in none of the subnets")


def _primary_subnets(config: Layer2Config | Layer3Config, path: str) -> Iterator[FieldError]:
    if config.join_subnets and config.role != "Primary":
        yield FieldError(path, "requires role Primary")
    subnets: list[tuple[str, Network]] = []
    for i, text in enumerate(config.join_subnets):
        errors = list(prefix_errors(text, f"{path}[{i}]", host_bits=True))
        yield from errors
        if not errors:
            subnets.append((f"{path}[{i}]", ipaddress.ip_network(text, strict=False)))
    yield from _one_per_family(subnets)


def _overlaps(networks: Sequence[tuple[str, Network]]) -> Iterator[FieldError]:
    """Yield the networks that are within others, in one pass over them in address order."""
    ordered = sorted(
        networks,
        key=lambda placed: (placed[1].version, placed[1].network_address, placed[1].prefixlen),
    )
    widest: Network | None = None
    for path, network in ordered:
        if widest is not None and widest.version == network.version and widest.overlaps(network):
            yield FieldError(path, f"{network} overlaps with {widest}")
        else:
            widest = network


def _one_per_family(networks: Sequence[tuple[str, Network]]) -> Iterator[FieldError]:
    seen: set[int] = set()
    for path, network in networks:
        if network.version in seen:
            yield FieldError(path, f"{network}: there is another network of the family")
        seen.add(network.version)


def _mtu_errors(
    mtu: int | None, networks: Sequence[tuple[str, Network]], path: str
) -> Iterator[FieldError]:
    if mtu is not None and mtu < 1280 and any(network.version == 6 for _, network in networks):
        yield FieldError(path, f"{mtu} is below 1280, the smallest MTU of IPv6")
