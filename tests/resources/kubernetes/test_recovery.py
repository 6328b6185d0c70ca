"""F01 and F14 in virtual time: feeds return together, and agents spread over a window."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

from resources.kubernetes import Backoff
from resources.kubernetes.recovery import TOGETHER_SECONDS, Recovery
from tests.support import looptime


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
