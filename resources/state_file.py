"""A file of what a restart has to know: replaced atomically, readable by its owner only.

Its content becomes routes, so that a file which another user can write is rejected. Blocking; call it
in a thread.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from resources.errors import ResourceError

LARGEST = 1 << 30
"""Size limit in octets."""
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class StateFileError(ResourceError):
    """A file that is rejected, with the reason as a sentence about it without its end."""


def write(path: Path, pieces: Iterable[bytes]) -> None:
    """Write the state file atomically: after a failure it is the old one or the new one.

    Raises `OSError`.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(fresh, flags, 0o600), "wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def read(path: Path) -> bytes | None:
    """Return the state file's content, or None without a file. Raises `StateFileError`, `OSError`."""
    try:
        # Non-blocking, as opening a pipe waits for its writer.
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        _check(os.fstat(opened))
    except StateFileError:
        os.close(opened)
        raise
    with os.fdopen(opened, "rb") as file:
        return file.read(LARGEST)


def _check(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise StateFileError("it is not a regular file")
    if status.st_uid not in (0, os.geteuid()):
        raise StateFileError(f"it belongs to another user (uid {status.st_uid})")
    if status.st_mode & _OTHERS:
        raise StateFileError("others may write to it")
    if status.st_size > LARGEST:
        raise StateFileError(f"it has more than {LARGEST >> 20} MiB")
