"""Best paths become routes; changes do not wait for tables."""

from __future__ import annotations

import pytest

from reconcilers.kernel.answers import ANSWER_SECONDS
from reconcilers.kernel.batches import MIN_ROUTES, split
from reconcilers.kernel.installed import IN_FLIGHT, URGENT_IN_FLIGHT
from reconcilers.kernel.resolved_next_hops import TrackedRouting
from reconcilers.kernel.writer.protocol_messages import MAX_ROUTES, Batch, Reason, TrackedAddress
from reconcilers.model import Instance, Peer, PrefixRule
from reconcilers.target.comparison import SLICE_PARTS
from speaker.api import NO_PATHS, BestPathChange, InstanceRemoved, PathSet
from speaker.nlri import IPV4_UNICAST
from tests.reconcilers.kernel.build import octets
from tests.reconcilers.kernel.reconciler.reconciler_in_memory import (
    BOTH,
    MAIN,
    ONE,
    PREFIX,
    TWO,
    Agent,
    hops,
    many,
    wire,
)


def test_best_paths_become_routes_and_follow_every_change() -> None:
    agent = Agent().start().table(ONE, PREFIX)
    assert agent.routes == {PREFIX: hops("10.88.0.1")}
    assert agent.change(BOTH, PREFIX, before=ONE).routes == {PREFIX: hops("10.88.0.1", "10.88.0.2")}
    assert agent.change(NO_PATHS, PREFIX, before=BOTH).routes == {}


def test_nothing_is_sent_while_nothing_changes() -> None:
    agent = Agent().start().table(ONE, PREFIX)
    agent.writer.batches.clear()
    agent.settle()
    agent.change(ONE, PREFIX, before=ONE)
    assert not agent.writer.batches


def test_prefixes_with_equal_next_hops_are_in_one_entry_of_a_batch() -> None:
    agent = Agent().start().table(ONE, *many(100))
    (batch,) = agent.writer.batches
    ((found, routes),) = batch.routes
    assert found == hops("10.88.0.1")
    assert len(routes) == 1


def test_a_change_does_not_wait_for_the_table_before_it() -> None:
    agent = Agent().start().table(BOTH, PREFIX)
    large = tuple(map(wire, many(10 * MAX_ROUTES)))
    agent.kernel.best_paths("main", [BestPathChange(IPV4_UNICAST, NO_PATHS, ONE, large)])
    agent.round()
    change = BestPathChange(IPV4_UNICAST, BOTH, NO_PATHS, (wire(PREFIX),))
    agent.kernel.best_paths("main", [change])
    batches = 0
    while PREFIX in agent.routes:
        agent.round()
        agent.writer.step()
        batches += 1
    # Two were on their way, and of the same peer a quarter of a round are older changes.
    assert batches <= 6
    assert len(agent.routes) < len(large) / 2
    agent.settle()
    assert len(agent.routes) == len(large)


def urgent(agent: Agent, after: PathSet, prefix: str, before: PathSet = NO_PATHS) -> None:
    """Have a single route change."""
    items = [BestPathChange(IPV4_UNICAST, before, after, (wire(prefix),))]
    agent.kernel.best_paths("main", items, items)


def test_a_single_change_is_written_before_the_batches_that_wait_and_the_round_finds_nothing() -> (
    None
):
    agent = Agent().start().table(BOTH, "198.51.100.0/24")
    large = tuple(map(wire, many(10 * MAX_ROUTES)))
    agent.kernel.best_paths("main", [BestPathChange(IPV4_UNICAST, NO_PATHS, ONE, large)])
    agent.round()
    urgent(agent, ONE, PREFIX)
    urgent(agent, NO_PATHS, "198.51.100.0/24", before=BOTH)
    for _ in range(2):
        agent.writer.step()
    assert agent.routes == {PREFIX: hops("10.88.0.1")}
    agent.settle()
    assert len(agent.routes) == len(large) + 1
    assert sum(batch.urgent for batch in agent.writer.batches) == 2
    assert agent.kernel.installed.counts.routes == len(large) + 3


def rounds_due(agent: Agent) -> list[object]:
    """Return what emits when a round of the reconciler is due, from now on."""
    due: list[object] = []
    stream = agent.kernel.description.stream
    assert stream is not None
    stream.subscribe(due.append)
    return due


def test_no_round_follows_a_single_change_which_its_observers_see() -> None:
    """A round would keep the processor from the writer, and the confirmation of one would, too."""
    agent = Agent().start().table(ONE, "198.51.100.0/24")
    due, seen = rounds_due(agent), list[int]()
    agent.kernel.changed.subscribe(lambda _: seen.append(agent.kernel.installed.count(MAIN)))
    urgent(agent, ONE, PREFIX)
    agent.writer.run()
    urgent(agent, NO_PATHS, PREFIX, before=ONE)
    agent.writer.run()
    assert agent.kernel.installed.counts.batches == 3
    assert due == []
    assert seen == [2, 1]
    assert not agent.kernel.wanted_tables.has_changed


