"""The objects that select a node by its labels; kept for nodes with the same ones. Pure."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Selected(NamedTuple, Generic[T]):
    """The objects of a node."""

    objects: T
    group: int
    """Equal for the nodes of one `SelectedObjects` that have the same objects."""


class SelectedObjects(Generic[T]):
    """Selections by the values of the labels that selectors name."""

    def __init__(
        self,
        labels: Iterable[str],
        select: Callable[[Mapping[str, str]], T],
        identity: Callable[[T], Hashable],
    ) -> None:
        """``select`` returns the objects of a node, given its labels; ``identity`` compares them."""
        self._labels = sorted(labels)
        self._select = select
        self._identity = identity
        self._known: dict[tuple[str | None, ...], Selected[T]] = {}
        self._groups: dict[Hashable, int] = {}

    def of(self, labels: Mapping[str, str]) -> Selected[T]:
        """Return the objects that select a node with these labels."""
        values = tuple(map(labels.get, self._labels))
        selected = self._known.get(values)
        if selected is None:
            objects = self._select(labels)
            group = self._groups.setdefault(self._identity(objects), len(self._groups))
            selected = self._known[values] = Selected(objects, group)
        return selected
