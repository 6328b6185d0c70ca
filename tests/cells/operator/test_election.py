"""The Lease of a leader in virtual time: how long it lasts when the API server is slow."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest

from cells.hive.health import HealthTree
from cells.operator.election import Leadership
from cells.operator.owner import Owner
from cells.options import OperatorOptions
from resources.kubernetes import Election, Writer
from resources.kubernetes.lease import ElectionTiming
from tests.support import looptime

NAMESPACE = "kube-system"


class SlowServer:
    """An API server with one Lease, whose answers take a while; the request acts at once."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.lease: dict[str, Any] | None = None

    async def get(self, path: str) -> dict[str, Any] | None:  # noqa: ARG002
        return self.lease

    async def create(self, path: str, content: Mapping[str, Any]) -> dict[str, Any]:
        return await self.replace(path, content)

    async def replace(self, path: str, content: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        self.lease = dict(content)
        await asyncio.sleep(self.seconds)
        return self.lease


@pytest.mark.parametrize("seconds", [0.0, 4.0])
def test_a_lease_lasts_from_the_request_that_renewed_it_not_from_the_answer(
    seconds: float,
) -> None:
    """Another candidate counts from its own observation of the write, before the answer arrived."""
    timing = ElectionTiming(renew=10.0)
    server = SlowServer(seconds)
    election = Election("a", "waggle-operator", NAMESPACE, timing)
    health = HealthTree().scope("operator")
    owner = Owner(OperatorOptions())
    leadership = Leadership(election, NAMESPACE, "waggle-operator", owner, health, lambda _: None)

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        for _ in ("create", "replace"):
            began = loop.time()
            await leadership._attempt(cast("Writer", server))
            assert loop.time() == began + seconds
            assert leadership.leads
        await asyncio.sleep(timing.renew - seconds - 0.01)
        assert leadership.leads
        await asyncio.sleep(0.02)
        assert not leadership.leads

    looptime.run(scenario())
