"""Splits a stream of octets into lines; its time is linear in the number of octets."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, Callable

from resources.kubernetes.errors import InvalidResponse

LIMIT = 32 << 20
"""Octets of one line: etcd's limit for an object is 1.5 MiB by default, and managers raise it."""
OBJECTS_PER_TURN = 200
"""Objects decoded before the event loop runs other tasks: some milliseconds."""


class Lines:
    """Collects octets until a line is complete."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._rest = bytearray()
        """The line that is not complete yet: one block, whose memory returns to the system at once."""

    def feed(self, octets: bytes) -> list[bytes]:
        """Return the complete lines that are not empty. Raises `InvalidResponse` beyond the limit."""
        head, newline, rest = octets.rpartition(b"\n")
        if not newline:
            self._keep(rest)
            return []
        lines = head.split(b"\n")
        if self._rest:
            self._rest += lines[0]
            lines[0] = bytes(self._rest)
            self._rest = bytearray()
        self._keep(rest)
        return [line for line in lines if line.strip()]

    def _keep(self, rest: bytes) -> None:
        if rest:
            self._rest += rest
            if len(self._rest) > self._limit:
                raise InvalidResponse(f"sends a line of more than {self._limit >> 20} MiB")


async def process_lines(content: AsyncIterable[bytes], process: Callable[[bytes], None]) -> None:
    """Process each line of a stream, in turn with the rest of the program.

    No variable keeps a line that is processed: a large one would stay until the next event, and the
    allocator could not return its memory.
    """
    lines = Lines()
    async for octets in content:
        complete = deque(lines.feed(octets))
        while complete:
            for _ in range(min(len(complete), OBJECTS_PER_TURN)):
                process(complete.popleft())
            if complete:
                await asyncio.sleep(0)
