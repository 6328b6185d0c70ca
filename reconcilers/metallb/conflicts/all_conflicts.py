"""All rules of conflicts together. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Protocol

from reconcilers.metallb.conflicts.advertisements import Aggregates, Preferences
from reconcilers.metallb.conflicts.echo import Echo
from reconcilers.metallb.conflicts.shared_values import NamesAndValues, Overlaps
from reconcilers.metallb.conflicts.valid_objects import MAX_COMPARED, ValidObjects
from reconcilers.metallb.objects import Objects
from reconcilers.model import ObjectRef, Problem
from resources.metallb.objects import MetalLBObject


class ConflictRule(Protocol):
    """One rule that objects may break together, and the accepted objects."""

    def accept(self, ref: ObjectRef, row: MetalLBObject, /) -> None:
        """Add a valid MetalLB object to the rule of a conflict."""
        ...

    def against(self, ref: ObjectRef, row: MetalLBObject, /) -> Iterator[ObjectRef]:
        """Iterate over the added objects with which another object breaks the rule of a conflict."""
        ...

    def problems(self, ref: ObjectRef, row: MetalLBObject, /) -> Iterator[Problem]:
        """Yield the conflicts of a valid object with others; of several each may yield the same.

        Called once all objects are accepted, for each of them in order.
        """
        ...


def _rules(valid: ValidObjects, environment: AbstractSet[ObjectRef]) -> tuple[ConflictRule, ...]:
    preferences = Preferences(valid, environment)
    return (NamesAndValues(), Overlaps(valid), Aggregates(valid), preferences, Echo(valid))


class ObjectsBeside:
    """The accepted objects (`reconcilers.dialect.FeedConflicts`)."""

    def __init__(self, valid: ValidObjects, environment: AbstractSet[ObjectRef]) -> None:
        """``environment`` has the pools in which preferences may conflict."""
        self._rows = valid.rows
        self._rules = _rules(valid, environment)

    def accept(self, ref: ObjectRef) -> None:
        """Add an object to all rules of conflicts; an object that is not MetalLB's has no effect."""
        row = self._rows.get(ref)
        if row is not None:
            for rule in self._rules:
                rule.accept(ref, row)

    def against(self, ref: ObjectRef) -> Iterator[ObjectRef]:
        """Iterate over the MetalLB objects in conflict with another object; over some of very many."""
        row = self._rows.get(ref)
        if row is not None:
            for rule in self._rules:
                yield from islice(rule.against(ref, row), MAX_COMPARED)


def conflicts(objects: Objects) -> Iterator[Problem | None]:
    """Yield all conflicts between valid MetalLB objects as problems; None is a step of the search."""
    valid = ValidObjects(objects)
    rules = _rules(valid, valid.rows.keys())
    for ref, row in valid.rows.items():
        yield None
        for rule in rules:
            rule.accept(ref, row)
    known: set[Problem] = set()
    for rule in rules:
        for ref, row in valid.rows.items():
            yield None
            for problem in rule.problems(ref, row):
                if problem not in known:
                    known.add(problem)
                    yield problem
