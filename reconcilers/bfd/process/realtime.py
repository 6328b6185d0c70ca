"""Scheduling of the process, and the capabilities that it gives up.

* SCHED_FIFO, by CAP_SYS_NICE or RLIMIT_RTPRIO; with CONFIG_RT_GROUP_SCHED a cgroup that has a share of
  real time, too. Beside busy processes an ordinary one misses detection times of 150 ms.
* Locked memory, by CAP_IPC_LOCK or RLIMIT_MEMLOCK: a page that is read from a disk takes longer than an
  interval.
"""

from __future__ import annotations

import ctypes
import os
from typing import Final, NamedTuple

PRIORITY: Final = 10
"""Of 1 to 99. The kernel's own threads of 50 and higher go before."""
_MCL_CURRENT, _MCL_FUTURE, _MCL_ONFAULT = 1, 2, 4


class RealTime(NamedTuple):
    """The kernel's grants."""

    scheduled: bool
    memory_locked: bool
    problems: tuple[str, ...] = ()


def enter() -> RealTime:
    """Schedule the BFD process in real time and lock its memory, as far as the kernel permits."""
    problems = []
    scheduled = locked = True
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(PRIORITY))
    except OSError as error:
        scheduled = False
        problems.append(
            "no real-time scheduling, which needs CAP_SYS_NICE or RLIMIT_RTPRIO, and with "
            f"CONFIG_RT_GROUP_SCHED a cgroup that has a share of it: {error.strerror}"
        )
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mlockall(_MCL_CURRENT | _MCL_FUTURE | _MCL_ONFAULT):
        locked = False
        reason = os.strerror(ctypes.get_errno())
        problems.append(f"memory is not locked, which needs CAP_IPC_LOCK: {reason}")
    return RealTime(scheduled, locked, tuple(problems))
