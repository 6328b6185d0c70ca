"""What a round of intent reports: problems, drain and counts, in log, health and metrics."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from cells.hive import HealthTree
from cells.intent import cell
from cells.intent.cell import IntentLoop
from reconcilers.intent import drain
from reconcilers.intent_tables import IntentTables
from reconcilers.model import ObjectRef, PendingDialect, Problem
from resources.core.kinds import NODE
from resources.row_updates import replace_all
from resources.tables import Tables
from statedb import Database
from tests.reconcilers.apply.intent_rows import PEER, changed
from tests.reconcilers.build import node

WEB = ObjectRef("Service", "shop", "web")
ROUTER = ObjectRef("Router", "ns", "a")
OWN = Problem((ROUTER, WEB), "spec.asn", "differs")
TENANT = Problem((WEB,), "", "no address", of_tenant=True, count=7)


class Loop:
    """A loop of which only the reports are used."""

    def __init__(self) -> None:
        self.database = Database()
        self.tables, self.intent = Tables(self.database), IntentTables(self.database)
        self.tree = HealthTree()
        loop = self.loop = object.__new__(IntentLoop)
        loop._database, loop._tables, loop._intent = self.database, self.tables, self.intent
        loop._health = self.tree.scope("intent")
        loop._problems = self.intent.problems.changes(self.database)
        loop._known, loop.problems = {}, Counter()
        loop._drained = loop._drain_of = loop._compiler = None
        loop.ready = loop.complete = False

    def put(self, table: Any, *rows: Any) -> None:  # noqa: ANN401
        with self.database.write(table) as txn:
            for row in rows:
                table.upsert(txn, row)

    def remove(self, problem: Problem) -> None:
        others = [
            row for row in self.intent.problems.all(self.database.snapshot()) if row != problem
        ]
        with self.database.write(self.intent.problems) as txn:
            replace_all(txn, self.intent.problems, others)

    def report(self) -> list[dict[str, Any]]:
        with capture_logs() as logs:
            self.loop._report()
        return [dict(line) for line in logs]

    @property
    def health(self) -> dict[str, tuple[str, str]]:
        return {
            "/".join(s.path): (str(s.level), s.message) for s in self.tree.report() if s.message
        }

    def samples(self) -> dict[str, float]:
        return {
            f"{sample.name} {sample.labels.get('kind', '')}".strip(): sample.value
            for family in self.loop.collect()
            for sample in family.samples
        }


def test_a_problem_and_its_solution_are_logged_once_each() -> None:
    it = Loop()
    assert it.report() == []
    it.put(it.intent.problems, OWN, TENANT)
    common = {"event": "problem", "event_name": "intent.problem", "log_level": "warning"}
    lines = sorted(it.report(), key=lambda line: line["object"])
    assert lines == [
        {
            **common,
            "object": f"{ROUTER}, {WEB}",
            "field": "spec.asn",
            "reason": "differs",
            "count": None,
            "of_tenant": None,
        },
        {
            **common,
            "object": str(WEB),
            "field": None,
            "reason": "no address",
            "count": 7,
            "of_tenant": True,
        },
    ]
    assert it.report() == []
    it.remove(OWN)
    assert it.report() == [
        {
            "event": "problem solved",
            "event_name": "intent.solved",
            "log_level": "info",
            "object": f"{ROUTER}, {WEB}",
            "field": "spec.asn",
        }
    ]


def test_the_health_is_the_first_problem_of_an_administrator() -> None:
    it = Loop()
    it.put(it.intent.problems, TENANT)
    it.report()
    assert it.health == {"intent": ("ok", "0 routes, 0 peers")}
    it.put(it.intent.problems, OWN, Problem((ROUTER,), "", "invalid"))
    it.report()
    level, text = it.health["intent"]
    assert level == "degraded"
    assert text.startswith("Router/ns/a: invalid")
    it.remove(Problem((ROUTER,), "", "invalid"))
    it.report()
    assert it.health["intent"] == ("degraded", f"{ROUTER}, {WEB}: spec.asn: differs")
    it.put(it.intent.pending_dialects, PendingDialect("antrea", ("Egress", "BGPPolicy")))
    it.report()
    assert it.health["intent"] == (
        "degraded",
        "antrea waits for the first reading of Egress, BGPPolicy; other dialects go on",
    )


def test_a_drain_is_a_line_at_its_begin_and_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    it = Loop()
    drained: list[str | None] = ["by the taint x"]
    calls: list[int] = []

    def describe(peers: Any) -> str | None:  # noqa: ANN401
        calls.append(len(list(peers)))
        return drained[-1]

    monkeypatch.setattr(drain, "describe", describe)
    it.put(it.intent.peers, PEER)
    (line,) = it.report()
    assert (line["event_name"], line["reason"]) == ("intent.drain", "by the taint x")
    assert it.health["intent/drain"] == ("ok", "by the taint x")
    assert it.samples()["waggle_drained"] == 1
    # Without a change of a peer it is not computed again, and without another state not logged.
    assert it.report() == []
    assert calls == [1]
    it.put(it.intent.peers, changed(hold_time=30))
    assert it.report() == []
    assert calls == [1, 1]
    drained.append(None)
    it.put(it.intent.peers, changed(hold_time=60))
    (line,) = it.report()
    assert line["event_name"] == "intent.drain_over"
    assert "intent/drain" not in it.health
    assert it.samples()["waggle_drained"] == 0


def test_objects_routes_and_problems_are_counted() -> None:
    it = Loop()
    it.put(it.tables.nodes, NODE.decode(node("a")), NODE.decode(node("b")))
    it.put(it.intent.problems, OWN, TENANT, Problem((ROUTER,), "", "invalid"))
    found = it.samples()
    assert found[f"waggle_source_objects {it.tables.nodes.name}"] == 2
    assert found["waggle_intent_routes"] == 0
    assert found["waggle_problems"] == 2
    assert found["waggle_tenant_problems"] == 1


def test_problems_of_administrators_add_up_by_dialect() -> None:
    it = Loop()
    row = Problem((ROUTER,), "", "invalid", dialect="frrk8s")
    it.put(it.intent.problems, row, Problem((ROUTER,), "", "and more", dialect="frrk8s", count=2))
    it.put(it.intent.problems, Problem((WEB,), "", "no address", dialect="frrk8s", of_tenant=True))
    it.put(it.intent.problems, Problem((ROUTER,), "", "conflict", dialect="cilium"))
    it.report()
    it.report()
    assert it.loop.problems == {"frrk8s": 3, "cilium": 1}
    it.remove(row)
    it.report()
    it.put(it.intent.problems, row)
    it.report()
    assert it.loop.problems["frrk8s"] == 4, "once more after its solution"


@pytest.mark.parametrize(
    ("complete", "pending", "problem", "is_current"),
    [
        (True, False, None, True),
        (False, False, None, False),
        (True, True, None, False),
        (True, False, TENANT, True),
        (True, False, OWN, False),
    ],
)
def test_the_intent_is_current_once_all_is_read_and_valid(
    problem: Problem | None, *, complete: bool, pending: bool, is_current: bool
) -> None:
    it = Loop()
    it.loop.complete = complete
    if pending:
        it.put(it.intent.pending_dialects, PendingDialect("antrea", ("Egress",)))
    if problem is not None:
        it.put(it.intent.problems, problem)
    assert it.loop.is_current is is_current


def test_before_the_first_round_nothing_is_explained() -> None:
    it = Loop()
    compiler: Any = cast("Any", type("Compiler", (), {"explainer": lambda _: "explainer"})())
    assert it.loop.explainer() is None
    assert it.loop.unrestricted_addresses() == ()
    it.loop._compiler = compiler
    assert it.loop.explainer() is None
    it.loop.ready = True
    explainer: Any = it.loop.explainer()
    assert explainer == "explainer"


def test_a_dialect_that_fails_is_a_line_with_its_error() -> None:
    error = ValueError("a bug")
    with capture_logs() as logs:
        cell._log_failed_dialect("toy", error)
    (line,) = logs
    assert (line["event_name"], line["log_level"]) == ("intent.dialect_failed", "error")
    assert (line["dialect"], line["exc_info"]) == ("toy", error)


def test_a_conflict_of_a_thousand_objects_is_one_short_line_for_all_that_join_it() -> None:
    it = Loop()
    refs = [ObjectRef("Router", "ns", f"r{i:03}") for i in range(1000)]
    conflicts = [
        Problem(tuple(refs[:count]), "spec.asn", f"differs in {count}", category="conflict")
        for count in (998, 999, 1000)
    ]
    lines = []
    for conflict in conflicts:
        with it.database.write(it.intent.problems) as txn:
            replace_all(txn, it.intent.problems, [conflict])
        lines += it.report()
    (line,) = lines
    names = ", ".join(map(str, refs[:8]))
    assert line["object"] == f"{names} and 990 more"
    assert it.health["intent"][1] == f"{names} and 992 more: spec.asn: differs in 1000"
    it.remove(conflicts[-1])
    (line,) = it.report()
    assert (line["event_name"], line["object"]) == ("intent.solved", f"{names} and 992 more")
