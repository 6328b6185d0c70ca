"""The api cell's server: HTTP over the Unix socket, answers as in `cells.api.model`.

Reads only. A long answer is made and sent in slices, so that listing a million routes neither
holds up a session's keepalive nor fills the memory when the reader is slow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Protocol

import msgspec
import structlog
from aiohttp import web

from cells.api.model import (
    API_VERSION,
    Envelope,
    ErrorItem,
    ExplainItem,
    PeerItem,
    RouteItem,
    StatusItem,
    default_path,
)
from cells.api.sockets import Bound, bind
from cells.hive import Health, Hive, Lifecycle, Options, setting
from cells.hive.show import views

SLICE = 200
"""Items that are encoded between two turns of the loop: about a millisecond's work."""
TABLES = ("available", "advertised", "received")

log = structlog.get_logger("waggle.api")
_encoder = msgspec.json.Encoder()


class ApiOptions(Options, frozen=True):
    """Options of the api cell."""

    socket: Annotated[
        str | None,
        setting(
            "Unix socket for the waggle command; by default $XDG_RUNTIME_DIR/waggle/agent.sock, "
            "for root /run/waggle/agent.sock",
            flag="--api-socket",
            metavar="PATH",
        ),
    ] = None


class UnknownNameError(Exception):
    """A peer or an instance was asked for that there is not; ``str()`` is one sentence."""


class BadQuestionError(Exception):
    """What was asked cannot be read; ``str()`` is one sentence."""


class Facts(Protocol):
    """What the server tells: read at once, in one turn of the loop."""

    def peers(self, *, peer: str | None, instance: str | None) -> list[PeerItem]:
        """Return the sessions, by instance and name; ``peer`` is a name or an address."""

    def status(self) -> StatusItem:
        """Return how the agent is."""

    def routes(
        self, table: str, *, family: str | None, peer: str | None, instance: str | None
    ) -> Iterator[Sequence[RouteItem]]:
        """Yield the routes of a table in groups.

        Raises `UnknownNameError`, and `BadQuestionError` for a peer of several instances, before the
        first.
        """

    def explain(
        self, target: str | None, *, peer: str | None, instance: str | None
    ) -> Iterator[Sequence[ExplainItem]]:
        """Yield what becomes of a prefix or an object at each peer, or of everything.

        Raises `UnknownNameError` or `BadQuestionError` before the first group.
        """


class ApiServer:
    """The socket and its handlers."""

    def __init__(
        self, lifecycle: Lifecycle, health: Health, options: ApiOptions, hive: Hive, facts: Facts
    ) -> None:
        self.path = Path(options.socket) if options.socket else default_path()
        self._health = health
        self._hive = hive
        self._facts = facts
        self._bound: Bound | None = None
        self._runner: web.AppRunner | None = None
        lifecycle.append("api", start=self.start, stop=self.stop)

    async def start(self) -> None:
        """Listen; raises `StartError` if another agent does so already."""
        bound = bind(self.path)
        app = web.Application()
        app.router.add_get("/v1/peers", self._get_peers)
        app.router.add_get("/v1/routes", self._get_routes)
        app.router.add_get("/v1/explain", self._get_explain)
        app.router.add_get("/v1/status", self._get_status)
        app.router.add_get("/v1/health", self._get_health)
        app.router.add_get("/v1/cells", self._get_cells)
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.5)
        await runner.setup()
        await web.SockSite(runner, bound.sock, backlog=64).start()
        self._runner, self._bound = runner, bound
        self._health.ok(f"listening on {self.path}")
        log.info("answering questions", event_name="api.listening", path=str(self.path))

    async def stop(self) -> None:
        """Close the socket and remove its file."""
        runner, self._runner = self._runner, None
        bound, self._bound = self._bound, None
        if bound is not None:
            bound.unlink()
        if runner is not None:
            await runner.cleanup()

    async def _get_peers(self, request: web.Request) -> web.Response:
        wrong = _unknown_keys(request, ("peer", "instance"))
        if wrong is not None:
            return wrong
        items = self._facts.peers(
            peer=request.query.get("peer"), instance=request.query.get("instance")
        )
        return _answer("PeerList", items)

    async def _get_routes(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        wrong = _unknown_keys(request, ("table", "family", "peer", "instance"))
        if wrong is not None:
            return wrong
        table = query.get("table", "advertised")
        if table not in TABLES:
            return _refusal(400, "BadRequest", f"table is none of {', '.join(TABLES)}: {table}")
        try:
            groups = self._facts.routes(
                table,
                family=query.get("family"),
                peer=query.get("peer"),
                instance=query.get("instance"),
            )
        except BadQuestionError as error:
            return _refusal(400, "BadRequest", str(error), kind="RouteList")
        except UnknownNameError as error:
            return _refusal(404, "NotFound", str(error), kind="RouteList")
        return await _stream(request, "RouteList", groups)

    async def _get_status(self, _: web.Request) -> web.Response:
        return _answer("StatusList", [self._facts.status()])

    async def _get_explain(self, request: web.Request) -> web.StreamResponse:
        query = request.query
        wrong = _unknown_keys(request, ("target", "peer", "instance"))
        if wrong is not None:
            return wrong
        try:
            groups = self._facts.explain(
                query.get("target"), peer=query.get("peer"), instance=query.get("instance")
            )
        except BadQuestionError as error:
            return _refusal(400, "BadRequest", str(error), kind="ExplainList")
        except UnknownNameError as error:
            return _refusal(404, "NotFound", str(error), kind="ExplainList")
        return await _stream(request, "ExplainList", groups)

    async def _get_health(self, _: web.Request) -> web.Response:
        return _answer("HealthReport", list(self._hive.health.report()))

    async def _get_cells(self, _: web.Request) -> web.Response:
        health = {
            cell.name: list(self._hive.health.scope(cell.name).report())
            for cell in self._hive.order
        }
        return _answer("CellList", views(self._hive.cells, self._hive.settings, health))


def _unknown_keys(request: web.Request, known: Sequence[str]) -> web.Response | None:
    for key in request.query:
        if key not in known:
            return _refusal(400, "BadRequest", f"unknown parameter {key}")
    return None


def _answer(kind: str, items: list[Any], status: int = 200) -> web.Response:
    envelope = Envelope[Any](kind=kind, generated_at=_now(), items=items)
    return web.Response(
        status=status, body=_encoder.encode(envelope), content_type="application/json"
    )


def _refusal(status: int, code: str, message: str, kind: str = "Error") -> web.Response:
    errors = [ErrorItem(code=code, message=message)]
    envelope = Envelope[Any](kind=kind, generated_at=_now(), items=[], errors=errors)
    return web.Response(
        status=status, body=_encoder.encode(envelope), content_type="application/json"
    )


async def _stream(
    request: web.Request, kind: str, groups: Iterator[Sequence[Any]]
) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    head = {"apiVersion": API_VERSION, "kind": kind, "generatedAt": _now(), "errors": []}
    await response.write(_encoder.encode(head)[:-1] + b',"items":[')
    first = True
    for group in groups:
        for start in range(0, len(group), SLICE):
            part = _encoder.encode(group[start : start + SLICE])[1:-1]
            await response.write(part if first else b"," + part)
            first = False
            # A reader that is fast never lets write() wait, so give way explicitly.
            await asyncio.sleep(0)
    await response.write(b"]}\n")
    await response.write_eof()
    return response


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
