"""Selects MetalLB's objects that are in effect on a node. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reconcilers.metallb.objects import Objects
from reconcilers.of_tables import OfTables
from reconcilers.selected_objects import SelectedObjects
from resources.kind import Kind
from resources.label_selectors import LabelSelector, SelectorIndex
from resources.metallb import kinds
from resources.tables import Tables
from statedb import Snapshot


class _Rows:
    """The rows of one kind, sorted by name, by the labels of the nodes that they concern."""

    def __init__(self, kind: Kind[Any], rows: Iterable[Any]) -> None:
        self._rows = sorted(rows, key=lambda row: row.metadata.name)
        selectors = None if kind.of_node is None else kind.of_node.selectors
        self._index: SelectorIndex[int] | None = None
        self.keys: frozenset[str] = frozenset()
        if selectors is not None:
            of_rows = [
                (i, selector)
                for i, row in enumerate(self._rows)
                for selector in tuple(selectors(row)) or (LabelSelector(),)
            ]
            self._index = SelectorIndex(of_rows)
            self.keys = frozenset(key for _, selector in of_rows for key in selector.keys)

    def of(self, labels: Mapping[str, str]) -> tuple[Any, ...]:
        if self._index is None:
            return tuple(self._rows)
        return tuple(self._rows[i] for i in sorted(set(self._index.matching(labels))))


class ObjectSelection(SelectedObjects[Objects]):
    """The objects of a namespace by the nodes that they concern."""

    def __init__(self, tables: Tables, snapshot: Snapshot, namespace: str) -> None:
        of_kinds = [
            _Rows(kind, tables.in_namespace(snapshot, kind, namespace))
            for kind in kinds.CONFIGURATION
        ]
        super().__init__(
            frozenset[str]().union(*(rows.keys for rows in of_kinds)),
            lambda labels: Objects(*(rows.of(labels) for rows in of_kinds)),
            lambda objects: tuple(ref for ref, _ in objects.refs()),
        )


class ObjectSelections(OfTables[ObjectSelection]):
    """The selection of the present objects."""

    def __init__(self, tables: Tables) -> None:
        super().__init__(
            [tables.of(kind) for kind in kinds.CONFIGURATION],
            lambda snapshot, namespace: ObjectSelection(tables, snapshot, namespace),
        )
