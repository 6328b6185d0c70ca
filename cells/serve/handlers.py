"""Handlers of the agent's API over HTTP: bodies as in `cells.api.model`.

A GET reads, a POST runs an action. An answer is read, encoded and sent in slices, no faster than the
client reads it, and ends when the client leaves: a list of a million routes delays no session by more
than a few milliseconds, and fills no memory.
"""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Final, TypeVar

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from cells.api.model import ErrorItem
from cells.api.resource import (
    ApiAction,
    ApiFile,
    ApiPlain,
    ApiResource,
    ApiStream,
    BadRequestError,
    PlainError,
    Query,
)
from cells.api.transport import LINES
from cells.observability.http_connections import Connections
from cells.serve.answers import REFUSED, decoded, encode, head, listed, refusal, refused
from resources.decimal_numbers import decimal_number
from resources.errors import shortened
from speaker.api import Limited
from speaker.server import SlicedReader

SLICE = 200
"""Items that are encoded between two turns of the loop: about a millisecond's work."""

MAX_BODY: Final = 16 * 1024 * 1024
"""Octets of the body of a POST."""

IDLE_SECONDS: Final = 365 * 86_400.0
"""Between two requests of a connection, which makes room for others while it is idle."""

T = TypeVar("T")

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"
"""Server-sent events (HTML Living Standard, 9.2)."""

_encode_lines: Final = msgspec.json.Encoder().encode_lines


class Listener:
    """The handlers of one listening socket."""

    def __init__(
        self,
        resources: Sequence[ApiResource],
        streams: Sequence[ApiStream],
        actions: Sequence[ApiAction],
        plain: Sequence[ApiPlain],
        files: Sequence[ApiFile] = (),
        *,
        middlewares: Sequence[Middleware] = (),
    ) -> None:
        self._stream_tasks: set[asyncio.Task[Any]] = set()
        """The tasks of the streams."""
        self._reader = SlicedReader()
        app = web.Application(client_max_size=MAX_BODY, middlewares=middlewares)
        for file in files:
            app.router.add_get(file.path, functools.partial(_get_file, file))
        for resource in resources:
            app.router.add_get(resource.path, functools.partial(self._get, resource))
        for plain_path in plain:
            app.router.add_get(plain_path.path, functools.partial(self._get_plain, plain_path))
        for stream in streams:
            app.router.add_get(stream.path, functools.partial(self._follow, stream))
        for action in actions:
            app.router.add_post(action.path, functools.partial(_post, action))
        self._runner = web.AppRunner(
            app,
            access_log=None,
            # A controller keeps its connection, whatever the time between two requests.
            keepalive_timeout=IDLE_SECONDS,
            handle_signals=False,
            # A client that leaves cancels its stream, which may have nothing to send for hours.
            handler_cancellation=True,
            shutdown_timeout=0.5,
        )

    async def protocol(self) -> Callable[[], asyncio.Protocol]:
        """Return what makes the protocol of a connection, for `loop.create_server`."""
        await self._runner.setup()
        assert self._runner.server is not None  # noqa: S101 - made by `setup`
        return self._runner.server

    async def close(self) -> None:
        """End all requests."""
        for task in self._stream_tasks:
            task.cancel()
        await self._runner.cleanup()

    async def _get(self, resource: ApiResource, request: web.Request) -> web.StreamResponse:
        parameters = (*resource.parameters, "limit") if resource.limited else resource.parameters
        answer = _read(request, parameters, lambda query: _limited(resource, query), resource.kind)
        if isinstance(answer, web.Response):
            return answer
        async with aclosing(self._reader.read(iter(answer))) as slices:
            try:
                first = await anext(slices, None)
            except REFUSED as error:
                return _answer(*refused(error, resource.kind))
            if first is None:
                empty = listed(resource.kind, (), resource.notes(), resource.problems(True))
                return _answer(200, empty)
            members = head(resource.kind, resource.problems(False))
            return await _stream(request, members, first, slices, answer)

    async def _get_plain(self, plain: ApiPlain, request: web.Request) -> web.StreamResponse:
        try:
            answer = plain.read(request.query)
        except PlainError as error:
            return web.Response(status=error.status, text=f"{error}\n")
        if not isinstance(answer, Iterator):
            return web.Response(body=encode(answer) + b"\n", content_type=JSON)
        response = web.StreamResponse(headers={"Content-Type": JSON})
        await response.prepare(request)
        start = b"["
        async with aclosing(self._reader.read(answer)) as slices:
            async for items in slices:
                # Waits while the client does not read.
                await response.write(start + encode(items)[1:-1])
                start = b","
        # An empty list is null, as Go encodes it.
        await response.write(b"null\n" if start == b"[" else b"]\n")
        await response.write_eof()
        return response

    async def _follow(self, stream: ApiStream, request: web.Request) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a handler runs in a task
        self._stream_tasks.add(task)
        try:
            return await _follow(stream, request)
        finally:
            self._stream_tasks.discard(task)


