"""Progress of a command that takes long, as one line on standard error that is erased again.

Only a terminal has the line, and only after two seconds. Elsewhere the steps that a command reports
itself (nodes of a plan) are lines, each of them at least two seconds after the last line.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Final, TextIO

from cells.safe_text import escape

QUIET_SECONDS: Final = 2.0
"""Before the first line, and between two that are not on a terminal."""
REDRAW_SECONDS: Final = 1.0
ERASE: Final = "\r\x1b[K"
"""The cursor to the begin of its line, which is erased (ECMA-48)."""


class Progress:
    """The progress of one command."""

    def __init__(
        self,
        program: str,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._program = program
        self._stream = stream or sys.stderr
        self._clock = clock
        self._began = clock()
        self._next = self._began + QUIET_SECONDS
        self._step = "working"
        self._drawn = False
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._is_terminal = self._stream.isatty() and os.environ.get("TERM") != "dumb"

    def start(self) -> None:
        """Draw the line from time to time, until `stop`; nothing elsewhere than on a terminal."""
        if self._is_terminal:
            threading.Thread(target=self._redraw, name="progress", daemon=True).start()

    def set_step(self, step: str) -> None:
        """Set what the command does now, for the line on a terminal."""
        self._step = step

    def report(self, step: str) -> None:
        """Set what the command does now; elsewhere than on a terminal, print it."""
        self.set_step(step)
        if not self._is_terminal and self._clock() >= self._next:
            self._next = self._clock() + QUIET_SECONDS
            print(f"{self._program}: {escape(step)}", file=self._stream)

    def stop(self) -> None:
        """Erase the line: output follows."""
        with self._lock:
            self._ended.set()
            if self._drawn:
                self._stream.write(ERASE)
                self._stream.flush()
                self._drawn = False

    def draw(self) -> None:
        """Draw the line once, unless the command is younger than two seconds, or has output."""
        with self._lock:
            seconds = self._clock() - self._began
            if not self._is_terminal or self._ended.is_set() or seconds < QUIET_SECONDS:
                return
            self._drawn = True
            text = escape(self._step)
            self._stream.write(f"{ERASE}{self._program}: {text} ({seconds:.0f}s)")
            self._stream.flush()

    def _redraw(self) -> None:
        pause = QUIET_SECONDS
        while not self._ended.wait(pause):
            self.draw()
            pause = REDRAW_SECONDS


def progress_of(args: argparse.Namespace) -> Progress:
    """Return the progress of a command, which draws nothing where it was not started."""
    given = getattr(args, "progress", None)
    return given if isinstance(given, Progress) else Progress(getattr(args, "prog", "waggle"))


def expect_input(args: argparse.Namespace) -> None:
    """Before standard input is read: name a terminal as what is read.

    The progress ends, as it would be drawn into what is typed.
    """
    terminal = sys.__stdin__
    if terminal is not None and sys.stdin is terminal and terminal.isatty():
        progress_of(args).stop()
        program = getattr(args, "prog", "waggle")
        print(f"{program}: reads this terminal; Ctrl-D ends the input", file=sys.stderr)
