"""A dialect that feeds another: agent, operator and review give each of them the same of the other."""

# ruff: noqa: ARG002  the protocol's signatures

from __future__ import annotations

from typing import Any

import pytest

from reconcilers import dialect as api
from reconcilers.admission import Request, Reviewer
from reconcilers.compile_manifests import kinds_of
from reconcilers.dialect import Feeding
from reconcilers.model import ObjectRef, Problem, ref_to
from reconcilers.operator import Planner
from reconcilers.sliced_work import finish
from resources.core import Node
from resources.meta import ObjectMeta
from resources.tables import Tables
from statedb import Database, Snapshot
from tests.dialects.beacon.dialect import BeaconDialect
from tests.dialects.beacon.options import BeaconOptions
from tests.dialects.lighthouse.dialect import LighthouseDialect, beacon_of
from tests.dialects.lighthouse.kinds import LIGHTHOUSE
from tests.dialects.objects import lighthouse


def merged_objects(context: api.NodeContext) -> list[ObjectRef]:
    return [ref for feed in context.feeds.values() for ref in feed.objects]


OPERATION = api.Operation(lambda dialect, *context: dialect.operate(*context))


class Merging(BeaconDialect):
    """Every object that feeds it is a conflict: in `compile` of its node, in `operate` of all."""

    operator_options_type = BeaconOptions
    extensions = (OPERATION,)

    def compile(self, snapshot: Snapshot, context: api.NodeContext) -> api.NodeIntent:
        problems = (_conflict("compiled", ref) for ref in merged_objects(context))
        return api.NodeIntent(problems=tuple(problems))

    def operate(self, snapshot: Snapshot, context: api.ClusterContext) -> api.ClusterIntent:
        names = sorted(row.metadata.name for row in self.tables.nodes.all(snapshot))
        refs = sorted(
            {ref for name in names for ref in merged_objects(finish(context.of_node(name)))}
        )
        problems = tuple(_conflict("operated", ref) for ref in refs)
        return api.ClusterIntent(problems=problems, outcome=len(refs))


class Feeder(LighthouseDialect):
    """Reports what the operator's part of the other dialect has returned for it."""

    cluster_kinds = LighthouseDialect.kinds
    extensions = (api.Admission((LIGHTHOUSE,)), OPERATION)
    broken = False

    def compile(self, snapshot: Snapshot, context: api.NodeContext) -> api.NodeIntent:
        if self.broken:
            raise KeyError("on purpose")
        assert isinstance(context.merging_options, BeaconOptions)
        return super().compile(snapshot, context)

    def operate(self, snapshot: Snapshot, context: api.ClusterContext) -> api.ClusterIntent:
        found = (context.outcome, finish(context.of_node("a")).merging_options)
        refs = [ref_to(LIGHTHOUSE, row) for row in self.tables.of(LIGHTHOUSE).all(snapshot)]
        problems = (Problem((ref,), "", f"operated with {found}") for ref in refs)
        return api.ClusterIntent(problems=tuple(problems))


def _conflict(what: str, ref: ObjectRef) -> Problem:
    return Problem((ref,), "", what, category="conflict")


class Place:
    """Two nodes, and the two dialects with one row in the tables."""

    def __init__(self) -> None:
        self.db = Database()
        self.tables = Tables(self.db, kinds_of([Merging, Feeder]))
        self.feeder = Feeder(self.tables, Feeder.options_type())
        self.merging = Merging(self.tables, BeaconOptions(community=7))
        with self.db.write(self.tables.nodes) as txn:
            for name in "ab":
                self.tables.nodes.upsert(txn, Node(metadata=ObjectMeta(name=name)))

    def store(self, value: dict[str, Any]) -> None:
        table = self.tables.of(LIGHTHOUSE)
        with self.db.write(table) as txn:
            table.upsert(txn, LIGHTHOUSE.decode(value))

    def planned(self) -> set[str]:
        """Return the messages of the operator's problems."""
        plan = finish(Planner(self.db, [self.merging, self.feeder], "kube-system").plan())
        assert plan is not None
        return {problem.message for problem in plan.problems}

    def reviewed(self, value: dict[str, Any]) -> set[str]:
        """Return the messages of the problems for which a review denies the creation of an object."""
        reviewer = Reviewer(self.db, self.tables, [self.merging, self.feeder])
        verdict = reviewer.review(Request("CREATE", "test.waggle.dev/v2", "Lighthouse", value))
        assert not verdict.allowed
        return set(verdict.message.split("; "))


