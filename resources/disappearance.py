"""When objects that a source does not have any more are deleted. Pure; times are seconds of one clock.

A source that is empty or cut short looks as if its objects were deleted: an API server restored
from a backup, a truncated file, a directory that is not mounted. So the loss of many objects at once
has to be confirmed by complete readings over some time; until then the objects are kept. The loss of
a few is not delayed if others are left, nor is what a source reports as deleted object by object.
"""

from __future__ import annotations

import math
from collections.abc import Set as AbstractSet
from typing import Any, Final

FEW: Final = 1
"""Objects that may be missing without a delay, if others are left."""
SHARE: Final = 0.2
"""Of the known objects; a greater part that is missing is not believed at once."""


def is_mass(known: int, missing: int, listed: int) -> bool:
    """True if so many objects disappear at once that further readings have to confirm it.

    ``known`` is the number of objects before, ``missing`` of them, ``listed`` in the reading.
    """
    if not missing:
        return False
    return not listed or (missing > FEW and missing > known * SHARE)


class Disappearance:
    """The readings that confirm one disappearance, and for how long they have done so.

    The time between two successive readings is added up, without an outage between them.
    """

    def __init__(self, hold: float) -> None:
        """``hold``: seconds of confirmation that are required; 0 requires none."""
        self._hold = hold
        self.required = hold
        """Seconds of confirmation that the present disappearance requires."""
        self.confirmed = 0.0
        """Seconds of confirmation so far."""
        self._missing: AbstractSet[Any] = frozenset()
        self._last: float | None = None
        """The time of the last reading, unless a failure came after it."""

    @property
    def rest(self) -> float:
        """Seconds for which the disappearance still has to be confirmed."""
        return self.required - self.confirmed

    def confirm(self, missing: AbstractSet[Any], now: float, at_most: float = math.inf) -> bool:
        """Count a reading without these objects; True once they are to be deleted.

        ``at_most`` bounds the seconds of confirmation that are required.
        """
        if not missing <= self._missing:
            self.reset()
        elif self._last is not None:
            self.confirmed += max(0.0, now - self._last)
        self._missing = missing
        self._last = now
        self.required = min(self._hold, at_most)
        return self.confirmed >= self.required

    def interrupt(self) -> None:
        """Record a failed reading: time until the next one confirms no disappearance."""
        self._last = None

    def reset(self) -> None:
        """Forget the readings without the objects: nothing disappears any more."""
        self.confirmed = 0.0
        self._missing = frozenset()
        self._last = None
