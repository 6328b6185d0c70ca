"""The job that reads a source: it goes on until the source fails, or one of its readers does.

A reader that cannot take an event must not raise into the source, whose other readers would miss it
too; it tells the watch instead. What was not taken is lost to the tables, and only reading everything
again puts that right: so the watch fails as a whole, and the supervisor runs it anew. This knows
nothing of what is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


class Watch:
    """Runs one source, by its `run`; our `run` is the job, and may run again when it has ended."""

    def __init__(self, read: Callable[[], Awaitable[None]]) -> None:
        self._read = read
        self._failed: asyncio.Future[None] | None = None

    def fail(self, error: BaseException) -> None:
        """End the run with this error; only the first of a run counts, and none between runs."""
        if self._failed is not None and not self._failed.done():
            self._failed.set_exception(error)

    async def run(self) -> None:
        """Read until cancelled. Raises what the source raises, or what `fail` was told."""
        self._failed = asyncio.get_running_loop().create_future()
        reading = asyncio.ensure_future(self._read())
        try:
            await asyncio.wait({reading, self._failed}, return_when=asyncio.FIRST_COMPLETED)
            (self._failed if self._failed.done() else reading).result()
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            # Also makes asyncio forget an error that came meanwhile, which nobody looks at any more.
            self._failed.cancel()
