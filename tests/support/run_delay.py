"""Time that processes waited for a processor: what a busy machine adds to the time of their work.

The kernel's own number, of their main threads (the second field of ``/proc/PID/schedstat``), in which
an event loop runs. Programs of tests read it as well, at the moment in which they measure.
"""

from __future__ import annotations

from pathlib import Path


def run_delay(*pids: int | str) -> float:
    """Return the seconds that the main threads of some processes were ready and did not run."""
    texts = (Path(f"/proc/{pid}/task/{pid}/schedstat").read_text() for pid in pids)
    return sum(int(text.split()[1]) for text in texts) / 1e9
