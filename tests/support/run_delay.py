"""Time that processes waited for a processor: what a busy machine adds to the time of their work.

The kernel's own number, of all threads (the second field of ``/proc/PID/task/TID/schedstat``).
"""

from __future__ import annotations

import contextlib
from pathlib import Path


def run_delay(*pids: int) -> float:
    """Return the seconds that the threads of some processes were ready and did not run."""
    nanoseconds = 0
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            # A thread may end meanwhile.
            with contextlib.suppress(OSError):
                nanoseconds += int((thread / "schedstat").read_text().split()[1])
    return nanoseconds / 1e9
