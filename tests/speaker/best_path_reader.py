"""A reader of best paths that holds what it was given, and checks each change against it."""

from __future__ import annotations

from collections.abc import Iterable

from speaker.api import (
    NO_PATHS,
    BestPathChange,
    BestPathItem,
    InstanceRemoved,
    PathSet,
    SelectionEnd,
    TableBegin,
    TableEnd,
)
from speaker.nlri import Family


class Reader:
    """The best paths by family and prefix, as the changes of a stream make them."""

    def __init__(self) -> None:
        self.routes: dict[tuple[Family, bytes], PathSet] = {}
        self.marks: list[str] = []
        """The names of the items that are no changes."""
        self.changes = 0
        """Prefixes of all changes."""

    def apply(self, items: Iterable[BestPathItem]) -> None:
        """Apply items in their order."""
        for item in items:
            match item:
                case BestPathChange(family, before, after, prefixes):
                    assert before != after
                    assert len(set(prefixes)) == len(prefixes) > 0
                    self.changes += len(prefixes)
                    for prefix in prefixes:
                        assert self.routes.pop((family, prefix), NO_PATHS) == before
                        if after:
                            self.routes[family, prefix] = after
                case TableBegin() | InstanceRemoved():
                    self.routes.clear()
                    self.marks.append(type(item).__name__)
                case TableEnd() | SelectionEnd():
                    self.marks.append(type(item).__name__)
