"""No order counts: of manifests, of events, of what was there in between.

The objects of every scenario, in any order, at once or one by one with rounds in between, come to the
same document. What depends on history is listed here by name, and nothing else may.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcilers.compile_manifests import OfflineSettings, kinds_of
from reconcilers.dialect import Dialect
from reconcilers.intent.compiler import IntentCompiler
from reconcilers.intent.render import document
from reconcilers.intent_tables import IntentTables
from reconcilers.operator import InProcessOperator, Planner
from resources.kind import Kind
from resources.manifests.load import load
from resources.meta import Resource
from resources.tables import Tables
from statedb import Database
from tests.support import scenario
from tests.support.examples import examples

FIRST_COME = {
    "cilium/C47-C49-conflict": "a node stays with the ClusterConfig that has it",
    "cilium/C72-first-policy-wins": "a node stays with the policy that it follows",
    "cilium/v1-translated": "the same, of ClusterConfigs that policies are translated to",
    "cilium/C53-router-id-pool": "a router ID stays with the instance that has it",
    "frrk8s/conflict-keep": "the last good state stays while objects contradict each other",
    "frrk8s/passwords": "the same, of passwords",
    "frrk8s/F01-F21-advertised": "the same, of what is advertised",
    "frrk8s/F07-F23-attributes": "the same, of attributes",
    "frrk8s/F25-F31-several-objects": "the same, of a router",
    "frrk8s/B01-B05-selection": "the same, with a selector that is invalid",
}
"""Where the first claimant keeps what it has, on purpose."""
SCENARIOS = [path for path in scenario.directories() if scenario.load(path).steps]


class State(NamedTuple):
    """The objects after one step of a scenario, and the document compiled from them."""

    options: OfflineSettings
    dialects: tuple[type[Dialect], ...]
    objects: list[tuple[Kind[Any], Resource]]
    expected: dict[str, Any]
    explained: list[tuple[str, ...]]


class Cluster:
    """Tables that objects are put into one by one."""

    def __init__(self, options: OfflineSettings, types: Sequence[type[Dialect]]) -> None:
        self.db = Database()
        self.resources, self.intent = Tables(self.db, kinds_of(types)), IntentTables(self.db)
        self.options = options
        dialects = [one(self.resources, options.dialects[one.name]) for one in types]
        planner = Planner(self.db, dialects, options.secrets_namespace, stored=False)
        self.operator = InProcessOperator(self.db, self.intent, planner)
        self.compiler = IntentCompiler(
            self.db,
            self.resources,
            self.intent,
            dialects,
            options.node,
            secrets_namespace=options.secrets_namespace,
            options=options.intent,
            operator_in_process=True,
        )

    def put(self, kind: Kind[Any], row: Resource) -> None:
        table = self.resources.of(kind)
        with self.db.write(table) as txn:
            table.upsert(txn, row)

    def delete(self, kind: Kind[Any], row: Resource) -> None:
        table = self.resources.of(kind)
        with self.db.write(table) as txn:
            table.delete(txn, row.key)

    def document(self) -> dict[str, Any]:
        self.operator.run()
        self.compiler.run()
        return document(self.db.snapshot(), self.options.node, self.resources, self.intent)

    def explained(self) -> list[tuple[str, ...]]:
        return [
            tuple(
                map(
                    str,
                    (v.instance, v.peer, v.object, v.type, v.nlri, v.advertised, v.reason, v.rule),
                )
            )
            for group in self.compiler.explainer().explain()
            for v in group
        ]


@functools.cache
def states(directory: Path) -> list[State]:
    """Return the states after each step; objects that the API server would refuse are not there."""
    described = scenario.load(directory)
    types, options = described.dialects, described.settings
    files: set[str] = set()
    found = []
    for step in described.steps:
        files = (files - set(step.remove)) | set(step.apply)
        loaded = load([str(directory / name) for name in sorted(files)], kinds_of(types))
        objects = [(kind, row) for kind, event in loaded.replacements for row in event.objects]
        cluster = Cluster(options, types)
        for kind, row in objects:
            cluster.put(kind, row)
        expected = cluster.document()
        found.append(State(options, types, objects, expected, cluster.explained()))
    return found


RELAXED = settings(deadline=None, max_examples=examples(2), database=None)
ORDERS = st.randoms(use_true_random=True)
"""From a seed: of numbers that hypothesis chooses one by one, the first order is the given one."""
ROUND = 0.7
"""How often a round follows an event."""
EVERY = pytest.mark.parametrize("directory", SCENARIOS, ids=lambda path: path.name)
LEVEL = pytest.mark.parametrize(
    "directory",
    [p for p in SCENARIOS if f"{p.parent.name}/{p.name}" not in FIRST_COME],
    ids=lambda path: path.name,
)


def test_the_documented_dependence_on_history_is_tested() -> None:
    assert FIRST_COME.keys() <= {f"{path.parent.name}/{path.name}" for path in SCENARIOS}


@EVERY
@RELAXED
@given(rng=ORDERS)
def test_the_order_of_manifests_has_no_effect(directory: Path, rng: random.Random) -> None:
    for state in states(directory):
        objects = list(state.objects)
        rng.shuffle(objects)
        cluster = Cluster(state.options, state.dialects)
        for kind, row in objects:
            cluster.put(kind, row)
        assert cluster.document() == state.expected
        assert cluster.explained() == state.explained


@LEVEL
@RELAXED
@given(rng=ORDERS)
def test_the_order_of_events_has_no_effect(directory: Path, rng: random.Random) -> None:
    # Objects of other steps come and go meanwhile, and other versions of the remaining objects.
    others = [item for state in states(directory) for item in state.objects]
    for state in states(directory):
        wanted = {(kind.name, row.key): (kind, row) for kind, row in state.objects}
        passing = rng.sample(others, min(len(others), rng.randint(0, 6)))
        events = [*passing, *wanted.values()]
        rng.shuffle(events)
        cluster = Cluster(state.options, state.dialects)

        def perhaps_run() -> None:
            if rng.random() < ROUND:
                cluster.operator.run()  # noqa: B023
                cluster.compiler.run()  # noqa: B023

        for kind, row in events:
            cluster.put(kind, row)
            perhaps_run()
        for kind, row in passing:
            there = wanted.get((kind.name, row.key))
            if there is None:
                cluster.delete(kind, row)
            else:
                cluster.put(*there)
            perhaps_run()
        assert cluster.document() == state.expected
        assert cluster.explained() == state.explained
