"""Long work in slices, between which a program does what else is due. Pure.

Work in slices is a generator that yields after each slice and returns the result. A slice is a number
of pieces (prefixes, mostly) and not a time: a run is the same on every machine, and small work is one
slice, which takes one turn of the loop. Work that waits for a coroutine (`settled`) yields what the
coroutine waits for: it is awaited as a whole (`Turns`, `cells.hive.rounds.in_slices`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Generator, Iterator
from itertools import chain, islice
from typing import Any, Final, Generic, TypeAlias, TypeVar

from statedb import Change, ChangeIterator, Snapshot

T = TypeVar("T")
C = TypeVar("C", bytes, str)
Slices: TypeAlias = Generator[None, None, T]

SLICE_PIECES: Final = 1000
"""Pieces of a slice; a piece takes 5 to 20 microseconds."""
BATCH_PIECES: Final = 250
"""Pieces that are counted at a time: counting each costs as much as some pieces."""
QUICK_PER_PIECE: Final = 5
"""Steps of one or two microseconds in one piece."""
MERGED_PER_PIECE: Final = 50
"""Values of sorted lists that are merged."""


class Pieces:
    """Counts pieces of work."""

    __slots__ = ("_left", "_size", "slices")

    def __init__(self, size: int = SLICE_PIECES) -> None:
        self._size = self._left = size
        self.slices = 0
        """The number of full slices."""

    def begin(self) -> None:
        """Begin a slice of work, at the start of a run."""
        self._left = self._size

    def fill_slice(self, pieces: int = 1) -> bool:
        """Count pieces of work that are done; True if the slice is full, and the next one begins."""
        self._left -= pieces
        if self._left > 0:
            return False
        self._left = self._size
        self.slices += 1
        return True


def sliced(answer: T | Slices[T]) -> Slices[T]:
    """Return an answer that may be work in slices, or a value at once."""
    if isinstance(answer, Generator):
        return (yield from answer)
    return answer


def at_once(value: T) -> Slices[T]:
    """Return a value as work in slices, without a slice."""
    yield from ()
    return value


def quick(items: Collection[T], pieces: Pieces) -> Iterator[list[T] | None]:
    """Iterate over lists of items, a quick step of sliced work each; None where a slice is full."""
    if len(items) <= SLICE_PIECES:
        # Most are few: not a generator, which is called again for its end.
        full = bool(items) and pieces.fill_slice(1 + len(items) // QUICK_PER_PIECE)
        return iter((list(items), None) if full else (list(items),))
    return _quick(iter(items), pieces)


def _quick(rest: Iterator[T], pieces: Pieces) -> Iterator[list[T] | None]:
    while some := list(islice(rest, SLICE_PIECES)):
        yield some
        if pieces.fill_slice(1 + len(some) // QUICK_PER_PIECE):
            yield None


def changes_of(
    iterator: ChangeIterator[T], snapshot: Snapshot, pieces: Pieces
) -> Iterator[list[Change[T]] | None]:
    """Iterate over lists of a table's changes as sliced work; None where a slice is full.

    The changes are seen at the end: changes of an abandoned iteration come again.
    """
    for changes in iterator.slices(snapshot):
        if changes:
            yield changes
        # An empty list is a slice of work before the first changes, or after the last ones.
        if not changes or pieces.fill_slice(1 + len(changes) // QUICK_PER_PIECE):
            yield None


def settled(answer: T | Awaitable[T]) -> Slices[T]:
    """Return an answer within work in slices; a coroutine is awaited."""
    # Not isinstance: the abstract class takes longer than most answers.
    if hasattr(answer, "__await__"):
        return (yield from answer.__await__())
    return answer


class Turns(Generic[T]):
    """Work in slices that a coroutine awaits: each slice is a turn of the loop."""

    def __init__(self, slices: Slices[T]) -> None:
        self._slices = slices

    def __await__(self) -> Generator[Any, Any, T]:
        """Return the work: a bare yield is a turn of the loop (as in `asyncio.sleep(0)`)."""
        return self._slices


def merged(runs: list[list[C]], pieces: Pieces) -> Slices[list[C]]:
    """Merge sorted lists pairwise, in slices, until they are one."""
    while len(runs) > 1:
        pairs: list[list[C]] = []
        for at in range(0, len(runs), 2):
            # Two runs that are sorted are merged in linear time.
            pairs.append(sorted(chain.from_iterable(runs[at : at + 2])))
            if pieces.fill_slice(1 + len(pairs[-1]) // MERGED_PER_PIECE):
                yield
        runs = pairs
    return runs[0] if runs else []


def finish(slices: Slices[T]) -> T:
    """Do all slices of work at one go; nothing in them can wait for the event loop."""
    while True:
        try:
            if next(slices) is not None:
                raise TypeError("work that waits is done at one go")
        except StopIteration as end:
            result: T = end.value
            return result
