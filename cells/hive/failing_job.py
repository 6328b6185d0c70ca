"""The job that runs until its own work or one of its subscribers fails.

A subscriber must not raise into its source; it reports its error to `Watch.fail`. An event that was not
stored is lost to the tables until everything is read again, so the run fails as a whole, and the
supervisor starts another.
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
        """End the run with this error; later errors of a run are ignored, and all between runs."""
        if self._failed is not None and not self._failed.done():
            self._failed.set_exception(error)

    async def run(self) -> None:
        """Read until cancelled. Raises the source's error, or the one given to `fail`."""
        self._failed = asyncio.get_running_loop().create_future()
        reading = asyncio.ensure_future(self._read())
        try:
            await asyncio.wait({reading, self._failed}, return_when=asyncio.FIRST_COMPLETED)
            (self._failed if self._failed.done() else reading).result()
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            # Also discards an error that arrived meanwhile and is no longer of interest.
            self._failed.cancel()
