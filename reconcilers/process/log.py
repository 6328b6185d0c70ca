"""Lines of the log, on standard error: the level, a colon, and what happened."""

from __future__ import annotations

import contextlib
import sys


def log(level: str, text: str) -> None:
    """Write a line; its level is ``info`` or ``error``. Lost if the agent that read it is gone."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{level}: {text}\n")
        sys.stderr.flush()
