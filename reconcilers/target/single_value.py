"""Reconcilers whose objects are compared as one value: instances, peers, statuses, files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable
from typing import Any

from reconcilers.target.reconciler import WHOLE, Answer, ObjectKey, Parts, Reconciler, State
from statedb import Snapshot


class SingleValue(Reconciler):
    """The parts of `Reconciler` that follow from having one value."""

    @abstractmethod
    def desired_value(self, snapshot: Snapshot, key: ObjectKey) -> Any:  # noqa: ANN401
        """Return the value of a wanted object. Raises ValueError for an impossible value."""

    @abstractmethod
    def actual_value(self, key: ObjectKey) -> Any:  # noqa: ANN401
        """Return the value that the target holds, or None without the object; or a coroutine."""

    @abstractmethod
    def set_value(self, key: ObjectKey, value: Any) -> Answer[None]:  # noqa: ANN401
        """Create the object, or change its value."""

    def desired(self, snapshot: Snapshot, key: ObjectKey, parts: Parts) -> State:
        """See `Reconciler`."""
        del parts
        return {WHOLE: self.desired_value(snapshot, key)}

    def actual(self, key: ObjectKey, parts: Parts) -> Answer[State | None]:
        """See `Reconciler`."""
        del parts
        value = self.actual_value(key)
        return _awaited(value) if hasattr(value, "__await__") else _whole(value)

    def update(self, key: ObjectKey, changes: State) -> Answer[None]:
        """See `Reconciler`."""
        return self.set_value(key, changes[WHOLE])


def _whole(value: Any) -> State | None:  # noqa: ANN401
    return None if value is None else {WHOLE: value}


async def _awaited(value: Awaitable[Any]) -> State | None:
    return _whole(await value)
