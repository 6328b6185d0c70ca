"""The demo's child processes: started, listened to, and always ended.

Only processes that were started here are ever signalled, by their process id.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Sequence

GRACE = 3.0
"""Seconds that a child gets to close its sessions after SIGTERM."""


class Child:
    """One child process, with its last lines of output kept for when it fails."""

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
            # A Ctrl-C at the terminal goes to the demo alone, which then ends its children in order.
            start_new_session=True,
        )
        return cls(name, process)

    async def _read(self) -> None:
        assert self._process.stdout is not None  # noqa: S101  it was asked for as a pipe
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
        """End it: SIGTERM, and SIGKILL only when it does not listen."""
        if self._process.returncode is None:
            self._process.terminate()
            try:
                await asyncio.wait_for(self._process.wait(), GRACE)
            except TimeoutError:
                self._process.kill()
                await self._process.wait()
        await self._reader
