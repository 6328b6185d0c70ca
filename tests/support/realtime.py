"""Programs that stand for other machines: scheduled before the ordinary processes of this one."""

from __future__ import annotations

import functools
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

CHRT: Final = ("chrt", "--fifo", "10")
"""The priority that ``waggle-bfd`` has."""


@functools.cache
def _permitted() -> bool:
    """Whether this process may start programs with SCHED_FIFO."""
    if shutil.which(CHRT[0]) is None:
        return False
    return subprocess.run([*CHRT, "true"], capture_output=True, check=False).returncode == 0


def preferred(command: Sequence[str | Path]) -> list[str | Path]:
    """Return a command that runs with SCHED_FIFO, with all of its threads, where that is permitted."""
    return [*CHRT, *command] if _permitted() else list(command)
