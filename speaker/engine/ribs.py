"""The tables of a Loc-RIB or of a route set: one `LocRib` per family."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from speaker.iana import Family
from speaker.rib.loc_rib import Change, LocRib


class Ribs(Mapping[Family, LocRib]):
    """Family -> table; only `table` creates a missing one."""

    __slots__ = ("_track_all_paths", "tables")

    def __init__(self) -> None:
        self.tables: dict[Family, LocRib] = {}
        self._track_all_paths = False

    def table(self, family: Family) -> LocRib:
        """Return a family's table, created on first use."""
        known = self.tables.get(family)
        if known is None:
            known = self.tables[family] = LocRib()
            if self._track_all_paths:
                known.track_all_paths()
        return known

    def track_all_paths(self) -> None:
        """Track changes of any path from now on, for `take_touched`."""
        self._track_all_paths = True
        for table in self.tables.values():
            table.track_all_paths()

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

    def take_touched(self) -> dict[Family, set[bytes]]:
        """Return the prefixes with any change, of tables in which all paths are tracked."""
        found: dict[Family, set[bytes]] = {}
        for family, table in self.tables.items():
            if touched := table.take_touched():
                found[family] = touched
        return found

    def discard_changes(self) -> None:
        """Discard the changes of all tables: no peer has to receive them."""
        for table in self.tables.values():
            table.discard_changes()

    def take_changes(self) -> dict[Family, list[Change]]:
        """Return the changes of all tables since the last call."""
        found: dict[Family, list[Change]] = {}
        for family, table in self.tables.items():
            if changes := table.take_changes():
                found[family] = changes
        return found
