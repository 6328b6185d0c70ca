"""Metrics by the names of the program that a dialect stands for, so that its dashboards go on.

Names, labels and types are that program's own, also where they break Prometheus' conventions: a
gauge with ``_total``, a counter without. They are served with ``--compat-metrics`` only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from reconcilers.dialect.extension import Extension
from reconcilers.intent_tables import IntentTables
from reconcilers.model import Instance, ObjectRef, Peer
from resources.tables import Tables
from speaker.api import PeerStatus
from statedb import Snapshot

Labels: TypeAlias = tuple[str, ...]


class CompatMetric(msgspec.Struct, frozen=True):
    """A metric with its samples: values of labels, and a number."""

    name: str
    type: Literal["counter", "gauge"]
    text: str
    labels: Labels
    samples: list[tuple[Labels, float]] = []


class Durations(msgspec.Struct, frozen=True):
    """How long rounds took, as a histogram."""

    buckets: tuple[tuple[str, float], ...] = ()
    """Upper bound in seconds, as text, and the number of rounds up to it."""
    sum: float = 0.0


class CompatHistogram(msgspec.Struct, frozen=True):
    """A histogram by another program's name."""

    name: str
    text: str
    labels: Labels
    samples: list[tuple[Labels, Durations]] = []


class Session(NamedTuple):
    """A peer of the intent, its instance, and its session."""

    peer: Peer
    instance: Instance
    status: PeerStatus


class MetricsContext(msgspec.Struct, frozen=True):
    """The inputs of an agent's metrics."""

    tables: Tables
    snapshot: Snapshot
    intent: IntentTables
    dialect: str
    """The name that the dialect's rows have in the intent."""
    node: str
    sessions: tuple[Session, ...]
    """The sessions of all dialects."""
    errors: Mapping[str, int]
    """Attempts to apply an object that failed, by instance."""
    problems: int
    """The problems of administrators that the dialect has had so far, solved ones as well."""
    rounds: Durations
    is_loaded: bool
    """Whether a configuration has been applied."""
    is_current: bool
    """Whether the last one is."""


class OperatorMetricsContext(msgspec.Struct, frozen=True):
    """The inputs of an operator's metrics."""

    errors: Mapping[ObjectRef, int]
    """Writes of an object that failed."""
    rounds: Durations
    state: Any = None
    """The dialect's `ClusterIntent.state` in the last plan of an operator that leads, or None."""


Read: TypeAlias = "Iterable[CompatMetric | CompatHistogram | None]"
"""None where other work may be done."""


class CompatMetrics(Extension, frozen=True):
    """The metrics of an agent, or of the operator."""

    agent: Callable[[Any, MetricsContext], Read] | None = None
    operator: Callable[[Any, OperatorMetricsContext], Read] | None = None
