"""Paths of a Loc-RIB as the values that readers of best paths are given (`speaker.api.PathSet`).

A value is made once for each attribute set, not for each prefix, and equal sets are one object as long
as a reader refers to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final
from weakref import WeakKeyDictionary, WeakValueDictionary

from speaker.api import BestPath, PathSet
from speaker.attribute import address_text
from speaker.rib.path import Path
from speaker.rib.usable_next_hop import is_link_local


@final
class PathSets:
    """The sets of all readers of an engine."""

    __slots__ = ("_of_path", "_sets")

    def __init__(self) -> None:
        self._of_path: WeakKeyDictionary[Path, PathSet] = WeakKeyDictionary()
        self._sets: WeakValueDictionary[tuple[BestPath, ...], PathSet] = WeakValueDictionary()

    def single(self, path: Path, instance: str) -> PathSet:
        """Return the set of one path of an instance's Loc-RIB."""
        known = self._of_path.get(path)
        if known is None:
            known = self._of_path[path] = self._set((best_path(path, instance),))
        return known

    def several(self, paths: Iterable[Path], instance: str) -> PathSet:
        """Return the set of some paths in their order; those that forward alike are one."""
        values = (self.single(path, instance).paths[0] for path in paths)
        return self._set(tuple(dict.fromkeys(values)))

    def _set(self, paths: tuple[BestPath, ...]) -> PathSet:
        known = self._sets.get(paths)
        if known is None:
            known = self._sets[paths] = PathSet(paths)
        return known


def best_path(path: Path, instance: str) -> BestPath:
    """Return the value of a path in the Loc-RIB of an instance."""
    source = path.source
    origin = source.imported_from
    attributes = path.decoded().attributes
    # RFC 2545 section 3: of 32 octets the second half is the link-local address.
    next_hop, link_local = attributes.next_hop[:16], attributes.next_hop[16:]
    if is_link_local(next_hop):
        next_hop, link_local = b"", next_hop
    return BestPath(
        peer=None if source.local else source.name.removeprefix(f"{origin}/"),
        address=None if source.local else address_text(source.address[:16]),
        interface=source.interface,
        instance=origin or instance,
        imported=origin is not None,
        direct=source.direct,
        next_hop=next_hop,
        link_local=link_local,
        communities=attributes.communities,
    )
