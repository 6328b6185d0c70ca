"""The metrics of MetalLB's speaker, ``metallb_*``, as in its FRR mode.

Source: MetalLB speaker/main.go, internal/k8s and frr-tools/metrics. MetalLB's controller,
which allocates the addresses, serves its own (``metallb_allocator_*``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from reconcilers.dialect import (
    CompatHistogram,
    CompatMetric,
    CompatMetrics,
    MetricsContext,
    Session,
)
from reconcilers.frrk8s.compat_metrics import bfd_metrics, client_metrics, session_metrics
from reconcilers.intent_tables import BY_OBJECT, object_id
from reconcilers.model import ref_to
from resources.core.kinds import SERVICE
from resources.metallb.kinds import BGP_ADVERTISEMENT, BGP_PEER

if TYPE_CHECKING:
    from reconcilers.metallb.dialect import MetalLBDialect

PREFIX: Final = "metallb_"
SERVICES_PER_SLICE: Final = 200


def of_agent(
    dialect: MetalLBDialect, context: MetricsContext
) -> Iterator[CompatMetric | CompatHistogram | None]:
    """Yield the compatibility metrics of MetalLB's speaker (``metallb_*``)."""
    sessions = [
        session
        for session in context.sessions
        if any(ref.kind == BGP_PEER.name for ref in session.peer.origins)
    ]
    yield from session_metrics(PREFIX, sessions)
    yield from bfd_metrics(PREFIX, sessions, context)
    yield from client_metrics(PREFIX, dialect.kinds, context)
    yield from _announced(context, sessions)


def _announced(context: MetricsContext, sessions: list[Session]) -> Iterator[CompatMetric | None]:
    """Yield the Services that this node announces, with each of their addresses."""
    metric = CompatMetric(
        f"{PREFIX}speaker_announced",
        "gauge",
        "Services being announced from this node. This is desired state, it does not guarantee that "
        "the routing protocols have converged.",
        ("service", "protocol", "node", "ip"),
    )
    advertised = (session.peer.route_set for session in sessions)
    route_sets = {route_set for route_set in advertised if route_set is not None}
    routes, snapshot = context.intent.routes, context.snapshot
    for number, service in enumerate(context.tables.of(SERVICE).all(snapshot)):
        if number % SERVICES_PER_SLICE == 0:
            yield None
        ref = ref_to(SERVICE, service)
        origins = (
            (contribution.origin.object, contribution.origin.rule.kind)
            for route_set in route_sets
            for row in routes.find(snapshot, BY_OBJECT, (route_set, object_id(ref)))
            for contribution in row.contributions
        )
        if (ref, BGP_ADVERTISEMENT.name) in origins:
            name = f"{ref.namespace}/{ref.name}"
            for address in service.load_balancer_addresses:
                metric.samples.append(((name, "bgp", context.node, address), 1.0))
    yield metric


COMPAT_METRICS: Final = CompatMetrics(agent=of_agent)
