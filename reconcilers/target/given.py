"""Reconcilers whose desired state is in no table: it is given by calls, object by object or whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Generic, TypeVar

from reconcilers.sliced_work import Slices, at_once
from reconcilers.target.reconciler import Answer, Description, ObjectKey, Parts, Reconciler
from statedb import Snapshot

T = TypeVar("T")


class GivenObjects(Reconciler, Generic[T]):
    """The parts of `Reconciler` that follow from a desired state that is given."""

    def __init__(self, description: Description) -> None:
        self.description = description
        self.given: dict[ObjectKey, T] = {}
        """The desired state, in the order in which it was given."""
        self._changed: dict[ObjectKey, Parts] = {}

    def give(self, key: ObjectKey, value: T | None) -> None:
        """Give the desired value of one object; None: it shall not be."""
        if value is None:
            self.given.pop(key, None)
        else:
            self.given[key] = value
        self._changed[key] = None

    def give_all(self, values: Mapping[ObjectKey, T]) -> set[ObjectKey]:
        """Give the desired values of all objects; returns the objects that shall not be any more."""
        before, self.given = self.given, dict(values)
        gone = set(before.keys() - values.keys())
        changed = (key for key, value in values.items() if before.get(key) != value)
        self._changed |= dict.fromkeys([*changed, *gone])
        return gone

    def concerns(self, tables: AbstractSet[str]) -> bool:
        """True: what is given is in no table, and may change without one."""
        del tables
        return True

    def changes(self, snapshot: Snapshot) -> Slices[Mapping[ObjectKey, Parts]]:
        """Return the objects that were given since the last call."""
        del snapshot
        changed, self._changed = self._changed, {}
        return at_once(changed)

    def objects(self, snapshot: Snapshot) -> Iterable[ObjectKey]:
        """Return all objects whose desired value is given."""
        del snapshot
        return list(self.given)

    def actual_objects(self) -> Answer[Iterable[ObjectKey]]:
        """None of given objects, unless a subclass can list them: nothing is pruned."""
        return ()

    def wanted(self, snapshot: Snapshot, key: ObjectKey) -> bool:
        """True if the desired value of an object is given."""
        del snapshot
        return key in self.given

    def delete(self, key: ObjectKey) -> Answer[None]:
        """Leave an object whose value is no longer given, unless a subclass deletes it."""
        del key
        return None
