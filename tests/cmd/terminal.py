"""Programs of this project in a pseudo-terminal, and what they print there."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


class Shown(NamedTuple):
    """The exit status and the output, with line ends of one character."""

    status: int
    text: str


def open_terminal(columns: int, lines: int = 24) -> tuple[int, int]:
    """Return the file descriptors of a new pseudo-terminal: this side, the program's side."""
    here, there = pty.openpty()
    resize(here, columns, lines)
    return here, there


def resize(terminal: int, columns: int, lines: int = 24) -> None:
    """Change the size of a pseudo-terminal; its programs get SIGWINCH."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


def environment() -> dict[str, str]:
    """Return the environment: the programs of this interpreter first, and no size of its own."""
    found = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    path = f"{Path(sys.executable).parent}:{found['PATH']}"
    return {**found, "TERM": "xterm", "PATH": path}


def run_in_terminal(command: Sequence[str], *, columns: int, timeout: float = 60) -> Shown:
    """Run a program in a terminal of a width until it ends."""
    here, there = open_terminal(columns)
    with subprocess.Popen(
        list(command), stdin=there, stdout=there, stderr=there, cwd=ROOT, env=environment()
    ) as process:
        os.close(there)
        parts = []
        try:
            while octets := os.read(here, 65536):
                parts.append(octets)
        except OSError:  # Linux: the other side is closed
            pass
        finally:
            os.close(here)
        status = process.wait(timeout)
    return Shown(status, b"".join(parts).decode().replace("\r\n", "\n"))
