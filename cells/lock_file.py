"""A file that one process at a time has locked, until it ends in any way: the kernel unlocks it.

A process that ends in order removes the file: one of another user may be the next to start.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path


def lock(path: Path) -> int:
    """Create and lock the file; the descriptor.

    Raises BlockingIOError if another process has it, and OSError.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        descriptor = os.open(path, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(path, descriptor):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        # Its former owner has removed it since it was opened.
        os.close(descriptor)


def unlock(path: Path, descriptor: int) -> None:
    """Remove the file, unless another process has replaced it, and release the lock."""
    # A file that cannot be removed is locked again by the next process.
    with contextlib.suppress(OSError):
        if _is_at(path, descriptor):
            path.unlink()
    os.close(descriptor)


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False
