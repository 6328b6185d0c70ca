"""The server of ``waggle ui``: the agent's page on loopback, its answers read from a `Source`."""

from __future__ import annotations

import argparse
import asyncio
import hmac
import secrets
import sys
import threading
import webbrowser
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import ExitStack
from typing import Any, Final

from aiohttp import web
from aiohttp.typedefs import Handler

from cells.api.resource import ApiStream
from cells.api.transport import AgentError
from cells.observability.listen_address import cannot_listen
from cells.page.access import SIGN_IN, Access
from cells.page.files import files
from cells.page.listener import BoundedListener
from cells.serve.handlers import Listener
from waggle import ask_agent, output
from waggle.commands.ui import KIND
from waggle.commands.ui.sources import AllAgents, OneAgent, Revisions, Source
from waggle.fleet.ask import cluster_of, fleet_of

LOOPBACK: Final = "127.0.0.1"
VIEWS: Final = frozenset(
    f"/v1/{name}"
    for name in (
        "status", "peers", "peer-counts", "routes", "explain", "history", "health", "reconcilers",
        "process",
    )
)  # fmt: skip
"""The paths that are passed on: the page reads them."""
NO_REVISIONS: Final[Revisions] = {}
QUIET_SECONDS: Final = 10.0
LEAST_SECONDS: Final = 1.0


def run_ui(args: argparse.Namespace, *, cluster: bool) -> int:
    """Serve the page until interrupted; returns the exit status. Raises `AgentError`."""
    with ExitStack() as stack:
        source: Source
        if cluster:
            source = AllAgents(fleet_of(args, stack.enter_context(cluster_of(args))))
        else:
            source = OneAgent(ask_agent.client(args))
            source.read("/v1/status", {})  # names what is wrong before a browser is opened
        return asyncio.run(_serve(args, source))


async def _serve(args: argparse.Namespace, source: Source) -> int:
    server = UiServer(source, secrets.token_urlsafe(24))
    try:
        port = await server.start(args.port, lambda url: print_next_link(url, args.output))
    except OSError as error:
        output.fail(args, KIND, "ListenFailed", cannot_listen(LOOPBACK, args.port, error))
        return output.EXIT_ERROR
    url = server.link(port)
    print_link(url, port, args.output)
    if args.open:
        is_open = await asyncio.to_thread(webbrowser.open, url)
        if not is_open:
            output.complain(args.prog, "--open: no browser is found here; open the address in one")
    try:
        await asyncio.Event().wait()
    finally:
        await server.stop()
    return output.EXIT_OK


def print_link(url: str, port: int, form: str) -> None:
    """Print the address that admits one browser."""
    if output.is_document(form):
        item = {"url": url, "address": LOOPBACK, "port": port}
        output.dump(output.document(KIND, [item]), form)
        sys.stdout.flush()
    else:
        print(url, flush=True)


def print_next_link(url: str, form: str) -> None:
    """Print the address that admits another browser: beside a document, on standard error."""
    stream = sys.stderr if output.is_document(form) else sys.stdout
    print("another browser:", url, file=stream, flush=True)


class UiServer:
    """The page of a source."""

    def __init__(self, source: Source, token: str) -> None:
        self._code = secrets.token_urlsafe(24)
        self._used: Callable[[], None] = lambda: None
        self._source = source
        self._revisions: Revisions = {}
        self._waiting: set[asyncio.Event] = set()
        """An event for each page that follows."""
        stream = ApiStream(path="/v1/live", read=lambda _: self._live())
        self._bounds = BoundedListener({stream.path})
        access = Access(token.encode, secure=False, local=True, use_code=self._use_code)
        middlewares = (self._bounds.once, access.middleware, self._bounds.admitted, self._forward)
        self._listener = Listener((), [stream], (), (), files(), middlewares=middlewares)

    def link(self, port: int) -> str:
        """Return the address that admits one browser."""
        return f"http://{LOOPBACK}:{port}{SIGN_IN}?code={self._code}"

    def _use_code(self, given: str) -> bool:
        if not hmac.compare_digest(given.encode(errors="surrogateescape"), self._code.encode()):
            return False
        self._code = secrets.token_urlsafe(24)
        self._used()
        return True

    async def start(self, port: int, used: Callable[[str], None] = lambda _: None) -> int:
        """Listen on loopback, and follow the source; return the port. Raises `OSError`.

        ``used`` is given the next link when one has been used.
        """
        protocol = await self._listener.protocol()
        _, chosen = await self._bounds.listen(protocol, LOOPBACK, port)
        self._used = lambda: used(self.link(chosen))
        loop = asyncio.get_running_loop()

        def changed(revisions: Revisions = NO_REVISIONS) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._changed, revisions)

        # It ends with the process: a stream may be silent for hours.
        threading.Thread(target=self._source.follow, args=(changed,), daemon=True).start()
        return chosen

    async def stop(self) -> None:
        """Close the listener and what is open."""
        await self._bounds.close()
        await self._listener.close()

    def _changed(self, revisions: Revisions = NO_REVISIONS) -> None:
        self._revisions = revisions
        for event in self._waiting:
            event.set()

    async def _live(self) -> AsyncGenerator[Sequence[dict[str, int]]]:
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            number = 0
            while True:
                number += 1
                yield [{"changes": number, **self._revisions}]
                await asyncio.sleep(LEAST_SECONDS)
                while not event.is_set():
                    try:
                        async with asyncio.timeout(QUIET_SECONDS):
                            await event.wait()
                    except TimeoutError:
                        yield []
                event.clear()
        finally:
            self._waiting.discard(event)

    @web.middleware
    async def _forward(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a view from the source, and everything else as an agent does."""
        if request.path not in VIEWS or request.method != "GET":
            return await handler(request)
        try:
            answer: dict[str, Any] = await asyncio.to_thread(
                self._source.read, request.path, dict(request.query)
            )
        except AgentError as error:
            failure = {"code": error.code, "message": str(error)}
            answer = output.document("List", [], [failure])
        return web.json_response(answer)
