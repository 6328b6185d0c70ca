"""The socket of a program's local API: bound, listening, answering, removed.

What answers on it is `cells.serve.handlers`, whose library takes as long to import as the first session
takes to come up: a thread imports it while the program begins its work.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cells.api.resource import ApiAction, ApiFile, ApiPlain, ApiResource, ApiStream
from cells.unix_socket import Bound, bind

if TYPE_CHECKING:
    from cells.serve.handlers import Listener

BACKLOG = 64
"""Clients that wait until the program answers."""


def import_listener() -> Callable[..., Listener]:
    """Import the handlers and return what serves them."""
    from cells.serve.handlers import Listener
    from cells.serve.own_sites import of_this_host

    return functools.partial(Listener, middlewares=(of_this_host,))


class ApiSocket:
    """A socket, and the paths that are answered on it."""

    def __init__(
        self,
        path: Path,
        resources: Sequence[ApiResource],
        streams: Sequence[ApiStream] = (),
        actions: Sequence[ApiAction] = (),
        plain: Sequence[ApiPlain] = (),
        files: Sequence[ApiFile] = (),
        *,
        program: str = "agent",
    ) -> None:
        """``program`` is the name of what listens, for errors."""
        self._path = path
        self._answers = (resources, streams, actions, plain, files)
        self._program = program
        self._bound: Bound | None = None
        self._listener: Listener | None = None

    def reserve(self) -> None:
        """Bind the socket, which does not listen yet; raises `UnixSocketError`."""
        self._bound = bind(self._path, self._program)

    def listen(self) -> None:
        """Let clients connect, and wait until `start`."""
        assert self._bound is not None  # noqa: S101 - reserved
        self._bound.sock.listen(BACKLOG)

    async def first_client(self) -> None:
        """Wait until a client has connected to the listening socket."""
        assert self._bound is not None  # noqa: S101 - reserved
        loop, connected = asyncio.get_running_loop(), asyncio.Event()
        descriptor = self._bound.sock.fileno()
        loop.add_reader(descriptor, connected.set)
        try:
            await connected.wait()
        finally:
            loop.remove_reader(descriptor)

    async def start(self) -> None:
        """Answer."""
        assert self._bound is not None  # noqa: S101 - reserved
        listener = (await asyncio.to_thread(import_listener))(*self._answers)
        await listener.listen(self._bound.sock)
        self._listener = listener

    async def stop(self) -> None:
        """Close the socket and remove its file."""
        listener, self._listener = self._listener, None
        bound, self._bound = self._bound, None
        if bound is not None:
            bound.unlink()
        if listener is not None:
            await listener.close()
        elif bound is not None:
            bound.sock.close()
