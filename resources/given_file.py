"""A file whose path a user gives: read without waiting for a writer that may never come.

To open a named pipe waits until another process opens it to write. What a shell gives for
``<(command)`` is an anonymous pipe, whose writer is there from the beginning: it is read to its end.
"""

from __future__ import annotations

import errno
import os
import select
import stat
from pathlib import Path
from typing import BinaryIO, Final

WRITER_SECONDS: Final = 5.0
"""How long a named pipe may be silent at first."""
NAMED_PIPE: Final = "it is a named pipe, whose writer may never come"
"""Why it is not read where another library opens it, or where it is read several times."""
LARGEST: Final = 256 * 1024 * 1024
"""Octets of a file that is read at once: a device has no end."""


def open_given(path: str | Path) -> BinaryIO:
    """Open a file to read it. Raises `OSError`, also for a named pipe without a writer."""
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        is_silent = is_named_pipe(path) and not _is_written(opened)
        os.set_blocking(opened, True)
        file = os.fdopen(opened, "rb")
    except BaseException:
        os.close(opened)
        raise
    if is_silent:
        file.close()
        silent = f"it is a named pipe, silent for {WRITER_SECONDS:g} seconds"
        raise OSError(errno.ENXIO, silent, os.fspath(path))
    return file


def read_given(path: str | Path) -> bytes:
    """Return the content of a file. Raises `OSError`, as `open_given` and for one without end."""
    with open_given(path) as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise OSError(errno.EFBIG, f"more than {LARGEST >> 20} MiB are not read", os.fspath(path))
    return content


def is_named_pipe(path: str | Path) -> bool:
    """Return whether a path is that of a pipe in a file system; False without a file."""
    try:
        # An anonymous pipe has a link in /proc, and no path.
        return stat.S_ISFIFO(os.stat(os.path.realpath(path)).st_mode)  # noqa: PTH116
    except OSError:
        return False


def _is_written(opened: int) -> bool:
    """Wait a while until a pipe has octets or the end of its writer; return whether it has."""
    poller = select.poll()
    poller.register(opened, select.POLLIN)
    return bool(poller.poll(WRITER_SECONDS * 1000))
