"""The http cell: metrics and probes for machines, on loopback, off until an address is given.

Reads only, and no secrets. Details (the names of parts and what they wait for) are answered to requests
from this host, or with the token of ``--http-token-file``. ``/livez`` fails only if the event loop is
blocked: a peer or an API server that is down is no reason to restart an agent.
"""

from __future__ import annotations

import asyncio
import functools
import hmac
from pathlib import Path

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from cells.hive import (
    Health,
    HealthTree,
    Level,
    Readiness,
    StartError,
    Wiring,
)
from cells.hive.lifecycle import Lifecycle
from cells.observability.http_connections import Connections, close_server
from cells.observability.listen_address import cannot_listen, is_loopback, parse_address
from cells.observability.metrics import Metrics
from cells.observability.token_file import TokenFile
from cells.options import HttpOptions
from cells.safe_text import escape

NO_DETAILS = "details are answered on this host, or with the token of --http-token-file\n"

log = structlog.get_logger("waggle.http")


class HttpServer:
    """The server of the probes and the metrics."""

    def __init__(
        self,
        lifecycle: Lifecycle,
        health: Health,
        options: HttpOptions,
        tree: HealthTree,
        readiness: Readiness,
        metrics: Metrics,
    ) -> None:
        self._host, self._port = parse_address(options.address or "")
        self._health = health
        self._tree = tree
        self._readiness = readiness
        self._metrics = metrics
        self._token = (
            None
            if options.token_file is None
            else TokenFile(Path(options.token_file), self._token_changed)
        )
        self._runner: web.AppRunner | None = None
        self._server: asyncio.Server | None = None
        self.connections = Connections()
        lifecycle.append("http", reserve=self.start, stop=self.stop)

    @property
    def address(self) -> tuple[str, int]:
        """Address and port; once started the port that the kernel chose, where 0 is configured."""
        return self._host, self._port

    async def start(self) -> None:
        """Listen. An address that is in use is the start's failure and names the address."""
        app = web.Application(middlewares=[self._once])
        app.router.add_get("/metrics", self._get_metrics)
        app.router.add_get("/healthz", self._get_health)
        app.router.add_get("/livez", self._get_live)
        app.router.add_get("/readyz", self._get_ready)
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.5)
        await runner.setup()
        assert runner.server is not None  # noqa: S101 - made by `setup`
        new = functools.partial(self.connections.new, runner.server)
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(new, self._host, self._port)
        except OSError as error:
            await runner.cleanup()
            text = cannot_listen(self._host, self._port, error)
            raise StartError(f"--http-address: {text}") from error
        self._runner = runner
        self._host, self._port = self._server.sockets[0].getsockname()[:2]
        self._report()
        if self._token is not None:
            self._token.read()
        log.info(
            "serving probes and metrics",
            event_name="http.listening",
            address=self._host,
            port=self._port,
        )

    async def stop(self) -> None:
        """Close the listener and what is open."""
        runner, self._runner = self._runner, None
        if self._server is not None:
            await close_server(self._server)
        if runner is not None:
            await runner.cleanup()

    @web.middleware
    async def _once(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer the one request of a connection."""
        self.connections.requested(request.protocol)
        try:
            response = await handler(request)
        finally:
            request.protocol.close()  # also after the answer for a path that does not exist
        response.force_close()
        return response

    def _may_see_details(self, request: web.Request) -> bool:
        """Whether a request is from this host, or has the token."""
        peer = request.transport.get_extra_info("peername") if request.transport else None
        if peer and is_loopback(peer[0]):
            return True
        token = b"" if self._token is None else self._token.read()
        given = request.headers.get("Authorization", "").encode(errors="surrogateescape")
        return bool(token) and hmac.compare_digest(given, b"Bearer " + token)

    def _token_changed(self, trouble: str) -> None:
        """Report a token file that cannot be used, which degrades health, or can again."""
        self._report()
        if trouble and self._token is not None:
            log.warning(
                "no token for details",
                event_name="http.token",
                file=str(self._token.path),
                reason=trouble,
            )

    def _report(self) -> None:
        if self._token is not None and self._token.trouble:
            self._health.degraded(
                f"--http-token-file: {self._token.path} {self._token.trouble}; details are answered "
                "on this host only"
            )
        else:
            self._health.ok(f"listening on {self._host}:{self._port}")

    async def _get_metrics(self, _: web.Request) -> web.Response:
        return web.Response(
            body=await self._metrics.render(),
            headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"},
        )

    async def _get_live(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _get_health(self, request: web.Request) -> web.Response:
        """Report the health tree. Degraded parts do not change the HTTP status: see /livez."""
        if "verbose" not in request.query:
            return web.Response(text=f"{self._tree.level()}\n")
        if not self._may_see_details(request):
            return web.Response(status=403, text=NO_DETAILS)
        marks = {Level.OK: "+", Level.DEGRADED: "-", Level.STOPPED: "."}
        lines = [
            f"[{marks[s.level]}]{'/'.join(s.path)} {s.level}{': ' * bool(s.message)}{s.message}"
            for s in self._tree.report()
        ]
        return web.Response(text="".join(f"{escape(line)}\n" for line in lines))

    async def _get_ready(self, request: web.Request) -> web.Response:
        waiting = self._readiness.waiting()
        lines = []
        details = self._may_see_details(request)
        if "verbose" in request.query and not details:
            return web.Response(status=403, text=NO_DETAILS)
        if details and ("verbose" in request.query or waiting):
            for name in self._readiness.gates():
                what = waiting.get(name)
                lines.append(f"[+]{name} ok" if what is None else f"[-]{name} waits for {what}")
        lines.append("not ready" if waiting else "ok")
        return web.Response(
            status=503 if waiting else 200, text="".join(f"{line}\n" for line in lines)
        )


WIRING = Wiring(
    invokes=(HttpServer,),
)
