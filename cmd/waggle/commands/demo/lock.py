"""One demo at a time for each agent socket: its lock, its process, and how another command ends it."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from pathlib import Path

STOP_TIMEOUT_SECONDS = 40.0
POLL_INTERVAL_SECONDS = 0.05


class RunsAlreadyError(Exception):
    """A demo runs already."""

    def __init__(self, pid: int) -> None:
        super().__init__(f"a demo runs already (process {pid}); waggle demo --stop ends it")
        self.pid = pid


class DemoLock:
    """The lock of the demo whose agent has a socket; its file contains the process ID."""

    def __init__(self, socket: Path) -> None:
        self._path = socket.with_suffix(".demo")
        self._file: int | None = None

    def take(self) -> None:
        """Take the lock until the process ends. Raises `RunsAlreadyError` and OSError."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = int(os.read(file, 20) or b"0")
            os.close(file)
            raise RunsAlreadyError(pid) from None
        self._file = file
        self.note()

    def note(self) -> None:
        """Write the ID of this process, which holds the lock."""
        assert self._file is not None  # noqa: S101  taken
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Give the lock back."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def stop_holder(self) -> bool:
        """End the demo that holds the lock, and wait; False where none runs. Raises TimeoutError."""
        ends = False
        deadline = time.monotonic() + STOP_TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            try:
                self.take()
            except RunsAlreadyError as error:
                # A demo that has just begun has not written its ID; 0 is this process, with its group.
                if error.pid and not ends:
                    os.kill(error.pid, signal.SIGTERM)
                    ends = True
                time.sleep(POLL_INTERVAL_SECONDS)
            else:
                self.release()
                return ends
        raise TimeoutError
