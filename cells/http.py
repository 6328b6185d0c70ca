"""The http cell: metrics and probes for machines, on loopback, off until an address is given.

Reads only, and no secrets. ``/livez`` fails only if the event loop is blocked: a peer or an API
server that is down is no reason to restart an agent.
"""

from __future__ import annotations

import os

import structlog
from aiohttp import web

from cells.hive import (
    Health,
    HealthTree,
    Level,
    Readiness,
    SettingError,
    StartError,
    Wiring,
)
from cells.hive.lifecycle import Lifecycle
from cells.metrics import Metrics
from cells.options import HttpOptions
from cells.text import escape

log = structlog.get_logger("waggle.http")


def parse_address(text: str, flag: str = "--http-address") -> tuple[str, int]:
    """Read ``127.0.0.1:9100``, ``[::1]:9100`` or ``9100`` (loopback); raises `SettingError`."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if (
        not port.isascii()
        or not port.isdigit()
        or int(port) > 65535
        or (":" in host) != ("[" in text)
    ):
        raise SettingError("", flag, f"is not [HOST:]PORT: {text!r}")
    return host, int(port)


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
        self._runner: web.AppRunner | None = None
        lifecycle.append("http", start=self.start, stop=self.stop)

    @property
    def address(self) -> tuple[str, int]:
        """Address and port; once started the port that the kernel chose, where 0 is configured."""
        return self._host, self._port

    async def start(self) -> None:
        """Listen. An address that is in use is the start's failure and names the address."""
        app = web.Application()
        app.router.add_get("/metrics", self._get_metrics)
        app.router.add_get("/healthz", self._get_health)
        app.router.add_get("/livez", self._get_live)
        app.router.add_get("/readyz", self._get_ready)
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.5)
        await runner.setup()
        site = web.TCPSite(runner, self._host, self._port)
        try:
            await site.start()
        except OSError as error:
            await runner.cleanup()
            where = f"{self._host}:{self._port}"
            why = os.strerror(error.errno) if error.errno else str(error)
            raise StartError(f"--http-address: cannot listen on {where}: {why.lower()}") from error
        self._runner = runner
        self._host, self._port = runner.addresses[0][:2]
        self._health.ok(f"listening on {self._host}:{self._port}")
        log.info(
            "serving probes and metrics",
            event_name="http.listening",
            address=self._host,
            port=self._port,
        )

    async def stop(self) -> None:
        """Close the listener and what is open."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    async def _get_metrics(self, _: web.Request) -> web.Response:
        return web.Response(
            body=self._metrics.render(),
            headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"},
        )

    async def _get_live(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _get_health(self, request: web.Request) -> web.Response:
        """Report the health tree. Degraded parts do not change the HTTP status: see /livez."""
        if "verbose" not in request.query:
            return web.Response(text=f"{self._tree.level()}\n")
        marks = {Level.OK: "+", Level.DEGRADED: "-", Level.STOPPED: "."}
        lines = [
            f"[{marks[s.level]}]{'/'.join(s.path)} {s.level}{': ' * bool(s.message)}{s.message}"
            for s in self._tree.report()
        ]
        return web.Response(text="".join(f"{escape(line)}\n" for line in lines))

    async def _get_ready(self, request: web.Request) -> web.Response:
        waiting = self._readiness.waiting()
        lines = []
        if "verbose" in request.query or waiting:
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
