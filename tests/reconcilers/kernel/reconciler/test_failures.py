"""Routes that the kernel refuses, routes of other programs, and verification."""

from __future__ import annotations

import asyncio

import pytest

from reconcilers.kernel.writer.protocol_messages import (
    MAX_ROUTES,
    Cause,
    Change,
    Changed,
    Confirmed,
    Reason,
    Routes,
)
from reconcilers.target.reconciler import ReconcileError
from reconcilers.target.verification import Drift, Verification
from speaker.api import NO_PATHS, BestPathChange
from speaker.nlri import IPV4_UNICAST
from tests.reconcilers.kernel.reconciler.reconciler_in_memory import (
    KEY,
    MAIN,
    ONE,
    PREFIX,
    TWO,
    Agent,
    hops,
    many,
    wire,
)


def test_a_place_that_another_program_has_stays_its_own_until_it_is_free() -> None:
    agent = Agent()
    agent.writer.foreign.add((MAIN, wire(PREFIX)))
    agent.start().table(ONE, PREFIX, "198.51.100.0/24")
    assert set(agent.routes) == {"198.51.100.0/24"}
    assert agent.kernel.installed.failures.get(MAIN, wire(PREFIX)).reason == Reason.OCCUPIED  # type: ignore[union-attr]
    assert not agent.errors
    agent.writer.batches.clear()
    agent.now += 60
    agent.settle()
    assert not agent.writer.batches
    agent.writer.free(MAIN, wire(PREFIX))
    assert PREFIX in agent.settle().routes


def test_a_route_that_is_missing_is_installed_again() -> None:
    agent = Agent().start().table(ONE, PREFIX)
    agent.writer.change(Reason.MISSING, MAIN, wire(PREFIX))
    assert agent.settle().routes == {PREFIX: hops("10.88.0.1")}
    assert agent.kernel.installed.counts.changed == {"event": 1}


def test_an_unwanted_route_is_not_restored() -> None:
    agent = Agent().start().table(ONE, PREFIX).change(NO_PATHS, PREFIX, before=ONE)
    agent.writer.kernel[MAIN, wire(PREFIX)] = hops("10.88.0.1")
    agent.writer.change(Reason.UNEXPECTED, MAIN, wire(PREFIX))
    assert not agent.settle().routes


def test_an_error_is_the_status_of_the_table_and_is_retried() -> None:
    agent = Agent()
    agent.writer.reject = Reason.NOT_PERMITTED
    agent.start().table(ONE, PREFIX)
    assert agent.errors == ["1 route: NotPermitted: no"]
    agent.writer.reject = None
    agent.now += 60
    assert agent.settle().routes == {PREFIX: hops("10.88.0.1")}
    assert not agent.errors


def test_routes_that_failed_wait_and_others_do_not_wait_for_them() -> None:
    agent = Agent()
    agent.writer.reject = Reason.TABLE_FULL
    agent.start().table(ONE, *many(10))
    agent.writer.reject = None
    agent.writer.batches.clear()
    agent.change(ONE, PREFIX)
    assert set(agent.routes) == {PREFIX}
    assert agent.errors == ["10 routes: TableFull: no"]
    agent.settle()
    assert len(agent.writer.batches) == 1
    agent.now += 60
    assert set(agent.settle().routes) == {*many(10), PREFIX}
    assert not agent.errors


def test_a_kernel_that_goes_on_failing_is_asked_less_and_less_often() -> None:
    agent = Agent()
    agent.writer.reject = Reason.NOT_PERMITTED
    agent.start().table(ONE, PREFIX)
    for _ in range(100):
        agent.now += 1
        agent.settle()
    assert len(agent.writer.batches) < 12
    assert agent.errors == ["1 route: NotPermitted: no"]


def test_a_removal_that_failed_is_retried() -> None:
    agent = Agent().start().table(ONE, PREFIX)
    installed = agent.kernel.installed
    installed._keep(MAIN, [wire(PREFIX)])
    agent.kernel.end_deferral()
    agent.change(NO_PATHS, PREFIX, before=ONE)
    assert not agent.routes


