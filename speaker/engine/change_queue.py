"""Changes of whole messages that wait for a reader of best paths, in their order."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final, final

from speaker.nlri import Family
from speaker.rib.loc_rib_fast_path import Change

MAX_KNOWN: Final = 1 << 18
"""Prefixes that are known to be in a queue, or to have been, before they are collected again."""


@final
class ChangeQueue:
    """The queue of one stream."""

    __slots__ = ("_changes", "_known", "prefixes")

    def __init__(self) -> None:
        """Start empty."""
        self._changes: deque[tuple[Family, Change]] = deque()
        self.prefixes = 0
        """Their number; of a prefix that changed twice both."""
        self._known: dict[Family, set[bytes]] | None = None
        """Collected for the first question, and kept until the queue is empty: a reader that keeps pace
        pays nothing. Prefixes that were removed since may be among them."""

    def __bool__(self) -> bool:
        """Whether there are changes."""
        return bool(self._changes)

    def append(self, family: Family, change: Change) -> None:
        """Add a change."""
        self._changes.append((family, change))
        self.prefixes += len(change[2])
        if self._known is not None:
            self._know(family, change[2])

    def popleft(self) -> tuple[Family, Change]:
        """Remove and return the oldest change."""
        family, change = self._changes.popleft()
        self.prefixes -= len(change[2])
        if not self._changes:
            self._known = None
        return family, change

    def is_disjoint(self, family: Family, nlri: Sequence[bytes]) -> bool:
        """Return whether none of the prefixes is in the queue; False also for some that were."""
        if not self._changes:
            return True
        known = self._known
        if known is None or sum(map(len, known.values())) > MAX_KNOWN:
            self._known = {}
            for queued, change in self._changes:
                self._know(queued, change[2])
        assert self._known is not None  # noqa: S101  collected above
        return family not in self._known or self._known[family].isdisjoint(nlri)

    def _know(self, family: Family, nlri: Sequence[bytes]) -> None:
        assert self._known is not None  # noqa: S101  checked by the callers
        self._known.setdefault(family, set()).update(nlri)
