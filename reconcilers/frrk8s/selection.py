"""Selects the FRRConfigurations that are in effect on a node. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from reconcilers.model import Problem, ref_to
from reconcilers.of_tables import OfTables
from resources.errors import FieldError
from resources.frrk8s.frrconfiguration import FRRConfiguration
from resources.frrk8s.kinds import FRR_CONFIGURATION, SELECTOR
from resources.labels import LabelSelector, SelectorIndex
from resources.meta import ObjectKey
from resources.tables import Tables


class Selected(NamedTuple):
    """The objects of a node, and the problems of objects whose selector is invalid."""

    rows: tuple[FRRConfiguration, ...]
    problems: tuple[Problem, ...]
    group: int
    """Equal for the nodes of one `ObjectSelection` that the same objects select."""


class ObjectSelection:
    """The objects of a namespace by the nodes that they select.

    An object with an invalid selector selects no node; it stops nothing but itself.
    """

    def __init__(self, stored: Iterable[FRRConfiguration], namespace: str) -> None:
        valid: list[tuple[FRRConfiguration, LabelSelector]] = []
        problems: list[Problem] = []
        for row in stored:
            if row.metadata.namespace != namespace:
                continue
            broken = selector_errors(row)
            if not broken:
                valid.append((row, row.spec.node_selector))
                continue
            ref = ref_to(FRR_CONFIGURATION, row)
            problems.extend(
                Problem((ref,), error.path, error.message, category="invalid") for error in broken
            )
        self._problems = tuple(problems)
        self._index = SelectorIndex(valid)
        self._keys = sorted({key for _, selector in valid for key in selector.keys})
        self._known: dict[tuple[str | None, ...], Selected] = {}
        self._groups: dict[tuple[ObjectKey, ...], int] = {}

    def of(self, labels: Mapping[str, str]) -> Selected:
        """Return the objects that select a node with these labels."""
        values = tuple([labels.get(key) for key in self._keys])
        selected = self._known.get(values)
        if selected is None:
            rows = tuple(self._index.matching(labels))
            group = self._groups.setdefault(tuple(row.key for row in rows), len(self._groups))
            selected = self._known[values] = Selected(rows, self._problems, group)
        return selected


class ObjectSelections(OfTables[ObjectSelection]):
    """The selection of the present FRRConfigurations."""

    def __init__(self, tables: Tables) -> None:
        table = tables.of(FRR_CONFIGURATION)
        super().__init__(
            [table], lambda snapshot, namespace: ObjectSelection(table.all(snapshot), namespace)
        )


def selector_errors(row: FRRConfiguration) -> list[FieldError]:
    """Return why the selector of an object is invalid; nothing if it is valid."""
    return [error for error in row.invalid if error.path.startswith(SELECTOR)]