def counted(connections: Connections) -> Middleware:
    """Return the middleware that notes which connections wait for a request."""

    @web.middleware
    async def count(request: web.Request, handler: Handler) -> web.StreamResponse:
        connections.requested(request.protocol)
        try:
            return await handler(request)
        except ConnectionError:
            # The client has left, or was disconnected: no fault that belongs into the log.
            return web.Response(status=400)
        finally:
            connections.answered(request.protocol)

    return count


async def _follow(stream: ApiStream, request: web.Request) -> web.StreamResponse:
    answer = _read(request, stream.parameters, stream.read, "Error")
    if isinstance(answer, web.Response):
        return answer
    is_browser = EVENTS in request.headers.get("Accept", "")
    headers = {"Content-Type": EVENTS if is_browser else LINES, "Cache-Control": "no-store"}
    response = web.StreamResponse(headers=headers)
    encode = _events if is_browser else _encode_lines
    await response.prepare(request)
    try:
        async with aclosing(answer) as groups:
            async for group in groups:
                # Waits while the client does not read; what changes meanwhile conflates.
                await response.write(encode(group))
                await asyncio.sleep(0)
    except ConnectionError:
        return response
    except Exception as error:  # noqa: BLE001 - the last line of the answer has the reason
        errors = [ErrorItem(code="StreamEnded", message=str(error) or type(error).__name__)]
        await response.write(encode([{"errors": errors}]))
    await response.write_eof()
    return response


def _events(items: Sequence[Any]) -> bytes:
    """Encode items as server-sent events; a comment if there are none."""
    return b"".join(b"data: " + encode(item) + b"\n\n" for item in items) or b":\n\n"


async def _get_file(file: ApiFile, _: web.Request) -> web.Response:
    return web.Response(body=file.read(), content_type=file.media_type, headers=file.headers)


def _read(
    request: web.Request, parameters: Sequence[str], read: Callable[[Query], T], kind: str
) -> T | web.Response:
    """Return what a resource reads for a request, or the refusal."""
    for key in request.query:
        if key not in parameters:
            return _answer(400, refusal("BadRequest", f"unknown parameter {key}", kind))
    try:
        return read(request.query)
    except REFUSED as error:
        return _answer(*refused(error, kind))


async def _post(action: ApiAction, request: web.Request) -> web.StreamResponse:
    kind = action.kind
    for key in request.query:
        return _answer(400, refusal("BadRequest", f"unknown parameter {key}", kind))
    if "Origin" in request.headers or "Sec-Fetch-Site" in request.headers:
        # The socket may be forwarded to a person's host, where any site can send a POST to it.
        reason = "an action is not for pages of a browser"
        return _answer(403, refusal("Forbidden", reason, kind))
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(action.body)
    octets = await request.read()
    try:
        items = await action.perform(decoded(decoder, octets))
        return _answer(200, listed(kind, items))
    except REFUSED as error:
        return _answer(*refused(error, kind))


def _answer(status: int, body: bytes) -> web.Response:
    return web.Response(status=status, body=body, content_type=JSON)


def _limited(resource: ApiResource, query: Query) -> Limited[Any]:
    """Read a resource; raises what it raises, and `BadRequestError` for an invalid limit."""
    limit = None
    if "limit" in query:
        text = query["limit"]
        limit = decimal_number(text, sys.maxsize)
        if not limit:
            raise BadRequestError(f"limit: a number of at least 1, not {shortened(text)}")
    items = resource.read(query)
    if isinstance(items, Sequence):
        items = iter([items[start : start + SLICE] for start in range(0, len(items), SLICE)])
    return Limited(items, limit)


async def _stream(
    request: web.Request,
    members: dict[str, Any],
    first: Sequence[Any],
    others: AsyncGenerator[Sequence[Any]],
    listed: Limited[Any],
) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": JSON})
    await response.prepare(request)
    await response.write(encode(members)[:-1] + b',"items":[' + encode(first)[1:-1])
    async for items in others:
        # Waits while the client does not read.
        await response.write(b"," + encode(items)[1:-1])
    await response.write(b'],"truncated":true}\n' if listed.truncated else b"]}\n")
    await response.write_eof()
    return response
