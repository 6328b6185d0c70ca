"""The Lease of a leader in virtual time: how long it lasts when the API server is slow."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from cells.hive.health import HealthTree
from cells.operator.election import Leadership
from cells.operator.owner import Owner
from cells.options import OperatorOptions
from resources.kubernetes import Election, KubernetesError, Writer
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


@pytest.mark.parametrize("writes", [("create",), ("create", "replace")])
@pytest.mark.parametrize("seconds", [0.0, 4.0])
def test_a_lease_lasts_from_the_last_request_that_wrote_it_not_from_the_answer(
    seconds: float, writes: tuple[str, ...]
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
        for _ in writes:
            began = loop.time()
            await leadership._attempt(cast("Writer", server))
            assert loop.time() == began + seconds
            assert leadership.leads
        await asyncio.sleep(timing.renew - seconds - 0.01)
        assert leadership.leads
        await asyncio.sleep(0.02)
        assert not leadership.leads

    looptime.run(scenario())


def test_the_state_of_the_election_is_the_health_and_each_change_a_line() -> None:
    tree = HealthTree()
    election = Election("a", "waggle-operator", NAMESPACE, ElectionTiming())
    leadership = Leadership(
        election,
        NAMESPACE,
        "waggle-operator",
        Owner(OperatorOptions()),
        tree.scope("leader"),
        lambda _: None,
    )

    def told(leader: str, trouble: str = "", *, leads: bool = False) -> list[tuple[object, ...]]:
        shown: Any = SimpleNamespace(leader=leader, leads=leads)
        leadership._election, leadership._trouble = shown, trouble
        with capture_logs() as logs:
            leadership._report()
        assert {line["event_name"] for line in logs} <= {"operator.leader"}
        return [(line["leader"], line["leads"], line["reason"]) for line in logs]

    def health() -> tuple[str, str]:
        (status,) = tree.report()
        return str(status.level), status.message

    assert told("") == [(None, False, None)]
    assert health() == ("ok", "waits; no candidate leads")
    assert told("b") == [("b", False, None)]
    assert told("b") == []
    assert health() == ("ok", "waits; b leads")
    assert told("a", leads=True) == [("a", True, None)]
    assert health() == ("ok", "leads")
    assert told("a", "no answer in time", leads=True) == [("a", True, "no answer in time")]
    assert health() == ("degraded", "leads: no answer in time")


def test_a_lease_that_cannot_be_released_is_named() -> None:
    class Away:
        async def get(self, _: str) -> None:
            raise KubernetesError("no answer")

    owner, health = Owner(OperatorOptions()), HealthTree().scope("leader")
    election = Election("a", "waggle-operator", NAMESPACE, ElectionTiming())
    leadership = Leadership(election, NAMESPACE, "waggle-operator", owner, health, lambda _: None)
    with capture_logs() as logs:
        looptime.run(leadership._release(cast("Writer", Away())))
    assert [(line["event_name"], line["reason"]) for line in logs] == [
        ("operator.lease", "no answer")
    ]
