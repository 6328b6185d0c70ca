"""MetalLB's route source: Services with their EndpointSlices, for the route sets of BGPPeers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from reconcilers.dialect import Contributed, NodeContext, Rejected, ServiceSource
from reconcilers.frrk8s.route_sets import RouteSet
from reconcilers.metallb.route_sets import PeerRules
from reconcilers.metallb.services import contributions, service_state
from resources.core import EndpointSlice, Service
from resources.tables import Tables
from statedb import Snapshot


def rules_of(route_set: RouteSet | None) -> PeerRules | None:
    """Return MetalLB's rules in a route set of FRR-k8s, for the route source, or None."""
    translated = () if route_set is None else route_set.translated
    return next((rules for rules in translated if isinstance(rules, PeerRules)), None)


class MetalLBServiceSource(ServiceSource):
    """Services whose addresses MetalLB has assigned."""

    name = "metallb-service"

    def __init__(self, tables: Tables, load_balancer_class: str) -> None:
        super().__init__(tables)
        self._class = load_balancer_class
        self._rules: Sequence[RouteSet] = ()
        self._translated: list[tuple[str, PeerRules]] = []
        """MetalLB's rules in the last route sets, which all Services of a round share."""

    def of_service(
        self,
        service: Service,
        slices: Iterable[EndpointSlice],
        _snapshot: Snapshot,
        context: NodeContext,
        rules: Sequence[RouteSet],
        /,
    ) -> Iterator[Contributed | Rejected]:
        """Iterate over MetalLB's routes of one Service: its addresses, or their aggregates."""
        if rules is not self._rules:
            of_peers = ((rule.name, rules_of(rule)) for rule in rules)
            self._translated = [(name, given) for name, given in of_peers if given is not None]
            self._rules = rules
        if not self._translated:
            return iter(())
        state = service_state(service, slices, context.node, self._class)
        return contributions(state, self._translated)
