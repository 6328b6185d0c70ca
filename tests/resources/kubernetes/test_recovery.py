"""F01 and F14 in virtual time: feeds return together, and agents spread over a window."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from resources.kubernetes import Backoff, source
from resources.kubernetes.recovery import TOGETHER_SECONDS, Recovery
from tests.resources.kubernetes.source import reading
from tests.resources.kubernetes.virtual import Wire, reflecting
from tests.support import looptime
from tests.support.apiserver import ApiServer
from tests.support.wait import until


def test_f01_the_feeds_of_an_agent_return_together_when_one_reads_again() -> None:
    """After 429 or 401, a kind was read up to 21 s later than the others."""

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        recovery = Recovery(random.Random(3), 0.5, 30.0)  # noqa: S311  jitter
        back: list[float] = []

        async def feed(pause: float) -> None:
            await recovery.pause(pause)
            back.append(loop.time())

        feeds = [asyncio.create_task(feed(pause)) for pause in (3.0, 12.0, 21.0, 30.0)]
        await asyncio.sleep(5.0)
        assert back == [3.0]
        recovery.end()
        await asyncio.gather(*feeds)
        assert len(back) == 4
        assert max(back) <= 5.0 + TOGETHER_SECONDS
        # Not in the same moment, either.
        assert len(set(back)) == 4

    looptime.run(scenario())


def test_f01_each_kind_is_read_again_within_two_seconds_of_the_first() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        recovery = Recovery(random.Random(3), 0.5, 30.0)  # noqa: S311  jitter
        wires = [Wire() for _ in range(5)]
        async with contextlib.AsyncExitStack() as stack:
            for seed, wire in enumerate(wires):
                feed = reflecting(wire, recovery=recovery, seed=seed)
                await stack.enter_async_context(feed)
            await asyncio.sleep(10)
            for wire in wires:
                wire.there.clear()
            await asyncio.sleep(300)
            # Each pauses for up to 30 s by now, and not at the same times.
            last = [wire.attempts[-1] for wire in wires]
            assert max(last) - min(last) > 2 * TOGETHER_SECONDS
            began = loop.time()
            for wire in wires:
                wire.there.set()
            await asyncio.sleep(40)
            back = [next(at for at in wire.attempts if at >= began) for wire in wires]
            assert max(back) - min(back) <= TOGETHER_SECONDS + 1.0

    looptime.run(scenario())


def test_f14_in_a_large_cluster_the_first_pause_is_long_already() -> None:
    async def pauses(nodes: int) -> list[float]:
        """Return the pauses between the first attempts of an outage."""
        recovery = Recovery(random.Random(3), 0.5, 30.0)  # noqa: S311  jitter
        recovery.nodes = nodes
        wire = Wire()
        async with reflecting(wire, recovery=recovery):
            await asyncio.sleep(10)
            wire.there.clear()
            before = len(wire.attempts)
            await asyncio.sleep(300)
            attempts = wire.attempts[before:]
        return [later - at for at, later in itertools.pairwise(attempts)]

    async def scenario() -> None:
        small, large = await pauses(40), await pauses(5000)
        assert small[0] <= 1.0
        assert max(small) <= 30
        assert min(large) >= 15
        assert 30 < max(large) <= 100

    looptime.run(scenario())


def test_f14_the_size_of_the_cluster_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Recovery] = []

    def recorded(rng: random.Random, first: float, longest: float) -> Recovery:
        made.append(Recovery(rng, first, longest))
        return made[-1]

    async def scenario() -> None:
        async with ApiServer() as server:
            for number in range(3):
                server.put({"kind": "Node", "metadata": {"name": f"n{number}"}})
            timeouts = replace(reading.TIMEOUTS, count_nodes=0.02)
            # An agent reads its own Node only.
            async with reading.reader(server, tmp_path, timeouts=timeouts, node="n1"):
                await until(lambda: [recovery.nodes for recovery in made] == [3])
                server.delete("Node", "n0")
                await until(lambda: [recovery.nodes for recovery in made] == [2])

    monkeypatch.setattr(source, "Recovery", recorded)
    reading.run(scenario)


def test_f14_the_window_in_which_agents_return_grows_with_the_cluster() -> None:
    def busiest(nodes: int, outage: float) -> int:
        """Return the agents that return in the busiest second."""
        seconds: Counter[int] = Counter()
        for number in range(nodes):
            rng = random.Random(number)  # noqa: S311  jitter
            recovery = Recovery(rng, 0.5, 30.0)
            recovery.nodes = nodes
            backoff = Backoff(rng, first=recovery.first, longest=recovery.longest)
            at = 0.0
            while at < outage:
                at += backoff.next()
            seconds[int(at - outage)] += 1
        return max(seconds.values())

    assert busiest(5000, 1.0) <= 5000 / 10
    for outage in (600.0, 3600.0):
        assert busiest(40, outage) <= 10
        assert busiest(5000, outage) <= 5000 / 30
    assert Recovery(random.Random(1), 0.5, 30.0).first == 0.5  # noqa: S311
