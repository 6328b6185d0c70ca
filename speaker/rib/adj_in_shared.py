"""Received routes that are held once: in the Loc-RIB, as the peer said them.

Where nothing is changed on the way in, the Adj-RIB-In of a peer is the part of the Loc-RIB that has
its paths, so a full table costs one dictionary entry per prefix, not two. What is needed besides is to
find the peer's prefixes again without a look at everybody's: the lists of prefixes in which it said
them are kept, and tidied up when they name many more than are held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import final

from speaker.rib.loc_rib import LocRib
from speaker.rib.path import Path, Source
from speaker.rib.received_prefix_log import ReceivedPrefixLog


@final
class SharedAdjRibIn:
    """One source's routes of one family."""

    __slots__ = ("_loc", "_log", "_source", "count")

    def __init__(self, loc: LocRib, source: Source) -> None:
        self._loc = loc
        self._source = source
        self._log = ReceivedPrefixLog(partial(loc.prefixes_of, source))
        self.count = 0

    def announce(self, path: Path, nlri: Sequence[bytes]) -> None:
        """Put prefixes with a path into the Loc-RIB; the caller leaves the list alone from here."""
        new = self._loc.announce(path, nlri)
        if new:
            self.count += new
            self._log.add(nlri, self.count)

    def announce_new(self, paths: Sequence[Path], fields: Sequence[bytes], afi: int) -> int:
        """Put the prefixes of NLRI fields into the Loc-RIB, as long as all of them are new.

        Returns how many fields that are.
        """
        taken, prefixes = self._loc.announce_new(paths, fields, afi)
        if taken:
            self.count += prefixes
            self._log.add_fields(fields[:taken], afi, prefixes, self.count)
        return taken

    def withdraw(self, nlri: Sequence[bytes]) -> None:
        """Take prefixes out of the Loc-RIB; unknown ones are passed over."""
        self.count -= self._loc.withdraw(self._source, nlri)
        if not self.count:
            self._log.clear()

    def clear(self) -> None:
        """Take everything out."""
        for nlri in self.prefix_lists():
            self._loc.withdraw(self._source, nlri)
        self._log.clear()
        self.count = 0

    def path(self, nlri: bytes) -> Path | None:
        """Return the path of a prefix."""
        return self._loc.path_of(self._source, nlri)

    def by_path(self, nlri: Iterable[bytes]) -> tuple[dict[Path, list[bytes]], list[bytes]]:
        """Group prefixes by their path; those that are not held come last."""
        return self._loc.by_path_of(self._source, nlri)

    def prefix_lists(self) -> list[Sequence[bytes]]:
        """Return lists that name every prefix, some perhaps twice or held no more."""
        return self._log.lists()

    def items(self) -> Iterator[tuple[bytes, Path]]:
        """Iterate over prefixes and paths, those said in numbers last."""
        for nlri in dict.fromkeys(chain.from_iterable(self.prefix_lists())):
            path = self._loc.path_of(self._source, nlri)
            if path is not None:
                yield nlri, path
