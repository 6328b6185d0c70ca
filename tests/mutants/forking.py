"""The process that forks runs of tests in a copy of the project (`tests.mutants.copies`).

``python -m tests.mutants.forking ROOM ...`` imports pytest and the rooms, in which there is no mutant,
so that a run starts in half the time. Each line of its input is a run: its output file and pytest's
arguments. The answers are two lines: the process, and at its end its status.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import pkgutil
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import pytest

OTHERS: Final = ("aiohttp.web", "hypothesis.strategies", "prometheus_client", "structlog")
"""What else many tests import."""
PR_SET_PDEATHSIG: Final = 1
"""Of prctl(2)."""


def main(rooms: Sequence[str]) -> None:
    """Fork a run for each request, one after the other."""
    _end_with_parent()
    for other in OTHERS:
        importlib.import_module(other)
    for room in rooms:
        for module in pkgutil.walk_packages(importlib.import_module(room).__path__, f"{room}."):
            # The prefix table in C may not be built.
            with suppress(ImportError):
                importlib.import_module(module.name)
    gc.collect()
    gc.freeze()
    while line := os.read(0, 1 << 16):
        output, *arguments = json.loads(line)
        pid = os.fork()
        if not pid:
            _end_with_parent()
            _become(output)
            os._exit(_run(arguments))
        os.write(1, f"{pid}\n".encode())
        _, status = os.waitpid(pid, 0)
        os.write(1, f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _end_with_parent() -> None:
    """Have the kernel end this process when its parent ends, in whatever way."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _become(output: str) -> None:
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
    os.dup2(1, 2)


def _run(arguments: list[str]) -> int:
    """Return pytest's status, after what programs do at their end."""
    sys.argv[1:] = arguments
    status = int(pytest.main(arguments))
    sys.stdout.flush()
    importlib.import_module("atexit")._run_exitfuncs()
    return status


if __name__ == "__main__":
    main(sys.argv[1:])
