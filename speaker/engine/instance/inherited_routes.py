"""The local routes of an instance that has become another router, copied to its new Loc-RIB in steps.

A route that changes meanwhile is changed in the new Loc-RIB, and no longer copied. If the instance
becomes another router again before the end, the next Loc-RIB copies from both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import final

from speaker.engine.ribs import Ribs
from speaker.engine.sliced_work import (
    FAILOVER_UNITS,
    LOOKUPS_PER_UNIT,
    SLICE_UNITS,
    STEP_ROUTES,
    SlicedWork,
    Steps,
)
from speaker.nlri import Family
from speaker.rib.local_routes import LOCAL


@final
class _Former:
    """A former Loc-RIB, with the prefixes that were changed since it was the present one."""

    __slots__ = ("changed", "ribs")

    def __init__(self, ribs: Ribs) -> None:
        self.ribs = ribs
        self.changed: dict[Family, set[bytes]] = {}


@final
class InheritedRoutes:
    """The local routes of former Loc-RIBs that the present one of an instance does not have yet."""

    __slots__ = ("_loc", "_work", "formers")

    def __init__(self, loc: Ribs, work: SlicedWork) -> None:
        """Start with nothing to copy; ``loc`` is the present Loc-RIB."""
        self._loc = loc
        self._work = work
        self.formers: list[_Former] = []
        """The former Loc-RIBs, the oldest first, until their routes are copied."""

    def inherit(self, before: InheritedRoutes) -> None:
        """Copy the local routes of the Loc-RIB before, and the routes that it has not copied yet."""
        self.formers, before.formers = [*before.formers, _Former(before._loc)], []
        # Routes of lost sessions leave the former Loc-RIB after that.
        self._work.add(self._steps(), failover=True)

    def note(self, family: Family, prefixes: Iterable[bytes]) -> None:
        """Note that local routes are changed in the present Loc-RIB."""
        for former in self.formers:
            former.changed.setdefault(family, set()).update(prefixes)

    def _steps(self) -> Steps:
        try:
            for former in list(self.formers):
                for units in self._copied(former):
                    yield units
                    if not self.formers:
                        # Another router copies the rest.
                        return
        finally:
            self.formers = []

    def _copied(self, former: _Former) -> Iterator[int]:
        for family, table, prefixes in former.ribs.slices(STEP_ROUTES):
            if prefixes is None:
                yield SLICE_UNITS
                continue
            copied = 0
            changed = former.changed.get(family, ())
            for path, nlri in table.by_path_of(LOCAL, prefixes)[0].items():
                some = [prefix for prefix in nlri if prefix not in changed]
                if some:
                    self._loc.table(family).announce(path, some)
                    copied += len(some)
            yield FAILOVER_UNITS * copied + len(prefixes) // LOOKUPS_PER_UNIT
