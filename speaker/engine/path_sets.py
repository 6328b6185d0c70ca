"""Paths of a Loc-RIB as the values that readers of best paths are given (`speaker.api.PathSet`).

Equal sets are one object as long as a reader refers to it. What a set depends on is read from the
octets of attributes that are not decoded yet: decoded ones take a multiple of the time and memory.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterable
from typing import TypeAlias, final
from weakref import WeakValueDictionary

from speaker.api import BestPath, PathSet
from speaker.attribute import address_text
from speaker.attribute.fast_path import forwarding_values
from speaker.rib.path import Path, Source
from speaker.rib.usable_next_hop import is_link_local

_Key: TypeAlias = tuple[str, Source, bytes, bytes | tuple[int, ...]]
"""Instance, source, next hop and communities, which are octets where they are not decoded."""


@final
class PathSets:
    """The sets of all readers of an engine."""

    __slots__ = ("_sets", "_singles")

    def __init__(self) -> None:
        self._singles: WeakValueDictionary[_Key, PathSet] = WeakValueDictionary()
        self._sets: WeakValueDictionary[tuple[BestPath, ...], PathSet] = WeakValueDictionary()

    def single(self, path: Path, instance: str) -> PathSet:
        """Return the set of one path of an instance's Loc-RIB."""
        encoded = path.encoded
        if encoded:
            key: _Key = (instance, path.source, *forwarding_values(encoded))
        else:
            attributes = path.attributes
            key = (instance, path.source, attributes.next_hop, attributes.communities)
        known = self._singles.get(key)
        if known is None:
            known = self._singles[key] = self._set((_best_path(*key),))
        return known

    def several(self, paths: Iterable[Path], instance: str) -> PathSet:
        """Return the set of some paths in their order; paths that forward alike are one."""
        values = (self.single(path, instance).paths[0] for path in paths)
        return self._set(tuple(dict.fromkeys(values)))

    def _set(self, paths: tuple[BestPath, ...]) -> PathSet:
        known = self._sets.get(paths)
        if known is None:
            known = self._sets[paths] = PathSet(paths)
        return known


def _best_path(
    instance: str, source: Source, next_hop: bytes, communities: bytes | tuple[int, ...]
) -> BestPath:
    origin = source.imported_from
    if isinstance(communities, bytes):
        communities = struct.unpack(f"!{len(communities) // 4}I", communities)
    # RFC 2545 section 3: of 32 octets the second half is the link-local address.
    next_hop, link_local = next_hop[:16], next_hop[16:]
    if is_link_local(next_hop):
        next_hop, link_local = b"", next_hop
    return BestPath(
        peer=None if source.local else source.name.removeprefix(f"{origin}/"),
        address=None if source.local else _address_text(source.address[:16]),
        interface=source.interface,
        instance=origin or instance,
        imported=origin is not None,
        direct=source.direct,
        next_hop=next_hop,
        link_local=link_local,
        communities=communities,
    )


@functools.lru_cache(maxsize=1024)
def _address_text(octets: bytes) -> str:
    return address_text(octets)
