"""Which FRRConfigurations count on a node. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from reconcilers.model import Problem, ref_to
from resources.errors import FieldError
from resources.frrk8s.frrconfiguration import FRRConfiguration
from resources.frrk8s.kinds import FRR_CONFIGURATION, SELECTOR
from resources.labels import LabelSelector


class Selected(NamedTuple):
    """The objects of a node, and the problems of those whose selector is invalid."""

    rows: list[FRRConfiguration]
    problems: list[Problem]


def selected(
    stored: Iterable[FRRConfiguration], labels: Mapping[str, str], namespace: str
) -> Selected:
    """Return the objects of the namespace that select a node with these labels.

    One whose selector is invalid selects no node; it stops nothing but itself.
    """
    found = Selected([], [])
    for row in stored:
        if row.metadata.namespace != namespace:
            continue
        broken = selector_errors(row)
        if broken:
            ref = ref_to(FRR_CONFIGURATION, row)
            found.problems.extend(
                Problem((ref,), error.path, error.message, category="invalid") for error in broken
            )
        elif row.spec.node_selector.matches(labels):
            found.rows.append(row)
    return found


def selector_errors(row: FRRConfiguration) -> list[FieldError]:
    """Return why the selector of an object is invalid; nothing if it is valid."""
    return [error for error in row.invalid if error.path.startswith(SELECTOR)]


def example_labels(selector: LabelSelector) -> dict[str, str]:
    """Return labels that a selector selects, as far as it asks for labels to be there."""
    found = dict(selector.match_labels)
    for requirement in selector.match_expressions:
        if requirement.operator == "In":
            found.setdefault(requirement.key, requirement.values[0])
        elif requirement.operator == "Exists":
            found.setdefault(requirement.key, "")
    return found
