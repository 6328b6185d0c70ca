"""The route sets of one instance, and their removal in steps.

A set that is removed is withdrawn from its members in slices, and after the sessions that leave it in
steps, which are not sent the withdrawals. Routes that are announced meanwhile remain: the
set has these routes alone. Reads of the configuration show a set as it is after its removal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol, final

from speaker.api import RouteAttributes
from speaker.engine.ribs import Ribs
from speaker.engine.sliced_work import SLICE_UNITS, STEP_ROUTES, SlicedWork, Steps
from speaker.nlri import Family
from speaker.rib.local_routes import LOCAL

WITHDRAWN_PREFIX_UNITS: Final = 2
"""The work for a prefix: a withdrawal from the table, and its UPDATE; with ADD-PATH for each path."""


class RouteSetsOwner(Protocol):
    """The owner of the update groups."""

    def uses(self, route_set: str) -> bool:
        """Return whether an update group has the routes of a set."""

    def concern(self, route_set: str) -> bool:
        """Return whether a session is on its way from or to a set."""


@final
class _Removal:
    """The removal of one set that waits, or is performed in steps."""

    __slots__ = ("is_renewed", "renewed", "waits")

    def __init__(self) -> None:
        self.waits = True
        """Whether no step is performed yet."""
        self.is_renewed = False
        """Whether the set was changed since: it remains."""
        self.renewed: dict[Family, dict[bytes, None]] = {}
        """The prefixes that were changed since; they are no longer removed."""


@final
class RouteSets:
    """The route sets of one instance, by name."""

    __slots__ = ("_work", "owner", "removals", "tables")

    def __init__(self, owner: RouteSetsOwner, work: SlicedWork) -> None:
        """Start without sets; ``work`` takes the steps of removals."""
        self.owner = owner
        """Replaced when the instance becomes another router, which has the same sets."""
        self._work = work
        self.tables: dict[str, Ribs] = {}
        """The tables of each set, of a removed set until its end; read after each input."""
        self.removals: dict[str, _Removal] = {}
        """The sets that are being removed."""

    def ribs(self, name: str) -> Ribs:
        """Return the tables of a set, created on first use."""
        known = self.tables.get(name)
        return known if known is not None else self.tables.setdefault(name, Ribs())

    def changed(
        self, name: str, changes: Mapping[Family, Mapping[bytes, RouteAttributes | None]]
    ) -> None:
        """Note a change of a set: announced routes are not removed with the former routes."""
        removal = self.removals.get(name)
        if removal is not None:
            removal.is_renewed = True
            for family, routes in changes.items():
                removal.renewed.setdefault(family, {}).update(dict.fromkeys(routes))

    # ---------------------------------------------------------------- removal

    def remove(self, name: str) -> None:
        """Withdraw the present routes of a set, and remove it."""
        if name in self.tables:
            # In place of an earlier removal, which knew later routes than these.
            self.removals[name] = _Removal()
            self.start_removals()

    @property
    def removable(self) -> bool:
        """Whether `start_removals` has anything to do."""
        for name, removal in self.removals.items():
            if removal.waits and not self.owner.concern(name):
                return True
        return False

    def start_removals(self) -> None:
        """Begin the removals for which no session on its way has to be waited."""
        for name, removal in list(self.removals.items()):
            if removal.waits and not self.owner.concern(name):
                removal.waits = False
                self._work.add(self._steps(name, removal))

    def _steps(self, name: str, removal: _Removal) -> Steps:
        ribs = self.tables[name]
        try:
            for family, table, prefixes in ribs.slices(STEP_ROUTES):
                if self.removals.get(name) is not removal:
                    return
                if prefixes is None:
                    yield SLICE_UNITS
                    continue
                renewed = removal.renewed.get(family, {})
                gone = [prefix for prefix in prefixes if prefix not in renewed]
                table.withdraw(LOCAL, gone)
                yield WITHDRAWN_PREFIX_UNITS * len(gone)
            is_last = self.removals.get(name) is removal
            if is_last and not (removal.is_renewed or self.owner.uses(name)):
                del self.tables[name]
        finally:
            if self.removals.get(name) is removal:
                del self.removals[name]

    # ------------------------------------------------------------------ reads

    def names(self) -> Sequence[str]:
        """Return the names of the sets; of a set that is being removed only if it remains."""
        if not self.removals:
            return list(self.tables)
        return [name for name in self.tables if self._remains(name)]

    def _remains(self, name: str) -> bool:
        removal = self.removals.get(name)
        return removal is None or removal.is_renewed

    def find(self, name: str) -> Ribs | None:
        """Return the tables of a set; None without it, or while it is being removed."""
        return self.tables.get(name) if not self.removals or self._remains(name) else None

    def prefixes(self, name: str, family: Family) -> Sequence[bytes]:
        """Return the prefixes of a family of a set that remain there."""
        table = self.tables[name].table(family)
        removal = self.removals.get(name)
        if removal is None:
            return table.prefixes()
        return [prefix for prefix in removal.renewed.get(family, ()) if prefix in table]

    def remaining(self, name: str, family: Family, prefixes: Iterable[bytes]) -> Iterable[bytes]:
        """Return the prefixes of a set, without prefixes that are being removed."""
        removal = self.removals.get(name)
        if removal is None:
            return prefixes
        renewed = removal.renewed.get(family, {})
        return [prefix for prefix in prefixes if prefix in renewed]
