"""Wait for a condition instead of for a time.

A check is a function that asserts; it is called again until it passes or the deadline is over,
and then its last failure is what the test shows. An answer that does not have yet what the check
asks it for (a key, an entry, a whole document) is a failure of the check like any other. What takes
longer is looked at less often, and an error that is not one of these kinds is never hidden.

A deadline is for what would never come: it is no statement about speed. A machine under load keeps
a process from running for ten seconds at any moment, so that a deadline shorter than `PATIENCE` is
refused.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")
FACTOR: Final = float(os.environ.get("TEST_TIME_FACTOR", "1"))
"""All limits are multiplied by it: in a VM everything takes longer."""
PATIENCE: Final = 60.0
"""The shortest deadline, in seconds."""
_LONGEST_PAUSE: Final = 0.15
_PAUSE_PER_SECOND: Final = 0.1
"""The pause after a second of waiting: a waiting test is late by a tenth at most, and leaves the
processor to the programs that it waits for."""


def _deadline(within: float = PATIENCE) -> tuple[float, float]:
    """Return the seconds to wait, and the end of them by the monotonic clock."""
    if within < PATIENCE:
        raise ValueError(f"{within:g} s: no deadline is shorter than {PATIENCE:g} s")
    seconds = within * FACTOR
    return seconds, time.monotonic() + seconds


class NotReadyError(Exception):
    """Something outside cannot answer yet (a control socket is not there, a daemon starts)."""


_NOT_YET = (AssertionError, NotReadyError, LookupError, ValueError)


def eventually(
    check: Callable[[], T],
    *,
    within: float = PATIENCE,
    interval: float = 0.03,
    context: Callable[[], str] | None = None,
) -> T:
    """Call ``check`` until it passes: neither asserts, nor lacks what it asks for; give its answer.

    ``within``: `PATIENCE` or more seconds. ``interval``: the first pause. ``context`` returns more
    text (logs), called only when the deadline is over. Raises AssertionError with the check's last
    failure.
    """
    return _poll(check, within, interval, context, longest=max(interval, _LONGEST_PAUSE))


def _poll(
    check: Callable[[], T],
    within: float,
    interval: float,
    context: Callable[[], str] | None,
    *,
    longest: float,
) -> T:
    within, deadline = _deadline(within)
    began = time.monotonic()
    tries = 0
    while True:
        tries += 1
        try:
            return check()
        except _NOT_YET as failure:
            if time.monotonic() >= deadline:
                more = f"\n{context()}" if context is not None else ""
                reason = failure if isinstance(failure, AssertionError) else repr(failure)
                message = f"not within {within:g} s ({tries} tries): {reason}{more}"
                raise AssertionError(message) from failure
        waited = time.monotonic() - began
        time.sleep(min(longest, max(interval, waited * _PAUSE_PER_SECOND)))


async def until(condition: Callable[[], object]) -> None:
    """Let the loop turn until ``condition`` holds, for `PATIENCE` of real time.

    Raises AssertionError when it does not come to that.
    """
    within, deadline = _deadline()
    pause = 0.002
    while not condition():
        if time.monotonic() >= deadline:
            raise AssertionError(f"it did not come to that within {within:g} s")
        await asyncio.sleep(pause)
        # What takes longer is looked at less often: the program has the processor meanwhile.
        pause = min(pause * 1.5, 0.01)


def settles(
    check: Callable[[], T],
    *,
    stays: float,
    within: float = PATIENCE,
    interval: float = 0.03,
    holding: float | None = None,
    context: Callable[[], str] | None = None,
) -> T:
    """Wait until ``check`` has passed each time for ``stays`` seconds; give its last answer.

    For what may hold already before a change has arrived, and break once more when it does.
    ``holding``: seconds between the checks while they pass, where one costs much; else ``interval``.
    """
    pause = interval if holding is None else holding

    def lasting() -> T:
        check()
        since = time.monotonic()
        while True:
            time.sleep(pause)
            answer = check()
            if time.monotonic() - since >= stays:
                return answer

    # Each interval has its look: what breaks for a moment has not settled.
    return _poll(lasting, within, interval, context, longest=interval)
