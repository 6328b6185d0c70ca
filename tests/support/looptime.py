"""An event loop whose clock jumps to the next timer: hours of sleeping cost no time at all.

For tests of timers and back-off. It must never be used with sockets that wait for another
process: while nothing is ready, time flies.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """`time()` starts at 0 and moves only when the loop would have slept."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        """Return virtual seconds."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Look at what is ready now, and instead of waiting move the clock."""
        # Waiting for ever is only broken by another thread: look again in real time then.
        ready = super().select(0.01 if timeout is None else 0)
        if not ready and timeout:
            self._loop.advance(timeout)
        return ready


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
