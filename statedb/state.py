"""The immutable state of one table, and the pure functions from one state to the next.

States are persistent maps (`immutables.Map`, a hash trie): a new state shares everything unchanged with
its predecessor, so a snapshot is one pointer. An index is a map of maps, one level for each component
of its keys, so a prefix of a key is a subtree. No locks or subscribers here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from operator import methodcaller
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from immutables import Map

from statedb.errors import KeyShape
from statedb.index_declaration import Component

T = TypeVar("T")

Path: TypeAlias = tuple[Component, ...]
Tree: TypeAlias = "Map[Any, Any]"
"""Nested maps; the leaves are changes (primary), paths (unique) or sets of paths as maps."""

EMPTY: Tree = Map()
_values = methodcaller("values")


class Change(NamedTuple, Generic[T]):
    """One row as written, or as it was before its deletion.

    A table has the last change of each row as it is: all rows are its first changes.
    """

    row: T
    revision: int
    """Of the table, by this write."""
    deleted: bool


class TableState(NamedTuple):
    """One version of a table."""

    revision: int
    size: int
    primary: Tree
    indexes: tuple[Tree, ...]
    arities: tuple[int, ...]
    """Number of key components of the primary and of each other index; 0 before the first key."""
    pending: frozenset[str]
    """Initializers that have not completed."""


def tree_get(tree: Tree, path: Path) -> Any:  # noqa: ANN401  a leaf or a subtree
    """Return the leaf at a path, or the subtree at a prefix of one; None if there is none."""
    node: Any = tree
    for component in path:
        node = node.get(component)
        if node is None:
            return None
    return node


def tree_set(tree: Tree, path: Path, leaf: Any) -> Tree:  # noqa: ANN401
    """Return a tree with a leaf at a path."""
    # Most paths have up to three components, and are not taken apart.
    if len(path) == 1:
        return tree.set(path[0], leaf)
    if len(path) == 2:
        head, last = path
        return tree.set(head, tree.get(head, EMPTY).set(last, leaf))
    if len(path) == 3:
        head, middle, last = path
        below = tree.get(head, EMPTY)
        return tree.set(head, below.set(middle, below.get(middle, EMPTY).set(last, leaf)))
    head = path[0]
    return tree.set(head, tree_set(tree.get(head, EMPTY), path[1:], leaf))


def tree_of(leaves: Iterable[tuple[tuple[Any, ...], Any]]) -> Tree:
    """Return a tree of these leaves, as `tree_set` of each would: the last leaf of a path stays.

    The last component of a path is a primary path where the leaves are members of groups.
    """
    levels: dict[Any, Any] = {}
    depth = 0
    for path, leaf in leaves:
        level = levels
        for component in path[:-1]:
            level = level.setdefault(component, {})
        level[path[-1]] = leaf
        depth = len(path)
    return _as_maps(levels, depth)


def _as_maps(levels: dict[Any, Any], depth: int) -> Tree:
    if depth <= 1:
        return Map(levels)
    return Map({component: _as_maps(below, depth - 1) for component, below in levels.items()})


def tree_delete(tree: Tree, path: Path) -> Tree:
    """Return a tree without a leaf, and without the branches that become empty."""
    head = path[0]
    if len(path) == 1:
        return tree.delete(head)
    below = tree_delete(tree[head], path[1:])
    return tree.set(head, below) if below else tree.delete(head)


def leaves(tree: Any, depth: int) -> Iterator[Any]:  # noqa: ANN401
    """Return an iterator over the leaves ``depth`` levels below."""
    if depth == 0:
        return iter((tree,))
    level: Iterator[Any] = iter(tree.values())
    for _ in range(depth - 1):
        level = chain.from_iterable(map(_values, level))
    return level


def check_arity(table: str, index: str, path: Path, arity: int) -> int:
    """Return the number of components of an index's keys, given one key. Raises `KeyShape`."""
    if not path or (arity and len(path) != arity):
        raise KeyShape(table, index, path, arity or 1)
    return len(path)


def group_add(tree: Tree, path: Path, member: Path) -> Tree:
    """Add a primary path to the set at a key of a non-unique index."""
    group = tree_get(tree, path)
    return tree_set(tree, path, (EMPTY if group is None else group).set(member, None))


def group_remove(tree: Tree, path: Path, member: Path) -> Tree:
    """Remove a primary path from the set at a key of a non-unique index."""
    group = tree_get(tree, path).delete(member)
    return tree_set(tree, path, group) if group else tree_delete(tree, path)
