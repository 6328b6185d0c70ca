"""Gives capabilities of this process up, for good (capabilities(7)).

Without Kubernetes an agent is started with CAP_NET_ADMIN for a child process that needs it. Once that
runs the agent itself has no use of it.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

NET_ADMIN: Final = 12
IPC_LOCK: Final = 14

_SETPCAP: Final = 8
_VERSION_3: Final = 0x20080522
_PR_CAPBSET_DROP, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_LOWER = 24, 47, 3
_SETS: Final = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Data(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def give_up(capability: int) -> bool:
    """Drop a capability from every set of this process; returns False if it had none of it.

    Without CAP_SETPCAP it stays in the bounding set, from which only a program of root, or one with
    capabilities of its file, gains it. Raises `OSError` if a thread of the process would keep it.
    """
    if not _holds("self", capability, _SETS[:3]):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) and ctypes.get_errno() != errno.EPERM:
        raise _error()
    libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_LOWER, capability, 0, 0)  # unknown before 4.3
    header, data = _Header(_VERSION_3, 0), (_Data * 2)()
    if libc.capget(ctypes.byref(header), data):
        raise _error()
    keep = ~(1 << capability % 32)
    words = data[capability // 32]
    words.effective &= keep
    words.permitted &= keep
    words.inheritable &= keep
    if libc.capset(ctypes.byref(header), data):
        raise _error()
    # Capabilities belong to threads, and another thread's cannot be changed.
    kept = [
        thread.name
        for thread in Path("/proc/self/task").iterdir()
        if _holds(f"self/task/{thread.name}", capability, _SETS[1:3])
    ]
    if kept:
        raise OSError(errno.EBUSY, f"{len(kept)} threads keep the capability")
    return True


def children_have(capability: int) -> bool:
    """Return whether the programs that this process starts have a capability of it."""
    is_root = os.geteuid() == 0
    return _holds("self", capability, ("CapEff",) if is_root else ("CapAmb",))


def keep_only(kept: AbstractSet[int]) -> None:
    """Drop all capabilities but these. Raises `OSError` if a thread would keep another capability."""
    last = int(Path("/proc/sys/kernel/cap_last_cap").read_text())
    # SETPCAP last: it takes the others out of the bounding set.
    for capability in sorted(set(range(last + 1)) - kept, key=lambda each: each == _SETPCAP):
        give_up(capability)


def _holds(process: str, capability: int, sets: tuple[str, ...]) -> bool:
    """Return whether any of some sets of a process or thread has a capability."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return False  # a thread that has ended, before the file is opened or while it is read
    values = dict(line.split(":", 1) for line in lines)
    return any(int(values[name], 16) & 1 << capability for name in sets if name in values)


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
