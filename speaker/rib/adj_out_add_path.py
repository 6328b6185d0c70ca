"""The Adj-RIB-Out of one family with ADD-PATH: every path of a prefix is advertised (RFC 7911).

With best paths only, what was advertised follows from the table and a change; with all paths it does
not, so it is stored: per prefix the tuple of paths, mostly shared with the Loc-RIB. One
`AddPathAdjRibOut` serves all members of an update group. The path identifier of a path is the number
of its source, constant while the source exists; a new path of the source replaces it implicitly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import final

from speaker.rib.loc_rib import LocRib
from speaker.rib.path import Path, SourceSession
from speaker.rib.prefix_table import PrefixTable


def wire(path: Path, nlri: bytes) -> bytes:
    """Return a prefix behind its path identifier (RFC 7911 section 3)."""
    return path.source.sent_path_id.to_bytes(4, "big") + nlri


@final
class AddPathAdjRibOut:
    """The advertised paths of one family."""

    __slots__ = ("_advertised", "_revision", "_table")

    def __init__(self, table: LocRib) -> None:
        self._table = table
        self._advertised: PrefixTable[tuple[Path, ...]] = PrefixTable()
        self._revision = 0
        table.track_all_paths()

    def update(
        self,
        touched: Iterable[bytes],
        counts: dict[SourceSession, int],
        exported: Callable[[Path, bytes], Path | None],
        same: Callable[[Path, Path], bool],
    ) -> tuple[list[bytes], dict[Path, list[bytes]]]:
        """Update prefixes from the table.

        ``exported`` returns a path of a prefix after policy, None if it is not exported. ``counts``
        (paths by the session that they came from) is updated. ``same``: whether two paths of one
        session are advertised alike. Returns the prefixes to withdraw and, by
        path, those to announce: prefixes behind their path identifiers.
        """
        gone: list[bytes] = []
        announced: dict[Path, list[bytes]] = {}
        shared: dict[tuple[Path, ...], tuple[Path, ...]] = {}
        advertised = self._advertised
        self._revision += 1
        # Sorted: the order must not depend on hashes, so that a recorded run replays identically.
        for nlri in sorted(touched):
            before = advertised.get(nlri, ())
            held = self._table.paths(nlri)
            after = (exported(path, nlri) for path in held)
            now = tuple(path for path in after if path is not None)
            if now == before:
                continue
            sources = {path.source for path in now}
            for path in before:
                counts[path.source.session] -= 1
                if path.source not in sources:
                    gone.append(wire(path, nlri))
            for path in now:
                origin = path.source.session
                counts[origin] = counts.get(origin, 0) + 1
                if path not in before and not any(
                    former.source is path.source and same(former, path) for former in before
                ):
                    announced.setdefault(path, []).append(wire(path, nlri))
            if now:
                # One tuple for prefixes with the same paths: each is an object of the collector.
                advertised[nlri] = shared.setdefault(now, held if now == held else now)
            else:
                advertised.pop(nlri, None)
        return gone, announced

    def paths(self, nlri: bytes) -> tuple[Path, ...]:
        """Return the advertised paths of a prefix."""
        return self._advertised.get(nlri, ())

    def walk(self, size: int) -> Iterator[Sequence[bytes]]:
        """Iterate over lists of the prefixes with an advertised path; see `PrefixTable.walk`."""
        return self._advertised.walk(size, lambda: self._revision)

    def by_path(self, nlris: Iterable[bytes] | None = None) -> dict[Path, list[bytes]]:
        """Group all advertised routes, or of some prefixes, by path; prefixes as in `update`."""
        groups: dict[Path, list[bytes]] = {}
        for nlri in self._advertised if nlris is None else nlris:
            for path in self._advertised.get(nlri, ()):
                groups.setdefault(path, []).append(wire(path, nlri))
        return groups
