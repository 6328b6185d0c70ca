"""The api cell's server: the socket of the agent, from start to stop.

What answers on it is `cells.api.handlers`, whose library takes as long to import as the first session
takes to come up: a thread imports it while the agent begins its work.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from cells.api.model import default_path
from cells.api.resource import ApiAction, ApiPlain, ApiResource, ApiStream
from cells.hive import Group, Health, StartError
from cells.hive.lifecycle import Lifecycle
from cells.options import ApiOptions
from cells.unix_socket import Bound, UnixSocketError, bind

if TYPE_CHECKING:
    from cells.api.handlers import Listener

log = structlog.get_logger("waggle.api")


def import_listener() -> type[Listener]:
    """Import the handlers and return what serves them."""
    from cells.api.handlers import Listener

    return Listener


class ApiServer:
    """The socket and what listens on it."""

    def __init__(
        self,
        lifecycle: Lifecycle,
        health: Health,
        options: ApiOptions,
        resources: Group[ApiResource],
        streams: Group[ApiStream],
        actions: Group[ApiAction],
        plain: Group[ApiPlain],
    ) -> None:
        self.path = Path(options.socket) if options.socket else default_path()
        self._health = health
        self._answers = (resources, streams, actions, plain)
        self._bound: Bound | None = None
        self._listener: Listener | None = None
        lifecycle.append("api", reserve=self.reserve, start=self.start, stop=self.stop)

    async def reserve(self) -> None:
        """Bind the socket, which does not listen yet; raises `StartError` if another agent has it."""
        try:
            self._bound = bind(self.path, "agent")
        except UnixSocketError as error:
            raise StartError(f"--api-socket: {error}") from None

    async def start(self) -> None:
        """Listen."""
        assert self._bound is not None  # noqa: S101 - reserved
        listener = (await asyncio.to_thread(import_listener))(*self._answers)
        await listener.listen(self._bound.sock)
        self._listener = listener
        self._health.ok(f"listening on {self.path}")
        log.info("listening", event_name="api.listening", path=str(self.path))

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