def test_a_round_compares_a_single_change_of_a_route_that_has_failed() -> None:
    agent = Agent().start().table(ONE, "198.51.100.0/24")
    agent.writer.reject = Reason.TABLE_FULL
    urgent(agent, ONE, PREFIX)
    agent.settle()
    assert agent.errors
    due = rounds_due(agent)
    urgent(agent, NO_PATHS, PREFIX, before=ONE)
    assert due
    agent.settle()
    assert agent.errors == []


def test_a_round_compares_the_changes_that_came_before_a_single_one() -> None:
    agent = Agent().start().table(ONE, "198.51.100.0/24")
    items = [
        BestPathChange(IPV4_UNICAST, NO_PATHS, ONE, (wire(prefix),))
        for prefix in (PREFIX, "8.0.0.0/8")
    ]
    assert agent.kernel.best_paths("main", items, items[1:])
    agent.writer.run()
    assert "8.0.0.0/8" in agent.routes
    assert PREFIX not in agent.routes
    agent.settle()
    assert PREFIX in agent.routes


def test_the_next_hops_of_all_routes_are_not_compared_for_a_single_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent, compared = Agent().start().table(ONE, "198.51.100.0/24"), list[None]()
    wanted: property = vars(TrackedRouting)["wanted"]

    def compare(routing: TrackedRouting) -> object:
        compared.append(None)
        return wanted.__get__(routing)

    monkeypatch.setattr(TrackedRouting, "wanted", property(compare))
    urgent(agent, ONE, PREFIX)
    urgent(agent, NO_PATHS, PREFIX, before=ONE)
    assert compared == []
    urgent(agent, TWO, PREFIX)
    assert compared == [None]
    agent.writer.run()
    assert TrackedAddress(254, octets("10.88.0.2")) in agent.writer.tracked.addresses


def test_a_single_change_of_a_route_that_is_on_its_way_follows_it() -> None:
    agent = Agent().start().table(ONE)
    agent.kernel.best_paths(
        "main", [BestPathChange(IPV4_UNICAST, NO_PATHS, ONE, tuple(map(wire, many(100))))]
    )
    agent.round()
    urgent(agent, NO_PATHS, many(1)[0], before=ONE)
    assert not any(batch.urgent for batch in agent.writer.sent if isinstance(batch, Batch))
    agent.settle()
    assert len(agent.routes) == 99


def test_a_single_change_does_not_precede_the_move_of_a_lost_peers_routes() -> None:
    agent = Agent().start().table(BOTH, PREFIX)
    agent.kernel.session_lost("main", "10.88.0.2")
    urgent(agent, ONE, PREFIX, before=BOTH)
    urgent(agent, ONE, "198.51.100.0/24")
    first, *_ = agent.writer.sent
    assert isinstance(first, Batch)
    assert first.moves
    agent.settle()
    assert agent.routes == dict.fromkeys((PREFIX, "198.51.100.0/24"), hops("10.88.0.1"))


def test_single_changes_are_bounded_by_what_the_writer_confirms() -> None:
    agent = Agent().start().table(ONE)
    for prefix in many(URGENT_IN_FLIGHT + 50):
        urgent(agent, ONE, prefix)
    assert len(agent.writer.sent) <= URGENT_IN_FLIGHT + IN_FLIGHT
    agent.settle()
    assert len(agent.routes) == URGENT_IN_FLIGHT + 50


def test_a_writer_that_confirms_nothing_is_late_and_in_time_again() -> None:
    agent = Agent().start().table(ONE, PREFIX)
    answers = agent.kernel.installed.answers
    agent.now += 60
    assert not answers.problem, "nothing is due"
    urgent(agent, NO_PATHS, PREFIX, before=ONE)
    agent.now += ANSWER_SECONDS
    assert "has not answered" in answers.problem
    agent.settle()
    assert not answers.problem
    agent.writer.connect()
    agent.now += ANSWER_SECONDS
    assert answers.problem
    agent.settle()
    agent.now += 60
    assert not answers.problem


def test_a_large_table_is_many_batches_of_which_two_are_on_their_way() -> None:
    agent = Agent().start()
    agent.kernel.best_paths(
        "main",
        [BestPathChange(IPV4_UNICAST, NO_PATHS, ONE, tuple(map(wire, many(4 * MAX_ROUTES))))],
    )
    agent.writer.run()
    agent.round()
    assert len(agent.writer.sent) == 2
    agent.writer.step()
    assert len(agent.writer.sent) == 2
    agent.settle()
    assert len(agent.routes) == 4 * MAX_ROUTES
    assert len(agent.writer.batches) <= 12


