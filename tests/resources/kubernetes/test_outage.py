"""F01 and F14 in virtual time: outages of days, and thousands of agents that come back from one."""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter

import pytest

from resources.kubernetes import Backoff, Phase, Timeouts
from tests.resources.kubernetes.objects import service
from tests.resources.kubernetes.virtual import Wire, names, reflecting
from tests.support import looptime

HOUR = 3600.0


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


@pytest.mark.parametrize(("every", "watches"), [(30.0, 1), (math.inf, 10)])
def test_bookmarks_keep_an_idle_watch_alive(every: float, watches: int) -> None:
    async def scenario() -> None:
        wire = Wire()
        wire.bookmark_every = every
        wire.state.put(service("web"))
        async with reflecting(wire) as (reflector, _):
            await asyncio.sleep(HOUR)
            assert names(reflector) == {"web"}
        # Without them a watch that is silent for long is begun anew, as its server may be gone.
        assert (wire.watches == 1) is (watches == 1)
        assert wire.watches >= watches

    looptime.run(scenario())


def test_a_watch_that_ends_at_once_is_retried_with_backoff() -> None:
    """A server that closes every watch costs requests at the pace of the pauses, not a busy loop."""

    async def scenario() -> None:
        wire = Wire()
        wire.ends_watches = True
        async with reflecting(wire):
            await asyncio.sleep(HOUR)
        # As after an outage: never more than two a minute once it lasts, and no list for them.
        assert HOUR / 31 <= wire.watches <= 10 + HOUR / 15
        assert len(wire.lists) == 1

    looptime.run(scenario())
