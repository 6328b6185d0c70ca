"""The sink of log lines: a bounded queue and one thread that writes to a file descriptor.

A write to a pipe without a reader blocks for ever, so the event loop never writes. When the queue is
full, lines are dropped and counted; the count is written as a line once there is room again. A
descriptor that is broken swallows lines: losing logs must not stop the agent.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable

QUEUE_LINES = 10_000


class Sink:
    """The writer. `write` may be called from any thread and never blocks."""

    def __init__(
        self, fd: int, dropped_line: Callable[[int], str], limit: int = QUEUE_LINES
    ) -> None:
        self._fd = fd
        self._dropped_line = dropped_line
        self._queue: queue.Queue[str | None] = queue.Queue(limit)
        self._thread: threading.Thread | None = None
        self.dropped = 0
        """Lines dropped since the last line that reported a number."""

    def start(self) -> None:
        """Start the thread; lines written before wait in the queue."""
        # A daemon: a reader that never reads again must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="waggle-log", daemon=True)
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """Write what is queued and end the thread, or give up after ``timeout`` seconds."""
        if self._thread is None:
            return
        deadline = time.monotonic() + timeout
        try:
            self._queue.put(None, timeout=timeout)
        except queue.Full:
            return
        self._thread.join(max(0.0, deadline - time.monotonic()))

    def write(self, line: str) -> None:
        """Queue one line without its line end."""
        try:
            self._queue.put_nowait(line)
        except queue.Full:
            self.dropped += 1

    def _run(self) -> None:
        while True:
            lines = [self._queue.get()]
            # One system call for what has piled up.
            while len(lines) < 256 and lines[-1] is not None:
                try:
                    lines.append(self._queue.get_nowait())
                except queue.Empty:
                    break
            if self.dropped:
                dropped, self.dropped = self.dropped, 0
                lines.insert(0, self._dropped_line(dropped))
            text = "".join(f"{line}\n" for line in lines if line is not None)
            self._put(text.encode("utf-8", "backslashreplace"))
            if lines[-1] is None:
                return

    def _put(self, data: bytes) -> None:
        # os.write and no file object: its lock could be held by this thread at exit.
        while data:
            try:
                data = data[os.write(self._fd, data) :]
            except BlockingIOError:
                time.sleep(0.05)
            except OSError:
                return
