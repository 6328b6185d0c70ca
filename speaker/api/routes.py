"""The routes of a view: read one after another, or slice by slice where sessions must go on meanwhile.

A full table takes seconds. `Routes.slices` is for programs that answer questions: they leave the event
loop to the sessions between two slices (`speaker.server.SlicedReader`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Generic, TypeVar, final

from speaker.api.status import RouteView

T = TypeVar("T")


@final
class Routes(Iterable[RouteView]):
    """The routes of a view, to be read once.

    Nothing is read in advance. The tables may change between two slices: a route that was there when
    its table's turn came is shown as it is when its slice is read, or not at all.
    """

    __slots__ = ("slices",)

    def __init__(self, slices: Iterator[Sequence[RouteView]]) -> None:
        self.slices = slices
        """Slices of bounded work; some may be empty."""

    def __iter__(self) -> Iterator[RouteView]:
        """Iterate over the routes, not over slices."""
        return chain.from_iterable(self.slices)


class Limited(Generic[T]):
    """The first items of slices; `truncated` is whether there were more."""

    def __init__(self, slices: Iterator[Sequence[T]], limit: int | None) -> None:
        """``limit`` None is no limit."""
        self._slices = slices
        self._limit = limit
        self.truncated = False

    def __iter__(self) -> Iterator[Sequence[T]]:
        """Iterate over slices up to the limit."""
        left = self._limit
        for items in self._slices:
            if left is None or len(items) <= left:
                yield items
                left = None if left is None else left - len(items)
            else:
                yield items[:left]
                self.truncated = True
                return
