"""The return of a source's feeds after an outage: together, and not at the same moment as all agents.

A feed that reads again shortens the pauses of the others: what ends an outage, or a rejected token,
ends it for all of them. The pauses themselves grow with the cluster, whose agents all see the same
outage.
"""

from __future__ import annotations

import asyncio
import random
from typing import Final, final

TOGETHER_SECONDS: Final = 2.0
"""In which the feeds of one agent return once the first of them has."""
FIRST_SECONDS_PER_NODE: Final = 0.006
LONGEST_SECONDS_PER_NODE: Final = 0.02
"""Of 5,000 agents the first pauses are 30 s, the longest 100 s."""


@final
class Recovery:
    """Pauses of all feeds of a source, which end early once one feed reads again."""

    def __init__(self, rng: random.Random, first: float, longest: float) -> None:
        """``first`` and ``longest`` bound the pauses in a small cluster, in seconds."""
        self._rng = rng
        self._first = first
        self._longest = longest
        self._ended = asyncio.Event()
        self.nodes = 0
        """The size of the cluster; 0 while it is unknown."""
        self.reading = 0
        """The number of feeds of whole kinds that follow the API server."""

    @property
    def first(self) -> float:
        """The first pause of a recovery from an outage, in seconds."""
        return min(self.longest, max(self._first, self.nodes * FIRST_SECONDS_PER_NODE))

    @property
    def longest(self) -> float:
        """The longest pause of a recovery from an outage, in seconds."""
        return max(self._longest, self.nodes * LONGEST_SECONDS_PER_NODE)

    def end(self) -> None:
        """Record the recovery of a feed: it reads again after a failure."""
        self._ended.set()
        self._ended = asyncio.Event()

    async def pause(self, seconds: float) -> None:
        """Wait for so long, or until shortly after the recovery of another feed."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        ended = self._ended
        try:
            async with asyncio.timeout(seconds):
                await ended.wait()
        except TimeoutError:
            return
        spread = min(TOGETHER_SECONDS, seconds) * self._rng.random()
        await asyncio.sleep(min(spread, until - loop.time()))
