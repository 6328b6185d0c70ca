"""A pager for output on a terminal, as git has it: ``less -FRX``, or the one of ``PAGER``.

The pager is started by the first output, so that the progress of a command has the terminal before.
It gets the lines of standard error as well, which would stand between its own. A pager that is not
installed, ``cat`` or the empty text is none.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Final, TextIO

from waggle.progress import Progress

PAGER_ENV: Final = ("WAGGLE_PAGER", "PAGER")
DEFAULT: Final = "less"
LESS: Final = "FRX"
"""Ends where all fits the screen, passes colours on, leaves the screen as it is."""


def pager_command(environ: Mapping[str, str]) -> str | None:
    """Return the command of the pager, for a shell; None without one."""
    command = next((environ[name] for name in PAGER_ENV if name in environ), DEFAULT).strip()
    is_none = command in ("", "cat") or shutil.which(command.partition(" ")[0]) is None
    return None if is_none else command


@contextlib.contextmanager
def on_terminal(
    args: argparse.Namespace, environ: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Give a command on a terminal its pager and its progress, as its flags have it."""
    env = os.environ if environ is None else environ
    wants_pager = getattr(args, "pager", None)
    if wants_pager is None or getattr(args, "watch", False):
        yield
        return
    stdout, stderr = sys.stdout, sys.stderr
    progress = args.progress = Progress(getattr(args, "prog", "waggle"))
    is_screen = stdout.isatty() and env.get("TERM") != "dumb"
    command = pager_command(env) if wants_pager and is_screen else None
    pager = None if command is None else Pager(command, env)
    if is_screen:
        sys.stdout = Output(stdout, progress, pager)
    if stderr.isatty():
        sys.stderr = Output(stderr, progress, pager)
    progress.start()
    try:
        yield
    finally:
        sys.stdout, sys.stderr = stdout, stderr
        progress.stop()
        if pager is not None:
            pager.close()


class Pager:
    """The process, from the first text on."""

    def __init__(self, command: str, environ: Mapping[str, str]) -> None:
        self._command = command
        self._env = {"LESS": LESS, "LV": "-c", **environ}
        self._process: subprocess.Popen[str] | None = None

    def write(self, text: str) -> None:
        """Pass text on. Raises BrokenPipeError once the reader has left."""
        if self._process is None:
            self._process = subprocess.Popen(  # noqa: S602  the command of the user, as git runs it
                self._command,
                shell=True,
                stdin=subprocess.PIPE,
                env=self._env,
                encoding="utf-8",
                errors="backslashreplace",
            )
        assert self._process.stdin is not None  # noqa: S101  a pipe
        self._process.stdin.write(text)
        self._process.stdin.flush()

    def close(self) -> None:
        """Wait until the reader leaves; the pager has an interrupt for itself."""
        if self._process is None:
            return
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None  # noqa: S101  a pipe
            self._process.stdin.close()
        while True:
            with contextlib.suppress(KeyboardInterrupt):
                self._process.wait()
                return


class Output(io.TextIOBase):
    """A standard stream on a terminal: it ends the progress, and goes through the pager."""

    def __init__(self, terminal: TextIO, progress: Progress, pager: Pager | None) -> None:
        self._terminal = terminal
        self._progress = progress
        self._pager = pager

    @property
    def encoding(self) -> str:  # type: ignore[override]  # typeshed has an attribute
        """That of the terminal."""
        return self._terminal.encoding or "ascii"

    def isatty(self) -> bool:
        """Return true: what is printed has the form for a terminal."""
        return True

    def fileno(self) -> int:
        """Return that of the terminal."""
        return self._terminal.fileno()

    def writable(self) -> bool:
        """Return true."""
        return True

    def write(self, text: str) -> int:
        """Write to the pager, or to the terminal."""
        if text:
            self._progress.stop()
            (self._pager or self._terminal).write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the terminal; the pager is flushed at each write."""
        self._terminal.flush()
