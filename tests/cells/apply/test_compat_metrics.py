"""Metrics by the names of other programs: what a dialect is given to read them from."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import Histogram
from prometheus_client.core import Metric

from cells.apply.compat_metrics import CompatCollector
from cells.hive import Group, Health
from cells.observability.collector_guard import CollectorGuard
from reconcilers.dialect import CompatMetric, CompatMetrics, Dialect, MetricsContext
from reconcilers.intent_tables import IntentTables
from reconcilers.model import Instance, Peer
from resources.tables import Tables
from statedb import Database


class Toy:
    """A dialect with one metric, which keeps what it is read from."""

    name = "toy"

    def __init__(self, *, enabled: bool = True) -> None:
        self.given: list[MetricsContext] = []
        self.metrics = CompatMetrics(agent=self.read if enabled else None)

    def each(self, extension: object) -> tuple[CompatMetrics, ...]:
        assert extension is CompatMetrics
        return (self.metrics,)

    def read(self, dialect: Any, context: MetricsContext) -> list[CompatMetric]:  # noqa: ANN401
        assert dialect is self
        self.given.append(context)
        metric = CompatMetric("toy_peer", "gauge", "A peer.", ("peer",))
        metric.samples.extend(((one.peer.name,), 7.0) for one in context.sessions)
        return [metric]


class Stand:
    """A collector with two peers, one of which has a session."""

    def __init__(self, toy: Toy, *, compat: bool = True, is_current: bool = True) -> None:
        database = Database()
        self.tables, self.intent = Tables(database), IntentTables(database)
        with database.write(self.intent.instances, self.intent.peers) as txn:
            row = Instance("main", None, 64710, "10.88.0.11", dialect="toy")
            self.intent.instances.upsert(txn, row)
            for instance, name in (("main", "a"), ("main", "b"), ("gone", "c")):
                peer = Peer(instance, name, "192.0.2.1", None, 64701)
                self.intent.peers.upsert(txn, peer)
        duration = Histogram(f"rounds_{id(self)}", "Rounds.", ["round"], registry=None)
        duration.labels("apply").observe(2.0)
        duration.labels("intent").observe(40.0)
        self.slices = [
            [SimpleNamespace(instance="main", name="a")],
            [SimpleNamespace(instance="gone", name="c")],
        ]
        metrics = SimpleNamespace(
            compat=compat, reconcile_duration=duration, guard=CollectorGuard(Health())
        )
        self.collector = CompatCollector(
            database,
            self.tables,
            self.intent,
            cast("Any", SimpleNamespace(peer_slices=lambda: iter(self.slices))),
            cast("Any", SimpleNamespace(name="n1")),
            Group[Dialect]((cast("Dialect", toy),)),
            cast("Any", SimpleNamespace(problems={"toy": 3, "other": 9})),
            cast("Any", SimpleNamespace(has_applied=True)),
            cast("Any", SimpleNamespace(failures={"main": 5})),
            cast("Any", SimpleNamespace(is_current=is_current)),
            cast("Any", metrics),
        )

    def families(self) -> list[Metric]:
        return [family for family in self.collector.collect() if family is not None]


@pytest.mark.parametrize("is_current", [True, False])
def test_a_dialect_reads_its_sessions_and_the_state_of_the_agent(*, is_current: bool) -> None:
    toy = Toy()
    stand = Stand(toy, is_current=is_current)
    (family,) = stand.families()
    assert [(s.name, s.labels, s.value) for s in family.samples] == [
        ("toy_peer", {"peer": "a"}, 7.0)
    ]
    (context,) = toy.given
    ((peer, instance, status),) = context.sessions
    assert (peer.name, instance.name) == ("a", "main")
    assert status is cast("Any", stand.slices[0][0])
    assert context.tables is stand.tables
    assert context.intent is stand.intent
    assert (context.dialect, context.node) == ("toy", "n1")
    assert context.rounds.sum == 2.0, "rounds of applying alone"
    assert context.errors == {"main": 5}
    assert context.problems == 3, "of this dialect"
    assert (context.is_loaded, context.is_current) == (True, is_current)


def test_sessions_are_read_in_slices() -> None:
    turns = list(Stand(Toy()).collector.collect())
    # One for each slice of sessions, and one for the rows.
    assert turns[:3] == [None, None, None]


@pytest.mark.parametrize(("enabled", "compat"), [(False, True), (True, False)])
def test_without_such_metrics_nothing_is_read(*, enabled: bool, compat: bool) -> None:
    stand = Stand(Toy(enabled=enabled), compat=compat)
    assert list(stand.collector.collect()) == []
