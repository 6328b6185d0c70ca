"""Fast path of the Loc-RIB: messages whose prefixes change all together, in one step.

The slow path is `speaker.rib.loc_rib.LocRib.announce` and `withdraw`, prefix by prefix: equal tables,
equal counts and equal changes in sum (tests/speaker/rib/test_loc_rib.py). Three kinds of messages take
the fast path: all prefixes are new; all prefixes are new and still encoded as NLRI fields; and all
prefixes have the same single path, of the source that replaces or withdraws it. A method that returns
0 has changed nothing. Each message becomes one change instead of one for each prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Final, final

from speaker.nlri import NlriFields
from speaker.rib.path import Path, Source
from speaker.rib.prefix_table import PrefixTable

MAX_REPLACED: Final = 32
"""The number of messages in `LocRibFastPath.replaced`: each new one is compared with all of them."""
MAX_ANNOUNCED_BESIDE: Final = 8
"""The number of announcements of new prefixes while there are withdrawals in `replaced`."""

Change = tuple[Path | None, Path | None, Sequence[bytes]]
"""Best path before and after, None for no path; and the prefixes, each of them once."""


@final
class LocRibFastPath:
    """The changes of whole messages in one table since the changes were taken last."""

    __slots__ = ("_table", "announced", "has_withdrawal", "replaced")

    def __init__(self, table: PrefixTable[Path | tuple[Path, ...]]) -> None:
        """Work on the Loc-RIB's table: prefix in wire form to its path, or its paths, best first."""
        self._table = table
        self.announced: list[tuple[Sequence[Path], Iterable[Sequence[bytes]]]] = []
        """Announcements of new prefixes, which precede every other change: paths, and prefixes of each.

        While `replaced` is not empty, no prefix is in both.
        """
        self.replaced: list[Change] = []
        """Replacements and withdrawals of a message's only path."""
        self.has_withdrawal = False
        """Whether `replaced` contains a withdrawal."""

    def announce_new(self, path: Path, nlri: Sequence[bytes]) -> int:
        """Install a path for prefixes of which none is in the table; return how many they are."""
        new = self._table.insert(nlri, path)
        # A message may contain a prefix twice; in a change each prefix is one.
        prefixes = nlri if new == len(nlri) else list(dict.fromkeys(nlri))
        self.announced.append(((path,), (prefixes,)))
        return new

    def announce_fields(self, paths: Sequence[Path], fields: NlriFields) -> int:
        """Install the path of each NLRI field if all prefixes of all fields are new.

        Returns the number of prefixes; 0 if a field is malformed, or a prefix is known or duplicated.
        """
        count = 0
        # First: where the memory for it is missing, the table stays as it is.
        self.announced.append((paths, fields))
        try:
            count = self._table.insert_fields(fields, paths)
        finally:
            if not count:
                self.announced.pop()
        return count

    def replace(self, source: Source, nlri: Sequence[bytes], path: Path | None) -> int:
        """Replace, or with None withdraw, the single path that all the prefixes have from a source.

        Returns the number of prefixes; 0 if the prefixes differ, or if changes are pending that this
        one cannot follow.
        """
        if self.announced or len(self.replaced) >= MAX_REPLACED or not nlri:
            return 0
        table = self._table
        old = table.get(nlri[0])
        if old is None or type(old) is tuple or old.source is not source:  # type: ignore[union-attr]
            return 0
        if self.replaced and self._may_be_pending(nlri, old):  # type: ignore[arg-type]  # by type()
            return 0
        count = table.replace(nlri, old, path)
        if not count:
            return 0
        # A message may contain a prefix twice; in a change each prefix is one.
        prefixes = nlri if count == len(nlri) else list(dict.fromkeys(nlri))
        if path is not old:
            self.replaced.append((old, path, prefixes))  # type: ignore[arg-type]  # by type()
            self.has_withdrawal = self.has_withdrawal or path is None
        return count

    def _may_be_pending(self, nlri: Sequence[bytes], path: Path) -> bool:
        """Return whether a pending replacement may have installed ``path`` for one of the prefixes.

        Then the best path before both changes is a different path.
        """
        before = [prefixes for _, new, prefixes in self.replaced if new is path]
        return bool(before) and (len(before) > 1 or not set(nlri).isdisjoint(before[0]))

    def can_announce_beside(self, nlri: Sequence[bytes]) -> bool:
        """Return whether new prefixes can be announced while `replaced` stays as it is.

        So the new prefix of one peer does not wait until another peer's flood of withdrawals is
        processed prefix by prefix. No prefix may be in a pending withdrawal.
        """
        if len(self.announced) >= MAX_ANNOUNCED_BESIDE:
            return False
        ours = set(nlri)
        return all(ours.isdisjoint(gone) for _, path, gone in self.replaced if path is None)

    def fold_into(self, dirty: dict[bytes, Path | None]) -> None:
        """Turn the messages of `replaced` into changes of single prefixes."""
        for old, _, nlri in self.replaced:
            dirty.update(dict.fromkeys(nlri, old))
        self.replaced.clear()
        self.has_withdrawal = False

    def take(self) -> list[Change]:
        """Return the changes in order, and forget them."""
        changes: list[Change] = []
        for paths, lists in self.announced:
            changes.extend(zip(repeat(None), paths, lists, strict=False))
        changes += self.replaced
        self.forget()
        return changes

    def forget(self) -> None:
        """Forget the changes."""
        self.announced.clear()
        self.replaced.clear()
        self.has_withdrawal = False
