"""Cache for the latest snapshot: the operator computes for each of its nodes."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

from statedb import Snapshot

T = TypeVar("T")


class OfLastSnapshot(Generic[T]):
    """The value of the last snapshot and namespace."""

    def __init__(self, compute: Callable[[Snapshot, str], T]) -> None:
        self._compute = compute
        self._last: tuple[weakref.ref[Snapshot], str, T] | None = None

    def of(self, snapshot: Snapshot, namespace: str) -> T:
        """Return the value of the objects of a namespace."""
        last = self._last
        if last is not None and last[0]() is snapshot and last[1] == namespace:
            return last[2]
        found = self._compute(snapshot, namespace)
        self._last = (weakref.ref(snapshot), namespace, found)
        return found
