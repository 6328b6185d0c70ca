"""A file with a bearer token, read again for each request: a rotated token needs no restart."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

MAX_TOKEN: Final = 65536
"""Octets."""


class TokenFile:
    """A token in a file."""

    def __init__(self, path: Path, report: Callable[[str], None]) -> None:
        """``report`` is called when the defect of the file changes; an empty text is none."""
        self.path = path
        self.trouble = ""
        """Why there is no token; empty where there is one."""
        self._report = report

    def read(self) -> bytes:
        """Return the token; empty without one."""
        token, trouble = b"", ""
        try:
            # Without waiting for the writer of a pipe, and not all of a device.
            opened = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(opened, "rb") as file:
                token = file.read(MAX_TOKEN).strip()
        except OSError as error:
            trouble = f"cannot be read: {error.strerror}"
        else:
            trouble = "" if token else "is empty"
        if trouble != self.trouble:
            self.trouble = trouble
            self._report(trouble)
        return token
