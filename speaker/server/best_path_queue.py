"""The reader's end of a stream of best paths: what has arrived, until it is taken."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, final

from speaker.api import FEW_PREFIXES, BestPathChange, BestPathItem, StreamClosed

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext


@final
class BestPathQueue:
    """A `speaker.api.BestPathReader`; belongs to the event loop's thread.

    ``on_taken`` is called with the number of batches that were taken, which the sender answers with
    further ones, ``on_close`` when the reader closes the stream.
    """

    def __init__(self, on_taken: Callable[[int], None], on_close: Callable[[], None]) -> None:
        """Start without a batch."""
        self._on_taken = on_taken
        self._on_close = on_close
        self._batches: list[Sequence[BestPathItem]] = []
        self._causes: list[SpanContext] = []
        self._closed = False
        self._arrived = asyncio.Event()
        self.on_few: Callable[[Sequence[BestPathItem]], None] | None = None
        """See `speaker.api.BestPathReader`."""

    def put(self, batch: Sequence[BestPathItem], cause: SpanContext | None = None) -> None:
        """Add a batch, which is not empty, and its span; ignored once the stream is closed."""
        if not self._closed:
            self._batches.append(batch)
            if cause is not None:
                self._causes.append(cause)
            if self.on_few is not None and _has_few(batch):
                self.on_few(batch)
            if self._batches:
                self._arrived.set()

    def take_causes(self) -> Sequence[SpanContext]:
        """See `speaker.api.BestPathReader`."""
        causes, self._causes = self._causes, []
        return causes

    def take(self) -> Sequence[BestPathItem]:
        """See `speaker.api.BestPathReader`."""
        batches, self._batches = self._batches, []
        self._causes = []
        if not batches:
            return ()
        if not self._closed:
            self._arrived.clear()
            self._on_taken(len(batches))
        return [item for batch in batches for item in batch]

    async def wait(self) -> None:
        """See `speaker.api.BestPathReader`."""
        # Another reader than the waiting task may have taken what arrived: `on_few`.
        while not (self._batches or self._closed):
            await self._arrived.wait()
        if self._closed:
            raise StreamClosed

    def close(self) -> None:
        """See `speaker.api.BestPathReader`."""
        if not self._closed:
            self.end()
            self._on_close()

    def end(self) -> None:
        """End the stream from the speaker's side: waiting readers are woken."""
        self._closed = True
        self._batches.clear()
        self._arrived.set()


def _has_few(batch: Sequence[BestPathItem]) -> bool:
    """Return whether a batch is changes of few prefixes."""
    return (
        len(batch) <= FEW_PREFIXES
        and sum(len(item.prefixes) for item in batch if isinstance(item, BestPathChange))
        <= FEW_PREFIXES
    )
