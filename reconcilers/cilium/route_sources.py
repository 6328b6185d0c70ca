"""Cilium's four route sources: Services, pod CIDRs, pod IP pools and interfaces.

Each follows its tables and matches objects with the entries of route sets (`route_sets.RouteSet`); the
module of a source's name has the contributions of one object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from reconcilers.cilium import exposure, interfaces, pod_cidrs, pod_ip_pools, services
from reconcilers.cilium.node_facts import known_node
from reconcilers.cilium.route_sets import RouteSet
from reconcilers.dialect import EVERYTHING, Contributed, Everything, NodeContext, ServiceSource
from reconcilers.model import ObjectRef
from resources.cilium.kinds import CILIUM_NODE, POD_IP_POOL
from resources.core import EndpointSlice, Service
from resources.meta import NO_TEXTS
from resources.tables import Tables
from statedb import Change, Key, Snapshot, Table


class CiliumServiceSource(ServiceSource):
    """Services with their EndpointSlices; keys are namespace and name.

    A changed Node or CiliumNode affects the Services that some nodes serve.
    """

    def __init__(self, tables: Tables, options: services.ServiceOptions) -> None:
        super().__init__(tables)
        self._options = options
        self._of_some_nodes: set[Key] = set()
        """The Services of which labels of the node decide whether it serves them."""

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """The tables of Cilium's Services, and of the labels of nodes."""
        return (*super().tables, self._tables.nodes, self._tables.of(CILIUM_NODE))

    def affected(self, table: Table[Any], changes: Sequence[Change[Any]]) -> Iterable[Key]:
        """Return the Services that changes of a table of Cilium's affect."""
        if table is self._tables.services:
            for change in changes:
                if not change.deleted and exposure.of_some_nodes(change.row):
                    self._of_some_nodes.add(change.row.key)
                else:
                    self._of_some_nodes.discard(change.row.key)
        elif table is not self._tables.endpoint_slices:
            return tuple(self._of_some_nodes)
        return super().affected(table, changes)

    def of_service(
        self,
        service: Service,
        slices: Iterable[EndpointSlice],
        snapshot: Snapshot,
        context: NodeContext,
        rules: Sequence[RouteSet],
        /,
    ) -> Iterator[Contributed]:
        """Yield what the route source of Services has of one: addresses that Advertisements select."""
        labels: Mapping[str, str] = NO_TEXTS
        if exposure.of_some_nodes(service):
            node = known_node(self._tables, snapshot, context.node)
            labels = NO_TEXTS if node is None else node.metadata.labels
        addresses = services.service_addresses(service, slices, context.node, labels, self._options)
        for route_set in rules:
            yield from services.contributions(addresses, route_set)


class PodCidrSource:
    """The pod CIDRs of this node; the one key is the node's name."""

    name = "pod-cidr"

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """The tables with Cilium's pod CIDRs: Nodes and CiliumNodes."""
        return (self._tables.nodes, self._tables.of(CILIUM_NODE))

    def affected(self, _table: Table[Any], changes: Sequence[Change[Any]], /) -> Iterable[Key]:
        """Return the nodes whose pod CIDRs may have changed, by Cilium's tables."""
        return [change.row.metadata.name for change in changes]

    def keys(self, snapshot: Snapshot, _rules: Sequence[Any], /) -> Iterable[Key]:
        """Return the names of the nodes in Nodes and CiliumNodes."""
        names = (row.metadata.name for table in self.tables for row in table.all(snapshot))
        return dict.fromkeys(names)

    def object(self, _context: NodeContext, key: Key, /) -> ObjectRef:
        """Return the Node that has Cilium's pod CIDRs."""
        return ObjectRef("Node", "", cast("str", key))

    def contributions(
        self, snapshot: Snapshot, context: NodeContext, key: Key, rules: Sequence[RouteSet]
    ) -> Iterator[Contributed]:
        """Yield the node's pod CIDRs for Cilium's route sets; other nodes contribute nothing."""
        if key != context.node:
            return
        node = known_node(self._tables, snapshot, context.node)
        if node is None:
            return
        for route_set in rules:
            yield from pod_cidrs.contributions(node, route_set)


class PodIpPoolSource:
    """The pod IP pools from which this node has prefixes; keys are names of pools."""

    name = "pod-ip-pool"

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """CiliumPodIPPools and CiliumNodes."""
        return (self._tables.of(POD_IP_POOL), self._tables.of(CILIUM_NODE))

    def affected(
        self, table: Table[Any], changes: Sequence[Change[Any]]
    ) -> Iterable[Key] | Everything:
        """Return the CiliumPodIPPools; all of them where a node's allocations may have changed."""
        if table.name == POD_IP_POOL.table:
            return [change.row.metadata.name for change in changes]
        return EVERYTHING

    def keys(self, snapshot: Snapshot, _rules: Sequence[Any], /) -> Iterable[Key]:
        """Return the names of the CiliumPodIPPools that exist."""
        return (pool.metadata.name for pool in self._tables.of(POD_IP_POOL).all(snapshot))

    def object(self, _context: NodeContext, key: Key, /) -> ObjectRef:
        """Return the CiliumPodIPPool of a key."""
        return ObjectRef(pod_ip_pools.ADVERTISEMENT_TYPE, "", cast("str", key))

    def contributions(
        self, snapshot: Snapshot, context: NodeContext, key: Key, rules: Sequence[RouteSet]
    ) -> Iterator[Contributed]:
        """Yield the prefixes that this node was allocated from one CiliumPodIPPool."""
        node = self._tables.of(CILIUM_NODE).get(snapshot, ("", context.node))
        pool = self._tables.of(POD_IP_POOL).get(snapshot, ("", cast("str", key)))
        if node is None or pool is None:
            return
        for route_set in rules:
            yield from pod_ip_pools.contributions(node, pool, route_set)


class InterfaceSource:
    """The addresses of this node's interfaces; keys are names of interfaces."""

    name = "interface"

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """The tables of Cilium's interfaces: the kernel's, or a NodeNetwork's."""
        return (self._tables.host, self._tables.node_networks)

    def affected(self, _table: Table[Any], _changes: Sequence[Change[Any]], /) -> Everything:
        """Return all interfaces: either of Cilium's tables has all of them in one row."""
        return EVERYTHING

    def keys(self, snapshot: Snapshot, _rules: Sequence[Any], /) -> Iterable[Key]:
        """Return the names of all interfaces that Cilium's Advertisements may name."""
        hosts = [*self._tables.host.all(snapshot)]
        hosts += [row.host for row in self._tables.node_networks.all(snapshot)]
        return dict.fromkeys(device.name for host in hosts for device in host.devices)

    def object(self, context: NodeContext, key: Key) -> ObjectRef:
        """Return the interface of a key, with the node in the place of a namespace, as for Cilium."""
        return ObjectRef(interfaces.ADVERTISEMENT_TYPE, context.node, cast("str", key))

    def contributions(
        self,
        _snapshot: Snapshot,
        context: NodeContext,
        key: Key,
        rules: Sequence[RouteSet],
        /,
    ) -> Iterator[Contributed]:
        """Yield the addresses of one interface that entries of Advertisements name."""
        device = context.host.device(cast("str", key))
        if device is None:
            return
        for route_set in rules:
            yield from interfaces.contributions(device, context.node, route_set)
