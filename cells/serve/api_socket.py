"""The socket of a program's local API: bound, listening, answering, removed.

What answers on it is `cells.serve.handlers`, whose library takes as long to import as the first session
takes to come up: a thread imports it while the program begins its work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cells.api.resource import ApiAction, ApiPlain, ApiResource, ApiStream
from cells.hive import StartError
from cells.unix_socket import Bound, UnixSocketError, bind

if TYPE_CHECKING:
    from cells.serve.handlers import Listener

BACKLOG = 64
"""Clients that wait until the program answers."""


def import_listener() -> type[Listener]:
    """Import the handlers and return what serves them."""
    from cells.serve.handlers import Listener

    return Listener


class ApiSocket:
    """A socket, and the paths that are answered on it."""

    def __init__(
        self,
        path: Path,
        resources: Sequence[ApiResource],
        streams: Sequence[ApiStream] = (),
        actions: Sequence[ApiAction] = (),
        plain: Sequence[ApiPlain] = (),
        *,
        setting: str = "--api-socket",
        program: str = "agent",
    ) -> None:
        """``setting`` and ``program`` name both in errors."""
        self._path = path
        self._answers = (resources, streams, actions, plain)
        self._setting = setting
        self._program = program
        self._bound: Bound | None = None
        self._listener: Listener | None = None

    def reserve(self) -> None:
        """Bind the socket, which does not listen yet; raises `StartError` if another process has it."""
        try:
            self._bound = bind(self._path, self._program)
        except UnixSocketError as error:
            raise StartError(f"{self._setting}: {error}") from None

    def listen(self) -> None:
        """Let clients connect, and wait until `start`."""
        assert self._bound is not None  # noqa: S101 - reserved
        self._bound.sock.listen(BACKLOG)

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
