"""What is told of a family in which every path of a prefix is told, not only the best (RFC 7911).

Unlike with best paths, what was told cannot be worked out from the table and a change, so it is
kept: per prefix the tuple of paths, which the Loc-RIB shares mostly. One `AddPathAdjRibOut` serves all
members of an update group. A path is told under the number of its source, which is the same for as
long as the source is there; another path of the same source replaces it implicitly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import final

from speaker.rib.loc_rib import LocRib
from speaker.rib.path import Path, Source


def wire(path: Path, nlri: bytes) -> bytes:
    """Return a prefix behind the path identifier, as RFC 7911 section 3 has it."""
    return path.source.number.to_bytes(4, "big") + nlri


@final
class AddPathAdjRibOut:
    """The Adj-RIB-Out of one family."""

    __slots__ = ("_exported", "_table", "_told")

    def __init__(self, table: LocRib, exported: Callable[[Path, bytes], Path | None]) -> None:
        """Begin with nothing told; ``exported`` is a path of a prefix as it is told, or None."""
        self._table = table
        self._exported = exported
        self._told: dict[bytes, tuple[Path, ...]] = {}
        table.track_all_paths()

    def update(
        self, touched: Iterable[bytes], counts: dict[Source, int]
    ) -> tuple[list[bytes], dict[Path, list[bytes]]]:
        """Take in the present paths of prefixes; what has to be withdrawn and announced, as wire.

        ``counts`` (paths by the session that they came from) are brought up to date.
        """
        gone: list[bytes] = []
        announced: dict[Path, list[bytes]] = {}
        told = self._told
        # Sorted, so that the order is that of no hash: a recorded run can be played again.
        for nlri in sorted(touched):
            before = told.get(nlri, ())
            held = self._table.paths(nlri)
            exported = (self._exported(path, nlri) for path in held)
            now = tuple(path for path in exported if path is not None)
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
                if path not in before:
                    announced.setdefault(path, []).append(wire(path, nlri))
            if now:
                told[nlri] = held if now == held else now
            else:
                told.pop(nlri, None)
        return gone, announced

    def prefixes(self) -> list[bytes]:
        """Return the prefixes of which anything is told."""
        return list(self._told)

    def by_path(self, nlris: Iterable[bytes] | None = None) -> dict[Path, list[bytes]]:
        """Group what is told, or what is told of some prefixes, by path."""
        groups: dict[Path, list[bytes]] = {}
        for nlri in self._told if nlris is None else nlris:
            for path in self._told.get(nlri, ()):
                groups.setdefault(path, []).append(wire(path, nlri))
        return groups
