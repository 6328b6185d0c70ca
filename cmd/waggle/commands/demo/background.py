"""The demo in the background: a process that goes on when the command returns."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Final, TypeAlias

from waggle.commands.demo.lock import DemoLock
from waggle.commands.demo.report import Report
from waggle.output import EXIT_ERROR, EXIT_OK, complain

Ready: TypeAlias = Callable[[str], None]
"""Receives the answer of the demo: the routes that the router holds."""
READY: Final = "+"
"""Before the answer, which may be empty."""


def detach(lock: DemoLock, report: Report, run: Callable[[Ready], int]) -> int:
    """Run the demo in a new process and session; returns once it is ready or has failed.

    ``run`` receives a function to call with the text to print when the demo is ready. Until then
    the process writes errors to the terminal, as this one would.
    """
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        os._exit(_background(lock, run, writer))
    os.close(writer)
    lock.release()
    with open(reader) as pipe:  # noqa: PTH123  a file descriptor
        answer = pipe.read()
    if not answer:
        return EXIT_ERROR
    print(answer.removeprefix(READY), end="")
    report.remark("The demo goes on in the background; waggle demo --stop ends it.")
    return EXIT_OK


def _background(lock: DemoLock, run: Callable[[Ready], int], writer: int) -> int:
    os.setsid()
    lock.note()

    def ready(answer: str) -> None:
        with open(writer, "w") as pipe:
            pipe.write(READY + answer)
        # From here on nothing of it belongs to the terminal.
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)

    try:
        return run(ready)
    except Exception as error:  # noqa: BLE001  os._exit would hide it
        complain("waggle demo", f"internal error: {type(error).__name__}: {error}")
        return EXIT_ERROR
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
