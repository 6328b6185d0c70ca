"""Reconcilers whose objects are compared as one value: instances, peers, statuses, files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Collection, Iterator
from typing import Any

from reconcilers.target.reconciler import WHOLE, Answer, Description, ObjectKey, Parts, State
from statedb import Snapshot


class SingleValue(ABC):
    """The parts of `reconcilers.target.reconciler.Reconciler` that follow from having one value."""

    @property
    @abstractmethod
    def description(self) -> Description:
        """See `Reconciler`; a class attribute where it is constant."""

    def possible(self, key: ObjectKey) -> bool:
        """An object needs no other one, unless a subclass knows better."""
        del key
        return True

    @abstractmethod
    def desired_value(self, snapshot: Snapshot, key: ObjectKey) -> Any:  # noqa: ANN401
        """Return the value of a wanted object. Raises ValueError for one that cannot be."""

    @abstractmethod
    def actual_value(self, key: ObjectKey) -> Any:  # noqa: ANN401
        """Return the value that the target holds, or None without the object; or a coroutine."""

    @abstractmethod
    def set_value(self, key: ObjectKey, value: Any) -> Answer[None]:  # noqa: ANN401
        """Create the object, or change its value."""

    def still_used(self, keys: Collection[ObjectKey]) -> Collection[ObjectKey]:
        """Nothing uses these objects, unless a subclass knows better."""
        del keys
        return ()

    def desired(self, snapshot: Snapshot, key: ObjectKey, parts: Parts) -> State:
        """See `Reconciler`."""
        del parts
        return {WHOLE: self.desired_value(snapshot, key)}

    def actual(self, key: ObjectKey, parts: Parts) -> Answer[State | None]:
        """See `Reconciler`."""
        del parts
        value = self.actual_value(key)
        return _awaited(value) if isinstance(value, Awaitable) else _whole(value)

    def pieces(self, snapshot: Snapshot, key: ObjectKey, size: int) -> Iterator[Collection[str]]:
        """See `Reconciler`."""
        del snapshot, key, size
        yield (WHOLE,)

    def update(self, key: ObjectKey, changes: State) -> Answer[None]:
        """See `Reconciler`."""
        return self.set_value(key, changes[WHOLE])

    def text(self, part: str) -> str:
        """See `Reconciler`."""
        return part


def _whole(value: Any) -> State | None:  # noqa: ANN401
    return None if value is None else {WHOLE: value}


async def _awaited(value: Awaitable[Any]) -> State | None:
    return _whole(await value)
