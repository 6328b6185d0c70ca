"""The received-prefix log: the prefixes of one source, as received, compacted incrementally.

It finds a source's prefixes in a shared table without scanning the whole table, and without a second
dictionary of them. Compaction looks at no more prefixes at once than a small multiple of the number
just added: compacting a full table at once would stop the speaker for a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Final, final

from speaker.nlri import LazyNlriField, NlriFields

SLACK_PREFIXES: Final = 256
"""The number of surplus prefixes that never start a compaction."""
CHECKS_PER_PREFIX: Final = 2
"""The number of old prefixes that a compaction checks for each added one."""


@final
class ReceivedPrefixLog:
    """Lists and NLRI fields with every held prefix; duplicates and withdrawn ones may be among them."""

    __slots__ = ("_afi", "_fields", "_held", "_kept", "_lists", "_named", "_next", "_old")

    def __init__(self, held: Callable[[Sequence[bytes]], list[bytes]]) -> None:
        """Start empty; ``held`` returns which of some prefixes the source still has."""
        self._held = held
        self._lists: list[Sequence[bytes]] = []
        self._fields: list[bytes] = []
        self._afi = 0
        """The AFI of the fields."""
        self._named = 0
        """The number of prefixes in the log, duplicates included."""
        self._old: list[Sequence[bytes]] = []
        """The lists that a running compaction still has to check, the next one last."""
        self._next = 0
        """The index of the next prefix to check in the last list of `_old`."""
        self._kept: dict[bytes, None] = {}
        """The prefixes that the running compaction has checked and kept."""

    def add(self, nlri: Sequence[bytes], held: int) -> None:
        """Add a list, which the caller must not change; ``held`` is the number of held prefixes."""
        self._lists.append(nlri)
        self._added(len(nlri), held)

    def add_fields(self, fields: NlriFields, named: int, held: int) -> None:
        """Add NLRI fields of one AFI with ``named`` prefixes; ``held`` as in `add`."""
        self._afi = fields.afi
        self._fields.extend(fields.data)
        self._added(named, held)

    def lists(self) -> Iterator[Sequence[bytes]]:
        """Iterate over lists that together contain every prefix held now; the log may change."""
        lists = self._old[::-1]
        if lists and self._next:
            lists[0] = lists[0][self._next :]
        if self._kept:
            lists.append(list(self._kept))
        lists += self._lists
        # A full table may have a hundred thousand fields: an object each only when it is read.
        afi = self._afi
        return chain(lists, (LazyNlriField(data, afi) for data in self._fields[:]))

    @property
    def named(self) -> int:
        """The number of prefixes in the log, duplicates and withdrawn ones included."""
        return self._named

    def clear(self) -> None:
        """Remove all prefixes."""
        self._lists.clear()
        self._fields.clear()
        self._old.clear()
        self._kept = {}
        self._named = self._next = 0

    def take(self, size: int) -> list[bytes]:
        """Remove ``size`` prefixes or some more, the last ones, and return them; fewer are the rest."""
        taken: list[bytes] = []
        while len(taken) < size:
            if self._lists:
                some = self._lists.pop()
                if len(some) > size:
                    # Split once: the list may be that of a whole table.
                    parts = [some[at : at + size] for at in range(0, len(some), size)]
                    some = parts.pop()
                    self._lists += parts
                taken += some
            elif self._fields:
                self._lists.append(LazyNlriField(self._fields.pop(), self._afi))
            elif self._kept:
                taken += [self._kept.popitem()[0] for _ in range(min(size, len(self._kept)))]
            elif self._old:
                # The next one to be checked is the last, and its end is not.
                self._lists.append(self._old.pop()[self._next :])
                self._next = 0
            else:
                break
        return taken

    def _added(self, named: int, held: int) -> None:
        """Count added prefixes, and start or continue a compaction."""
        self._named += named
        if not self._old:
            if self._named <= 3 * held + SLACK_PREFIXES:
                return
            self._old = list(self.lists())[::-1]
            self._lists, self._fields = [], []
        self._compact(CHECKS_PER_PREFIX * named)

    def _compact(self, most: int) -> None:
        """Check up to ``most`` old prefixes, and keep the held ones."""
        while most > 0 and self._old:
            oldest = self._old[-1]
            some = oldest[self._next : self._next + most]
            before = len(self._kept)
            self._kept.update(dict.fromkeys(self._held(some)))
            self._named -= len(some) - (len(self._kept) - before)
            self._next += len(some)
            most -= len(some)
            if self._next >= len(oldest):
                self._old.pop()
                self._next = 0
        if not self._old:
            self._lists.insert(0, list(self._kept))
            self._kept = {}
