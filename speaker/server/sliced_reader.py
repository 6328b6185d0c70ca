"""Long reads in slices, in turn with the sessions: a question must not delay a keepalive.

Whatever the number of readers, one slice is read in a turn of the event loop. A reader reads no further
than it is consumed, and ends with its task.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

SLICE_SECONDS: Final = 0.002
"""The time after which a reader leaves the loop to the sessions."""


class SlicedReader:
    """The readers of one event loop."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """``clock`` is in seconds; ``pause`` waits for some, and for 0 until the next turn."""
        self._clock = clock
        self._pause = pause
        self._turn = asyncio.Lock()

    async def read(self, slices: Iterator[Sequence[T]]) -> AsyncGenerator[Sequence[T]]:
        """Yield the items of ``slices``, each of which is less than `SLICE_SECONDS` of work.

        After a longer slice the loop is left for as long. Never an empty sequence. An exception of
        ``slices`` is raised.
        """
        ended = False
        while not ended:
            items: list[T] = []
            async with self._turn:
                # The sessions come first, also before the first slice and after another reader.
                await self._pause(0)
                began = self._clock()
                while not ended and self._clock() < began + SLICE_SECONDS:
                    some = next(slices, None)
                    ended = some is None
                    items += some or ()
                # A first slice copies the keys of its table. Several such slices in a row would
                # be one long turn for what needs more than one, as a request does.
                excess = self._clock() - began - 2 * SLICE_SECONDS
                if excess > 0:
                    await self._pause(excess)
            if items:
                yield items
