"""SIGHUP before a program can reload: a request for later, where it would end the program."""

from __future__ import annotations

import signal
from collections.abc import Callable


def note_hangups() -> Callable[[], bool]:
    """Note SIGHUP from now on, until a program handles it; returns a function: whether any came."""
    came: list[int] = []
    signal.signal(signal.SIGHUP, lambda number, _: came.append(number))
    return lambda: bool(came)
