"""The file of a recording: written by a thread of its own, so that no disk delays a session.

Lines wait in memory for 0.2 seconds and for at most `MAX_WAITING` octets: a disk that is slower ends
the recording. An existing file of that name is kept as ``NAME.1``. Only the owner can read the file:
it holds routes and addresses. The file is locked until the recording ends, so that no other process
takes its name.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import threading
from pathlib import Path
from typing import Final, final

MAX_WAITING: Final = 32 * 1024 * 1024
"""Octets."""
_WAKE_AT: Final = 1024 * 1024
_WRITE_INTERVAL_SECONDS: Final = 0.2


@final
class RecordingFile:
    """A `speaker.recording.Sink` for an open file, which it owns from now on."""

    def __init__(self, path: Path, descriptor: int, *, max_waiting: int = MAX_WAITING) -> None:
        self._descriptor = descriptor
        self._path = path
        self._max_waiting = max_waiting
        self._lock = threading.Lock()
        self._waiting: list[bytes] = []
        self._octets = 0
        self._trouble: str | None = None
        self._closed = False
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="recording", daemon=True)
        self._thread.start()

    @property
    def trouble(self) -> str | None:
        """Why no further lines are accepted, or None."""
        return self._trouble

    def write(self, line: bytes) -> None:
        """Queue a line; never waits."""
        if self._trouble is not None or self._closed:
            return
        with self._lock:
            self._waiting.append(line)
            self._octets += len(line)
            octets = self._octets
        if octets > self._max_waiting:
            self._trouble = f"{self._path}: the disk is too slow for the recording"
        if octets > _WAKE_AT:
            self._wake.set()

    def close(self, timeout: float) -> None:
        """Write the queued lines, for at most ``timeout`` seconds, and close the file. Blocks."""
        self._closed = True
        self._wake.set()
        self._thread.join(timeout)

    def _run(self) -> None:
        try:
            while self._write_waiting() or not self._closed:
                self._wake.wait(_WRITE_INTERVAL_SECONDS)
                self._wake.clear()
        except OSError as error:
            self._trouble = f"{self._path}: {error.strerror}"
        finally:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)

    def _write_waiting(self) -> bool:
        """Write the queued lines; return whether there were any."""
        with self._lock:
            lines, self._waiting = self._waiting, []
        if not lines:
            return False
        octets = memoryview(b"".join(lines))
        while octets:
            written = os.write(self._descriptor, octets[: 1024 * 1024])
            octets = octets[written:]
            with self._lock:
                self._octets -= written
        return True


@final
class Reservation:
    """The name of a recording, of which no other process can make one meanwhile.

    An existing file is not changed before `create`.
    """

    def __init__(self, path: Path) -> None:
        """Raises OSError, also if another process records to the file."""
        self._path = path
        self._is_new = False
        self._descriptor: int | None = None
        try:
            self._descriptor = _create(path)
            self._is_new = True
        except FileExistsError:
            self._check_existing()
        if self._descriptor is not None:
            try:
                _lock(self._descriptor, path)
            except OSError:
                os.close(self._descriptor)
                raise

    def _check_existing(self) -> None:
        if not stat.S_ISREG(self._path.lstat().st_mode):
            text = "the name is taken by something that is not a file"
            raise FileExistsError(errno.EEXIST, text, str(self._path))
        if not os.access(self._path.parent, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self._path))
        # A file that cannot be read has another owner, and no process of ours has it open.
        with contextlib.suppress(PermissionError):
            self._descriptor = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)

    def create(self) -> int:
        """Create the file, keep an existing one, and return its descriptor. Raises OSError."""
        reserved, self._descriptor = self._descriptor, None
        if self._is_new and reserved is not None:
            return reserved
        try:
            with contextlib.suppress(FileNotFoundError):
                self._path.replace(self._path.with_name(f"{self._path.name}.1"))
            created = _create(self._path)
            _lock(created, self._path)
        finally:
            if reserved is not None:
                os.close(reserved)
        return created

    def release(self) -> None:
        """Give the name back, unless the file has been created."""
        if self._descriptor is not None:
            if self._is_new:
                with contextlib.suppress(OSError):
                    self._path.unlink()
            os.close(self._descriptor)
            self._descriptor = None


def _create(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _lock(descriptor: int, path: Path) -> None:
    """Lock the file until it is closed. Raises OSError if another process has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OSError(errno.EBUSY, "another process records to it", str(path)) from None
    except OSError:
        return  # a file system without locks
