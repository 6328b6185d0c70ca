"""The help of each command, as tests/cmd/help has it: one line for each argument.

Written by ``python -m tests.cmd.help_pages`` after a change of a flag, so that the change is read in
the words of the user.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

import waggle_agent.__main__
import waggle_bfd.__main__
import waggle_kernel.__main__
import waggle_operator.__main__
from waggle.__main__ import COMMANDS
from waggle.__main__ import main as waggle

PAGES = Path(__file__).parent / "help"
ACTIONS = (
    *("check", "announce", "withdraw", "shutdown", "enable", "clear"),
    *("peers", "collectors", "routes"),
)
"""Of ``waggle router``."""
PAGE_NAMES = (
    *("waggle", *(f"waggle {command}" for command in COMMANDS)),
    *(f"waggle router {action}" for action in ACTIONS),
    *("waggle antrea", "waggle-agent", "waggle-bfd", "waggle-kernel", "waggle-operator"),
)
MAINS: dict[str, Callable[[Sequence[str]], int]] = {
    "waggle": waggle,
    "waggle-agent": waggle_agent.__main__.main,
    "waggle-bfd": waggle_bfd.__main__.main,
    "waggle-kernel": waggle_kernel.__main__.main,
    "waggle-operator": waggle_operator.__main__.main,
}


def page(name: str) -> str:
    """Return the help of a command: a line for each paragraph, argument and exit status.

    Without the usage, which argparse makes of the arguments, and without their layout.
    """
    program, *words = name.split()
    written = io.StringIO()
    # One width and one user, as some defaults are of the user.
    with (
        patch.dict(os.environ, {"COLUMNS": "80"}),
        patch("os.geteuid", lambda: 0),
        contextlib.redirect_stdout(written),
        contextlib.suppress(SystemExit),
    ):
        os.environ.pop("WAGGLE_API_SOCKET", None)
        MAINS[program]([*words, "--help"])
    usage, _, text = written.getvalue().partition("\n\n")
    assert usage.startswith(f"usage: {name} ")
    return "".join(f"{line}\n" for line in _joined(text))


def file_of(name: str) -> Path:
    """Return the file with the help of a command; ``waggle bfd`` and ``waggle-bfd`` are two."""
    is_program = name in MAINS and name != "waggle"
    return PAGES / ("programs" if is_program else ".") / f"{name.replace(' ', '-')}.txt"


def _joined(text: str) -> Iterator[str]:
    """Yield the lines, each with its continuation lines, and a short flag without its value."""
    line = ""
    for part in text.splitlines():
        is_continued = part.startswith(" " * 7) or (line and part[:1].strip() and line[:1].strip())
        if is_continued and line:
            line = f"{line} {part.strip()}"
            continue
        yield from [_without_layout(line)] if line else []
        line = part
        if not part:
            yield ""
    yield from [_without_layout(line)] if line else []


def _without_layout(line: str) -> str:
    """Return the line with one indentation, and a flag's value behind its long form alone."""
    text = re.sub(r"^(-\w) .*?, --", r"\1, --", re.sub(" {2,}", " ", line.strip()))
    return f"  {text}" if line.startswith(" ") else text


def main() -> int:
    """Write the pages; returns the exit status."""
    (PAGES / "programs").mkdir(parents=True, exist_ok=True)
    for name in PAGE_NAMES:
        file_of(name).write_text(page(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
