"""Which prefixes a source has said: as it said them, and tidied up a little at a time.

Must never look at more prefixes at once than a small multiple of those that have just been said: a
peer with a full table would otherwise stop everybody for a second now and then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, final

from speaker.nlri import LazyNlriField

SLACK_PREFIXES: Final = 256
"""So many prefixes too many are never worth tidying up."""
CHECKS_PER_PREFIX: Final = 2
"""How many old prefixes are looked at for each new one."""


@final
class ReceivedPrefixLog:
    """Lists and NLRI fields that name every prefix that is held, some perhaps twice or no more."""

    __slots__ = ("_afi", "_at", "_fields", "_held", "_kept", "_lists", "_named", "_old")

    def __init__(self, held: Callable[[Sequence[bytes]], list[bytes]]) -> None:
        """Begin empty; ``held`` returns which of some prefixes are still held."""
        self._held = held
        self._lists: list[Sequence[bytes]] = []
        self._fields: list[bytes] = []
        self._afi = 0
        """The address family of the fields."""
        self._named = 0
        """How many prefixes are named, also in what is being tidied up."""
        self._old: list[Sequence[bytes]] = []
        """What has still to be looked at, the next ones last, ..."""
        self._at = 0
        """... from where on in the next one, ..."""
        self._kept: dict[bytes, None] = {}
        """... and what was held of that before."""

    def add(self, nlri: Sequence[bytes], held: int) -> None:
        """Add a list, which the caller leaves alone from here; ``held`` is how many are held now."""
        self._lists.append(nlri)
        self._note(len(nlri), held)

    def add_fields(self, fields: Sequence[bytes], afi: int, named: int, held: int) -> None:
        """Add NLRI fields of one address family that name so many prefixes."""
        self._afi = afi
        self._fields.extend(fields)
        self._note(named, held)

    def lists(self) -> list[Sequence[bytes]]:
        """Return lists that name every prefix."""
        lists = self._old[::-1]
        if lists and self._at:
            lists[0] = lists[0][self._at :]
        if self._kept:
            lists.append(list(self._kept))
        return [*lists, *self._lists, *(LazyNlriField(data, self._afi) for data in self._fields)]

    def clear(self) -> None:
        """Forget everything."""
        self._lists.clear()
        self._fields.clear()
        self._old.clear()
        self._kept = {}
        self._named = self._at = 0

    def _note(self, named: int, held: int) -> None:
        self._named += named
        if not self._old:
            if self._named <= 3 * held + SLACK_PREFIXES:
                return
            self._old = self.lists()[::-1]
            self._lists, self._fields = [], []
        self._tidy(CHECKS_PER_PREFIX * named)

    def _tidy(self, most: int) -> None:
        while most > 0 and self._old:
            oldest = self._old[-1]
            some = oldest[self._at : self._at + most]
            before = len(self._kept)
            self._kept.update(dict.fromkeys(self._held(some)))
            self._named -= len(some) - (len(self._kept) - before)
            self._at += len(some)
            most -= len(some)
            if self._at >= len(oldest):
                self._old.pop()
                self._at = 0
        if not self._old:
            self._lists.insert(0, list(self._kept))
            self._kept = {}
