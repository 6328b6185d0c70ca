"""Writes are spaced, retried with backoff, repeated if unconfirmed, and independent of each other."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from reconcilers.model import Condition, ObjectRef
from reconcilers.operator import Apply, Delete, Plan
from reconcilers.operator.plan_writer import (
    DROPPED_SECONDS,
    LONGEST_RETRY_SECONDS,
    UNCONFIRMED_SECONDS,
    WRITE_INTERVAL_SECONDS,
    PlanWriter,
    WriteOutcome,
)
from resources.kubernetes import KubernetesError, StatusError
from resources.kubernetes.errors import Unreachable
from tests.reconcilers.build import cluster_config
from tests.support import looptime
from tests.support.kinds import KINDS

MANAGED = frozenset({"cilium.io/NoMatchingNode"})
DAY = 86400.0
N1, N2 = (ObjectRef("CiliumBGPNodeConfig", "", name) for name in ("n1", "n2"))
CLUSTER = ObjectRef("CiliumBGPClusterConfig", "", "c")


class Api:
    """An API server whose requests fail as the test decides; answers are what was applied."""

    def __init__(self) -> None:
        self.fails: dict[str, KubernetesError] = {}
        """By the name of the object."""
        self.calls: list[tuple[float, str, str]] = []
        self.stored: dict[str, Any] = {}
        self.foreign = False
        """Whether another manager owns fields of the objects."""
        self.drops = self.undeclared = self.no_status = False
        """Whether the definitions have a status of unknown fields, of others, or no status."""

    def _called(self, verb: str, path: str) -> None:
        self.calls.append((asyncio.get_running_loop().time(), verb, path.rpartition("v2/")[2]))
        for name, error in self.fails.items():
            if f"/{name}" in path:
                raise error

    async def get(self, path: str) -> dict[str, Any] | None:
        self._called("get", path)
        return self.stored

    async def apply(self, path: str, content: Mapping[str, Any]) -> dict[str, Any]:
        self._called("apply", path)
        if self.no_status and path.endswith("/status"):
            raise StatusError(404, "not found")
        if self.undeclared and path.endswith("/status"):
            raise StatusError(500, "typed patch: .status.conditions: field not declared in schema")
        answer = {k: v for k, v in content.items() if k != "status" or not self.drops}
        if self.foreign:
            answer["metadata"] = {**content["metadata"], "ownerReferences": [{"uid": "other"}]}
        return answer

    async def adopt(self, path: str) -> bool:
        self._called("adopt", path)
        adopted, self.foreign = self.foreign, False
        return adopted

    async def delete(self, path: str, uid: str) -> None:
        assert uid
        self._called("delete", path)

    async def annotate(self, path: str, content: Mapping[str, Any], dialect: str) -> dict[str, Any]:
        assert dialect
        self._called("annotate", path)
        return dict(content)

    def times(self, verb: str, name: str = "") -> list[float]:
        return [at for at, called, path in self.calls if called == verb and name in path]


class Run:
    """A writer over some virtual time; the plan is changed by the test."""

    def __init__(self) -> None:
        self.api = Api()
        self.outcomes: list[WriteOutcome] = []
        self.allowed = True
        self.plan = Plan((), {}, ())
        self.writer = PlanWriter(
            self.api,
            KINDS,
            MANAGED,
            random.Random(1),  # noqa: S311
            allowed=lambda: self.allowed,
            report=self.outcomes.append,
            now=lambda: asyncio.get_running_loop().time(),
            wall=lambda: 1_767_225_600.0,
        )

    async def until(self, end: float) -> None:
        loop = asyncio.get_running_loop()
        while loop.time() < end:
            pause = await self.writer.carry_out(self.plan)
            await asyncio.sleep(
                end - loop.time() if pause is None else min(pause, end - loop.time())
            )


def applied(name: str, asn: int = 65001) -> Apply:
    content = {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumBGPNodeConfig",
        "metadata": {"name": name},
        "spec": {"bgpInstances": [{"name": "i", "localASN": asn}]},
    }
    return Apply(ObjectRef("CiliumBGPNodeConfig", "", name), content)


def run(scenario: Callable[[Run], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario(Run())

    looptime.run(main())


def test_an_unconfirmed_write_is_repeated_and_one_that_is_planned_no_more_is_not() -> None:
    async def scenario(job: Run) -> None:
        job.plan = Plan((applied("n1"),), {}, ())
        await job.until(UNCONFIRMED_SECONDS + 1)
        assert job.api.times("apply") == [0.0, UNCONFIRMED_SECONDS]
        job.plan = Plan((), {}, ())
        await job.until(DAY)
        assert len(job.api.calls) == 2
        assert job.writer.writes == 2
        assert job.writer.failure == ""

    run(scenario)


def test_f09_changes_within_the_write_interval_are_one_write() -> None:
    async def scenario(job: Run) -> None:
        job.plan = Plan((applied("n1"),), {}, ())
        await job.until(0.1)
        for number in range(8):
            job.plan = Plan((applied("n1", 65100 + number),), {}, ())
            await job.until(0.1 * (number + 2))
        await job.until(5)
        assert job.api.times("apply") == [0.0, WRITE_INTERVAL_SECONDS]

    run(scenario)


def test_f09_a_failing_write_is_retried_with_backoff_and_delays_no_other() -> None:
    async def scenario(job: Run) -> None:
        job.api.fails["n1"] = Unreachable("https://x", "refused")
        job.plan = Plan((applied("n1"), applied("n2")), {}, ())
        await job.until(1)
        assert job.api.times("apply", "n2") == [0.0]
        assert (
            job.writer.failure == "CiliumBGPNodeConfig/n1: apply: cannot reach https://x: refused"
        )
        await job.until(DAY)
        attempts = job.api.times("apply", "n1")
        pauses = [b - a for a, b in itertools.pairwise(attempts)]
        assert max(pauses) <= LONGEST_RETRY_SECONDS
        assert pauses[0] <= pauses[3] <= pauses[8]
        assert len(attempts) < 10 + DAY / (0.75 * LONGEST_RETRY_SECONDS)
        failures = [outcome.failures for outcome in job.outcomes if outcome.error]
        assert failures == list(range(1, len(attempts) + 1))
        job.api.fails.clear()
        await job.until(DAY + LONGEST_RETRY_SECONDS)
        assert job.writer.failure == ""

    run(scenario)


def test_a_retry_after_is_respected() -> None:
    async def scenario(job: Run) -> None:
        job.api.fails["n1"] = StatusError(429, "slow down", 100.0)
        job.plan = Plan((applied("n1"),), {}, ())
        await job.until(99)
        assert job.api.times("apply") == [0.0]

    run(scenario)


def test_without_leadership_nothing_is_written() -> None:
    async def scenario(job: Run) -> None:
        job.allowed = False
        job.plan = Plan((applied("n1"), Delete(N2, "uid")), {}, ())
        await job.until(100)
        assert job.api.calls == []

    run(scenario)


def test_fields_of_another_manager_are_adopted_and_removed_by_a_second_apply() -> None:
    async def scenario(job: Run) -> None:
        job.api.foreign = True
        job.plan = Plan((applied("n1"),), {}, ())
        await job.until(1)
        assert [verb for _, verb, _ in job.api.calls] == ["apply", "adopt", "apply"]
        assert [outcome.verb for outcome in job.outcomes] == ["adopt", "apply"]

    run(scenario)


def test_conditions_that_the_api_server_drops_are_written_again_after_some_time_only() -> None:
    async def scenario(job: Run) -> None:
        job.api.drops = True
        others = [ObjectRef("CiliumBGPClusterConfig", "", name) for name in "abd"]

        def plan(status: bool) -> Plan:
            refs = (CLUSTER, *others)
            name = next(iter(MANAGED))
            return Plan((), {ref: (Condition(ref, name, status, "Found"),) for ref in refs}, ())

        for minute in range(9):
            job.plan = plan(minute % 2 == 0)
            await job.until(60 * (minute + 1))
        # One object shows it for the kind.
        assert len(job.api.times("apply")) == 1
        assert job.writer.kinds_without_conditions == ("CiliumBGPClusterConfig",)
        assert job.writer.failure == ""
        job.api.drops = False
        await job.until(DROPPED_SECONDS + 10)
        assert len(job.api.times("apply")) == 1 + 4
        assert not job.writer.kinds_without_conditions

    run(scenario)


def test_a_definition_with_a_status_without_conditions_is_found_out() -> None:
    async def scenario(job: Run) -> None:
        job.api.undeclared = True
        condition = Condition(CLUSTER, next(iter(MANAGED)), True, "Found")
        job.plan = Plan((), {CLUSTER: (condition,)}, ())
        await job.until(DROPPED_SECONDS / 2)
        assert len(job.api.times("apply")) == 1
        assert job.writer.kinds_without_conditions == ("CiliumBGPClusterConfig",)
        assert job.writer.failure == ""

    run(scenario)


def test_a_definition_without_a_status_is_found_out() -> None:
    async def scenario(job: Run) -> None:
        job.api.no_status = True
        job.api.stored = {"metadata": {"name": "c"}}
        condition = Condition(CLUSTER, next(iter(MANAGED)), True, "Found")
        job.plan = Plan((), {CLUSTER: (condition,)}, ())
        await job.until(DROPPED_SECONDS / 2)
        assert len(job.api.times("apply")) == 1
        assert job.writer.kinds_without_conditions == ("CiliumBGPClusterConfig",)
        assert job.writer.failure == ""

    run(scenario)


def test_conditions_are_read_once_and_read_again_after_the_object_was_deleted() -> None:
    async def scenario(job: Run) -> None:
        condition = Condition(CLUSTER, "cilium.io/NoMatchingNode", True, "NoMatchingNode", "none")
        job.api.stored = cluster_config()
        job.plan = Plan((), {CLUSTER: (condition,)}, ())
        await job.until(100)
        assert [verb for _, verb, _ in job.api.calls] == ["get", "apply"]
        assert job.api.calls[1][2] == "ciliumbgpclusterconfigs/c/status"
        job.api.fails["c"] = StatusError(404, "not found")
        job.plan = Plan((), {CLUSTER: ()}, ())
        await job.until(100.5)
        job.api.fails.clear()
        await job.until(200)
        assert len(job.api.times("get")) == 2

    run(scenario)
