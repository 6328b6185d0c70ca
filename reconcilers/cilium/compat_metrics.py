"""The metrics of Cilium's agent and operator, ``cilium_bgp_control_plane_*``.

Source: Cilium 1.19, pkg/bgp/metrics and operator/pkg/bgp. ``vrouter`` is the local AS number,
``neighbor`` the peer's address with its port. Rounds reconcile all instances: each one has the
durations of all rounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from reconcilers.dialect import (
    CompatHistogram,
    CompatMetric,
    CompatMetrics,
    MetricsContext,
    OperatorMetricsContext,
    Session,
)
from resources.cilium.kinds import KINDS

if TYPE_CHECKING:
    from reconcilers.cilium.dialect import CiliumDialect

AGENT: Final = "cilium_bgp_control_plane_"
OPERATOR: Final = "cilium_operator_bgp_control_plane_"
NEIGHBOR: Final = ("vrouter", "neighbor", "neighbor_asn")
FAMILY: Final = ("afi", "safi")
OWN_KINDS: Final = frozenset(kind.name for kind in KINDS)


def of_agent(
    _dialect: CiliumDialect, context: MetricsContext
) -> Iterator[CompatMetric | CompatHistogram | None]:
    """Yield the compatibility metrics of Cilium's agent (``cilium_bgp_control_plane_*``)."""
    up = CompatMetric(
        f"{AGENT}session_state",
        "gauge",
        "Current state of the BGP session with the peer, Up = 1 or Down = 0",
        NEIGHBOR,
    )
    advertised = CompatMetric(
        f"{AGENT}advertised_routes",
        "gauge",
        "Number of routes advertised to the peer",
        (*NEIGHBOR, *FAMILY),
    )
    received = CompatMetric(
        f"{AGENT}received_routes",
        "gauge",
        "Number of routes received from the peer",
        (*NEIGHBOR, *FAMILY),
    )
    for session in context.sessions:
        if session.peer.dialect != context.dialect:
            continue
        labels = _labels(session)
        up.samples.append((labels, session.status.established))
        for family in session.status.families:
            afi, _, safi = str(family.family).partition("-")
            advertised.samples.append(((*labels, afi, safi), family.advertised))
            received.samples.append(((*labels, afi, safi), family.received))
    yield from (up, advertised, received)
    errors = CompatMetric(
        f"{AGENT}reconcile_errors_total",
        "counter",
        "The number of errors during reconciliation of the BGP manager",
        ("vrouter",),
    )
    durations = CompatHistogram(
        f"{AGENT}reconcile_run_duration_seconds",
        "The duration of the BGP manager reconciliation run",
        ("vrouter",),
    )
    failed: Counter[str] = Counter()
    for instance in context.intent.instances.all(context.snapshot):
        if instance.dialect == context.dialect:
            failed[str(instance.local_asn)] += context.errors.get(instance.name, 0)
    for asn, count in sorted(failed.items()):
        errors.samples.append(((asn,), count))
        durations.samples.append(((asn,), context.rounds))
    yield from (errors, durations)


def _labels(session: Session) -> tuple[str, ...]:
    status = session.status
    address = status.address or ""
    host = f"[{address}]" if ":" in address else address
    return str(status.local_asn), f"{host}:{status.port}", str(status.peer_asn)


def of_operator(
    _dialect: CiliumDialect, context: OperatorMetricsContext
) -> Iterator[CompatMetric | CompatHistogram | None]:
    """Yield the compatibility metrics of Cilium's operator (``cilium_bgp_control_plane_*``)."""
    errors = CompatMetric(
        f"{OPERATOR}reconcile_errors_total",
        "counter",
        "The total number of BGP operator reconciliation errors",
        ("resource_kind", "resource_name"),
    )
    for ref, count in sorted(context.errors.items()):
        if ref.kind in OWN_KINDS:
            errors.samples.append(((ref.kind, ref.name), count))
    yield errors
    yield CompatHistogram(
        f"{OPERATOR}reconcile_run_duration_seconds",
        "The duration of the BGP operator reconciliation run",
        (),
        [((), context.rounds)],
    )


COMPAT_METRICS: Final = CompatMetrics(agent=of_agent, operator=of_operator)
