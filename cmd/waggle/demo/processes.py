"""The child processes of the demo: started here, their output read, and always ended.

Signals are sent to processes that were started here only, by process id.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Sequence

STOP_TIMEOUT_SECONDS = 3.0
"""Seconds from SIGTERM to SIGKILL, in which a child closes its sessions."""


class Child:
    """One child process with its last lines of output, which are shown when it fails."""

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
            # Ctrl-C at the terminal interrupts the demo alone, which then ends its children in order.
            start_new_session=True,
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
