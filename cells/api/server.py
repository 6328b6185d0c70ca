"""The api cell's server: HTTP over the Unix socket, answers as in `cells.api.model`.

Reads only. A long answer is made and sent in slices, so that listing a million routes neither
holds up a session's keepalive nor fills the memory when the reader is slow.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
import structlog
from aiohttp import web

from cells.api.model import API_VERSION, Envelope, ErrorItem, default_path
from cells.api.resource import ApiResource, BadRequestError, NotFoundError
from cells.api.sockets import Bound, bind
from cells.hive import Group, Health, Lifecycle, Options, setting

SLICE = 200
"""Items that are encoded between two turns of the loop: about a millisecond's work."""

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


class ApiServer:
    """The socket and its handlers."""

    def __init__(
        self,
        lifecycle: Lifecycle,
        health: Health,
        options: ApiOptions,
        resources: Group[ApiResource],
    ) -> None:
        self.path = Path(options.socket) if options.socket else default_path()
        self._health = health
        self._resources = resources
        self._bound: Bound | None = None
        self._runner: web.AppRunner | None = None
        lifecycle.append("api", start=self.start, stop=self.stop)

    async def start(self) -> None:
        """Listen; raises `StartError` if another agent does so already."""
        bound = bind(self.path)
        app = web.Application()
        for resource in self._resources:
            app.router.add_get(resource.path, functools.partial(_get, resource))
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


async def _get(resource: ApiResource, request: web.Request) -> web.StreamResponse:
    for key in request.query:
        if key not in resource.parameters:
            return _refusal(400, "BadRequest", f"unknown parameter {key}", resource.kind)
    try:
        found = resource.read(request.query)
    except BadRequestError as error:
        return _refusal(400, "BadRequest", str(error), resource.kind)
    except NotFoundError as error:
        return _refusal(404, "NotFound", str(error), resource.kind)
    if isinstance(found, Sequence):
        return _answer(resource.kind, found)
    return await _stream(request, resource.kind, found)


def _answer(kind: str, items: Sequence[Any]) -> web.Response:
    envelope = Envelope[Any](kind=kind, generated_at=_now(), items=list(items))
    return web.Response(body=_encoder.encode(envelope), content_type="application/json")


def _refusal(status: int, code: str, message: str, kind: str) -> web.Response:
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
