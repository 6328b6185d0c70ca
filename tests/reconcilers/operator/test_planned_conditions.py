"""Conditions are written when they change, and their times move when their status does."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from reconcilers import conditions
from reconcilers.model import Condition, ObjectRef
from reconcilers.operator import Plan
from reconcilers.operator.planned_conditions import DROPPED_SECONDS
from resources.enumeration import MAX_MESSAGE_CHARACTERS
from resources.kubernetes import StatusError
from tests.reconcilers.build import cluster_config
from tests.reconcilers.operator.plan_run import CLUSTER as REF
from tests.reconcilers.operator.plan_run import Run, run

TYPE = "cilium.io/NoMatchingNode"
FIRST, SECOND = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
DAY = 86400.0


def wanted(status: bool = True, message: str = "none", generation: int | None = 3) -> Condition:
    return Condition(REF, TYPE, status, "NoMatchingNode", message, generation)


async def write(job: Run, *planned: Condition) -> Sequence[dict[str, Any]] | None:
    """Carry out a plan with these conditions; the written ones, None where nothing was written."""
    before = len(job.api.applied)
    job.plan = Plan((), {REF: planned}, ())
    await job.until(asyncio.get_running_loop().time() + 10)
    sent = job.api.applied[before:]
    assert len(sent) <= 1
    return sent[0]["status"]["conditions"] if sent else None


def test_a_condition_is_encoded_as_metav1_condition() -> None:
    async def scenario(job: Run) -> None:
        await write(job, wanted())
        assert job.api.applied == [
            {
                "apiVersion": "cilium.io/v2",
                "kind": "CiliumBGPClusterConfig",
                "metadata": {"name": "c"},
                "status": {
                    "conditions": [
                        {
                            "type": TYPE,
                            "status": "True",
                            "reason": "NoMatchingNode",
                            "message": "none",
                            "observedGeneration": 3,
                            "lastTransitionTime": FIRST,
                        }
                    ]
                },
            }
        ]

    run(scenario)


def test_current_conditions_are_not_written_again() -> None:
    async def scenario(job: Run) -> None:
        assert await write(job, wanted()) is not None
        job.wall += DAY
        assert await write(job, wanted()) is None

    run(scenario)


def test_the_transition_time_is_that_of_the_last_change_of_the_status() -> None:
    async def scenario(job: Run) -> None:
        await write(job, wanted())
        job.wall += DAY
        changed = await write(job, wanted(message="other", generation=4))
        assert changed is not None
        assert (changed[0]["lastTransitionTime"], changed[0]["message"]) == (FIRST, "other")
        changed = await write(job, wanted(status=False))
        assert changed is not None
        assert (changed[0]["lastTransitionTime"], changed[0]["status"]) == (SECOND, "False")

    run(scenario)


def test_a_new_leader_keeps_the_stored_conditions() -> None:
    async def scenario(job: Run) -> None:
        await write(job, wanted())
        successor = Run(job.api)
        job.api.stored = dict(job.api.applied[0])
        successor.wall += DAY
        assert await write(successor, wanted()) is None

    run(scenario)


def test_undesired_managed_conditions_are_removed_and_no_others() -> None:
    async def scenario(job: Run) -> None:
        await write(job, wanted())
        assert await write(job) == []
        theirs = {
            "type": "example.com/Theirs",
            "status": "True",
            "reason": "Theirs",
            "message": "",
            "lastTransitionTime": FIRST,
        }
        job.api.stored = {"status": {"conditions": [theirs]}}
        assert await write(Run(job.api)) is None

    run(scenario)


def test_conditions_of_an_object_that_was_in_no_plan_are_read_again() -> None:
    async def scenario(job: Run) -> None:
        await write(job, wanted())
        job.plan = Plan((), {}, ())
        await job.until(50)
        assert await write(job, wanted()) is not None
        assert len(job.api.times("get")) == 2

    run(scenario)


@pytest.mark.parametrize(
    "content",
    [
        None,
        {},
        {"status": None},
        {"status": {"conditions": {}}},
        {"status": {"conditions": [1, {}]}},
    ],
)
def test_a_malformed_status_has_no_conditions(content: dict[str, Any] | None) -> None:
    assert conditions.decode(content) == {}


def test_f09_a_long_condition_message_is_truncated_and_written_once() -> None:
    async def scenario(job: Run) -> None:
        written = await write(job, wanted(message="x" * 100_000))
        assert written is not None
        assert len(written[0]["message"]) == MAX_MESSAGE_CHARACTERS
        assert await write(job, wanted(message="x" * 100_000)) is None

    run(scenario)


def test_conditions_that_the_api_server_drops_are_written_again_after_some_time_only() -> None:
    async def scenario(job: Run) -> None:
        job.api.drops = True
        others = [ObjectRef(REF.kind, "", name) for name in "abd"]

        def plan(status: bool) -> Plan:
            refs = (REF, *others)
            name = TYPE
            return Plan((), {ref: (Condition(ref, name, status, "Found"),) for ref in refs}, ())

        for minute in range(9):
            job.plan = plan(minute % 2 == 0)
            await job.until(60 * (minute + 1))
        # One object shows it for the kind.
        assert len(job.api.times("apply")) == 1
        assert job.conditions.kinds_without_conditions == ("CiliumBGPClusterConfig",)
        assert job.failure == ""
        job.api.drops = False
        await job.until(DROPPED_SECONDS + 10)
        assert len(job.api.times("apply")) == 1 + 4
        assert not job.conditions.kinds_without_conditions

    run(scenario)


def test_a_definition_with_a_status_without_conditions_is_found_out() -> None:
    async def scenario(job: Run) -> None:
        job.api.undeclared = True
        condition = Condition(REF, TYPE, True, "Found")
        job.plan = Plan((), {REF: (condition,)}, ())
        await job.until(DROPPED_SECONDS / 2)
        assert len(job.api.times("apply")) == 1
        assert job.conditions.kinds_without_conditions == ("CiliumBGPClusterConfig",)
        assert job.failure == ""

    run(scenario)


def test_a_definition_without_a_status_is_found_out() -> None:
    async def scenario(job: Run) -> None:
        job.api.no_status = True
        job.api.stored = {"metadata": {"name": "c"}}
        condition = Condition(REF, TYPE, True, "Found")
        job.plan = Plan((), {REF: (condition,)}, ())
        await job.until(DROPPED_SECONDS / 2)
        assert len(job.api.times("apply")) == 1
        assert job.conditions.kinds_without_conditions == ("CiliumBGPClusterConfig",)
        assert job.failure == ""
        # The definition has a status by then.
        job.api.no_status = False
        await job.until(DROPPED_SECONDS + 10)
        assert len(job.api.times("apply")) == 2
        assert not job.conditions.kinds_without_conditions

    run(scenario)


def test_conditions_are_read_once_and_read_again_after_the_object_was_deleted() -> None:
    async def scenario(job: Run) -> None:
        condition = Condition(REF, TYPE, True, "NoMatchingNode", "none")
        job.api.stored = cluster_config()
        job.plan = Plan((), {REF: (condition,)}, ())
        await job.until(100)
        assert [verb for _, verb, _ in job.api.calls] == ["get", "apply"]
        assert job.api.calls[1][2] == "ciliumbgpclusterconfigs/c/status"
        job.api.fails["c"] = StatusError(404, "not found")
        job.plan = Plan((), {REF: ()}, ())
        await job.until(100.5)
        job.api.fails.clear()
        await job.until(200)
        assert len(job.api.times("get")) == 2

    run(scenario)