OPTIONS = BeaconOptions(community=7)


def test_the_operators_part_has_what_feeds_it_and_the_outcome_of_what_it_feeds() -> None:
    it = Place()
    it.store(lighthouse("coast", "b"))
    assert it.planned() == {"operated", f"operated with {(1, OPTIONS)}"}


def test_a_review_runs_the_operators_part_with_the_same_as_the_operator_does() -> None:
    assert Place().reviewed(lighthouse("coast", "b")) == {
        "Lighthouse/coast: compiled (node b)",
        "Lighthouse/coast: operated",
        f"Lighthouse/coast: operated with {(1, OPTIONS)}",
    }


def test_a_review_needs_no_conditions() -> None:
    it = Place()
    seen: list[bool] = []

    class Reporting(Feeder):
        def operate(self, snapshot: Snapshot, context: api.ClusterContext) -> api.ClusterIntent:
            seen.append(context.reports_conditions)
            return api.ClusterIntent()

    it.feeder = Reporting(it.tables, Reporting.options_type())
    it.planned()
    assert seen == [True]
    it.reviewed(lighthouse("coast", "b"))
    assert set(seen[1:]) == {False}


def test_the_operators_part_names_the_feeding_dialect_that_cannot_be_compiled() -> None:
    it = Place()
    it.feeder.broken = True
    it.store(lighthouse("coast", "b"))
    found = [text for text in it.planned() if text.startswith("Beacons")]
    reason = "Lighthouses, which feeds it, cannot be compiled: KeyError: 'on purpose'"
    assert found == [f"Beacons cannot be operated: FeederError: {reason}"]


def test_a_dialect_of_which_the_feeding_one_failed_is_compiled_without_it() -> None:
    it = Place()
    feeding = Feeding([it.merging, it.feeder])
    context = feeding.node_context(it.merging, api.NodeContext("a"), {})
    assert (context.feeds, context.merging_options) == ({}, None)


def test_the_feeding_dialect_comes_first_and_contributes_in_the_route_sets_of_the_other() -> None:
    it = Place()
    feeding = Feeding([it.merging, it.feeder])
    assert list(feeding.dialects) == ["lighthouse", "beacon"]
    assert feeding.feeders(it.merging) == (it.feeder,)
    assert feeding.merging(it.feeder) is it.merging
    assert feeding.route_sources(it.feeder) == ()
    assert feeding.route_sources(it.merging) == it.merging.sources


def test_what_feeds_a_feeding_dialect_reaches_the_last_one() -> None:
    class Last(Merging):
        name, feeds = "last", None

    class Middle(LighthouseDialect):
        name, title, feeds = "middle", "The middle", "last"

        def compile(self, snapshot: Snapshot, context: api.NodeContext) -> api.NodeIntent:
            return api.NodeIntent(feed=context.feeds["lighthouse"])

    class First(LighthouseDialect):
        feeds = "middle"

    it = Place()
    it.store(lighthouse("coast", "a"))
    (row,) = it.tables.of(LIGHTHOUSE).all(it.db.snapshot())
    last = Last(it.tables, OPTIONS)
    dialects = [
        last,
        Middle(it.tables, Middle.options_type()),
        First(it.tables, First.options_type()),
    ]
    context = Feeding(dialects).cluster_context(last, api.ClusterContext(), it.db.snapshot(), {})
    feed = finish(context.of_node("a")).feeds["middle"]
    assert feed.units(feed.objects) == [beacon_of(row, "a")]
    assert not merged_objects(finish(context.of_node("b")))


def test_dialects_that_feed_each_other_are_refused() -> None:
    class Back(BeaconDialect):
        feeds = "lighthouse"

    it = Place()
    with pytest.raises(ValueError, match=r"feed each other: .*beacon"):
        Feeding([Back(it.tables, OPTIONS), it.feeder])
