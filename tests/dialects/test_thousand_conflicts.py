"""A thousand objects of each dialect in each kind of conflict: under a second of CPU, in slices."""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from reconcilers.antrea.dialect import AntreaDialect
from reconcilers.cilium.dialect import CiliumDialect
from reconcilers.compile_manifests import kinds_of
from reconcilers.dialect import Dialect
from reconcilers.frrk8s.dialect import Frrk8sDialect
from reconcilers.intent.compiler import IntentCompiler
from reconcilers.intent_tables import IntentTables
from reconcilers.metallb.dialect import MetalLBDialect
from reconcilers.model import Problem
from reconcilers.operator import InProcessOperator, Planner
from reconcilers.ovnk.dialect import OvnkDialect
from resources.enumeration import MAX_MESSAGE_CHARACTERS
from resources.row_updates import replace_all
from resources.tables import Tables
from statedb import Database
from tests.dialects.conflicts import CONFLICTS, COUNT, Objects
from tests.reconcilers.build import NODE, node

CPU_SECONDS = 1.0
"""Of all slices together: of the operator's part and of the compilation for one node."""
SLICE_CPU_SECONDS = 0.25
"""Of the longest slice, in which a collection of garbage of the test's process may fall."""
DIALECTS: tuple[type[Dialect], ...] = (
    CiliumDialect,
    AntreaDialect,
    Frrk8sDialect,
    MetalLBDialect,
    OvnkDialect,
)
NODE_OBJECT = {"apiVersion": "v1", "kind": "Node", **node()}
NODE_OBJECT["metadata"] |= {"annotations": {"node.antrea.io/bgp-router-id": "10.0.0.9"}}


WITHOUT_PROBLEM = "BGPPolicies: node"
"""Antrea has one effective policy of a node, and the others are none of its problems."""


class Round(NamedTuple):
    """The first round of an agent that runs the operator's part, too."""

    slices: list[float]
    """Seconds of CPU."""
    problems: list[Problem]


def first_round(objects: Objects) -> Round:
    kinds, database = kinds_of(DIALECTS), Database()
    tables, intent = Tables(database, kinds), IntentTables(database)
    for kind in kinds:
        given = [value for value in objects if value["kind"] == kind.name]
        rows = [kind.decode(value) for value in given]
        with database.write(tables.of(kind)) as txn:
            replace_all(txn, tables.of(kind), rows)
    dialects = [dialect(tables, dialect.options_type()) for dialect in DIALECTS]
    planner = Planner(database, dialects, "kube-system", stored=False)
    operator = InProcessOperator(database, intent, planner)
    compiler = IntentCompiler(database, tables, intent, dialects, NODE, operator_in_process=True)

    def work() -> Iterator[None]:
        yield from operator.slices()
        yield from compiler.slices()

    gc.collect()
    times = [time.process_time(), *(time.process_time() for _ in work()), time.process_time()]
    problems = list(intent.problems.all(database.snapshot()))
    return Round([b - a for a, b in itertools.pairwise(times)], problems)


@pytest.mark.parametrize("name", CONFLICTS)
def test_a_thousand_objects_in_conflict_cost_less_than_a_second_in_slices(name: str) -> None:
    objects = [NODE_OBJECT, *CONFLICTS[name]()]
    rounds = [first_round(objects)]
    if sum(rounds[0].slices) >= CPU_SECONDS or max(rounds[0].slices) >= SLICE_CPU_SECONDS:
        # A process that shares its core measures more than it computes: the better one of two.
        rounds.append(first_round(objects))
    assert min(sum(each.slices) for each in rounds) < CPU_SECONDS
    assert min(max(each.slices) for each in rounds) < SLICE_CPU_SECONDS
    problems = rounds[0].problems
    assert bool(problems) is (name != WITHOUT_PROBLEM)
    assert len(problems) <= COUNT + 2
    assert max((len(str(problem)) for problem in problems), default=0) <= MAX_MESSAGE_CHARACTERS
    # Each object has its number in a problem, or a row names it with the others.
    named = {ref for problem in problems for ref in problem.objects}
    count = sum(value["kind"] == objects[-1]["kind"] for value in objects)
    assert not problems or len(named) >= min(count, COUNT)
