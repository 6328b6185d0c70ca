"""The routes of an ended session: they leave the Loc-RIB in steps, routes beside another path first.

Nothing else changes or reads them; a later session of the peer is another source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple, final

from speaker.nlri import Family
from speaker.rib.adj_in.path_ids import by_source
from speaker.rib.adj_in.shared import SharedAdjRibIn
from speaker.rib.adj_in.stale_mark import StaleMark
from speaker.rib.key_slices import key_slices
from speaker.rib.loc_rib import LocRib
from speaker.rib.path import Path, Source
from speaker.rib.prefix_table import PrefixTable


class Step(NamedTuple):
    """The result of one step."""

    withdrawn: int
    """Routes that were withdrawn from the Loc-RIB, or that had to be."""
    looked_up: int
    """Routes that were looked up, or released without having been in the Loc-RIB."""


@final
class DepartedRoutes:
    """The routes of one family of an Adj-RIB-In that has none of them any more."""

    __slots__ = (
        "_installed",
        "_loc",
        "_marks",
        "_not_installed",
        "_shared",
        "_source",
        "_sources",
        "_table",
        "family",
        "finished",
    )

    def __init__(
        self,
        family: Family,
        source: Source,
        sources: dict[bytes, Source] | None,
        loc: LocRib,
        table: PrefixTable[Path],
        shared: SharedAdjRibIn | None,
        not_installed: PrefixTable[bool],
        marks: list[StaleMark],
        *,
        installed: bool,
    ) -> None:
        """Take over the storage of a family: see `HeldRoutes` for its parts.

        ``sources`` are by path identifier, for a family with ADD-PATH. ``installed``:
        whether any route of the table is in the Loc-RIB.
        """
        self.family = family
        self.finished = False
        """Whether all routes are removed."""
        self._source = source
        self._sources = sources
        self._loc = loc
        self._table = table
        self._shared = shared
        self._installed = installed
        self._not_installed = not_installed
        self._marks = marks

    def fail_over(self, size: int) -> Iterator[Step]:
        """Withdraw the routes whose prefixes have another path, in steps of ``size`` look-ups."""
        if not self._loc.several:
            return
        lists: Iterator[Sequence[bytes]] = iter(())
        if self._shared is not None:
            lists = self._shared.prefix_lists()
        if self._installed:
            # Nothing changes the table but `remove`, which ends with all routes.
            keys = iter(self._table)
            of_table = iter(lambda: [] if self.finished else list(islice(keys, size)), [])
            lists = chain(lists, of_table)
        for some in key_slices(lists, size):
            contested = self._loc.contested(some, 0 if self._sources is None else 4)
            if contested:
                self._withdraw(contested)
            yield Step(len(contested), len(some))

    def remove(self, size: int) -> Iterator[Step]:
        """Withdraw and release all routes, in steps of ``size``."""
        if self._shared is not None:
            while keys := self._shared.take(size):
                self._loc.withdraw(self._source, keys)
                yield Step(len(keys), 0)
        table = self._table
        while table:
            some = [table.popitem()[0] for _ in range(min(size, len(table)))]
            if self._installed:
                self._withdraw(some)
            self._not_installed.discard(some)
            yield Step(len(some), 0) if self._installed else Step(0, len(some))
        for mark in self._marks:
            for count in mark.release():
                yield Step(0, count)
        self.finished = True

    def finish(self) -> None:
        """Withdraw all that is left now."""
        for _ in self.remove(1 << 16):
            pass

    def _withdraw(self, keys: Sequence[bytes]) -> None:
        if self._sources is None:
            self._loc.withdraw(self._source, keys)
            return
        for source, prefixes in by_source(self._sources, keys):
            self._loc.withdraw(source, prefixes)
