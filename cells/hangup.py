"""SIGHUP in programs that it would end: a request for later while a program that can reload starts.

Programs that have no file to read again ignore it.
"""

from __future__ import annotations

import signal
from collections.abc import Callable


def note_hangups() -> Callable[[], bool]:
    """Note SIGHUP from now on, until a program handles it; returns a function: whether any came."""
    came: list[int] = []
    signal.signal(signal.SIGHUP, lambda number, _: came.append(number))
    return lambda: bool(came)


def ignore_hangups() -> None:
    """Ignore SIGHUP in this process and its children: `pkill -HUP`, or a terminal that is closed."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
