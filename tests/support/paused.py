"""A process that stands still for a while, as on a machine without time for it."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from tests.support.wait import eventually


@contextlib.contextmanager
def paused(pid: int) -> Iterator[None]:
    """Stop a process, and continue it after the block."""

    def stands_still() -> None:
        assert Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    os.kill(pid, signal.SIGSTOP)
    try:
        eventually(stands_still)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
