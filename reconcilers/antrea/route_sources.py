"""The three route sources: Services, Egresses and the pod CIDRs of the node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from reconcilers.antrea.candidates import of_egress, of_node
from reconcilers.antrea.node_facts import node_facts
from reconcilers.antrea.route_sets import RouteSet, TypedCandidate, rejected_candidate
from reconcilers.antrea.services import of_service
from reconcilers.dialect import (
    Contributed,
    NodeContext,
    RowSource,
    ServiceSource,
    service_address,
)
from reconcilers.model import Attributes, Contribution, Origin
from resources.antrea.egress import Egress
from resources.antrea.kinds import EGRESS
from resources.core import EndpointSlice, Node, Service
from resources.core.kinds import NODE
from resources.tables import Tables
from statedb import Key, Snapshot

_ATTRIBUTES: Final = Attributes()
"""ORIGIN IGP, next hop self, nothing else."""


def contributions(
    candidates: Iterable[TypedCandidate], rules: Sequence[RouteSet]
) -> Iterator[Contributed]:
    """Yield the candidates that the route sets of a BGPPolicy have."""
    for candidate in candidates:
        if candidate.family is None or candidate.nlri is None:
            continue
        named = service_address(candidate)
        for route_set in rules:
            if rejected_candidate(candidate, route_set) is None:
                origin = Origin(candidate.object, route_set.policy, candidate.type)
                contribution = Contribution(origin, _ATTRIBUTES)
                yield Contributed(
                    route_set.name, candidate.family, candidate.nlri, contribution, named
                )


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
        """Iterate over the addresses of one Service as routes of Antrea."""
        candidates = of_service(service, slices, context.node, ready_only=self._ready_only)
        return contributions(candidates, rules)


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
            yield from contributions(of_egress(row, context.node, enabled=True), rules)


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
            candidates = of_node(self.object(context, key), node_facts(node))
            yield from contributions(candidates, rules)
