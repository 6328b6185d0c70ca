"""Stale routes of an Adj-RIB-In: while the peer restarts, or refreshes its routes.

Retained while the peer restarts (RFC 4724), or received before the beginning of an enhanced route
refresh (RFC 7313). A stale route is used like any other until it is announced
again, withdrawn or swept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from speaker.nlri import Family
from speaker.rib.adj_in.held_routes import HeldRoutes
from speaker.rib.adj_in.path_ids import ReceivedPathIds
from speaker.rib.adj_in.stale_mark import StaleMark
from speaker.rib.key_slices import key_slices
from speaker.rib.loc_rib import LocRib
from speaker.rib.path import Source
from speaker.rib.policy import CompiledPolicy


class MarkedRoutes(HeldRoutes):
    """The received routes of one session, and the marks of stale ones."""

    __slots__ = ("_loc",)

    def __init__(
        self,
        source: Source,
        policy: CompiledPolicy | None,
        loc_rib: Mapping[Family, LocRib],
        path_ids: ReceivedPathIds,
    ) -> None:
        """Start empty, with the families of ``loc_rib``."""
        super().__init__(source, policy, loc_rib, path_ids)
        self._loc = loc_rib

    def mark_stale(self, family: Family, *, refresh: bool = False) -> None:
        """Mark all held routes of a family as stale; routes that are only counted are forgotten.

        ``refresh``: the peer has begun one, by BoRR (RFC 7313).
        """
        self._counted.pop(family, None)
        if not self.held(family):
            return
        marks = self._marks.setdefault(family, [])
        if marks and not marks[-1].swept:
            del marks[-1]
        marks.append(StaleMark(refresh=refresh))

    def mark_held(self, family: Family) -> StaleMark | None:
        """Return a mark of the routes that are held now, which is valid until `forget_mark`.

        It is no mark of the stale routes: these may be marked anew, or swept, meanwhile. None without
        routes.
        """
        if not self.held(family):
            return None
        mark = StaleMark()
        mark.swept = True
        self._marks.setdefault(family, []).insert(0, mark)
        return mark

    def end_stale(self, family: Family) -> StaleMark | None:
        """End the time of a family's stale routes: `stale_keys` of the returned mark are to be removed.

        None without stale routes.
        """
        marks = self._marks.get(family)
        if not marks or marks[-1].swept:
            return None
        marks[-1].swept = True
        return marks[-1]

    def stale_keys(
        self, family: Family, mark: StaleMark, size: int, *, contested: bool = False
    ) -> Iterator[list[bytes]]:
        """Iterate over the stale routes of a mark, in steps of ``size`` looked-up keys.

        With ``contested`` routes whose prefixes have another path in the Loc-RIB. Routes may change
        between two steps. Ends when the mark is no longer valid, as that of an ended session.
        """
        if contested and not self._loc[family].several:
            return
        skip = 4 if family in self.path_ids.families else 0
        for some in key_slices(self.keys(family), size):
            if mark not in self._marks.get(family, ()):
                return
            keys = self._loc[family].contested(some, skip) if contested else some
            stale = mark.stale(keys) if keys else ()
            # In the order of the table: it must not depend on hashes, so that a recorded run replays.
            yield [key for key in dict.fromkeys(keys) if key in stale and self._holds(family, key)]

    def _holds(self, family: Family, key: bytes) -> bool:
        if key in self._tables[family]:
            return True
        shared = self._shared.get(family)
        return shared is not None and shared.path(key) is not None

    def last_mark(self, family: Family) -> StaleMark | None:
        """Return the mark of a family's stale routes; None without any."""
        marks = self._marks.get(family)
        return marks[-1] if marks else None

    def forget_mark(self, family: Family, mark: StaleMark) -> None:
        """Forget a mark whose stale routes are removed."""
        marks = self._marks.get(family)
        if marks and mark in marks:
            marks.remove(mark)
            if not marks:
                del self._marks[family]

    def _clear_stale(self, family: Family, nlri: Sequence[bytes]) -> None:
        for mark in self._marks.get(family, ()):
            mark.announced(nlri)
