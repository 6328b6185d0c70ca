"""Translates RouteAdvertisements to FRRConfigurations of a node: one of each selected source. Pure.

A router of the target VRF is copied, with the prefixes of the node in place of its own; its neighbours
keep their settings, and are advertised the prefixes of their family.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import replace

from reconcilers.ovnk import evpn
from reconcilers.ovnk.attached_networks import DEFAULT, Network, is_default_vrf
from reconcilers.ovnk.errors import ConfigurationError
from reconcilers.ovnk.generated_text import Section, raw_config
from reconcilers.ovnk.node_next_hops import NextHops, next_hops
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
from resources.label_selectors import LabelSelector
from resources.ovnk import node_annotations
from resources.ovnk.node_annotations import PrimaryAddresses
from resources.ovnk.routeadvertisements import AUTO

HOSTNAME: Final = "kubernetes.io/hostname"
Received: TypeAlias = tuple[Sequence[PrefixSelector], Sequence[PrefixSelector]]
"""The prefixes of networks without tunnels, and of VTEPs, that neighbours may send."""


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
    next_hops: Callable[[Network | None], NextHops]
    """Of the routers in the VRF of a network."""
    vtep_prefixes: tuple[str, ...]
    vtep_receive: tuple[PrefixSelector, ...]


def generate(
    advertised: Advertised, node: Node, given: OfNode, options: OvnkOptions, *, typed: bool
) -> tuple[OfSource, ...]:
    """Generate the FRRConfigurations of RouteAdvertisements for one node, one of each source.

    ``typed``: EVPN is in fields, not in the text.
    """
    name, labels = node.metadata.name, node.metadata.labels
    sources = [source for source in advertised.sources if source.spec.node_selector.matches(labels)]
    values = _values(advertised, node, given, options, addressed=bool(sources))
    if values is None:
        return ()
    auto = advertised.target == AUTO
    of_sources: list[OfSource] = []
    matched: set[str] = set()
    for source in sources:
        generated = _Source(advertised, values, source, typed=typed)
        spec = generated.spec()
        matched |= generated.matched
        if not spec.bgp.routers and not spec.raw.raw_config:
            if auto and _is_of_inactive_networks(source, advertised, values):
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
    advertised: Advertised, node: Node, given: OfNode, options: OvnkOptions, *, addressed: bool
) -> NodeValues | None:
    """Return what is advertised from a node, or None for nothing.

    ``addressed``: with the node's addresses, which a node without sources needs not have.
    """
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
    addresses_of_node = _own_addresses(node) if addressed else ()
    own = tuple(own_address for own_address in addresses_of_node if own_address is not None)
    used = sorted(
        {network.evpn.vtep for network in networks if network.is_evpn and network.evpn is not None}
    )
    addresses = [address for name in used for address in vteps.get(name, ())]
    hosts = sorted({f"{address}/{128 if ':' in address else 32}" for address in addresses})
    received = {vtep for name in used for vtep in advertised.vteps[name]}
    return NodeValues(
        prefixes,
        networks,
        union,
        own,
        functools.partial(next_hops, node=node, given=given, options=options),
        tuple(hosts),
        tuple(sorted(received, key=lambda vtep: vtep.prefix)) if hosts else (),
    )


def _is_of_inactive_networks(
    source: FRRConfiguration, advertised: Advertised, values: NodeValues
) -> bool:
    """True if a source has routers of selected networks, and none of these networks is on the node."""
    vrfs = {_network_vrf(router) for router in source.spec.bgp.routers}
    active = {network.vrf for network in values.networks}
    return not vrfs.isdisjoint(advertised.vrfs) and vrfs.isdisjoint(active)


def _network_vrf(router: Router) -> str:
    """Return the VRF of a router, by the name that it has as the VRF of a network."""
    return DEFAULT if is_default_vrf(router.vrf) else router.vrf


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
            self._match(router)
            copied = self._copied(router, prefixes)
            if not copied.neighbors:
                continue
            vrf = "" if is_default_vrf(router.vrf) else router.vrf
            sections.append(Section(vrf, router.asn, copied.neighbors))
            routers += self._with_imports(copied)
        raw = raw_config(sections)
        if self._evpn:
            of_source, vrfs = self._source.spec.bgp.routers, self._vrfs_of_sources()
            added = evpn.Evpn(self._evpn, self._base(), of_source, vrfs, routers, sections)
            self.matched |= added.matched
            routers += added.ip_vrf_routers(self._values.prefixes)
            if self._values.vtep_prefixes:
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
            network = self._networks.get(_network_vrf(router))
            allowed = None if network is None else values.prefixes[network.name]
        else:
            matches = default if not target else router.vrf == target
            allowed = values.union if matches else None
        if allowed is not None and default and self._evpn:
            allowed = tuple(sorted({*allowed, *values.vtep_prefixes}))
        return allowed

    def _match(self, router: Router) -> None:
        if self._advertised.target == AUTO:
            self.matched.add(self._networks[_network_vrf(router)].name)
        else:
            self.matched.update(self._values.prefixes)

    def _vrfs_of_sources(self) -> set[str]:
        """Return the VRFs that some selected source has a router of, for whatever node."""
        return {
            router.vrf for source in self._advertised.sources for router in source.spec.bgp.routers
        }

    def _copied(self, router: Router, prefixes: tuple[str, ...], *, pods: bool = True) -> Router:
        """Return a router with the neighbours that are advertised some prefix.

        ``pods``: they may send the routes of networks without tunnels.
        """
        next_hops = self._values.next_hops(self._networks.get(_network_vrf(router)))
        received = (
            self._advertised.receive if pods else (),
            self._values.vtep_receive if is_default_vrf(router.vrf) and self._evpn else (),
        )
        copies = (
            _neighbor(neighbor, prefixes, next_hops, received) for neighbor in self._checked(router)
        )
        neighbors = tuple(neighbor for neighbor in copies if neighbor is not None)
        return replace(router, prefixes=prefixes, neighbors=neighbors)

    def _checked(self, router: Router) -> Iterable[Neighbor]:
        """Yield the neighbours of a router without the node itself. Raises `ConfigurationError`."""
        where = f'FRRConfiguration "{self._source.metadata.name}"'
        for neighbor in router.neighbors:
            if not neighbor.address and not neighbor.interface:
                text = "has a neighbor with neither address nor interface"
                raise ConfigurationError(f"{where} {text}")
            if comparable_address(neighbor.address) in self._values.own:
                continue
            if neighbor.dual_stack_address_family:
                text = f"{where}: neighbor {neighbor.address or neighbor.interface}"
                raise ConfigurationError(f"{text}: dualStackAddressFamily is not supported")
            yield neighbor

    def _with_imports(self, router: Router) -> list[Router]:
        """Return a router with imports of the VRFs of all networks, and routers that import its VRF."""
        if self._advertised.target == AUTO:
            return [router]
        own = _network_vrf(router)
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
                return replace(router, neighbors=tuple(self._checked(router)))
        return None

    def _underlay(self, routers: Iterable[Router]) -> list[Router]:
        """Return a router that advertises the VTEP of the node, unless one of the default VRF does."""
        if any(is_default_vrf(router.vrf) and router.neighbors for router in routers):
            return []
        underlay = []
        for router in self._source.spec.bgp.routers:
            if is_default_vrf(router.vrf):
                copied = self._copied(router, self._values.vtep_prefixes, pods=False)
                if copied.neighbors:
                    underlay.append(copied)
        return underlay


def _neighbor(
    neighbor: Neighbor, prefixes: Sequence[str], next_hops: NextHops, received: Received
) -> Neighbor | None:
    """Return a neighbour that is advertised its prefixes; None without one of its family."""
    if neighbor.address:
        colon = ":" in neighbor.address
        prefixes = [prefix for prefix in prefixes if (":" in prefix) is colon]
    if not prefixes:
        return None
    allowed = AllowedOut(prefixes=tuple(prefixes))
    ipv4, ipv6 = next_hops
    if neighbor.address:
        ipv4, ipv6 = (None, ipv6) if ":" in neighbor.address else (ipv4, None)
    sent = Advertise(allowed=allowed, next_hop=NextHop(ipv4=ipv4, ipv6=ipv6))
    return replace(neighbor, to_advertise=sent, to_receive=_received(neighbor, *received))


def _received(
    neighbor: Neighbor, of_pods: Iterable[PrefixSelector], of_vteps: Iterable[PrefixSelector]
) -> Receive:
    receive = neighbor.to_receive
    pods = _of_family(of_pods, neighbor)
    if pods:
        receive = Receive(allowed=AllowedIn(prefixes=tuple(pods)))
    vteps = _of_family(of_vteps, neighbor)
    if vteps and receive.allowed.mode != "all":
        kept = receive.allowed.prefixes
        prefixes = (*kept, *(prefix for prefix in vteps if prefix not in kept))
        receive = Receive(allowed=replace(receive.allowed, prefixes=prefixes))
    return receive


def _of_family(selectors: Iterable[PrefixSelector], neighbor: Neighbor) -> list[PrefixSelector]:
    """Return the selectors of the family of a neighbour; of an unnumbered one, all."""
    if not neighbor.address:
        return list(selectors)
    colon = ":" in neighbor.address
    return [selector for selector in selectors if (":" in selector.prefix) is colon]
