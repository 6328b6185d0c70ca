"""What the kernel refuses is a problem of the process, and ends nothing."""

from __future__ import annotations

import ctypes
import errno
import os

import pytest

from reconcilers.bfd.process import realtime


def test_a_cgroup_without_real_time_is_no_real_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """With CONFIG_RT_GROUP_SCHED and cpu.rt_runtime_us of 0 the kernel answers EPERM, also to root."""

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: Locks())
    given = realtime.enter()
    assert (given.scheduled, given.memory_locked) == (False, True)
    (problem,) = given.problems
    assert "a cgroup that has a share of it: Operation not permitted" in problem


class Locks:
    """The C library, of which all memory is locked."""

    @staticmethod
    def mlockall(_: int) -> int:
        return 0
