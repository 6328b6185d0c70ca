"""The operator's part of a dialect: what it generates for the whole cluster, and reports on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from reconcilers.dialect.compilation import ClusterContext, ClusterIntent
from reconcilers.dialect.extension import Extension
from reconcilers.sliced_work import Slices, sliced
from resources.kind import Kind
from statedb import Snapshot, Table

if TYPE_CHECKING:
    from reconcilers.dialect.protocol import Dialect


class Operation(Extension, frozen=True):
    """A part that the leader of the operator runs, or an agent that reads manifests."""

    operate: Callable[[Any, Snapshot, ClusterContext], ClusterIntent | Slices[ClusterIntent]]
    """Generates what the cluster has to have, and reports on its objects, given the dialect; in slices
    where it takes long. Called after changes of `Dialect.cluster_kinds` and of ``follows``, and by a
    review of a change, without a state, which must not have an effect on the next call."""
    condition_kinds: tuple[Kind[Any], ...] = ()
    """The kinds whose conditions it writes."""
    condition_types: frozenset[str] = frozenset()
    """The types of these conditions, which are removed where they no longer hold."""
    generated_kinds: tuple[Kind[Any], ...] = ()
    """The kinds whose objects it writes and deletes."""
    follows: tuple[Kind[Any], ...] = ()
    """Kinds of another dialect that it depends on."""
    option: str | None = None
    """The key of the option, in the configuration file, without which it writes nothing."""
    value: str | None = None
    """The word that the option has to contain; None for any value."""


class ConditionMetric(Extension, frozen=True):
    """Another program's metric of a condition, which the operator writes instead of that program."""

    name: str
    """Of the metric."""
    text: str
    """Its description."""
    kind: Kind[Any]
    type: str
    """Of the condition."""


def operate(dialect: Dialect, snapshot: Snapshot, context: ClusterContext) -> Slices[ClusterIntent]:
    """Run the operation (the operator's part) of any dialect; one without it generates nothing."""
    for operation in dialect.each(Operation):
        return (yield from sliced(operation.operate(dialect, snapshot, context)))
    return ClusterIntent()


def operated_tables(dialect: Dialect) -> tuple[Table[Any], ...]:
    """Return the tables whose changes make the operation of any dialect due."""
    followed = [kind for operation in dialect.each(Operation) for kind in operation.follows]
    kinds = (*dialect.read(dialect.options, operator=True), *followed)
    return tuple(map(dialect.tables.of, kinds))