@pytest.mark.parametrize("reason", [Reason.OCCUPIED, Reason.TABLE_FULL])
def test_a_route_that_failed_and_is_withdrawn_is_no_failure(reason: Reason) -> None:
    agent = Agent()
    agent.writer.reject = reason
    agent.start().table(ONE, PREFIX)
    installed = agent.kernel.installed
    assert installed.failures.counts() == {reason: 1}
    seen = []
    agent.kernel.changed.subscribe(lambda _: seen.append(installed.failures.counts()))
    agent.change(NO_PATHS, PREFIX, before=ONE)
    assert seen[-1] == {}, "health and metrics are made again"
    assert not agent.errors
    # A place that was another program's may be free the next time.
    agent.writer.reject = None
    assert agent.change(ONE, PREFIX).routes == {PREFIX: hops("10.88.0.1")}


def test_routes_that_failed_go_with_their_instance() -> None:
    agent = Agent()
    agent.writer.reject = Reason.TABLE_FULL
    agent.start().table(ONE, PREFIX)
    with agent.db.write(agent.intent.instances) as txn:
        agent.intent.instances.delete(txn, ("main",))
    agent.settle()
    assert agent.kernel.installed.failures.counts() == {}
    assert not agent.errors


def test_a_failure_does_not_hide_the_newer_route_that_follows_it() -> None:
    agent = Agent().start().table(ONE, "198.51.100.0/24").change(TWO, "198.51.101.0/24")
    others = agent.routes
    nlri = wire(PREFIX)
    for before, after in ((NO_PATHS, ONE), (ONE, TWO)):
        agent.kernel.best_paths("main", [BestPathChange(IPV4_UNICAST, before, after, (nlri,))])
        agent.round()
    agent.writer.unusable = {(MAIN, nlri)}
    agent.writer.step()
    agent.writer.unusable.clear()
    # The second route is on its way; the best path goes before it is there.
    assert agent.change(NO_PATHS, PREFIX, before=TWO).routes == others


def test_a_route_that_another_program_removes_while_a_newer_one_follows() -> None:
    agent = Agent().start().table(ONE, PREFIX).change(TWO, "198.51.101.0/24")
    nlri = wire(PREFIX)
    agent.kernel.best_paths("main", [BestPathChange(IPV4_UNICAST, ONE, TWO, (nlri,))])
    agent.round()
    agent.writer.change(Reason.MISSING, MAIN, nlri)
    agent.change(NO_PATHS, PREFIX, before=TWO)
    assert PREFIX not in agent.routes
    agent.change(ONE, PREFIX)
    agent.kernel.best_paths("main", [BestPathChange(IPV4_UNICAST, ONE, TWO, (nlri,))])
    agent.round()
    # Reported behind the write, and before its confirmation.
    agent.writer.kernel.pop((MAIN, nlri))
    (batch,) = agent.writer.sent
    agent.writer.sent.clear()
    agent.writer.report(Changed(Cause.EVENT, (Change(Reason.MISSING, (Routes(MAIN, nlri),)),)))
    agent.writer.report(Confirmed(batch.number, 1, (), 0.001))  # type: ignore[union-attr]
    assert agent.settle().routes[PREFIX] == hops("10.88.0.2")


def test_a_retry_while_a_new_writer_lists_its_routes_is_void() -> None:
    agent = Agent().start()
    agent.writer.reject = Reason.TABLE_FULL
    agent.table(ONE, PREFIX)
    agent.writer.reject = None
    agent.writer.connect()
    agent.now += 60
    agent.round()
    change = BestPathChange(IPV4_UNICAST, ONE, NO_PATHS, (wire(PREFIX),))
    agent.kernel.best_paths("main", [change])
    agent.settle()
    assert set(agent.change(TWO, "198.51.101.0/24").routes) == {"198.51.101.0/24"}


def test_a_writer_that_starts_twice_has_all_tables_compared() -> None:
    agent = Agent().start().table(ONE, PREFIX)
    agent.writer.kernel.clear()
    for _ in range(2):
        # No round compares anything between the listings.
        agent.writer.connect()
        agent.writer.run()
    assert agent.settle().routes == {PREFIX: hops("10.88.0.1")}


def test_a_failure_that_nothing_is_left_of_ends_with_the_comparison_of_the_table() -> None:
    agent = Agent().start().table(ONE, PREFIX)
    agent.writer.connect()
    agent.writer.run()
    agent.writer.change(Reason.MISSING, MAIN, wire(PREFIX))
    agent.change(NO_PATHS, PREFIX, before=ONE)
    assert agent.kernel.installed.failures.counts() == {}


