"""The operator's part: conditions of FRRConfigurations, and the outcome of what feeds FRR-k8s."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Final

from reconcilers.dialect import ClusterContext, ClusterIntent, Operation
from reconcilers.frrk8s.compile_node import given_objects
from reconcilers.frrk8s.conditions import (
    ClusterOutcome,
    NodesOutcome,
    conditions,
    other_namespace,
)
from reconcilers.model import Condition, ObjectRef, ref_to
from reconcilers.sliced_work import Pieces, Slices
from resources.core import Node
from resources.frrk8s import condition_types
from resources.frrk8s.frrconfiguration import FRRConfiguration
from resources.frrk8s.kinds import FRR_CONFIGURATION
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.frrk8s.dialect import Frrk8sDialect


def operate(
    dialect: Frrk8sDialect, snapshot: Snapshot, context: ClusterContext
) -> Slices[ClusterIntent]:
    """Operate on FRRConfigurations: report conditions; nodes with the same objects are merged once.

    In slices: a node may have a thousand objects in conflict.
    """
    if not context.reports_conditions:
        return ClusterIntent()
    pieces = Pieces()
    yield from dialect.prepare(dialect.tables.of(FRR_CONFIGURATION).all(snapshot), pieces)
    namespace = dialect.options.namespace
    objects: dict[ObjectRef, int] = {}
    reported: list[Condition] = []
    for row in dialect.tables.of(FRR_CONFIGURATION).all(snapshot):
        ref, generation = ref_to(FRR_CONFIGURATION, row), row.metadata.generation
        if row.metadata.namespace == namespace:
            objects[ref] = generation
        else:
            reported.append(other_namespace(ref, generation, namespace))
    groups: dict[Hashable, list[Node]] = {}
    selections = dialect.selections.of(snapshot, namespace)
    for node in dialect.tables.nodes.all(snapshot):
        selected = selections.of(node.metadata.labels).group
        group = (selected, context.feeding_group(node.metadata.name))
        groups.setdefault(group, []).append(node)
    nodes: list[NodesOutcome] = []
    for of_group in groups.values():
        rows = selections.of(of_group[0].metadata.labels).objects
        of_nodes = yield from _of_nodes(dialect, snapshot, context, of_group, rows, pieces)
        nodes.append(of_nodes)
    dialect.merger.forget_unused()
    problems = selections.problems
    outcome = ClusterOutcome(tuple(nodes), dialect.options.on_conflict == "isolate")
    reported += yield from conditions(objects, outcome, pieces, problems)
    followed = tuple({table: None for of_nodes in nodes for table in of_nodes.followed})
    return ClusterIntent(conditions=tuple(reported), outcome=outcome, followed=followed)


def _of_nodes(
    dialect: Frrk8sDialect,
    snapshot: Snapshot,
    context: ClusterContext,
    nodes: Sequence[Node],
    selected: Sequence[FRRConfiguration],
    pieces: Pieces,
) -> Slices[NodesOutcome]:
    """Return the outcome of the objects of nodes that have the same ones."""
    of_node = yield from context.of_node(nodes[0].metadata.name)
    given = given_objects(dialect, snapshot, selected, of_node, {})
    effect = yield from given.in_effect(pieces)
    if pieces.fill_slice(len(given.own) + sum(len(feed.objects) for feed in given.feeds.values())):
        yield
    own = {ref_to(FRR_CONFIGURATION, row) for row in selected}
    replaced = own - {unit.ref for unit in given.own}
    of_feeds = (problem for outcome in effect.outcomes.values() for problem in outcome.problems)
    return NodesOutcome(
        tuple(sorted(node.metadata.name for node in nodes)),
        frozenset(own).union(*(feed.objects for feed in given.feeds.values())),
        effect.accepted,
        (*effect.merge.problems, *of_feeds),
        (*effect.merge.partial, *((ref, "LeftOut") for ref in replaced)),
        effect.followed,
    )


OPERATION: Final = Operation(
    operate, condition_kinds=(FRR_CONFIGURATION,), condition_types=condition_types.TYPES
)
