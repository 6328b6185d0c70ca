"""The demo in the background: a process that goes on when the command returns."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TypeAlias

from waggle.commands.demo.lock import DemoLock
from waggle.output import EXIT_ERROR, EXIT_OK, complain

Ready: TypeAlias = Callable[[list[str]], None]
"""Receives the routes that the router holds, as lines."""


def detach(lock: DemoLock, run: Callable[[Ready], int]) -> int:
    """Run the demo in a new process and session; returns once it is ready or has failed.

    ``run`` receives a function to call with the lines to print when the demo is ready. Until then
    the process writes errors to the terminal, as this one would.
    """
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        os._exit(_background(lock, run, writer))
    os.close(writer)
    lock.release()
    with open(reader) as answer:  # noqa: PTH123  a file descriptor
        lines = answer.read().splitlines()
    if not lines:
        return EXIT_ERROR
    print("\n".join(lines))
    print("The demo goes on in the background; waggle demo --stop ends it.", flush=True)
    return EXIT_OK


def _background(lock: DemoLock, run: Callable[[Ready], int], writer: int) -> int:
    os.setsid()
    lock.note()

    def ready(lines: list[str]) -> None:
        os.write(writer, "\n".join(lines).encode())
        os.close(writer)
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
        sys.stderr.flush()
