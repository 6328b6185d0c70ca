"""Selects networks, nodes and FRRConfigurations by RouteAdvertisements, by the rules for these.

The order of the rules is OVN-Kubernetes': the first that is broken is the message of the condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from reconcilers.ovnk.attached_networks import (
    DEFAULT,
    Attachment,
    Network,
    is_default_vrf,
    overlapping_networks,
)
from reconcilers.ovnk.errors import (
    ConfigurationError,
    ConfigurationPending,
    InternalError,
    NotAccepted,
)
from reconcilers.ovnk.options import OvnkOptions
from resources.core import Node
from resources.enumeration import enumerate_some
from resources.errors import FieldError, shortened
from resources.frrk8s.frrconfiguration import FRRConfiguration
from resources.frrk8s.neighbor import PrefixSelector
from resources.ovnk.routeadvertisements import AUTO, RouteAdvertisements
from resources.ovnk.vtep import Vtep

_LONGEST_LABEL: Final = 63


class Selected(NamedTuple):
    """The networks that RouteAdvertisements select, each once, in the order of their names."""

    networks: tuple[Network, ...]


class Advertised(NamedTuple):
    """The selection of RouteAdvertisements, as far as it is the same on all nodes."""

    name: str
    target: str
    """``auto``, the name of a VRF, or empty for the default one."""
    networks: tuple[Network, ...]
    pods: bool
    egress_ips: bool
    sources: tuple[FRRConfiguration, ...]
    """In the order of namespace and name."""
    receive: tuple[PrefixSelector, ...]
    """Prefixes that neighbours may send for networks without tunnels; replaces the source's own."""
    vteps: Mapping[str, tuple[PrefixSelector, ...]]
    """By VTEP of an EVPN network: what neighbours may send, beside what a source has."""

    @property
    def vrfs(self) -> tuple[str, ...]:
        """The VRFs of the networks in the selection of RouteAdvertisements, in order."""
        return tuple(sorted(network.vrf for network in self.networks))


class Cluster(NamedTuple):
    """The objects among which RouteAdvertisements select."""

    attachments: Sequence[Attachment]
    nodes: Sequence[Node]
    """In the order of their names."""
    sources: Sequence[FRRConfiguration]
    """In the order of namespace and name, without generated ones."""
    vteps: Mapping[str, Vtep]
    options: OvnkOptions


def select_networks(row: RouteAdvertisements, attachments: Iterable[Attachment]) -> Selected:
    """Return the networks that RouteAdvertisements select."""
    by_name: dict[str, Network] = {}
    types = {entry.network_selection_type for entry in row.spec.network_selectors}
    for attachment in attachments:
        network = attachment.network
        if network is None or network.name in by_name:
            continue
        if network.cluster_network is None:
            selected = "DefaultNetwork" in types
        else:
            selected = selects_cluster_network(row, attachment.row.metadata.labels)
        if selected:
            by_name[network.name] = network
    return Selected(tuple(by_name[name] for name in sorted(by_name)))


def selects_cluster_network(row: RouteAdvertisements, labels: Mapping[str, str]) -> bool:
    """True if RouteAdvertisements select a ClusterUserDefinedNetwork with these labels."""
    return any(
        entry.cluster_user_defined_network_selector.network_selector.matches(labels)
        for entry in row.spec.network_selectors
        if entry.cluster_user_defined_network_selector is not None
    )


def check_networks(row: RouteAdvertisements, selected: Selected, options: OvnkOptions) -> None:
    """Check the selection of networks. Raises errors of `reconcilers.ovnk.errors`."""
    spec, networks = row.spec, selected.networks
    target = target_vrf(row)
    egress = "EgressIP" in spec.advertisements
    if egress and not options.egress_ip:
        raise ConfigurationError("EgressIP advertisement requested, and EgressIP is not enabled")
    if egress and target == AUTO:
        raise ConfigurationError("EgressIP advertisement is not supported with target VRF auto")
    if not networks:
        raise ConfigurationPending("no networks selected")
    for network in networks:
        if network.role not in (DEFAULT, "primary"):
            text = f"network {network.shown_name} is neither the default network nor a primary one"
            raise ConfigurationError(text)
        if network.topology not in ("layer2", "layer3"):
            text = f"topology {shortened(network.topology)} is not supported"
            raise ConfigurationError(f"network {network.shown_name}: {text}")
        if network.is_layer2 and egress:
            text = "EgressIP advertisement is currently not supported for Layer2 networks"
            raise ConfigurationError(f"{text}: network {network.shown_name}")
        if network.error:
            raise ConfigurationError(f"network {network.shown_name}: {network.error}")
    _check_vrfs(networks, target, pods="PodNetwork" in spec.advertisements)


