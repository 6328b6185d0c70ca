"""The metrics of FRR-k8s's daemon and of its FRR exporter, ``frrk8s_*``.

Source: FRR-k8s internal/metrics and frr-tools/metrics. ``peer`` is the address without a port, ``vrf``
is ``default`` for the default one. MetalLB has the same with another prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, Literal

from reconcilers.bfd_session import UNKNOWN, BfdCounters, BfdSession
from reconcilers.dialect import (
    CompatHistogram,
    CompatMetric,
    CompatMetrics,
    MetricsContext,
    Session,
)
from resources.kind import Kind
from speaker.api import PeerStatus

if TYPE_CHECKING:
    from reconcilers.frrk8s.dialect import Frrk8sDialect

PREFIX: Final = "frrk8s_"
PEER: Final = ("peer", "vrf")
DEFAULT_VRF: Final = "default"

_OF_SESSION: Final[
    tuple[tuple[str, Literal["counter", "gauge"], str, Callable[[PeerStatus], float]], ...]
] = (
    (
        "session_up",
        "gauge",
        "BGP session state (1 is up, 0 is down)",
        lambda status: status.established,
    ),
    (
        "announced_prefixes_total",
        "gauge",
        "Number of prefixes currently being advertised on the BGP session",
        lambda status: sum(family.advertised for family in status.families),
    ),
    (
        "received_prefixes_total",
        "gauge",
        "Number of prefixes currently being received on the BGP session",
        lambda status: sum(family.accepted for family in status.families),
    ),
    (
        "opens_sent",
        "counter",
        "Number of BGP open messages sent",
        lambda status: status.sent_by_type.open,
    ),
    (
        "opens_received",
        "counter",
        "Number of BGP open messages received",
        lambda status: status.received_by_type.open,
    ),
    (
        "notifications_sent",
        "counter",
        "Number of BGP notification messages sent",
        lambda status: status.sent_by_type.notification,
    ),
    (
        "updates_total",
        "counter",
        "Number of BGP UPDATE messages sent",
        lambda status: status.sent_by_type.update,
    ),
    (
        "updates_total_received",
        "counter",
        "Number of BGP UPDATE messages received",
        lambda status: status.received_by_type.update,
    ),
    (
        "keepalives_sent",
        "counter",
        "Number of BGP keepalive messages sent",
        lambda status: status.sent_by_type.keepalive,
    ),
    (
        "keepalives_received",
        "counter",
        "Number of BGP keepalive messages received",
        lambda status: status.received_by_type.keepalive,
    ),
    (
        "route_refresh_sent",
        "counter",
        "Number of BGP route refresh messages sent",
        lambda status: status.sent_by_type.route_refresh,
    ),
    (
        "total_sent",
        "counter",
        "Number of total BGP messages sent",
        lambda status: status.sent_by_type.total,
    ),
    (
        "total_received",
        "counter",
        "Number of total BGP messages received",
        lambda status: status.received_by_type.total,
    ),
)
_OF_BFD: Final[
    tuple[
        tuple[
            str,
            Literal["counter", "gauge"],
            str,
            Callable[[BfdSession, BfdCounters | None], float | None],
        ],
        ...,
    ]
] = (
    ("session_up", "gauge", "BFD session state (1 is up, 0 is down)", lambda row, _: row.up),
    (
        "control_packet_input",
        "counter",
        "Number of received BFD control packets",
        lambda _, counted: None if counted is None else counted.packets_received,
    ),
    (
        "control_packet_output",
        "counter",
        "Number of sent BFD control packets",
        lambda _, counted: None if counted is None else counted.packets_sent,
    ),
    (
        "echo_packet_input",
        "counter",
        "Number of received BFD echo packets",
        lambda _, counted: None if counted is None else counted.echoes_received,
    ),
    (
        "echo_packet_output",
        "counter",
        "Number of sent BFD echo packets",
        lambda _, counted: None if counted is None else counted.echoes_sent,
    ),
    (
        "session_up_events",
        "counter",
        "Number of BFD session up events",
        lambda row, _: None if row.state == UNKNOWN else row.ups,
    ),
    (
        "session_down_events",
        "counter",
        "Number of BFD session down events",
        lambda row, _: None if row.state == UNKNOWN else row.ups - row.up,
    ),
)


def of_agent(
    dialect: Frrk8sDialect, context: MetricsContext
) -> Iterator[CompatMetric | CompatHistogram | None]:
    """Yield the compatibility metrics of FRR-k8s's daemon and of FRR's exporter (``frrk8s_*``)."""
    sessions = [session for session in context.sessions if session.peer.dialect == context.dialect]
    yield from session_metrics(PREFIX, sessions)
    yield from bfd_metrics(PREFIX, sessions, context)
    yield from client_metrics(PREFIX, dialect.kinds, context)


def session_metrics(prefix: str, sessions: Iterable[Session]) -> Iterator[CompatMetric | None]:
    """Yield the compatibility metrics of FRR's exporter about BGP sessions, also for MetalLB."""
    labelled = [(_labels(session), session.status) for session in sessions]
    for name, kind, text, read in _OF_SESSION:
        samples = [(labels, float(read(status))) for labels, status in labelled]
        yield CompatMetric(f"{prefix}bgp_{name}", kind, text, PEER, samples)
        yield None


