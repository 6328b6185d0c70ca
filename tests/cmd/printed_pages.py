"""What programs print of themselves, as tests/cmd/printed has it: cells, reconcilers, completion.

Written by ``python -m tests.cmd.printed_pages`` after a change, so that it is read as users read it.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path
from typing import Final
from unittest.mock import patch

from cells.hive import capabilities
from tests.cmd.help_pages import MAINS

PRINTED: Final = Path(__file__).parent / "printed"
COMMANDS: Final = (
    "waggle-agent cells",
    "waggle-agent cells --dot",
    "waggle-agent reconcilers",
    "waggle completion bash",
    "waggle schema",
)
NO_AGENT: Final = {"WAGGLE_API_SOCKET": "/nonexistent/waggle.sock"}
"""Settings without an agent that runs."""


def printed(command: str) -> str:
    """Return what a command prints; its status has to be 0."""
    program, *words = command.split()
    written = io.StringIO()
    with (
        patch.dict(os.environ, NO_AGENT),
        # As a user who may not write routes.
        patch.object(capabilities, "children_have", lambda _: False),
        contextlib.redirect_stdout(written),
    ):
        assert MAINS[program](words) == 0
    return written.getvalue()


def file_of(command: str) -> Path:
    """Return the file with what a command prints."""
    return PRINTED / f"{command.replace(' --', '-').replace(' ', '-')}.txt"


def main() -> int:
    """Write the files; returns the exit status."""
    PRINTED.mkdir(exist_ok=True)
    for command in COMMANDS:
        file_of(command).write_text(printed(command))
    return 0


if __name__ == "__main__":
    sys.exit(main())
