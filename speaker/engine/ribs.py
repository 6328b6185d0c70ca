"""The tables of a Loc-RIB or of a route set: one `LocRib` per family."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from speaker.iana import Family
from speaker.rib.decision import Metric
from speaker.rib.loc_rib import LocRib, TableChanges


class Ribs(Mapping[Family, LocRib]):
    """Family -> table; only `table` creates a missing one."""

    __slots__ = ("_track_all_paths", "metric", "tables")

    def __init__(self, metric: Metric | None = None) -> None:
        """Start without tables; ``metric`` is that of next hops, as in `LocRib`."""
        self.metric = metric
        self.tables: dict[Family, LocRib] = {}
        self._track_all_paths = False

    def table(self, family: Family) -> LocRib:
        """Return a family's table, created on first use."""
        known = self.tables.get(family)
        if known is None:
            known = self.tables[family] = LocRib(self.metric)
            if self._track_all_paths:
                known.track_all_paths()
        return known

    def track_all_paths(self) -> None:
        """Track changes of any path from now on, for `TableChanges.several`."""
        self._track_all_paths = True
        for table in self.tables.values():
            table.track_all_paths()

    def set_metric(self, metric: Metric | None) -> None:
        """Select by another metric from now on; `LocRib.reselect` applies it to what is there."""
        self.metric = metric
        for table in self.tables.values():
            table.metric = metric

    def slices(self, size: int) -> Iterator[tuple[Family, LocRib, Sequence[bytes] | None]]:
        """Iterate over all prefixes of the tables that exist now, in slices of about ``size``.

        A reader of each slice's present state that follows the changes from before the first slice has
        the whole table. Where the prefixes of a table are copied, then when its turn comes, in steps;
        each step is a turn for others, and None. The first slice of each table, which may be empty,
        is of what it has then.
        """
        for family, table in list(self.tables.items()):
            has_begun = False
            for prefixes in table.walk(size):
                yield family, table, prefixes or None
                has_begun = has_begun or bool(prefixes)
            if not has_begun:
                yield family, table, ()

    def __getitem__(self, family: Family) -> LocRib:
        return self.tables[family]

    def __contains__(self, family: object) -> bool:
        return family in self.tables

    def __iter__(self) -> Iterator[Family]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    @property
    def changed(self) -> bool:
        """Whether any table has changes that were not taken yet."""
        for table in self.tables.values():  # noqa: SIM110  read after each input
            if table.changed:
                return True
        return False

    def discard_changes(self) -> None:
        """Discard the changes of all tables: nothing follows them."""
        for table in self.tables.values():
            table.discard_changes()

    def take_changes(self) -> dict[Family, TableChanges]:
        """Return the changes of all tables since the last call."""
        by_family: dict[Family, TableChanges] = {}
        for family, table in self.tables.items():
            if table.changed:
                changes = table.take_changes()
                if changes.best or changes.several:
                    by_family[family] = changes
        return by_family
