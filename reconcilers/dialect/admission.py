"""The review of objects before the API server stores them, and the check of manifests."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Any

from reconcilers.dialect.extension import Extension
from reconcilers.model import Problem
from resources.kind import Kind
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.dialect.protocol import Dialect


def _each_node(_dialect: Any, _snapshot: Snapshot, node: str) -> Hashable:  # noqa: ANN401
    return node


def _no_warning(_dialect: Any, _row: Any, _former: Any) -> Iterable[str]:  # noqa: ANN401
    return ()


def _nothing(_dialect: Any, _snapshot: Snapshot) -> Iterable[Problem]:  # noqa: ANN401
    return ()


class Admission(Extension, frozen=True):
    """The inputs of a review beside the problems of `Dialect.compile`; functions take the dialect."""

    kinds: tuple[Kind[Any], ...] = ()
    """The kinds whose objects the operator's webhook reviews."""
    node_group: Callable[[Any, Snapshot, str], Hashable] = _each_node
    """Returns a value that is equal for nodes on which the same objects have the same problems: of
    such nodes one is compiled for all. Without it each node is one group."""
    warnings: Callable[[Any, Any, Any], Iterable[str]] = _no_warning
    """Yields warnings about an object that is admitted, as sentences without their end, given its row
    and, of an update, its former row; otherwise None."""
    without_effect: Callable[[Any, Snapshot], Iterable[Problem]] = _nothing
    """Yields a problem for each object, and each reference of one, that has no effect, for a check: a
    program that runs reports none, as objects may be of others, or not complete yet."""


def node_grouping(dialects: Iterable[Dialect]) -> Callable[[Snapshot, str], Hashable]:
    """Return the function that groups nodes for any dialect's admission (`Admission.node_group`)."""
    own = [(dialect, dialect.each(Admission)) for dialect in dialects]
    functions = [(dialect, each.node_group) for dialect, all_of in own for each in all_of]
    alone = any(not all_of for _, all_of in own)

    def group(snapshot: Snapshot, node: str) -> Hashable:
        parts = [function(dialect, snapshot, node) for dialect, function in functions]
        return (*parts, node) if alone else tuple(parts)

    return group
