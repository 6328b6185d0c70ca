"""Reconcilers whose objects are compared as one value: instances, import policies, peers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from typing import Any, ClassVar

from reconcilers.apply.reconciler import WHOLE, Description, ObjectKey, Parts, State
from statedb import Snapshot


class SingleValue(ABC):
    """The parts of `reconcilers.apply.reconciler.Reconciler` that follow from having one value."""

    description: ClassVar[Description]

    @abstractmethod
    def desired_value(self, snapshot: Snapshot, key: ObjectKey) -> Any:  # noqa: ANN401
        """Return the value of a wanted object. Raises ValueError for one that cannot be."""

    @abstractmethod
    def actual_value(self, key: ObjectKey) -> Any:  # noqa: ANN401
        """Return the value that the target holds, or None without the object."""

    @abstractmethod
    def set_value(self, key: ObjectKey, value: Any) -> None:  # noqa: ANN401
        """Create the object, or change its value."""

    def still_used(self, keys: Collection[ObjectKey]) -> Collection[ObjectKey]:
        """Nothing uses these objects, unless a subclass knows better."""
        del keys
        return ()

    def desired(self, snapshot: Snapshot, key: ObjectKey, parts: Parts) -> State:
        """See `Reconciler`."""
        del parts
        return {WHOLE: self.desired_value(snapshot, key)}

    def actual(self, key: ObjectKey, parts: Parts) -> State | None:
        """See `Reconciler`."""
        del parts
        value = self.actual_value(key)
        return None if value is None else {WHOLE: value}

    def pieces(self, snapshot: Snapshot, key: ObjectKey, size: int) -> Iterator[Collection[str]]:
        """See `Reconciler`."""
        del snapshot, key, size
        yield (WHOLE,)

    def update(self, key: ObjectKey, changes: State) -> None:
        """See `Reconciler`."""
        self.set_value(key, changes[WHOLE])

    def text(self, part: str) -> str:
        """See `Reconciler`."""
        return part
