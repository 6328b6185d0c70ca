"""Objects of a node are created, changed and deleted as they differ, at a limited rate."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable

import pytest

from reconcilers.report.node_objects.objects import (
    INTERVAL_SECONDS,
    LIST_SECONDS,
    SETTLE_SECONDS,
)
from reconcilers.target.write_spread import COUNT_INTERVAL_SECONDS
from resources.kubernetes import KubernetesError, StatusError
from resources.kubernetes.errors import Unreachable
from tests.reconcilers.report.node_objects.build import (
    NODE_LABEL,
    ONE_OF_A_NODE,
    OWNER,
    PEER_LABEL,
    Api,
    Run,
    key,
    session,
)
from tests.support import looptime


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario()

    looptime.run(main())


def test_objects_are_created_with_labels_owner_and_status() -> None:
    async def scenario() -> None:
        job = Run(Api())
        job.want(session("a", "Established"), session("b"))
        await job.until(1)
        assert job.api.states() == {"a": "Established", "b": "Idle"}
        for name, one in job.api.objects.items():
            assert name.startswith("n1-")
            assert one["metadata"]["labels"][NODE_LABEL] == "n1"
            assert one["metadata"]["ownerReferences"] == [OWNER]
        assert sorted(job.api.verbs()) == ["create", "create", "patch status", "patch status"]

    run(scenario)


def test_what_is_equal_is_not_written_after_a_restart_either() -> None:
    async def scenario() -> None:
        api = Api()
        first = Run(api)
        first.want(session("a"))
        await first.until(1)
        writes = len(api.verbs())
        again = Run(api)
        again.want(session("a"))
        await again.until(3 * LIST_SECONDS)
        assert len(api.verbs()) == writes
        assert len(api.times("list")) >= 3

    run(scenario)


def test_a_session_that_passes_its_states_is_one_write() -> None:
    async def scenario() -> None:
        job = Run(Api())
        job.want(session("a"))
        await job.until(20)
        before = len(job.api.verbs())
        for state in ("Connect", "OpenSent", "OpenConfirm", "Established"):
            job.want(session("a", state))
        await job.until(20 + SETTLE_SECONDS / 2)
        assert len(job.api.verbs()) == before
        await job.until(40)
        assert job.api.verbs()[before:] == ["patch status"]
        assert job.api.states() == {"a": "Established"}

    run(scenario)


def test_an_object_that_changes_all_the_time_is_written_every_five_seconds() -> None:
    async def scenario() -> None:
        job = Run(Api())
        for tick in range(600):
            job.want(session("a", str(tick)))
            await job.until((tick + 1) / 10)
        times = job.api.times("patch status")
        assert 10 <= len(times) <= 12
        assert all(b - a >= INTERVAL_SECONDS for a, b in itertools.pairwise(times))

    run(scenario)


def test_a_change_that_is_not_prompt_waits() -> None:
    async def scenario() -> None:
        job = Run(Api())
        job.want(session("a", note="1", prompt="up"))
        await job.until(200)
        job.want(session("a", note="2", prompt="up"))
        await job.until(201)
        job.want(session("a", note="3", prompt="up"))
        await job.until(200 + 2 * COUNT_INTERVAL_SECONDS)
        assert [body["status"]["note"] for body in job.api.objects.values()] == ["3"]
        written = len(job.api.times("patch status"))
        assert written <= 3
        job.want(session("a", note="3", prompt="down"), session("b", prompt="down"))
        now = 200 + 2 * COUNT_INTERVAL_SECONDS
        await job.until(now + SETTLE_SECONDS + 0.5)
        # The status is equal; the other object is new.
        assert len(job.api.times("patch status")) == written + 1

    run(scenario)


def test_objects_that_shall_not_be_and_duplicates_are_deleted_and_nothing_else() -> None:
    async def scenario() -> None:
        api = Api()
        api.put("old", {NODE_LABEL: "n1", PEER_LABEL: "gone"}, {"state": "Idle"})
        api.put("kept", {NODE_LABEL: "n1", PEER_LABEL: "a"}, {"state": "Idle"})
        api.put("double", {NODE_LABEL: "n1", PEER_LABEL: "a"}, {"state": "Established"})
        api.put("foreign", {NODE_LABEL: "n2", PEER_LABEL: "a"}, {"state": "Idle"})
        api.put("unlabelled", {}, {"state": "Idle"})
        job = Run(api)
        job.want(session("a"))
        await job.until(1)
        assert sorted(api.objects) == ["foreign", "kept", "unlabelled"]
        # Its owner was none, or that of an earlier program.
        assert api.objects["kept"]["metadata"]["ownerReferences"] == [OWNER]
        job.objects.give(key("a").labels, None)
        await job.until(20)
        assert sorted(api.objects) == ["foreign", "unlabelled"]

    run(scenario)


def test_an_object_of_a_fixed_name_is_found_by_it() -> None:
    async def scenario() -> None:
        api = Api()
        api.put("state-n1", {"mine": "yes"}, {"state": "old", "more": "x"})
        api.put("state-n2", {})
        job = Run(api, ONE_OF_A_NODE)
        row = session("")
        job.objects.give((), row)
        await job.until(1)
        assert api.objects["state-n1"]["status"] == {"state": "Idle"}
        assert api.objects["state-n1"]["metadata"]["labels"]["mine"] == "yes"
        assert "create" not in api.verbs()
        del api.objects["state-n1"]
        # Another program has deleted it: the next list notices.
        await job.until(2 * LIST_SECONDS)
        assert api.objects["state-n1"]["status"] == {"state": "Idle"}

    run(scenario)


def test_switched_off_all_objects_of_the_node_are_deleted() -> None:
    async def scenario() -> None:
        api = Api()
        api.put("a", {NODE_LABEL: "n1", PEER_LABEL: "a"}, {"state": "Idle"})
        job = Run(api, enabled=False)
        job.want(session("a"), session("b"))
        await job.until(1)
        assert api.verbs() == ["delete"]
        assert job.objects.count == 0

    run(scenario)


def test_many_changes_keep_to_the_rate_and_the_share_of_a_large_cluster() -> None:
    async def scenario() -> None:
        for nodes, most in ((1, 10 * 20 + 22), (1000, 0.5 * 20 + 22)):
            job = Run(Api(), nodes=nodes)
            job.want(*(session(str(number)) for number in range(400)))
            loop_start = len(job.api.verbs())
            await job.until(asyncio.get_running_loop().time() + 20)
            assert len(job.api.verbs()) - loop_start <= most
            assert len(job.api.verbs()) - loop_start >= most - 4

    run(scenario)


def test_a_kind_that_is_not_installed_is_looked_for_seldom_and_then_written() -> None:
    async def scenario() -> None:
        job = Run(Api())
        job.api.fails["list"] = StatusError(404, "404 page not found")
        job.want(session("a"))
        await job.until(10 * LIST_SECONDS)
        assert job.objects.missing
        assert job.failure == ""
        assert job.api.verbs() == []
        assert 7 <= len(job.api.calls) <= 14
        job.want(session("a", "Established"))
        del job.api.fails["list"]
        await job.until(12 * LIST_SECONDS)
        assert not job.objects.missing
        assert job.api.states() == {"a": "Established"}

    run(scenario)


@pytest.mark.parametrize(
    "error",
    [StatusError(403, "forbidden"), Unreachable("https://x", "refused"), StatusError(503, "")],
)
def test_a_failure_of_the_kind_is_retried_with_growing_pauses(error: KubernetesError) -> None:
    async def scenario() -> None:
        job = Run(Api())
        job.want(session("a"), session("b"))
        await job.until(1)
        job.api.fails["*"] = error
        job.want(session("a", "Established"), session("b", "Established"))
        before = len(job.api.calls)
        await job.until(3600)
        assert 10 < len(job.api.calls) - before < 40
        assert job.failure == f"Session: {error}; it is retried"
        failures = [outcome.repeated for outcome in job.outcomes if outcome.error]
        assert failures[:3] == [False, True, True]
        job.api.fails.clear()
        await job.until(3600 + 400)
        assert job.api.states() == {"a": "Established", "b": "Established"}
        assert job.failure == ""

    run(scenario)


def test_pauses_grow_while_lists_succeed_and_writes_do_not() -> None:
    async def scenario() -> None:
        job = Run(Api())
        job.api.fails["create"] = StatusError(403, "forbidden")
        job.want(session("a"))
        await job.until(3600)
        assert 10 < len(job.api.times("create")) < 40
        assert job.failure == "Session: 403: forbidden; it is retried"
        job.api.fails.clear()
        await job.until(3600 + 400)
        assert job.api.states() == {"a": "Idle"}
        assert job.failure == ""

    run(scenario)


def test_a_rejected_object_delays_no_other_object() -> None:
    async def scenario() -> None:
        job = Run(Api())
        job.want(session("a"))
        await job.until(10)
        (name,) = job.api.objects
        job.api.fails["patch status"] = StatusError(422, "invalid")
        job.want(session("a", "Established"))
        await job.until(20)
        assert f"Session {name}: 422: invalid" in job.failure
        job.api.fails.clear()
        job.api.fails["create"] = StatusError(422, "invalid")
        job.want(session("b"))
        await job.until(200)
        assert job.api.states() == {"a": "Established"}
        job.api.fails.clear()
        await job.until(1000)
        assert job.api.states() == {"a": "Established", "b": "Idle"}
        assert job.failure == ""

    run(scenario)


def test_an_object_that_another_program_deletes_is_made_again_with_its_next_change() -> None:
    async def scenario() -> None:
        job = Run(Api())
        job.want(session("a"))
        await job.until(10)
        job.api.objects.clear()
        job.want(session("a", "Established"))
        await job.until(20)
        assert job.api.states() == {"a": "Established"}

    run(scenario)


def test_fields_that_the_definition_does_not_have_are_no_reason_to_write_again() -> None:
    async def scenario() -> None:
        job = Run(Api())
        job.api.dropped = frozenset({"note"})
        job.want(session("a", note="of ours"))
        await job.until(5 * LIST_SECONDS)
        assert job.api.verbs() == ["create", "patch status"]
        job.want(session("a", note="another"))
        await job.until(6 * LIST_SECONDS)
        assert job.api.verbs()[2:] == ["patch status"]

    run(scenario)
