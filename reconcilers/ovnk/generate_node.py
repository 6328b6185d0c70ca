"""Generates the FRRConfigurations of a node: of each source, what the node adds to its routers. Pure.

A router of the target VRF is copied, with the prefixes of the node in place of its own; its neighbours
keep their settings, and are advertised the prefixes of their family.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from reconcilers.ovnk import evpn
from reconcilers.ovnk.attached_networks import DEFAULT, Network, is_default_vrf
from reconcilers.ovnk.errors import ConfigurationError
from reconcilers.ovnk.generated_text import Section, raw_config
from reconcilers.ovnk.node_next_hops import NextHops, has_dpu, next_hops, uplink_next_hops
from reconcilers.ovnk.node_prefixes import OfNode, is_active, network_prefixes
from reconcilers.ovnk.options import OvnkOptions
from reconcilers.ovnk.parsed_annotation import parsed_annotation
from reconcilers.ovnk.selection import Advertised
from reconcilers.ovnk.vteps import vtep_addresses
from resources.addresses import comparable_address
from resources.core import Node
from resources.frrk8s.frrconfiguration import (
    BgpConfig,
    FRRConfiguration,
    FRRConfigurationSpec,
    Import,
    Router,
)
from resources.frrk8s.neighbor import (
    Advertise,
    AllowedIn,
    AllowedOut,
    Neighbor,
    NextHop,
    PrefixSelector,
    Receive,
)
from resources.labels import LabelSelector
from resources.ovnk import node_annotations
from resources.ovnk.node_annotations import PrimaryAddresses
from resources.ovnk.routeadvertisements import AUTO

HOSTNAME: Final = "kubernetes.io/hostname"


class OfSource(NamedTuple):
    """A generated FRRConfiguration, without its name."""

    namespace: str
    source: str
    node: str
    spec: FRRConfigurationSpec


class NodeValues(NamedTuple):
    """The values that all generated objects of one node have in common."""

    prefixes: Mapping[str, tuple[str, ...]]
    """By name of the networks that are on the node."""
    networks: tuple[Network, ...]
    """Networks on the node."""
    union: tuple[str, ...]
    own: tuple[str, ...]
    next_hops: NextHops
    uplink_next_hops: Mapping[str, NextHops]
    """By VRF of networks with an Uplink, on a node with a DPU."""
    vtep_prefixes: tuple[str, ...]
    vtep_receive: tuple[PrefixSelector, ...]


def generate(
    advertised: Advertised, node: Node, given: OfNode, options: OvnkOptions, *, typed: bool
) -> tuple[OfSource, ...]:
    """Generate the FRRConfigurations of RouteAdvertisements for one node, one of each source.

    ``typed``: EVPN is in fields, not in the text.
    """
    values = _values(advertised, node, given, options)
    if values is None:
        return ()
    name, labels = node.metadata.name, node.metadata.labels
    auto = advertised.target == AUTO
    of_sources: list[OfSource] = []
    matched: set[str] = set()
    for source in advertised.sources:
        if not source.spec.node_selector.matches(labels):
            continue
        generated = _Source(advertised, values, source, typed=typed)
        spec = generated.spec()
        matched |= generated.matched
        if not spec.bgp.routers and not spec.raw.raw_config:
            if auto and _has_inactive(source, advertised, values):
                continue
            where = f'FRRConfiguration "{source.metadata.name}" selected for node "{name}"'
            target = advertised.target or DEFAULT
            text = "has no VRF matching the target VRF or a selected network"
            raise ConfigurationError(f"{where} {text} (target VRF {target})")
        selector = LabelSelector(match_labels={HOSTNAME: _hostname(node)})
        spec = replace(spec, node_selector=selector)
        metadata = source.metadata
        of_sources.append(OfSource(metadata.namespace, metadata.name, name, spec))
    if auto:
        missing = [network.shown_name for network in values.networks if network.name not in matched]
        if missing:
            text = (
                f"no selected FRRConfiguration has a router on node {name} for the VRF of network"
            )
            raise ConfigurationError(f"{text} {', '.join(missing)}")
    return tuple(of_sources)


def _values(
    advertised: Advertised, node: Node, given: OfNode, options: OvnkOptions
) -> NodeValues | None:
    """Return what is advertised from a node, or None for nothing."""
    vteps = vtep_addresses(advertised, node)
    networks = tuple(
        network for network in advertised.networks if is_active(network, node, given, options)
    )
    prefixes = {
        network.name: network_prefixes(advertised, network, node, given) for network in networks
    }
    union = tuple(sorted({prefix for of_network in prefixes.values() for prefix in of_network}))
    if not union:
        return None
    own = tuple(own_address for own_address in _own_addresses(node) if own_address is not None)
    used = sorted(
        {network.evpn.vtep for network in networks if network.is_evpn and network.evpn is not None}
    )
    addresses = [address for name in used for address in vteps.get(name, ())]
    hosts = sorted({f"{address}/{128 if ':' in address else 32}" for address in addresses})
    received = [vtep for name in used for vtep in advertised.vteps[name]]
    return NodeValues(
        prefixes,
        networks,
        union,
        own,
        next_hops(node, options),
        {
            network.vrf: uplink_next_hops(network, node, given)
            for network in networks
            if network.uplink and has_dpu(node, options)
        },
        tuple(hosts),
        tuple(dict.fromkeys(received)) if hosts else (),
    )


def _has_inactive(source: FRRConfiguration, advertised: Advertised, values: NodeValues) -> bool:
    """True if a source has a router of a network that is not on the node."""
    vrfs = {network.vrf for network in advertised.networks if network not in values.networks}
    return any(router.vrf in vrfs for router in source.spec.bgp.routers)


def _hostname(node: Node) -> str:
    """Return the label by which generated FRRConfigurations select the node."""
    return node.metadata.labels.get(HOSTNAME) or node.metadata.name


def _own_addresses(node: Node) -> PrimaryAddresses:
    """Return the addresses of a node of OVN-Kubernetes: a neighbour with one is the node itself."""
    addresses = parsed_annotation(
        node, node_annotations.PRIMARY_ADDRESS, node_annotations.primary_addresses
    )
    if addresses is None:
        where = f"node {node.metadata.name} has no annotation"
        raise ConfigurationError(f"{where} {node_annotations.PRIMARY_ADDRESS}")
    return addresses


class _Source:
    """Generates the object of one source on one node."""

    def __init__(
        self,
        advertised: Advertised,
        values: NodeValues,
        source: FRRConfiguration,
        *,
        typed: bool,
    ) -> None:
        self._advertised = advertised
        self._values = values
        self._source = source
        self._typed = typed
        self._networks = {network.vrf: network for network in values.networks}
        self._evpn = tuple(network for network in values.networks if network.is_evpn)
        self.matched: set[str] = set()
        """The networks that have a router."""

    def spec(self) -> FRRConfigurationSpec:
        """Return the spec of the FRRConfiguration generated of one source, without node selector."""
        routers: list[Router] = []
        sections: list[Section] = []
        for router in self._source.spec.bgp.routers:
            prefixes = self._prefixes(router)
            if prefixes is None:
                continue
            copied = self._copied(router, prefixes)
            if not copied.neighbors and not self._is_ip_vrf(router):
                continue
            if copied.neighbors:
                vrf = "" if is_default_vrf(router.vrf) else router.vrf
                sections.append(Section(vrf, router.asn, copied.neighbors))
            self._match(router)
            routers += self._with_imports(copied)
        raw = raw_config(sections)
        if self._evpn:
            base = self._base()
            added = evpn.Evpn(self._evpn, base, self._source.spec.bgp.routers, routers, sections)
            self.matched |= added.matched
            routers += added.ip_vrf_routers(self._values.prefixes)
            if base is not None and self._values.vtep_prefixes:
                routers += self._underlay(routers)
            if self._typed:
                routers = added.typed(routers)
                raw = added.raw_without_evpn()
            else:
                raw = added.raw()
        bgp = self._source.spec.bgp
        return FRRConfigurationSpec(
            bgp=BgpConfig(routers=tuple(routers), bfd_profiles=bgp.bfd_profiles), raw=raw
        )

    def _prefixes(self, router: Router) -> tuple[str, ...] | None:
        """Return the prefixes of a router; None if it is not copied."""
        target, values = self._advertised.target, self._values
        default = is_default_vrf(router.vrf)
        if target == AUTO:
            network = self._networks.get(DEFAULT if default else router.vrf)
            allowed = None if network is None else values.prefixes[network.name]
        else:
            matches = default if not target else router.vrf == target
            allowed = values.union if matches else None
        if allowed is not None and default and self._evpn:
            allowed = tuple(sorted({*allowed, *values.vtep_prefixes}))
        return allowed

    def _match(self, router: Router) -> None:
        if self._advertised.target == AUTO:
            self.matched.add(
                self._networks[DEFAULT if is_default_vrf(router.vrf) else router.vrf].name
            )
        else:
            self.matched.update(self._values.prefixes)

    def _is_ip_vrf(self, router: Router) -> bool:
        network = self._networks.get(router.vrf)
        return network in self._evpn and evpn.has_ip_vrf(network)

    def _copied(self, router: Router, prefixes: tuple[str, ...]) -> Router:
        neighbors = self._neighbors(router, prefixes)
        return replace(router, prefixes=prefixes, neighbors=neighbors)

    def _neighbors(self, router: Router, prefixes: Sequence[str]) -> tuple[Neighbor, ...]:
        """Return the neighbours of a router that are advertised some prefix."""
        return tuple(
            copied
            for neighbor in self._checked(router)
            if (copied := self._neighbor(neighbor, prefixes, router.vrf)) is not None
        )

    def _checked(self, router: Router) -> Iterable[Neighbor]:
        """Return the neighbours of a router without the node itself. Raises `ConfigurationError`."""
        where = f'FRRConfiguration "{self._source.metadata.name}"'
        for neighbor in router.neighbors:
            if not neighbor.address and not neighbor.interface:
                text = "has a neighbor with neither address nor interface"
                raise ConfigurationError(f"{where} {text}")
            if neighbor.dual_stack_address_family:
                text = f"{where}: neighbor {neighbor.address or neighbor.interface}"
                raise ConfigurationError(f"{text}: dualStackAddressFamily is not supported")
        return (
            neighbor
            for neighbor in router.neighbors
            if comparable_address(neighbor.address) not in self._values.own
        )

    def _neighbor(self, neighbor: Neighbor, prefixes: Sequence[str], vrf: str) -> Neighbor | None:
        if neighbor.address:
            colon = ":" in neighbor.address
            prefixes = [prefix for prefix in prefixes if (":" in prefix) is colon]
        if not prefixes:
            return None
        allowed = AllowedOut(prefixes=tuple(prefixes))
        sent = Advertise(allowed=allowed, next_hop=self._next_hop(neighbor, vrf))
        received = self._received(neighbor, underlay=is_default_vrf(vrf))
        return replace(neighbor, to_advertise=sent, to_receive=received)

    def _next_hop(self, neighbor: Neighbor, vrf: str) -> NextHop:
        values = self._values
        ipv4, ipv6 = values.uplink_next_hops.get(vrf, values.next_hops)
        if neighbor.address:
            ipv4, ipv6 = (None, ipv6) if ":" in neighbor.address else (ipv4, None)
        return NextHop(ipv4=ipv4, ipv6=ipv6)

    def _received(self, neighbor: Neighbor, *, underlay: bool) -> Receive:
        received, added = self._advertised.receive, list[PrefixSelector]()
        if underlay and self._evpn:
            added = [*self._values.vtep_receive]
        receive = neighbor.to_receive
        if received:
            selectors = _of_family(received, neighbor)
            receive = Receive(allowed=AllowedIn(prefixes=tuple(selectors)))
        if added and receive.allowed.mode != "all":
            more = _of_family(added, neighbor)
            kept = receive.allowed.prefixes
            prefixes = (*kept, *(prefix for prefix in more if prefix not in kept))
            receive = Receive(allowed=replace(receive.allowed, prefixes=prefixes))
        return receive

    def _with_imports(self, router: Router) -> list[Router]:
        """Return a router with imports of the VRFs of all networks, and routers that import its VRF."""
        if self._advertised.target == AUTO:
            return [router]
        own = DEFAULT if is_default_vrf(router.vrf) else router.vrf
        vrfs = [vrf for vrf in self._advertised.vrfs if vrf != own]
        known = {imported.vrf for imported in router.imports}
        imports = (*router.imports, *(Import(vrf=vrf) for vrf in vrfs if vrf not in known))
        others = [
            Router(
                asn=router.asn,
                id=router.id,
                vrf="" if vrf == DEFAULT else vrf,
                imports=(Import(vrf=own),),
            )
            for vrf in vrfs
        ]
        return [replace(router, imports=imports), *others]

    def _base(self) -> Router | None:
        """Return the router of the default VRF of which the underlay of EVPN is made."""
        for router in self._source.spec.bgp.routers:
            if is_default_vrf(router.vrf):
                neighbors = tuple(self._checked(router))
                if neighbors:
                    return replace(router, neighbors=neighbors)
        return None

    def _underlay(self, routers: Iterable[Router]) -> list[Router]:
        """Return a router that advertises the VTEP of the node, unless one of the default VRF does."""
        if any(is_default_vrf(router.vrf) and router.neighbors for router in routers):
            return []
        underlay = []
        for router in self._source.spec.bgp.routers:
            if is_default_vrf(router.vrf):
                copied = self._copied(router, self._values.vtep_prefixes)
                if copied.neighbors:
                    underlay.append(copied)
        return underlay


def _of_family(selectors: Iterable[PrefixSelector], neighbor: Neighbor) -> list[PrefixSelector]:
    """Return the selectors of the family of a neighbour; of an unnumbered one, all."""
    if not neighbor.address:
        return list(selectors)
    colon = ":" in neighbor.address
    return [selector for selector in selectors if (":" in selector.prefix) is colon]
