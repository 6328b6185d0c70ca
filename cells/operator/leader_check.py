"""What the leader asks the API server now and then: the check is repeated, and retried if it failed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final

from cells.kubernetes import Kubernetes
from resources.kubernetes import KubernetesError, Writer

MANAGER: Final = "waggle-operator"
"""The field manager of an operator's writes, and the name of the Lease."""
RETRY_SECONDS: Final = 30.0
"""After a check that failed."""


async def repeat_while_leading(
    leads: asyncio.Event,
    kubernetes: Kubernetes,
    check: Callable[[Writer], Awaitable[None]],
    interval: float,
) -> None:
    """Check while this operator leads, until cancelled; ``interval`` in seconds, with jitter."""
    rng = random.SystemRandom()
    while True:
        await leads.wait()
        pause = interval
        try:
            async with kubernetes.writer(MANAGER) as writer:
                await check(writer)
        except KubernetesError:
            # The kubernetes cell reports an API server that does not answer.
            pause = RETRY_SECONDS
        await asyncio.sleep(pause * rng.uniform(0.75, 1.25))
