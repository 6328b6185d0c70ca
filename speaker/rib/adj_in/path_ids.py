"""The path identifiers that one peer sends (RFC 7911): their sources, and the paths of each prefix."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Final, final

from speaker.nlri import Family, PathNlri
from speaker.rib.path import Source

MAX_PATHS: Final = 64
"""The number of paths of one prefix that a peer may announce: route selection compares them all."""


@final
class ReceivedPathIds:
    """The path identifiers of one session.

    A route's key is the prefix behind its path identifier, in wire form.
    """

    __slots__ = ("_numbers", "_paths", "_source", "families", "sources")

    def __init__(self, source: Source, numbers: Iterator[int], families: frozenset[Family]) -> None:
        """Start empty; ``numbers`` are for new sources, ``families`` have ADD-PATH."""
        self._source = source
        self._numbers = numbers
        self.families = families
        self.sources: dict[bytes, Source] = {}
        """The source of each path identifier (four octets)."""
        self._paths: dict[Family, dict[bytes, int]] = {family: {} for family in families}
        """The number of held paths of each prefix."""

    def admit(
        self, family: Family, items: Sequence[PathNlri], table: Container[bytes]
    ) -> list[PathNlri]:
        """Return the paths that may be announced: at most `MAX_PATHS` of a prefix, beside ``table``."""
        held = self._paths[family]
        admitted = []
        for path_id, nlri in dict.fromkeys(items):
            if path_id.to_bytes(4, "big") + nlri not in table:
                count = held.get(nlri, 0)
                if count >= MAX_PATHS:
                    continue
                held[nlri] = count + 1
            admitted.append((path_id, nlri))
        return admitted

    def withdraw(self, family: Family, keys: Sequence[bytes], table: Container[bytes]) -> None:
        """Count paths that are about to leave ``table``; unknown ones are ignored."""
        held = self._paths[family]
        for key in dict.fromkeys(keys):
            if key in table:
                prefix = key[4:]
                if held[prefix] == 1:
                    del held[prefix]
                else:
                    held[prefix] -= 1

    def forget(self, family: Family, keys: Sequence[bytes]) -> None:
        """Count announced paths no more, as they do not come into the table."""
        held = self._paths.get(family)
        if held is None:
            return
        for key in keys:
            prefix = key[4:]
            count = held.get(prefix, 0)
            if count > 1:
                held[prefix] = count - 1
            else:
                held.pop(prefix, None)

    def clear(self, family: Family) -> None:
        """Count no path of a family any more."""
        if family in self._paths:
            self._paths[family] = {}

    def set_families(self, families: frozenset[Family]) -> None:
        """Continue with other families with ADD-PATH."""
        self.families = families
        self._paths = {family: self._paths.get(family, {}) for family in families}

    def source_of(self, path_id: int) -> Source:
        """Return the source of the paths with a path identifier."""
        key = path_id.to_bytes(4, "big")
        known = self.sources.get(key)
        if known is None:
            known = self.sources[key] = self._source.with_path_id(path_id, next(self._numbers))
        return known

    def forget_unused_sources(self, tables: Mapping[Family, Iterable[bytes]]) -> None:
        """Forget the sources without a route: a peer may send four thousand million identifiers.

        The caller must forget the paths that it keeps of these sources.
        """
        used = {key[:4] for family in self.families for key in tables.get(family, ())}
        self.sources = {key: source for key, source in self.sources.items() if key in used}

    def keys_of(self, family: Family, nlri: bytes) -> list[bytes]:
        """Return the keys that a held prefix may have; none for a prefix that is not held."""
        if nlri not in self._paths[family]:
            return []
        return [path_id + nlri for path_id in self.sources]

    def by_source(self, keys: Sequence[bytes]) -> list[tuple[Source, list[bytes]]]:
        """Group keys by the source of their path identifier; unknown identifiers are ignored."""
        return by_source(self.sources, keys)


def by_source(
    sources: Mapping[bytes, Source], keys: Sequence[bytes]
) -> list[tuple[Source, list[bytes]]]:
    """Group keys by the source of their path identifier; unknown identifiers are ignored."""
    by_id: dict[bytes, list[bytes]] = {}
    for key in keys:
        by_id.setdefault(key[:4], []).append(key[4:])
    return [
        (sources[path_id], prefixes) for path_id, prefixes in by_id.items() if path_id in sources
    ]
