"""Bridge from observables to a job: many emissions are one wake-up, and the job reads the state.

No data travels through it. An emission only sets a flag, so a consumer can never raise into the
producer, and a burst of commits costs one wake-up.
"""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import Any, Self

import reactivex
from reactivex import Observable
from reactivex.abc import DisposableBase
from reactivex.disposable import Disposable


class Signal:
    """A flag over several observables. Use it as a context manager from the loop's thread.

    It starts raised: the first `wait` returns at once, and the job reads the present state. An
    observable's error is raised in the waiting job, which its supervisor restarts and which then
    subscribes again.
    """

    def __init__(self, *sources: Observable[Any]) -> None:
        self._sources = sources
        self._wake = asyncio.Event()
        self._wake.set()
        self._error: Exception | None = None
        self._first: float | None = None
        self.since: float | None = None
        """Monotonic time of the first emission since the `wait` before; None without an emission."""
        self._subscription: DisposableBase = Disposable()

    def __enter__(self) -> Self:
        """Subscribe to all sources."""
        merged = reactivex.merge(*self._sources)
        self._subscription = merged.subscribe(self._emitted, self._failed)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End all subscriptions."""
        self._subscription.dispose()

    @property
    def is_raised(self) -> bool:
        """True if the consumer is woken already: the next `wait` returns at once."""
        return self._wake.is_set()

    def raise_flag(self) -> None:
        """Wake the consumer without an emission (a retry timer, a command)."""
        self._wake.set()

    async def wait(self, *, settle_turns: int = 0, at_most: float | None = None) -> None:
        """Wait for an emission since the last call, then for ``settle_turns`` turns of the loop.

        ``at_most`` are the seconds after which it returns without one; None is never.
        Settling by turns of the loop conflates what producers commit back to back without
        adding a fixed delay: an idle turn takes microseconds.
        """
        try:
            async with asyncio.timeout(at_most):
                await self._wake.wait()
        except TimeoutError:
            self.since = None
            return
        for _ in range(settle_turns):
            await asyncio.sleep(0)
        self._wake.clear()
        self.since, self._first = self._first, None
        if self._error is not None:
            raise self._error

    def _emitted(self, _: object) -> None:
        if self._first is None:
            self._first = time.monotonic()
        self._wake.set()

    def _failed(self, error: Exception) -> None:
        self._error = error
        self._wake.set()
