"""An event loop in a thread of its own, for servers of tests that have no loop.

At its end no task, connection or thread is left over: what a peer has not closed is aborted. A socket
that is left to the garbage collector would fail another test, whichever happens to run then.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, Self, TypeVar

T = TypeVar("T")
PATIENCE = 60.0
"""Timeout of a call in the thread, in seconds."""


class BackgroundLoop:
    """A context manager; the servers in it are stopped first."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End the thread, then cancel the tasks and abort the connections: nothing begins meanwhile."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.run_until_complete(_end())
        self._loop.close()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine that runs in the thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)


async def _end() -> None:
    # The first step of a task that accepts a connection gives its socket to a transport.
    await asyncio.sleep(0)
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    # Also connections that no server knows: accepted a moment ago, or within a TLS handshake.
    loop: Any = asyncio.get_running_loop()
    while open_transports := open_connections(loop):
        for transport in open_transports:
            transport.abort()
        await asyncio.sleep(0)


def open_connections(loop: Any) -> list[asyncio.Transport]:  # noqa: ANN401  of asyncio's private kind
    """Return the connections of a loop whose sockets are open; asyncio has no public list of them."""
    transports = list(loop._transports.values())
    return [transport for transport in transports if transport._sock is not None]
