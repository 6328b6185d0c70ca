"""The socket of a program's local API: bound, listening, answering, removed.

Actions that wait for nothing are answered by `cells.serve.direct_actions`, everything else by
`cells.serve.handlers`. The library of the latter takes 15 MB, and as long to import as the first
session takes to come up: a thread imports it for the first request that needs it.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cells.api.resource import ApiAction, ApiFile, ApiPlain, ApiResource, ApiStream
from cells.observability.http_connections import Connections, close_server
from cells.serve.direct_actions import DirectActions, unavailable
from cells.unix_socket import Bound, bind

if TYPE_CHECKING:
    from cells.serve.handlers import Listener

BACKLOG = 64
"""Clients that wait until the program answers."""
NOT_IMPORTED = "the HTTP library cannot be imported; the log has the reason"


def import_listener(connections: Connections) -> Callable[..., Listener]:
    """Import the handlers and return what makes their listener."""
    from cells.serve.handlers import Listener, counted
    from cells.serve.own_sites import of_this_host

    return functools.partial(Listener, middlewares=(counted(connections), of_this_host))


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
        reported: Callable[[str], object],
        program: str = "agent",
    ) -> None:
        """``program`` is the name of what listens, for errors.

        ``reported`` gets why the library cannot be imported, and an empty text once it is: what needs
        it is refused meanwhile.
        """
        self._path = path
        self._answers = (resources, streams, actions, plain, files)
        self._reported = reported
        self._trouble = ""
        """The last report."""
        self._program = program
        self._connections = Connections(DirectActions(actions).answer, timed=False)
        self._bound: Bound | None = None
        self._server: asyncio.Server | None = None
        self._importing: asyncio.Task[None] | None = None
        self._listener: Listener | None = None
        self._new: Callable[[], asyncio.Protocol] | None = None
        """Of the listener."""

    def reserve(self) -> None:
        """Bind the socket, which does not listen yet; raises `UnixSocketError`."""
        self._bound = bind(self._path, self._program)

    def listen(self) -> None:
        """Let clients connect, and wait until `start`."""
        assert self._bound is not None  # noqa: S101 - reserved
        self._bound.sock.listen(BACKLOG)

    async def start(self) -> None:
        """Answer requests; beyond the limit a new connection takes the place of an idle one."""
        assert self._bound is not None  # noqa: S101 - reserved
        new = functools.partial(self._connections.new, self._protocol)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(new, sock=self._bound.sock, backlog=BACKLOG)

    async def stop(self) -> None:
        """Close the socket and remove its file."""
        bound, self._bound = self._bound, None
        server, self._server = self._server, None
        importing, self._importing = self._importing, None
        listener, self._listener = self._listener, None
        if bound is not None:
            bound.unlink()
        if importing is not None:
            importing.cancel()
        if server is not None:
            await close_server(server)
        elif bound is not None:
            bound.sock.close()
        self._connections.close()
        # Their transports close in the next turn, which may be the last one.
        await asyncio.sleep(0)
        if listener is not None:
            await listener.close()

    def _protocol(self) -> asyncio.Protocol | None:
        """Return the library's protocol for a connection; None while it is imported, or at the end."""
        if self._new is not None:
            return self._new()
        if self._importing is None and self._bound is not None:
            self._importing = asyncio.create_task(self._import())
        return None

    async def _import(self) -> None:
        try:
            listener = await asyncio.to_thread(import_listener, self._connections)
            self._listener = listener(*self._answers)
            self._new = await self._listener.protocol()
        except Exception as error:  # noqa: BLE001  the sessions go on
            self._importing = None  # for the next request
            self._report(f"internal error: {type(error).__name__}: {error}")
            self._connections.end_waiting(unavailable(NOT_IMPORTED))
        else:
            self._report("")
            self._connections.serve_waiting()

    def _report(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            self._reported(trouble)
