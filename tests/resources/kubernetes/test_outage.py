"""F01 and F14 in virtual time: outages of days, and thousands of agents that come back from one."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import cast

import pytest

from resources.kubernetes import Backoff, Connection, Phase, Selection, Timeouts
from resources.kubernetes.errors import ReadTimeout, Unreachable
from resources.kubernetes.feed import Feed
from resources.kubernetes.reflector import Reflector
from resources.source import Event, Replace
from tests.resources.kubernetes.objects import service
from tests.support import looptime
from tests.support.apiserver import ApiServer, event
from tests.support.kinds import SERVICE

HOUR = 3600.0


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

    async def renew(self) -> None:
        """Nothing is kept."""

    def _check(self) -> None:
        if not self.there.is_set():
            raise Unreachable(self.server, "Connection refused")

    @asynccontextmanager
    async def get(
        self, path: str, parameters: Sequence[tuple[str, str]], *, silence: float
    ) -> AsyncIterator[Answer]:
        assert path == "/api/v1/services"
        self.attempts.append(asyncio.get_running_loop().time())
        self._check()
        query = dict(parameters)
        if "watch" in query:
            yield Answer(b"", self._events(int(query["resourceVersion"]), silence))
        else:
            body = self.state._list(SERVICE, "", query).body
            assert isinstance(body, bytes)
            yield Answer(body)

    async def _events(self, since: int, silence: float) -> AsyncIterator[bytes]:
        position = 0
        quiet = 0.0
        while quiet < silence:
            self._check()
            for version, _, what, obj in self.state.history[position:]:
                position += 1
                if version > since:
                    yield event(what, obj).encode()
                    quiet = 0.0
            await asyncio.sleep(1.0)
            quiet += 1.0
        raise ReadTimeout(f"nothing came for {silence:g} s")


@asynccontextmanager
async def reflecting(wire: Wire) -> AsyncIterator[tuple[Reflector, list[Event]]]:
    """Run a reflector of Services, with the times that agents have."""
    events: list[Event] = []
    rng = random.Random(7)  # noqa: S311  jitter
    reflector = Reflector(
        Feed(SERVICE),
        cast("Connection", wire),
        Selection(),
        Timeouts(),
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
    return {row.metadata.name for row in reflector.feed.rows.values()}


@pytest.mark.parametrize("seconds", [1.0, 60.0, HOUR, 72 * HOUR], ids=["1s", "1min", "1h", "3days"])
def test_f01_an_outage_of_any_length_deletes_nothing(seconds: float) -> None:
    async def scenario() -> None:
        wire = Wire()
        loop = asyncio.get_running_loop()
        for name in ("web", "db"):
            wire.state.put(service(name))
        async with reflecting(wire) as (reflector, events):
            await asyncio.sleep(5)
            assert names(reflector) == {"web", "db"}
            events.clear()
            wire.there.clear()
            wire.state.delete("Service", "db", "shop")
            wire.state.put(service("new"))
            began, before = loop.time(), len(wire.attempts)
            await asyncio.sleep(seconds)
            assert events == []
            assert names(reflector) == {"web", "db"}
            # Never more than two a minute once it has lasted, and never given up.
            attempts = len(wire.attempts) - before
            assert attempts <= 10 + seconds / 15
            assert attempts >= seconds / 31
            wire.there.set()
            await asyncio.sleep(32)
            assert names(reflector) == {"web", "new"}
            assert reflector.status.phase is Phase.FOLLOWING
            assert loop.time() - began < seconds + 33

    looptime.run(scenario())


def test_f03_a_half_open_watch_is_detected_within_two_minutes() -> None:
    async def scenario() -> None:
        wire = Wire()
        wire.state.put(service("web"))
        async with reflecting(wire) as (reflector, _):
            await asyncio.sleep(5)
            await asyncio.sleep(HOUR)
            # No object changes and no bookmark arrives: the version is checked, and sometimes listed.
            assert names(reflector) == {"web"}
            pauses = [b - a for a, b in zip(wire.attempts, wire.attempts[1:], strict=False)]
            assert max(pauses) <= 120
            assert len(wire.attempts) < 120

    looptime.run(scenario())


def test_f14_reconnections_of_five_thousand_agents_are_spread() -> None:
    """How many ask in each second after an outage of ten minutes that all have seen."""
    timeouts = Timeouts()
    seconds: Counter[int] = Counter()
    for number in range(5000):
        backoff = Backoff(
            random.Random(number),  # noqa: S311  jitter
            first=timeouts.first_retry,
            longest=timeouts.longest_retry,
        )
        at = 0.0
        while at < 600.0:
            at += backoff.next()
        seconds[int(at - 600.0)] += 1
    # Evenly over the longest pause: none comes late, and no second has many more than its share.
    assert max(seconds) <= timeouts.longest_retry
    assert max(seconds.values()) < 4 * 5000 / timeouts.longest_retry
    assert len(seconds) >= timeouts.longest_retry * 0.8