def bfd_metrics(
    prefix: str, sessions: Iterable[Session], context: MetricsContext
) -> Iterator[CompatMetric | None]:
    """Yield the compatibility metrics of FRR's exporter about BFD sessions; peers may share one."""
    intent, snapshot = context.intent, context.snapshot
    rows: dict[tuple[str, ...], tuple[BfdSession, BfdCounters | None]] = {}
    for session in sessions:
        key = (session.peer.instance, session.peer.name)
        row = intent.bfd_sessions.get(snapshot, key)
        if row is not None:
            rows.setdefault(_labels(session), (row, intent.bfd_counters.get(snapshot, key)))
    for name, kind, text, read in _OF_BFD:
        values = [(labels, read(*row)) for labels, row in rows.items()]
        samples = [(labels, float(value)) for labels, value in values if value is not None]
        yield CompatMetric(f"{prefix}bfd_{name}", kind, text, PEER, samples)
        yield None


def client_metrics(
    prefix: str, kinds: Iterable[Kind[Any]], context: MetricsContext
) -> Iterator[CompatMetric]:
    """Yield the compatibility metrics of FRR-k8s about the objects that are read, also for MetalLB."""
    tables = map(context.tables.of, kinds)
    values: tuple[tuple[str, Literal["counter", "gauge"], str, float], ...] = (
        (
            "updates_total",
            "counter",
            "Number of k8s object updates that have been processed.",
            sum(table.revision(context.snapshot) for table in tables),
        ),
        (
            "update_errors_total",
            "counter",
            "Number of k8s object updates that failed for some reason.",
            sum(context.errors.values()) + context.problems,
        ),
        (
            "config_loaded_bool",
            "gauge",
            "1 if the configuration was successfully loaded at least once.",
            context.is_loaded,
        ),
        (
            "config_stale_bool",
            "gauge",
            "1 if running on a stale configuration, because the latest config failed to load.",
            not context.is_current,
        ),
    )
    for name, kind, text, value in values:
        yield CompatMetric(f"{prefix}k8s_client_{name}", kind, text, (), [((), float(value))])


def _labels(session: Session) -> tuple[str, ...]:
    """Return the labels of a session; as in FRR an unnumbered peer has the name of its interface."""
    peer = session.peer.interface or session.status.address or session.peer.name
    return peer, session.instance.vrf or DEFAULT_VRF


COMPAT_METRICS: Final = CompatMetrics(agent=of_agent)