def test_next_hops_of_a_session_that_is_back_are_looked_up() -> None:
    agent = Agent().start()
    agent.kernel.session_lost("main", "10.88.0.1")
    assert agent.table(ONE, PREFIX).routes == {}
    agent.kernel.session_restored("main", "10.88.0.1")
    assert agent.settle().routes == {PREFIX: hops("10.88.0.1")}


def test_verification_finds_nothing_and_repairs_what_differs() -> None:
    agent = Agent().start().table(ONE, PREFIX)
    assert [
        one for found in Verification(agent.runner, lambda: 0.0).slices() for one in found
    ] == []
    agent.kernel.installed._held[MAIN].clear()
    (drift,) = [one for found in Verification(agent.runner, lambda: 0.0).slices() for one in found]
    assert (drift.object, drift.missing, drift.details) == ("/".join(KEY), 1, (PREFIX,))


def test_best_paths_that_wait_for_the_writer_are_no_drift() -> None:
    agent = Agent().start().table(ONE, PREFIX, "20.0.0.0/8")
    large = tuple(map(wire, many(4 * MAX_ROUTES)))
    agent.kernel.best_paths("main", [BestPathChange(IPV4_UNICAST, NO_PATHS, ONE, large)])
    agent.round()
    assert agent.kernel.wanted_tables.has_changed
    agent.kernel.installed._held[MAIN].pop(wire("20.0.0.0/8"))
    (drift,) = [one for found in Verification(agent.runner, lambda: 0.0).slices() for one in found]
    assert (drift.missing, drift.details) == (1, ("20.0.0.0/8",))
    agent.settle()
    assert len(agent.routes) == len(large) + 2


def test_beside_a_route_that_fails_its_table_is_verified() -> None:
    agent = Agent().start()
    agent.writer.unusable = {(MAIN, wire(PREFIX))}
    agent.table(ONE, PREFIX, "20.0.0.0/8")
    (error,) = agent.errors
    del agent.kernel.installed._held[MAIN][wire("20.0.0.0/8")]
    (drift,) = [one for found in Verification(agent.runner, lambda: 0.0).slices() for one in found]
    assert (drift.missing, drift.details, drift.error) == (1, ("20.0.0.0/8",), None)
    agent.writer.run()
    assert agent.routes == {"20.0.0.0/8": hops("10.88.0.1")}
    assert agent.errors == [error], "it is the rounds' to retry"
    assert not list(filter(None, Verification(agent.runner, lambda: 0.0).slices()))
    agent.writer.unusable.clear()
    agent.now += 60
    agent.settle()
    assert PREFIX in agent.routes
    assert not agent.errors


def test_verification_on_request_compares_with_what_the_kernel_has_now() -> None:
    agent = Agent().start().table(ONE, PREFIX, "20.0.0.0/8", "21.0.0.0/8")
    kernel = agent.writer.kernel

    async def verify() -> list[Drift]:
        kernel.pop((MAIN, wire(PREFIX)))
        kernel[MAIN, wire("20.0.0.0/8")] = hops("10.88.0.2")
        kernel[MAIN, wire("22.0.0.0/8")] = hops("10.88.0.2")
        asyncio.get_running_loop().call_soon(agent.writer.run)
        async with agent.kernel.read_again():
            # What the writer reports meanwhile is no work for a round before the comparison.
            agent.round()
            found = Verification(agent.runner, lambda: 0.0).slices()
            return [one for drifts in found for one in drifts]

    (drift,) = asyncio.run(verify())
    assert (drift.missing, drift.different, drift.unexpected) == (1, 1, 1)
    agent.settle()
    assert agent.routes == dict.fromkeys((PREFIX, "20.0.0.0/8", "21.0.0.0/8"), hops("10.88.0.1"))


def test_a_writer_that_is_not_there_is_an_error_of_the_verification() -> None:
    async def verify() -> None:
        async with Agent().kernel.read_again():
            pytest.fail("there is nothing to compare")

    with pytest.raises(ReconcileError, match="does not answer"):
        asyncio.run(verify())
