"""The texts of problems of conflicts: the values, and the other objects. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from reconcilers.model import ObjectRef
from resources.enumeration import counted

T = TypeVar("T")

MAX_LISTED_OBJECTS: Final = 8
"""Objects that a message names; of the others it has the number."""


def listed_values(values: Mapping[ObjectRef, object]) -> str:
    """Return the text of the values in a problem, each with the objects that have it, at most eight."""
    objects: dict[object, list[str]] = {}
    for ref, value in itertools.islice(sorted(values.items()), MAX_LISTED_OBJECTS):
        objects.setdefault(value, []).append(str(ref))
    more = len(values) - MAX_LISTED_OBJECTS
    parts = [f"{value} in {', '.join(refs)}" for value, refs in objects.items()]
    return "; ".join(parts) + (f"; and {counted(more, 'more object')}" if more > 0 else "")


def others_beside(ref: ObjectRef, number: int, *, at_least: bool = False) -> str:
    """Return the text of a problem about others in conflict with an object; empty without any."""
    if number <= 0:
        return ""
    count = f"at least {number}" if at_least else str(number)
    return f"; {ref} is in conflict with {count} more"


def named_other(others: Iterable[T], is_later: Callable[[T], bool]) -> T:
    """Return the object that the text of a problem names: the first that is later, else the first.

    Of objects that are all in conflict, each then names another one.
    """
    ordered: Sequence[T] = list(others)
    return next(filter(is_later, ordered), ordered[0])
