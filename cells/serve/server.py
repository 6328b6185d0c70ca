"""The api cell's server: the socket of an agent, from start to stop."""

from __future__ import annotations

from pathlib import Path

import structlog

from cells.api.agent_socket import default_path
from cells.api.resource import ApiAction, ApiFile, ApiPlain, ApiResource, ApiStream
from cells.hive import Group, Health, StartError
from cells.hive.lifecycle import Lifecycle
from cells.options import ApiOptions
from cells.serve.api_socket import ApiSocket
from cells.unix_socket import UnixSocketError

log = structlog.get_logger("waggle.api")


class ApiServer:
    """The socket and what answers on it."""

    def __init__(
        self,
        lifecycle: Lifecycle,
        health: Health,
        options: ApiOptions,
        resources: Group[ApiResource],
        streams: Group[ApiStream],
        actions: Group[ApiAction],
        plain: Group[ApiPlain],
        files: Group[ApiFile],
    ) -> None:
        self.path = Path(options.socket) if options.socket else default_path()
        self._health = health
        self._socket = ApiSocket(
            self.path, resources, streams, actions, plain, files, reported=self._reported
        )
        lifecycle.append("api", reserve=self._reserve, start=self._start, stop=self._socket.stop)

    async def _reserve(self) -> None:
        try:
            self._socket.reserve()
        except UnixSocketError as error:
            raise StartError(f"--api-socket: {error}") from None

    async def _start(self) -> None:
        await self._socket.start()
        self._health.ok(f"listening on {self.path}")
        log.info("listening", event_name="api.listening", path=str(self.path))

    def _reported(self, trouble: str) -> None:
        if trouble:
            self._health.degraded(f"{self.path}: {trouble}")
            log.error("requests are refused", event_name="api.failed", reason=trouble)
        else:
            self._health.ok(f"listening on {self.path}")
            log.info("requests are answered again", event_name="api.restored")
