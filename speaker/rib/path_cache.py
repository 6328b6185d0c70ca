"""The paths of the attribute sets that a peer has announced: equal attributes are one `Path`.

An object of its own, which holds nothing that holds it: the paths of a lost session are released at
once, without the garbage collector.
"""

from __future__ import annotations

from typing import Any, final

from speaker.attribute import PathAttributes
from speaker.rib.adj_in import AdjRibIn
from speaker.rib.path import Path

MAX_ATTRIBUTE_SETS = 65536
"""The number of attribute sets whose paths are cached; then the cache is cleared."""


@final
class PathCache:
    """The cached paths of one Adj-RIB-In."""

    __slots__ = ("_adj_in", "_by_attributes", "_by_path_id", "by_field")

    def __init__(self, adj_in: AdjRibIn) -> None:
        self._adj_in = adj_in
        self._by_attributes: dict[PathAttributes, Path] = {}
        self._by_path_id: dict[tuple[PathAttributes, int], Path] = {}
        self.by_field: dict[bytes, Path] = {}
        """The path of each path attributes field that took the fast path."""

    def get(self, attributes: PathAttributes) -> Path | None:
        """Return the path of an attribute set, or None."""
        return self._by_attributes.get(attributes)

    def add(self, attributes: PathAttributes, path: Path) -> None:
        """Cache the path of an attribute set."""
        if len(self._by_attributes) >= MAX_ATTRIBUTE_SETS:
            self._by_attributes.clear()
        self._by_attributes[attributes] = path

    def get_add_path(self, attributes: PathAttributes, path_id: int) -> Path | None:
        """Return the path of an attribute set with a path identifier (RFC 7911), or None."""
        return self._by_path_id.get((attributes, path_id))

    def make_room_for_add_path(self) -> None:
        """Clear a full cache of paths with path identifiers, before the next one is made."""
        if len(self._by_path_id) >= MAX_ATTRIBUTE_SETS:
            self._clear_add_path()

    def add_add_path(self, attributes: PathAttributes, path_id: int, path: Path) -> None:
        """Cache the path of an attribute set with a path identifier."""
        self._by_path_id[attributes, path_id] = path

    def clear(self) -> None:
        """Clear the cached paths together with the decoder's attributes, which they keep alive."""
        self._by_attributes.clear()
        self.by_field.clear()
        if self._by_path_id:
            self._clear_add_path()

    def tables(self) -> list[dict[Any, Any]]:
        """Return the tables of the cache, for the caller to empty: no path is received any more."""
        return [self._by_attributes, self.by_field, self._by_path_id]

    def _clear_add_path(self) -> None:
        self._by_path_id.clear()
        self._adj_in.forget_unused_sources()
