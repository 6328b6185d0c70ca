"""Routes that an update group does not advertise: they cannot be encoded for its peers.

Attributes may be too long for a message: received in extended messages (RFC 8654), or extended by a
policy. One such route costs no other route of the table. The routes are counted like advertised ones
(`speaker.rib.update_group`), and the first, second, fourth ... of them is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, final

from speaker.nlri import Family
from speaker.rib.path import SourceSession


class LeftOutReport(NamedTuple):
    """Prefixes that were not advertised, for the log."""

    family: Family
    nlri: bytes
    """One of the prefixes in wire form, behind its path identifier with ADD-PATH."""
    total: int
    """Exported prefixes of the group that were not advertised so far."""
    reason: str


@final
class LeftOutRoutes:
    """The routes that one update group does not advertise."""

    __slots__ = ("_counts", "_events", "_paths", "_reports", "total")

    def __init__(self) -> None:
        self.total = 0
        """Exported prefixes not advertised since the group exists; 0 for nearly every group."""
        self._counts: dict[Family, dict[SourceSession, int]] = {}
        """Prefixes not advertised at present, by the session that they came from."""
        self._paths: dict[tuple[Family, bytes], list[SourceSession]] = {}
        """The sessions of a prefix's paths that are not advertised, in families with ADD-PATH."""
        self._events = 0
        self._reports: list[LeftOutReport] = []

    def add(self, family: Family, nlri: Sequence[bytes], error: Exception) -> None:
        """Add announced prefixes of a path that cannot be encoded."""
        self.total += len(nlri)
        self._events += 1
        if not self._events & (self._events - 1):
            self._reports.append(LeftOutReport(family, nlri[0], self.total, _reason(error)))

    def count(self, family: Family, source: SourceSession, number: int) -> None:
        """Change the number of prefixes of a session that are not advertised at present."""
        counts = self._counts.setdefault(family, {})
        counts[source] = counts.get(source, 0) + number

    def count_path(self, family: Family, nlri: bytes, source: SourceSession) -> None:
        """Count a path of a prefix, in a family with ADD-PATH."""
        self._paths.setdefault((family, nlri), []).append(source)
        self.count(family, source, 1)

    def forget_paths(self, family: Family, nlri: bytes) -> None:
        """Undo `count_path` for all paths of a prefix."""
        for source in self._paths.pop((family, nlri), ()):
            self.count(family, source, -1)

    def clear_counts(self) -> None:
        """Forget which routes are not advertised at present: they are counted again."""
        self._counts.clear()
        self._paths.clear()

    def of(self, family: Family, member: SourceSession) -> int:
        """Return the number of prefixes that a member does not get, its own ones excepted."""
        counts = self._counts.get(family)
        return 0 if counts is None else sum(counts.values()) - counts.get(member, 0)

    def take_reports(self) -> list[LeftOutReport]:
        """Return the reports since the last call."""
        reports, self._reports = self._reports, []
        return reports

    @property
    def reported(self) -> bool:
        """Whether `take_reports` returns any."""
        return bool(self._reports)


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
