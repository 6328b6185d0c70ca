"""Long reads in slices, in turn with the sessions: a question must not delay a keepalive.

Whatever the number of readers, one slice is read in a turn of the event loop. A reader reads no further
than it is consumed, and ends with its task.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

SLICE_SECONDS: Final = 0.002
"""The time after which a reader leaves the loop to the sessions."""


class SlicedReader:
    """The readers of one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` is in seconds."""
        self._clock = clock
        self._turn = asyncio.Lock()

    async def read(self, slices: Iterator[Sequence[T]]) -> AsyncGenerator[Sequence[T]]:
        """Yield the items of ``slices``, each of which is less than `SLICE_SECONDS` of work.

        Never an empty sequence. An exception of ``slices`` is raised.
        """
        ended = False
        while not ended:
            items: list[T] = []
            async with self._turn:
                # The sessions come first, also before the first slice and after another reader.
                await asyncio.sleep(0)
                until = self._clock() + SLICE_SECONDS
                while not ended and self._clock() < until:
                    some = next(slices, None)
                    ended = some is None
                    items += some or ()
            if items:
                yield items
