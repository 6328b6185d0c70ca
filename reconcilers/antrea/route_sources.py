"""The three route sources: Services, Egresses and the pod CIDRs of the node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from reconcilers.antrea import candidates
from reconcilers.antrea.node_facts import node_facts
from reconcilers.antrea.route_sets import RouteSet
from reconcilers.dialect import Contributed, NodeContext, RowSource, ServiceSource
from resources.antrea.egress import Egress
from resources.antrea.kinds import EGRESS
from resources.core import EndpointSlice, Node, Service
from resources.core.kinds import NODE
from resources.tables import Tables
from statedb import Key, Snapshot


class AntreaServiceSource(ServiceSource):
    """Services with their EndpointSlices; keys are namespace and name."""

    def __init__(self, tables: Tables, *, ready_only: bool) -> None:
        super().__init__(tables)
        self._ready_only = ready_only

    def of_service(
        self,
        service: Service,
        slices: Iterable[EndpointSlice],
        _snapshot: Snapshot,
        context: NodeContext,
        rules: Sequence[RouteSet],
        /,
    ) -> Iterator[Contributed]:
        """Yield the addresses of one Service as routes of Antrea."""
        of_service = candidates.of_service(
            service, slices, context.node, ready_only=self._ready_only
        )
        yield from candidates.contributions(of_service, rules)


class EgressSource(RowSource[Egress]):
    """Egresses; keys are (empty namespace, name)."""

    def __init__(self, tables: Tables) -> None:
        super().__init__(tables, EGRESS)

    def contributions(
        self, snapshot: Snapshot, context: NodeContext, key: Key, rules: Sequence[RouteSet]
    ) -> Iterator[Contributed]:
        """Yield the address of one Egress, if it is assigned to the node, as a route of Antrea."""
        row = self._table.get(snapshot, key)
        if row is not None:
            of_egress = candidates.of_egress(row, context.node, enabled=True)
            yield from candidates.contributions(of_egress, rules)


class PodCidrSource(RowSource[Node]):
    """The pod CIDRs of this node; keys are (empty namespace, name) of Nodes."""

    def __init__(self, tables: Tables) -> None:
        super().__init__(tables, NODE)
        self.name = "pod-cidr"

    def contributions(
        self, snapshot: Snapshot, context: NodeContext, key: Key, rules: Sequence[RouteSet]
    ) -> Iterator[Contributed]:
        """Yield the node's pod CIDRs as routes of Antrea; other nodes contribute nothing."""
        node = self._table.get(snapshot, key) if key == ("", context.node) else None
        if node is not None:
            of_node = candidates.of_node(self.object(context, key), node_facts(node))
            yield from candidates.contributions(of_node, rules)
