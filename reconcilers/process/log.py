"""Lines of the writer's log, on standard error: the level, a colon, and what happened."""

from __future__ import annotations

import sys


def log(level: str, text: str) -> None:
    """Write a line; its level is ``info`` or ``error``."""
    sys.stderr.write(f"{level}: {text}\n")
    sys.stderr.flush()
