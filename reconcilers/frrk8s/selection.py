"""Selects the FRRConfigurations that are in effect on a node. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from reconcilers.model import Problem, ref_to
from reconcilers.of_tables import OfTables
from reconcilers.selected_objects import SelectedObjects
from resources.errors import FieldError
from resources.frrk8s.frrconfiguration import FRRConfiguration
from resources.frrk8s.kinds import FRR_CONFIGURATION, SELECTOR
from resources.label_selectors import SelectorIndex
from resources.tables import Tables

_KEY: Final = attrgetter("key")


class ObjectSelection(SelectedObjects[tuple[FRRConfiguration, ...]]):
    """The objects of a namespace by the nodes that they select.

    An object with an invalid selector selects no node; it stops nothing but itself.
    """

    def __init__(self, stored: Iterable[FRRConfiguration], namespace: str) -> None:
        own = [(row, selector_errors(row)) for row in stored if row.metadata.namespace == namespace]
        valid = [(row, row.spec.node_selector) for row, errors in own if not errors]
        index = SelectorIndex(valid)
        super().__init__(
            {key for _, selector in valid for key in selector.keys},
            lambda labels: tuple(index.matching(labels)),
            lambda rows: tuple(map(_KEY, rows)),
        )
        self.problems = tuple(
            Problem(
                (ref_to(FRR_CONFIGURATION, row),), error.path, error.message, category="invalid"
            )
            for row, errors in own
            for error in errors
        )
        """Of objects whose selector is invalid."""


class ObjectSelections(OfTables[ObjectSelection]):
    """The selection of the present FRRConfigurations."""

    def __init__(self, tables: Tables) -> None:
        table = tables.of(FRR_CONFIGURATION)
        super().__init__(
            [table], lambda snapshot, namespace: ObjectSelection(table.all(snapshot), namespace)
        )


def selector_errors(row: FRRConfiguration) -> list[FieldError]:
    """Return the selector errors for which the selection of an FRRConfiguration has no node."""
    return [error for error in row.invalid if error.path.startswith(SELECTOR)]
