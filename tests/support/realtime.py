"""Programs that stand for other machines: scheduled before the ordinary processes of this one."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

CHRT: Final = ("chrt", "--rr", "10")
"""The priority that ``waggle-bfd`` has.

Round robin: with SCHED_FIFO, spinning threads of two GoBGPs held both CPUs of a machine, and the
threads that they waited for never ran.
"""


@functools.cache
def _permitted() -> bool:
    """Whether this process may start programs with SCHED_RR."""
    if shutil.which(CHRT[0]) is None:
        return False
    return subprocess.run([*CHRT, "true"], capture_output=True, check=False).returncode == 0


def preferred(command: Sequence[str | Path]) -> list[str | Path]:
    """Return a command that runs with SCHED_RR, with all of its threads, where that is permitted."""
    return [*CHRT, *command] if _permitted() else list(command)


def prefer(*pids: int) -> bool:
    """Let running programs go on so, with all of their threads; false where it is not permitted."""
    if not _permitted():
        return False
    for pid in pids:
        subprocess.run([CHRT[0], "--all-tasks", *CHRT[1:2], "--pid", CHRT[2], str(pid)], check=True)
    return True


@contextlib.contextmanager
def preferring() -> Iterator[None]:
    """Let this thread, and what it starts meanwhile, run so where that is permitted."""
    if not _permitted():
        yield
        return
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(int(CHRT[2])))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