def test_a_round_takes_few_routes_of_a_table() -> None:
    """A millisecond of work, for which a change of another peer waits."""
    agent = Agent().start()
    prefixes = tuple(map(wire, many(4 * SLICE_PARTS)))
    agent.kernel.best_paths("main", [BestPathChange(IPV4_UNICAST, NO_PATHS, ONE, prefixes)])
    agent.writer.run()
    agent.runner.run(agent.now)
    assert 0 < agent.kernel.installed.count(MAIN) <= 1000


def test_a_change_of_one_peer_does_not_wait_for_the_table_of_another_peer() -> None:
    agent = Agent().start().table(TWO, "198.51.100.0/24")
    prefixes = list(map(wire, many(12 * MAX_ROUTES)))
    at = 0

    def turn() -> None:
        """Receive more of the table than the writer takes meanwhile."""
        nonlocal at
        some = tuple(prefixes[at : at + MAX_ROUTES])
        at += len(some)
        if some:
            change = BestPathChange(IPV4_UNICAST, NO_PATHS, ONE, some)
            agent.kernel.best_paths("main", [change])
        agent.round()

    turn()
    for before, after in ((NO_PATHS, TWO), (TWO, NO_PATHS), (NO_PATHS, TWO)):
        change = BestPathChange(IPV4_UNICAST, before, after, (wire(PREFIX),))
        agent.kernel.best_paths("main", [change])
        for _ in range(3):
            turn()
            agent.writer.step()
        assert at < len(prefixes)
        assert (PREFIX in agent.routes) is bool(after)
    assert len(agent.routes) < at
    agent.settle()
    assert len(agent.routes) == at + 2


def test_a_route_that_the_kernel_rejects_delays_no_other_route() -> None:
    agent = Agent().start()
    prefixes = many(3 * SLICE_PARTS)
    agent.writer.unusable = {(MAIN, wire(prefixes[0]))}
    agent.table(ONE, *prefixes)
    assert len(agent.routes) == len(prefixes) - 1
    assert agent.errors
    agent.change(ONE, PREFIX)
    agent.change(TWO, prefixes[-1], before=ONE)
    assert agent.routes[PREFIX] == hops("10.88.0.1")
    assert agent.routes[prefixes[-1]] == hops("10.88.0.2")
    assert agent.errors
    agent.writer.unusable.clear()
    agent.now += 60
    agent.settle()
    assert len(agent.routes) == len(prefixes) + 1
    assert not agent.errors


def test_batches_follow_the_time_that_the_kernel_takes() -> None:
    agent = Agent().start()
    agent.writer.seconds_per_route = 0.00002
    agent.table(ONE, *many(5 * MAX_ROUTES))
    sizes = [
        len(split(routes.prefixes))
        for batch in agent.writer.batches[-8:-2]
        for _, tables in batch.routes
        for routes in tables
    ]
    assert max(sizes) <= MIN_ROUTES


def test_of_a_prefix_that_changes_faster_than_it_is_written_the_last_state_is_sent() -> None:
    agent = Agent().start().table(BOTH, *many(3 * MAX_ROUTES))
    agent.writer.batches.clear()
    for after in (ONE, TWO, ONE, TWO) * 5:
        prefixes = tuple(map(wire, many(3 * MAX_ROUTES)))
        agent.kernel.best_paths("main", [BestPathChange(IPV4_UNICAST, BOTH, after, prefixes)])
        agent.round()
    agent.settle()
    assert set(agent.routes.values()) == {hops("10.88.0.2")}
    assert len(agent.writer.batches) <= 12


def test_an_instance_that_is_removed_takes_its_routes_with_it() -> None:
    agent = Agent().start().table(ONE, PREFIX)
    agent.kernel.best_paths("main", [InstanceRemoved()])
    assert not agent.settle().routes


def test_an_instance_of_a_dialect_that_does_not_install_has_none() -> None:
    agent = Agent().instances(Instance("other", None, 1, "10.88.0.11", dialect="x")).start()
    agent.table(ONE, PREFIX, instance="other")
    assert not agent.routes


def test_of_two_instances_with_a_prefix_in_one_table_the_first_one_has_it() -> None:
    agent = Agent().instances(Instance("also", None, 1, "10.88.0.11", dialect="frr")).start()
    agent.table(TWO, PREFIX, instance="main").table(ONE, PREFIX, instance="also")
    assert agent.routes == {PREFIX: hops("10.88.0.1")}
    agent.change(NO_PATHS, PREFIX, before=ONE, instance="also")
    assert agent.routes == {PREFIX: hops("10.88.0.2")}


def test_a_default_route_follows_the_import_rules() -> None:
    agent = Agent().start().table(ONE, "0.0.0.0/0")
    assert not agent.routes
    rules = (PrefixRule("0.0.0.0/0"),)
    with agent.db.write(agent.intent.peers) as txn:
        row = Peer("main", "10.88.0.1", "10.88.0.1", None, 64701, accept=rules)
        agent.intent.peers.upsert(txn, row)
    assert agent.settle().routes == {"0.0.0.0/0": hops("10.88.0.1")}
