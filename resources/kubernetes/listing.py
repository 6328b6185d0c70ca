"""A list of objects as it is read, page by page. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from resources.kubernetes.errors import InvalidResponse
from resources.meta import ObjectKey, Resource
from resources.source import SourceProblem

if TYPE_CHECKING:
    from resources.kubernetes.feed import Feed

T = TypeVar("T", bound=Resource)


class Contents(Generic[T]):
    """The stored rows of objects that are read."""

    def __init__(self) -> None:
        self.rows: dict[ObjectKey, T] = {}
        self.problems: dict[ObjectKey, tuple[SourceProblem, ...]] = {}
        self.dropped_by: set[str] = set()
        """The keys of the labels by which the selectors of dropped objects select nodes."""


class Listing(Contents[T]):
    """A list that is being read, page by page."""

    def __init__(self, feed: Feed[T]) -> None:
        super().__init__()
        self._feed = feed
        self._labels = feed.labels
        self.dropped: set[ObjectKey] = set()
        """Objects of the feed that the list has, and that no longer concern the node."""
        self.version = ""

    @property
    def outdated(self) -> bool:
        """True if the node's labels have changed since the first page of the list."""
        return self._labels != self._feed.labels

    def begin(self, version: str) -> None:
        """Store the version of a page of the list. Raises `InvalidResponse` if the pages' differ."""
        if not version:
            raise InvalidResponse("sends a list without a resourceVersion")
        if self.version and version != self.version:
            raise InvalidResponse("sends pages of different versions")
        self.version = version

    def add(self, items: Iterable[msgspec.Raw]) -> None:
        """Decode the objects of a page of a list from the API server."""
        for raw in items:
            key = self._feed.read(raw, self)
            if key not in self.rows and key in self._feed.rows:
                self.dropped.add(key)
