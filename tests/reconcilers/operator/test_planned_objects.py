"""Writes are spaced, retried with backoff, repeated if unconfirmed, and independent of each other."""

from __future__ import annotations

import itertools

from reconcilers.model import ObjectRef
from reconcilers.operator import Apply, Delete, Plan
from reconcilers.operator.writes import (
    LONGEST_RETRY_SECONDS,
    UNCONFIRMED_SECONDS,
    WRITE_INTERVAL_SECONDS,
)
from resources.kubernetes import StatusError
from resources.kubernetes.errors import Unreachable
from tests.reconcilers.operator.plan_run import N1, N2, Run, run

DAY = 86400.0


def applied(name: str, asn: int = 65001) -> Apply:
    content = {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumBGPNodeConfig",
        "metadata": {"name": name},
        "spec": {"bgpInstances": [{"name": "i", "localASN": asn}]},
    }
    return Apply(ObjectRef("CiliumBGPNodeConfig", "", name), content)


def test_an_unconfirmed_write_is_repeated_while_it_is_planned() -> None:
    async def scenario(job: Run) -> None:
        job.plan = Plan((applied("n1"),), {}, ())
        await job.until(UNCONFIRMED_SECONDS + 1)
        assert job.api.times("apply") == [0.0, UNCONFIRMED_SECONDS]
        job.plan = Plan((), {}, ())
        await job.until(DAY)
        assert len(job.api.calls) == 2
        assert [outcome.written for outcome in job.outcomes] == [True, True]
        assert job.failure == ""

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
        assert job.failure == "CiliumBGPNodeConfig/n1: apply: cannot reach https://x: refused"
        await job.until(DAY)
        attempts = job.api.times("apply", "n1")
        pauses = [b - a for a, b in itertools.pairwise(attempts)]
        assert max(pauses) <= LONGEST_RETRY_SECONDS
        assert pauses[0] <= pauses[3] <= pauses[8]
        assert len(attempts) < 10 + DAY / (0.75 * LONGEST_RETRY_SECONDS)
        failures = [outcome.attempts for outcome in job.outcomes if outcome.error]
        assert failures == list(range(1, len(attempts) + 1))
        job.api.fails.clear()
        await job.until(DAY + LONGEST_RETRY_SECONDS)
        assert job.failure == ""

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
        assert job.adopted == [N1]
        assert len(job.outcomes) == 1

    run(scenario)
