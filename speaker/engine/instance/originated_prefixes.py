"""Changes of the originated prefixes, in slices: one after the other, in their order.

Each change is the difference of two configurations. Out of order they would leave a prefix
that the later configuration does not have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import final

from speaker.engine.sliced_work import SlicedWork, Steps


@final
class OriginatedPrefixes:
    """The changes of one instance's originated prefixes that are not complete."""

    def __init__(
        self, originate: Callable[[Sequence[str], Sequence[str]], Steps], work: SlicedWork
    ) -> None:
        """``originate`` returns the steps of a change, ``work`` does them."""
        self._originate = originate
        self._work = work
        self._changes: deque[Steps] = deque()

    def change(self, before: Sequence[str], after: Sequence[str]) -> None:
        """Originate other prefixes than before; in slices where they are many."""
        if before != after:
            self._changes.append(self._originate(before, after))
            self._work.add(self._rest())

    def complete(self) -> None:
        """Do the rest of all changes now."""
        for _ in self._rest():
            pass

    def _rest(self) -> Steps:
        while self._changes:
            first = self._changes[0]
            try:
                yield from first
            finally:
                if self._changes and self._changes[0] is first:
                    self._changes.popleft()
