"""The programs of the demo, as child processes.

Each runs in a session of its own, so that neither Ctrl-C nor the end of the terminal reaches it, and
ends with the demo, however that ends: by SIGTERM in order, and by the kernel where the demo was killed.
SIGHUP would not end the router, which reloads its configuration then.
"""

from __future__ import annotations

import asyncio
import ctypes
import signal
import sys
from collections import deque
from collections.abc import Sequence

STOP_TIMEOUT_SECONDS = 15.0
"""After which a child that does not end by SIGTERM is killed."""
_PR_SET_PDEATHSIG = 1


class Child:
    """A running program and its last lines of output."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self._process = process
        self._lines: deque[str] = deque(maxlen=20)
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, name: str, module: str, arguments: Sequence[str]) -> Child:
        """Run ``python -m module arguments`` with this interpreter."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            module,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
        return cls(name, process)

    async def _read(self) -> None:
        assert self._process.stdout is not None  # noqa: S101  created as a pipe
        async for line in self._process.stdout:
            self._lines.append(line.decode(errors="replace").rstrip())

    @property
    def ended(self) -> int | None:
        """Its exit status, or None while it runs."""
        return self._process.returncode

    @property
    def output(self) -> list[str]:
        """Its last lines."""
        return list(self._lines)

    async def stop(self) -> None:
        """End the process: SIGTERM, and SIGKILL after the time-out."""
        if self._process.returncode is None:
            self._process.terminate()
            try:
                await asyncio.wait_for(self._process.wait(), STOP_TIMEOUT_SECONDS)
            except TimeoutError:
                self._process.kill()
                await self._process.wait()
        await self._reader


_libc = ctypes.CDLL(None)


def _end_with_parent() -> None:
    """Let the kernel send SIGTERM to this process when the demo dies (prctl(2)); Linux only."""
    if sys.platform == "linux":
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
