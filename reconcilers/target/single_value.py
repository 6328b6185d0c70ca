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
        """Return the single value that an object shall have. Raises ValueError if it is impossible."""

    @abstractmethod
    def actual_value(self, key: ObjectKey) -> Any:  # noqa: ANN401
        """Return the single value of an object in the target, or None; or a coroutine."""

    @abstractmethod
    def set_value(self, key: ObjectKey, value: Any) -> Answer[None]:  # noqa: ANN401
        """Create an object with its single value, or change the value."""

    def desired(self, snapshot: Snapshot, key: ObjectKey, parts: Parts) -> State:
        """Return the desired value of an object as a state with a single part."""
        del parts
        return {WHOLE: self.desired_value(snapshot, key)}

    def actual(self, key: ObjectKey, parts: Parts) -> Answer[State | None]:
        """Return the actual value of an object as a state with a single part; None without it."""
        del parts
        value = self.actual_value(key)
        return _awaited(value) if hasattr(value, "__await__") else _whole(value)

    def update(self, key: ObjectKey, changes: State) -> Answer[None]:
        """Set the single value of an object that differs."""
        return self.set_value(key, changes[WHOLE])


def _whole(value: Any) -> State | None:  # noqa: ANN401
    return None if value is None else {WHOLE: value}


async def _awaited(value: Awaitable[Any]) -> State | None:
    return _whole(await value)