def _check_vrfs(networks: tuple[Network, ...], target: str, *, pods: bool) -> None:
    by_vrf: dict[str, Network] = {}
    for network in networks:
        other = by_vrf.setdefault(network.vrf, network)
        if other is not network:
            names = f"{other.shown_name} and {network.shown_name}"
            raise ConfigurationError(f"networks {names} have one VRF, {network.vrf}")
    for network in networks:
        if network.is_evpn and target not in (AUTO, network.vrf):
            text = f"EVPN network {network.shown_name} requires target VRF auto or {network.vrf}"
            raise ConfigurationError(text)
    if target != AUTO and pods:
        pair = overlapping_networks(networks)
        if pair is not None:
            names = " and ".join(network.shown_name for network in pair)
            where = target or DEFAULT
            text = f"networks {names} have overlapping subnets, and are advertised in one VRF"
            raise ConfigurationError(f"{text} ({where})")


def target_vrf(row: RouteAdvertisements) -> str:
    """Return the target VRF for a selection of networks: ``auto``, a name, or empty (default)."""
    target = row.spec.target_vrf
    return "" if target == DEFAULT else target


def advertised(
    row: RouteAdvertisements, selected: Selected, cluster: Cluster
) -> tuple[Advertised, Sequence[Node]]:
    """Check the rules for a RouteAdvertisements' selection, and return it with its nodes.

    Raises `ConfigurationError` and `ConfigurationPending`.
    """
    if row.invalid:
        first, more = row.invalid[0], len(row.invalid) - 1
        others = f" and {more} more" if more else ""
        raise _invalid(
            row.invalid, f"the object is not valid: {first.path}: {first.message}{others}"
        )
    name, spec, options = row.metadata.name, row.spec, cluster.options
    if len(name) > _LONGEST_LABEL:
        text = f"the name has {len(name)} characters, and is a label of what is generated"
        raise ConfigurationError(f"{text}: at most {_LONGEST_LABEL}")
    check_networks(row, selected, options)
    nodes = cluster.nodes
    of_nodes = spec.node_selector
    if of_nodes.match_labels or of_nodes.match_expressions:
        nodes = [node for node in nodes if of_nodes.matches(node.metadata.labels)]
    if not nodes:
        raise ConfigurationPending("no nodes selected")
    selector = spec.frr_configuration_selector
    sources = tuple(
        source for source in cluster.sources if selector.matches(source.metadata.labels)
    )
    if not sources:
        raise ConfigurationPending("no FRRConfigurations selected")
    for source in sources:
        if source.invalid:
            text = f"FRRConfiguration {_shown(source)} is not valid: {source.invalid[0].path}"
            raise _invalid(source.invalid, f"{text}: {source.invalid[0].message}")
    result = Advertised(
        name,
        target_vrf(row),
        selected.networks,
        "PodNetwork" in spec.advertisements,
        "EgressIP" in spec.advertisements,
        sources,
        _received(selected.networks),
        _vteps(selected.networks, sources, cluster),
    )
    return result, nodes


def _invalid(errors: Sequence[FieldError], text: str) -> NotAccepted:
    """Return the error of an invalid object; of its selectors alone, that of a failed evaluation."""
    selectors = all(".matchExpressions[" in error.path for error in errors)
    return InternalError(text) if selectors else ConfigurationError(text)


def _shown(row: FRRConfiguration) -> str:
    return f"{row.metadata.namespace}/{row.metadata.name}"


def _received(networks: Iterable[Network]) -> tuple[PrefixSelector, ...]:
    """Return the subnets of the hosts of networks without tunnels."""
    return tuple(
        PrefixSelector(prefix=subnet.prefix, ge=subnet.host_length, le=subnet.host_length)
        for network in networks
        if network.is_no_overlay
        for subnet in sorted(network.subnets, key=lambda subnet: subnet.prefix)
    )


def _vteps(
    networks: Sequence[Network], sources: Sequence[FRRConfiguration], cluster: Cluster
) -> Mapping[str, tuple[PrefixSelector, ...]]:
    """Check the rules for EVPN networks, and return the addresses of their VTEPs."""
    by_vtep: dict[str, tuple[PrefixSelector, ...]] = {}
    evpn = [network for network in networks if network.is_evpn]
    if not evpn:
        return by_vtep
    names = enumerate_some([network.shown_name for network in evpn], 3)
    if not cluster.options.evpn:
        raise ConfigurationError(f"EVPN is not enabled: {names}")
    if cluster.options.gateway_mode != "local":
        raise ConfigurationError(f"EVPN is supported in local gateway mode alone: {names}")
    routers = (router for source in sources for router in source.spec.bgp.routers)
    if not any(is_default_vrf(router.vrf) for router in routers):
        text = "no selected FRRConfiguration has a router of the default VRF, which EVPN requires"
        raise ConfigurationError(f"{text}: {names}")
    for network in evpn:
        name = network.evpn.vtep if network.evpn is not None else ""
        vtep = cluster.vteps.get(name)
        if vtep is None:
            raise ConfigurationError(f"network {network.shown_name}: there is no VTEP {name!r}")
        by_vtep[name] = tuple(map(_hosts, vtep.spec.cidrs))
    return by_vtep


def _hosts(prefix: str) -> PrefixSelector:
    length = 128 if ":" in prefix else 32
    return PrefixSelector(prefix=prefix, ge=length, le=length)
