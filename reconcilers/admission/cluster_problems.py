"""The problems of a dialect's objects on all nodes: nodes with the same objects are compiled once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from reconcilers.dialect import (
    ClusterContext,
    ClusterIntent,
    Dialect,
    Feeding,
    NodeContext,
    NodeIntent,
    node_grouping,
    operate,
)
from reconcilers.model import Problem
from reconcilers.sliced_work import finish, sliced
from statedb import Snapshot


class ClusterProblem(msgspec.Struct, frozen=True, order=True):
    """A problem, and the nodes on which the objects have it."""

    problem: Problem
    nodes: tuple[str, ...] = ()
    """In the order of their names; empty where it is not a node's."""


NodeGroups = Mapping[Hashable, Sequence[str]]
"""The names of nodes by group; the first one is compiled for all."""


def node_groups(
    dialects: Iterable[Dialect], snapshot: Snapshot, nodes: Iterable[str]
) -> NodeGroups:
    """Return groups of nodes with the same objects, for the problems of a whole cluster."""
    groups: dict[Hashable, list[str]] = {}
    group = node_grouping(dialects)
    for node in sorted(nodes):
        groups.setdefault(group(snapshot, node), []).append(node)
    return groups


def cluster_problems(
    feeding: Feeding, snapshot: Snapshot, nodes: Iterable[str], secrets_namespace: str
) -> list[ClusterProblem]:
    """Return the problems of the dialects' objects on all nodes, and of the operator's part.

    A dialect that cannot be compiled is a problem without objects.
    """
    nodes_of: dict[Problem, list[str]] = {}
    cluster = ClusterContext(secrets_namespace, reports_conditions=False)
    operated: dict[str, ClusterIntent] = {}
    for name, dialect in reversed(list(feeding.dialects.items())):
        try:
            context = feeding.cluster_context(dialect, cluster, snapshot, operated)
            operated[name] = finish(operate(dialect, snapshot, context))
            problems = operated[name].problems
        except Exception as error:  # noqa: BLE001  one dialect's error is that dialect's
            problems = (_failure(dialect, error),)
        for problem in problems:
            nodes_of.setdefault(replace(problem, dialect=name), [])
    for members in node_groups(feeding.dialects.values(), snapshot, nodes).values():
        node = NodeContext(members[0], secrets_namespace, for_operator=True)
        for problem in _node_problems(feeding, snapshot, node):
            nodes_of.setdefault(problem, []).extend(members)
    return sorted(
        ClusterProblem(problem, tuple(sorted(set(names)))) for problem, names in nodes_of.items()
    )


def _node_problems(feeding: Feeding, snapshot: Snapshot, context: NodeContext) -> list[Problem]:
    """Return the problems of one node, each with the name of its dialect."""
    problems: list[Problem] = []
    compiled: dict[str, NodeIntent] = {}
    for name, dialect in feeding.dialects.items():
        of_dialect = feeding.node_context(dialect, context, compiled)
        try:
            compiled[name] = finish(sliced(dialect.compile(snapshot, of_dialect)))
        except Exception as error:  # noqa: BLE001  as above
            problems.append(_failure(dialect, error))
            continue
        # What is unconfigured is the node's own; the problem is the same one on every node.
        problems += (replace(p, unconfigured=()) for p in compiled[name].problems_of(name))
    return problems


def _failure(dialect: Dialect, error: Exception) -> Problem:
    text = f"{dialect.title} cannot be compiled: {type(error).__name__}: {error}"
    return Problem((), "", text, dialect=dialect.name)
