"""Services that Advertisements select for the peers of NodeConfigs, and peers with a session.

No status of Cilium's names a prefix: a node advertises an address to a peer whose session the status
of its NodeConfig has as established, by the rules of `reconcilers.cilium.services`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from reconcilers.cilium import sessions
from reconcilers.cilium.exposure import of_some_nodes
from reconcilers.cilium.node_facts import known_node
from reconcilers.cilium.reported_sessions import reported
from reconcilers.cilium.route_sets import RouteSet, route_set
from reconcilers.cilium.services import (
    WITHOUT_ENDPOINT,
    ServiceOptions,
    selected_addresses,
    service_addresses,
)
from reconcilers.dialect import ServiceStatuses
from reconcilers.model import ref_to
from resources.cilium import DEFAULT_FAMILIES, CiliumBGPAdvertisement
from resources.cilium.kinds import ADVERTISEMENT, NODE_CONFIG, PEER_CONFIG
from resources.core import EndpointSlice, Service
from resources.kind import Kind
from speaker.api import ESTABLISHED
from speaker.nlri import Family, prefix_to_text
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.cilium.dialect import CiliumDialect

_OPTIONS: Final = ServiceOptions()
"""The operator has not the agents' options; these are the defaults."""
_LOCAL: Final = "Local"
_ANY_NODE: Final = ""
"""Stands for all nodes of a Service with traffic policy Cluster, and nodes without its endpoints."""


class RouteSetServiceStatuses:
    """The route sets of all peers, and by each of them the nodes with an established session."""

    def __init__(self, dialect: CiliumDialect, snapshot: Snapshot) -> None:
        self._tables, self._snapshot = dialect.tables, snapshot
        rows = dialect.tables.of(PEER_CONFIG).all(snapshot)
        self._peer_configs = {row.metadata.name: row for row in rows}
        self._advertisements: list[CiliumBGPAdvertisement] = []
        self._of_peer_config: dict[str | None, RouteSet | None] = {}
        self._sessions: dict[str, tuple[RouteSet, dict[str, set[str]]]] = {}
        """By name of a route set; the families of established sessions, by node."""

    def read(self, kind: Kind[Any], value: Mapping[str, Any]) -> None:
        """Add a CiliumBGPAdvertisement, or after all of them a NodeConfig, for statuses of Services."""
        if kind is ADVERTISEMENT:
            self._advertisements.append(ADVERTISEMENT.decode(value))
            return
        config = NODE_CONFIG.decode(value)
        established = {
            (session.instance, session.name): session.families
            for session in reported(value)
            if session.state == ESTABLISHED
        }
        for instance in config.spec.bgp_instances:
            for peer in instance.peers:
                reference = peer.peer_config_ref
                of_peer = self._route_set(None if reference is None else reference.name)
                if of_peer is None:
                    continue
                _, nodes = self._sessions.setdefault(of_peer.name, (of_peer, {}))
                if families := established.get((instance.name, peer.name)):
                    for node in (config.metadata.name, _ANY_NODE):
                        nodes.setdefault(node, set()).update(families)

    def _route_set(self, name: str | None) -> RouteSet | None:
        """Return what a peer with a PeerConfig receives; None for nothing."""
        if name not in self._of_peer_config:
            row = None if name is None else self._peer_configs.get(name)
            of_config = None
            if row is not None:
                given = row.spec.families or DEFAULT_FAMILIES
                spoken = ((f.afi, f.safi, f.advertisements) for f in given)
                selectors = sessions.families(ref_to(PEER_CONFIG, row), "spec.families", spoken, [])
                of_config = route_set(selectors, self._advertisements)
            self._of_peer_config[name] = of_config
        return self._of_peer_config[name]

    def selected(self, service: Service) -> tuple[str, ...]:
        """Return a Service's addresses that a CiliumBGPAdvertisement of any peer selects."""
        of_service = service_addresses(service, (), _ANY_NODE, None, _OPTIONS)
        routes = dict.fromkeys(
            route
            for rules, _ in self._sessions.values()
            for route in selected_addresses(of_service, rules, ignored=WITHOUT_ENDPOINT)
        )
        return tuple(map(_text, routes))

    def follows_endpoints(self, service: Service) -> bool:
        """Return True for a Service's traffic policy Local, while a Cilium session is established."""
        policies = (service.spec.external_traffic_policy, service.spec.internal_traffic_policy)
        return _LOCAL in policies and any(nodes for _, nodes in self._sessions.values())

    def advertised(self, service: Service, slices: Sequence[EndpointSlice]) -> frozenset[str]:
        """Return a Service's addresses that a node with an established Cilium session advertises."""
        return frozenset(map(_text, self._advertised(service, slices)))

    def _advertised(
        self, service: Service, slices: Sequence[EndpointSlice]
    ) -> Iterator[tuple[Family, bytes]]:
        for node, labels in self._nodes_serving(service, slices):
            of_node = service_addresses(service, slices, node, labels, _OPTIONS)
            for rules, nodes in self._sessions.values():
                if families := nodes.get(node):
                    for route in selected_addresses(of_node, rules):
                        if str(route[0]) in families:
                            yield route

    def _nodes_serving(
        self, service: Service, slices: Sequence[EndpointSlice]
    ) -> Iterator[tuple[str, Mapping[str, str] | None]]:
        """Yield nodes that may advertise a Service differently, with labels if these decide."""
        if of_some_nodes(service):
            for name in dict.fromkeys(
                name for _, nodes in self._sessions.values() for name in nodes
            ):
                node = known_node(self._tables, self._snapshot, name)
                if node is not None:
                    yield name, node.metadata.labels
            return
        with_endpoint = {e.node_name for piece in slices for e in piece.endpoints if e.node_name}
        for name in (_ANY_NODE, *sorted(with_endpoint)):
            yield name, None


def _text(route: tuple[Family, bytes]) -> str:
    return prefix_to_text(*route).partition("/")[0]


SERVICE_STATUSES: Final = ServiceStatuses(
    RouteSetServiceStatuses, (ADVERTISEMENT, NODE_CONFIG), reads_endpoints=True
)
