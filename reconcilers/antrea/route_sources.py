"""The three route sources: Services, Egresses and the pod CIDRs of the node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from reconcilers.antrea import candidates
from reconcilers.antrea.node_facts import node_facts
from reconcilers.antrea.route_sets import RouteSet
from reconcilers.dialect import Contributed, NodeContext, RowSource, ServiceSource
from reconcilers.model import ObjectRef
from resources.antrea.egress import Egress
from resources.antrea.kinds import EGRESS
from resources.core import EndpointSlice, Service
from resources.tables import Tables
from statedb import Change, Key, Snapshot, Table


class AntreaServiceSource(ServiceSource):
    """Services with their EndpointSlices; keys are namespace and name."""

    def __init__(self, tables: Tables, *, ready_only: bool) -> None:
        super().__init__(tables)
        self._ready_only = ready_only

    def of_service(
        self,
        service: Service,
        slices: Iterable[EndpointSlice],
        context: NodeContext,
        rules: Sequence[RouteSet],
    ) -> Iterator[Contributed]:
        """Yield the addresses of one Service."""
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
        """Yield the address of one Egress, if it is assigned to the node."""
        row = self._table.get(snapshot, key)
        if row is not None:
            of_egress = candidates.of_egress(row, context.node, enabled=True)
            yield from candidates.contributions(of_egress, rules)


class PodCidrSource:
    """The pod CIDRs of this node; the one key is the node's name."""

    name = "pod-cidr"

    def __init__(self, tables: Tables) -> None:
        self._nodes = tables.nodes

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """Nodes."""
        return (self._nodes,)

    def affected(self, table: Table[Any], changes: Sequence[Change[Any]]) -> Iterable[Key]:  # noqa: ARG002
        """Return the nodes."""
        return [change.row.metadata.name for change in changes]

    def keys(self, snapshot: Snapshot, _rules: Sequence[Any], /) -> Iterable[Key]:
        """Return the names of the nodes."""
        return [row.metadata.name for row in self._nodes.all(snapshot)]

    def object(self, context: NodeContext, key: Key) -> ObjectRef:  # noqa: ARG002
        """Return the Node."""
        return ObjectRef("Node", "", cast("str", key))

    def contributions(
        self, snapshot: Snapshot, context: NodeContext, key: Key, rules: Sequence[RouteSet]
    ) -> Iterator[Contributed]:
        """Yield the pod CIDRs; other nodes contribute nothing."""
        node = self._nodes.get(snapshot, ("", context.node)) if key == context.node else None
        if node is not None:
            of_node = candidates.of_node(self.object(context, key), node_facts(node))
            yield from candidates.contributions(of_node, rules)
