"""Time that processes waited for a processor: what a busy machine adds to the time of their work.

The kernel's own number, of their main threads (the second field of ``/proc/PID/schedstat``), in which
an event loop runs. Programs of tests read it as well, at the moment in which they measure.
"""

from __future__ import annotations

import os
import select
import time
from pathlib import Path


def run_delay(*pids: int | str) -> float:
    """Return the seconds that the main threads of some processes were ready and did not run."""
    return sum(_waited(Path(f"/proc/{pid}/task/{pid}")) for pid in pids)


def seconds_to_end(pid: int, within: float) -> float:
    """Return the seconds until a process ends, without its main thread's waits for a processor.

    The kernel has this number until the parent has taken the exit status, which this does not.
    """
    began, delayed = time.monotonic(), _waited(Path(f"/proc/{pid}"))
    process = os.pidfd_open(pid)
    try:
        ended, _, _ = select.select([process], [], [], within)
    finally:
        os.close(process)
    assert ended, f"process {pid} has not ended within {within:g} s"
    return time.monotonic() - began - (_waited(Path(f"/proc/{pid}")) - delayed)


def _waited(thread: Path) -> float:
    return int((thread / "schedstat").read_text().split()[1]) / 1e9
