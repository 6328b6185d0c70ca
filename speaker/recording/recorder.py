"""A recording while it is made: lines are encoded at once and written by a thread.

The loop never waits for the disk. What waits in memory is bounded, and so is the file; at either
bound the recording ends with a line that says so, and the speaker goes on.
"""

from __future__ import annotations

import os
import queue
import threading
from pathlib import Path
from typing import Final, final

import msgspec

from speaker.engine import Engine
from speaker.engine.inputs import Input
from speaker.recording.digest import digest
from speaker.recording.lines import Header, Writer

MAX_FILE: Final = 1024 * 1024 * 1024
"""Octets of a recording."""
MAX_WAITING: Final = 64 * 1024 * 1024
"""Octets that may wait for the disk."""
DIGEST_EVERY: Final = 1000
"""Inputs between two digests."""


@final
class Recorder:
    """One recording. Raises OSError where the file cannot be made; it must not be there yet."""

    def __init__(
        self,
        path: Path,
        header: Header,
        *,
        max_file: int = MAX_FILE,
        max_waiting: int = MAX_WAITING,
        digest_every: int = DIGEST_EVERY,
    ) -> None:
        # Its owner's alone: what peers sent is nobody else's business. Never over another file.
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        self._file = os.fdopen(number, "wb")
        self._line = Writer()
        self._encoder = msgspec.json.Encoder()
        self._sequence = 0
        self._left = max_file
        self._max_waiting = max_waiting
        self._digest_every = digest_every
        self._waiting = 0
        self._lock = threading.Lock()
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._ended = False
        self.error: str | None = None
        """Why nothing more is written."""
        self._thread = threading.Thread(target=self._write, name="recorder", daemon=True)
        self._thread.start()
        self._put(header)

    @property
    def running(self) -> bool:
        """Whether inputs are still written."""
        return not self._ended

    def note(self, item: Input, now: float) -> None:
        """Write an input, before the core handles it."""
        if not self._ended:
            self._sequence += 1
            self._put({"seq": self._sequence, "now": now, **self._line(item)})

    def noted(self, engine: Engine, now: float) -> None:
        """Write a digest now and then, after the core has handled an input."""
        if not self._ended and self._sequence % self._digest_every == 0:
            self._put({"seq": self._sequence, "now": now, "digest": digest(engine, now)})

    def close(self, engine: Engine, now: float) -> None:
        """Write the last digest and end; waits for the disk."""
        if not self._ended:
            self._put({"seq": self._sequence, "now": now, "digest": digest(engine, now)})
            self._end("closed")
        self._thread.join(timeout=5.0)

    def _put(self, value: object) -> None:
        line = self._encoder.encode(value) + b"\n"
        self._left -= len(line)
        with self._lock:
            self._waiting += len(line)
            waiting = self._waiting
        if self._left < 0:
            self._end("the file is full")
        elif waiting > self._max_waiting:
            self._end("the disk is too slow")
        else:
            self._queue.put(line)

    def _end(self, reason: str) -> None:
        self._ended = True
        if reason != "closed":
            self.error = reason
        self._queue.put(self._encoder.encode({"end": reason}) + b"\n")
        self._queue.put(None)

    def _write(self) -> None:
        with self._file as file:
            while (line := self._queue.get()) is not None:
                try:
                    file.write(line)
                    if self._queue.empty():
                        file.flush()
                except OSError as error:
                    self.error = f"cannot write: {error.strerror}"
                    self._ended = True
                    return
                with self._lock:
                    self._waiting -= len(line)
