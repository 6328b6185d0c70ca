"""Changes of the originated prefixes, in slices: one after the other, in their order.

Each change is the difference of two configurations. Out of order they would leave a prefix
that the later configuration does not have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, final

from speaker.api import RouteAttributes
from speaker.engine.sliced_work import (
    FAILOVER_UNITS,
    LOOKUPS_PER_UNIT,
    STEP_ROUTES,
    SlicedWork,
    Steps,
)
from speaker.nlri import Family, parsed_prefix

Update: TypeAlias = Callable[[None, Mapping[Family, Mapping[bytes, RouteAttributes | None]]], None]
"""Changes the local routes of a Loc-RIB (`OutboundUpdates.update_routes`)."""


@final
class OriginatedPrefixes:
    """The changes of one instance's originated prefixes that are not complete."""

    def __init__(self, update: Update, work: SlicedWork) -> None:
        """``update`` changes the Loc-RIB, ``work`` does the steps of a change."""
        self._update = update
        self._work = work
        self._changes: deque[Steps] = deque()

    def moved(self, update: Update) -> OriginatedPrefixes:
        """Perform the rest of all changes in another Loc-RIB, which has the local routes of the former.

        Returns itself.
        """
        self._update = update
        return self

    def change(self, before: Sequence[str], after: Sequence[str]) -> None:
        """Originate other prefixes than before; in slices where they are many."""
        if before != after:
            self._changes.append(self._steps(before, after))
            self._work.add(self._rest())

    def _steps(self, before: Sequence[str], after: Sequence[str]) -> Steps:
        """Originate other prefixes than before, in steps; only differences change."""
        had = set(before)
        yield len(before) // LOOKUPS_PER_UNIT
        has = set(after)
        yield len(after) // LOOKUPS_PER_UNIT
        for texts, differing, attributes in (
            (before, had - has, None),
            (after, has - had, RouteAttributes()),
        ):
            yield (len(before) + len(after)) // LOOKUPS_PER_UNIT
            # Most changes are of a few prefixes among many.
            changed = [text for text in texts if text in differing] if differing else []
            for start in range(0, len(changed), STEP_ROUTES):
                changes: dict[Family, dict[bytes, RouteAttributes | None]] = {}
                some = changed[start : start + STEP_ROUTES]
                for text in some:
                    family, nlri = parsed_prefix(text)
                    changes.setdefault(family, {})[nlri] = attributes
                self._update(None, changes)
                yield FAILOVER_UNITS * len(some)

    def _rest(self) -> Steps:
        while self._changes:
            first = self._changes[0]
            try:
                yield from first
            finally:
                if self._changes and self._changes[0] is first:
                    self._changes.popleft()
