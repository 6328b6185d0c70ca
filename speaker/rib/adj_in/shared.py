"""An Adj-RIB-In within the Loc-RIB: routes that the import policy leaves unchanged are held once.

Such a source's Adj-RIB-In is the set of its paths in the Loc-RIB, so a full table costs one dictionary
entry per prefix instead of two. The received-prefix log finds the prefixes of the source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import final

from speaker.nlri import NlriFields
from speaker.rib.adj_in.prefix_log import ReceivedPrefixLog
from speaker.rib.key_slices import key_slices
from speaker.rib.loc_rib import LocRib
from speaker.rib.path import Path, Source


@final
class SharedAdjRibIn:
    """The routes of one source and one family in the Loc-RIB."""

    __slots__ = ("_loc", "_log", "_source", "count")

    def __init__(self, loc: LocRib, source: Source) -> None:
        self._loc = loc
        self._source = source
        self._log = ReceivedPrefixLog(partial(loc.prefixes_of, source))
        self.count = 0
        """The number of held prefixes."""

    def announce(self, path: Path, nlri: Sequence[bytes]) -> None:
        """Announce prefixes with a path to the Loc-RIB; the caller must not change the list."""
        new = self._loc.announce(path, nlri)
        if new:
            self.count += new
            self._log.add(nlri, self.count)

    def announce_new(self, paths: Sequence[Path], fields: NlriFields) -> int:
        """Announce the leading NLRI fields that `LocRib.announce_new` takes; return their number."""
        taken, prefixes = self._loc.announce_new(paths, fields)
        if taken:
            self.count += prefixes
            some = fields if taken == len(fields.data) else fields.part(0, taken)
            self._log.add_fields(some, prefixes, self.count)
        return taken

    def adopt(self, path: Path, nlri: Sequence[bytes]) -> None:
        """As `announce`, for prefixes that are held elsewhere till now, perhaps in the Loc-RIB, too."""
        self._loc.announce(path, nlri)
        self.count += len(nlri)
        self._log.add(nlri, self.count)

    def release(self, number: int) -> None:
        """Count prefixes no more, which are held elsewhere from now on: they stay in the Loc-RIB."""
        self.count -= number
        if not self.count:
            self._log.clear()

    def withdraw(self, nlri: Sequence[bytes]) -> None:
        """Withdraw prefixes from the Loc-RIB; unknown ones are ignored."""
        self.count -= self._loc.withdraw(self._source, nlri)
        if not self.count:
            self._log.clear()

    def take(self, size: int) -> list[bytes]:
        """Remove about ``size`` prefixes from the log and return them; fewer are the rest.

        Withdrawn ones may be among them. Only for the routes of an ended session: the caller withdraws
        them, and none is announced again.
        """
        return self._log.take(size)

    def path(self, nlri: bytes) -> Path | None:
        """Return the path of a prefix, or None."""
        return self._loc.path_of(self._source, nlri)

    def by_path(self, nlri: Iterable[bytes]) -> tuple[dict[Path, list[bytes]], list[bytes]]:
        """Group prefixes by their path; the second list has the prefixes that are not held."""
        return self._loc.by_path_of(self._source, nlri)

    def prefix_lists(self) -> Iterator[Sequence[bytes]]:
        """Iterate over lists with every prefix held now, duplicates and withdrawn ones among them.

        Prefixes may change between two lists.
        """
        return self._log.lists()

    def distinct_prefixes(self, size: int) -> Iterator[Sequence[bytes]]:
        """Iterate over lists of about ``size`` prefixes with every prefix held now, once each.

        Withdrawn ones may be among them. Prefixes may change between two lists.
        """
        slices = key_slices(self.prefix_lists(), size)
        if self._log.named == self.count:
            # Usual: every prefix was announced once.
            return slices
        return _distinct(slices)

    def items(self) -> Iterator[tuple[bytes, Path]]:
        """Iterate over prefixes and paths, in the order of the log."""
        for nlri in dict.fromkeys(chain.from_iterable(self.prefix_lists())):
            path = self._loc.path_of(self._source, nlri)
            if path is not None:
                yield nlri, path


def _distinct(lists: Iterable[Sequence[bytes]]) -> Iterator[Sequence[bytes]]:
    seen: set[bytes] = set()
    for prefixes in lists:
        new = [nlri for nlri in dict.fromkeys(prefixes) if nlri not in seen]
        seen.update(new)
        yield new
