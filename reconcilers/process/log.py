"""Lines of the log, on standard error: the level, a colon, and what happened."""

from __future__ import annotations

import contextlib
import io
import select
import sys
from typing import Final

MAX_LINE: Final = 2000
"""Characters: less than a pipe that can be written takes at once."""


def log(level: str, text: str) -> None:
    """Write a line to a process's log on standard error; its level is ``info`` or ``error``.

    Lost if the agent that read it is gone, or reads nothing: the process would stand still.
    """
    with contextlib.suppress(OSError):
        if _is_writable():
            sys.stderr.write(f"{level}: {text[:MAX_LINE]}\n")
            sys.stderr.flush()


def _is_writable() -> bool:
    try:
        descriptor = sys.stderr.fileno()
    except io.UnsupportedOperation:
        return True
    waiting = select.poll()
    waiting.register(descriptor, select.POLLOUT)
    return any(events & select.POLLOUT for _, events in waiting.poll(0))
