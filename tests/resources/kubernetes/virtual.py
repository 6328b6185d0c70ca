"""A reflector in virtual time, over an API server without a socket."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import cast

from resources.kubernetes import Connection, Phase, Selection, Timeouts
from resources.kubernetes.discovery import Discovery
from resources.kubernetes.errors import ReadTimeout, Unreachable
from resources.kubernetes.feed import Feed
from resources.kubernetes.recovery import Recovery
from resources.kubernetes.reflector import Reflector
from resources.source import Event, Replace
from tests.support.apiserver import ApiServer, event
from tests.support.kinds import SERVICE


class Answer:
    """An answer with a body, or with lines that come."""

    status = 200
    content_type = "application/json"

    def __init__(self, body: bytes, lines: AsyncIterator[bytes] | None = None) -> None:
        self._body = body
        self._lines = lines
        self.content = self

    async def read(self) -> bytes:
        return self._body

    def iter_any(self) -> AsyncIterator[bytes]:
        assert self._lines is not None
        return self._lines


class Wire:
    """In place of a connection: an API server that is there, or is not, without a socket."""

    server = "https://192.0.2.1"

    def __init__(self) -> None:
        self.state = ApiServer()
        self.there = asyncio.Event()
        self.there.set()
        self.attempts: list[float] = []
        """The time of each request."""
        self.lists: list[float] = []
        """The time of each answered list."""
        self.watches = 0
        self.bookmark_every = math.inf
        """Seconds."""
        self.ends_watches = False
        """Whether each watch ends at once."""
        self.fails_lists = False

    async def renew(self) -> None:
        """Nothing is kept."""

    def _check(self) -> None:
        if not self.there.is_set():
            raise Unreachable(self.server, "Connection refused")

    @asynccontextmanager
    async def get(
        self,
        path: str,
        parameters: Sequence[tuple[str, str]],
        *,
        silence: float,
        accept: str,
    ) -> AsyncIterator[Answer]:
        assert accept == "application/json"
        assert path == "/api/v1/services"
        self.attempts.append(asyncio.get_running_loop().time())
        self._check()
        query = dict(parameters)
        if "watch" in query:
            self.watches += 1
            yield Answer(b"", self._events(int(query["resourceVersion"]), silence))
        else:
            if self.fails_lists:
                raise Unreachable(self.server, "Connection refused")
            self.lists.append(asyncio.get_running_loop().time())
            body = self.state._list(SERVICE, "", query, "v1").body
            assert isinstance(body, bytes)
            yield Answer(body)

    async def _events(self, since: int, silence: float) -> AsyncIterator[bytes]:
        if since < self.state.compacted:
            yield event("ERROR", {"kind": "Status", "code": 410, "message": "too old"}).encode()
            return
        position = 0
        quiet = seconds = 0.0
        while quiet < silence:
            self._check()
            if self.ends_watches:
                return
            for version, _, what, obj in self.state.history[position:]:
                position += 1
                if version > since:
                    yield event(what, obj).encode()
                    quiet = 0.0
            await asyncio.sleep(1.0)
            quiet, seconds = quiet + 1.0, seconds + 1.0
            if seconds % self.bookmark_every == 0.0:
                mark = {"metadata": {"resourceVersion": str(self.state.version)}}
                yield event("BOOKMARK", mark).encode()
                quiet = 0.0
        raise ReadTimeout(f"nothing came for {silence:g} s")


@asynccontextmanager
async def reflecting(
    wire: Wire,
    timeouts: Timeouts = Timeouts(),  # noqa: B008  frozen
    recovery: Recovery | None = None,
    seed: int = 7,
) -> AsyncIterator[tuple[Reflector, list[Event]]]:
    """Run a reflector of Services, with the times that agents have.

    The sources of one agent share ``recovery``.
    """
    events: list[Event] = []
    rng = random.Random(seed)  # noqa: S311  jitter
    reflector = Reflector(
        Feed(SERVICE, hold=timeouts.mass_withdraw_hold),
        cast("Connection", wire),
        Discovery(cast("Connection", wire), timeouts.list_silence),
        recovery or Recovery(rng, timeouts.first_retry, timeouts.longest_retry),
        Selection(),
        timeouts,
        rng,
        on_list=lambda: events.append(Replace(())),
        on_event=events.append,
        on_status=lambda: None,
    )
    task = asyncio.create_task(reflector.run())
    try:
        yield reflector, events
    finally:
        assert not task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def names(reflector: Reflector) -> set[str]:
    """Return the names of the objects in effect."""
    return {row.metadata.name for row in reflector.feed.rows.values()}


def phase(reflector: Reflector) -> Phase:
    """Return the state of the feed."""
    return reflector.status.phase
