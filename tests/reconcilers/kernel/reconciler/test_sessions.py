"""No route uses a peer whose session has ended."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet

import pytest

from reconcilers.kernel.forwarding import Forwarding, ForwardingClass, ForwardingKey
from reconcilers.kernel.routes_of_classes import LOOKED_AT
from reconcilers.kernel.state_rows import next_hop_rows
from reconcilers.kernel.unsettled_moves import SETTLED
from reconcilers.kernel.writer.protocol_messages import Batch, Move, Track
from speaker.api import NO_PATHS, BestPathChange, SelectionEnd, TableBegin, TableEnd
from speaker.nlri import IPV4_UNICAST, Family
from tests.reconcilers.kernel.build import internal, path, paths
from tests.reconcilers.kernel.reconciler.reconciler_in_memory import (
    BOTH,
    KEY,
    MAIN,
    NUMBERED,
    ONE,
    PREFIX,
    TWO,
    Agent,
    hops,
    many,
    wire,
)


def test_a_peer_that_is_lost_is_one_message_before_its_routes_are_withdrawn() -> None:
    agent = Agent().start().table(BOTH, *many(100))
    agent.writer.batches.clear()
    agent.kernel.session_lost("main", "10.88.0.1")
    agent.settle()
    assert set(agent.routes.values()) == {hops("10.88.0.2")}
    agent.change(TWO, *many(100), before=BOTH)
    (batch,) = agent.writer.batches
    assert batch.moves == (Move(hops("10.88.0.1", "10.88.0.2"), hops("10.88.0.2")),)


def test_the_last_peer_takes_all_its_routes_with_it() -> None:
    agent = Agent().start().table(ONE, *many(100))
    agent.kernel.session_lost("main", "10.88.0.1")
    assert not agent.settle().routes
    agent.change(NO_PATHS, *many(100), before=ONE)
    assert [batch.removed for batch in agent.writer.batches[1:]] == [()]


def test_a_peer_that_comes_back_is_used_again() -> None:
    agent = Agent().start().table(BOTH, PREFIX)
    agent.kernel.session_lost("main", "10.88.0.1")
    agent.settle()
    agent.kernel.session_restored("main", "10.88.0.1")
    assert agent.settle().routes == {PREFIX: hops("10.88.0.1", "10.88.0.2")}


def test_a_table_that_is_announced_again_loses_what_is_not_in_it() -> None:
    agent = Agent().start().table(ONE, PREFIX, "198.51.100.0/24")
    change = BestPathChange(IPV4_UNICAST, NO_PATHS, ONE, (wire(PREFIX),))
    agent.kernel.best_paths("main", [TableBegin(), change, TableEnd()])
    assert len(agent.settle().routes) == 2
    agent.kernel.best_paths("main", [SelectionEnd()])
    assert agent.settle().routes == {PREFIX: hops("10.88.0.1")}


def test_next_hops_move_before_their_routes_are_looked_for() -> None:
    agent = Agent().start().table(BOTH, *many(3))
    routes = agent.kernel.wanted_tables._instances["main"].routes
    sent: list[int] = []
    having = routes.having

    def looked(
        family: Family, some: AbstractSet[ForwardingClass], prefixes: Iterable[bytes]
    ) -> list[bytes]:
        sent.append(len(agent.writer.sent))
        return having(family, some, prefixes)

    routes.having = looked  # type: ignore[method-assign]
    agent.kernel.session_lost("main", "10.88.0.2")
    assert sent == [1]


def test_a_turn_handles_some_routes_of_a_peer_that_is_lost() -> None:
    """The kernel moves all at once; the routes that are looked at or changed meanwhile are few."""
    count = 3 * LOOKED_AT
    agent = Agent().start().table(BOTH, *many(count))
    tables = agent.kernel.wanted_tables
    routes, held = tables._instances["main"].routes, agent.kernel.installed._held[MAIN]
    looked_at: list[int] = []
    before = 0
    having = routes.having

    def looked(
        family: Family, some: AbstractSet[ForwardingClass], prefixes: Iterable[bytes]
    ) -> list[bytes]:
        found = having(family, some, prefixes)
        looked_at.append(len(found))
        return found

    routes.having = looked  # type: ignore[method-assign]

    def turn() -> int:
        """Return the routes that the last turn handled."""
        nonlocal before
        now = list(held.values()).count(hops("10.88.0.2"))
        handled, before = sum(looked_at) + now - before, now
        looked_at.clear()
        return handled

    agent.kernel.session_lost("main", "10.88.0.1")
    turns = [turn()]
    while tables.has_changed:
        turns += [turn() for _ in agent.runner.slices(lambda: 0.0)]
        turns.append(turn())
    assert max(turns) <= LOOKED_AT + SETTLED
    assert sum(turns) == 2 * count
    agent.writer.run()
    assert set(agent.routes.values()) == {hops("10.88.0.2")}
    assert sum(len(batch.routes) for batch in agent.writer.batches[-1:]) == 0


def test_a_turn_resolves_the_next_hops_of_a_lost_peer_and_not_its_path_sets() -> None:
    """The loss, the return and a change of the host take as long with one path set as with many."""
    agent = Agent().start()
    sets = [
        paths(path("10.88.0.1", communities=(n,)), path("10.88.0.2", communities=(n,)))
        for n in range(200)
    ]
    for one, prefix in zip(sets, many(200), strict=True):
        agent.kernel.best_paths(
            "main", [BestPathChange(IPV4_UNICAST, NO_PATHS, one, (wire(prefix),))]
        )
    agent.settle()
    rules = agent.kernel.wanted_tables._instances["main"].rules
    resolved: list[object] = []
    resolve = rules.resolved

    def counted(key: ForwardingKey) -> Forwarding:
        resolved.append(key)
        return resolve(key)

    rules.resolved = counted  # type: ignore[method-assign]
    turns: list[Callable[[], None]] = [
        lambda: agent.kernel.session_lost("main", "10.88.0.1"),
        lambda: agent.kernel.session_restored("main", "10.88.0.1"),
        lambda: agent.kernel.host_changed(NUMBERED),
    ]
    for turn in turns:
        turn()
        assert len(resolved) == 1
        resolved.clear()
        agent.settle()
        assert len(set(next_hop_rows(agent.kernel.wanted_tables))) == 1
    assert len(agent.routes) == 200


@pytest.fixture
def ten_classes_of_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconcilers.kernel.resolution.RESOLVED", 10)


def with_many_classes() -> Agent:
    """Return an agent with 25 routes, each by the first peer and by a next hop of its own."""
    agent = Agent().start()
    sets = [paths(path("10.88.0.1"), internal(f"10.88.0.{n}", peer="other")) for n in range(20, 45)]
    for one, prefix in zip(sets, many(25), strict=True):
        agent.change(one, prefix)
    agent.writer.batches.clear()
    return agent


WITHOUT_ONE = {
    prefix: hops(f"10.88.0.{n}") for prefix, n in zip(many(25), range(20, 45), strict=True)
}
"""The routes of `with_many_classes` after the loss of the first peer."""


@pytest.mark.usefixtures("ten_classes_of_a_slice")
def test_many_classes_are_resolved_in_turns_and_their_routes_move_at_the_end() -> None:
    agent = with_many_classes()
    before, tracked = agent.routes, set(agent.writer.tracked.addresses)
    agent.kernel.session_lost("main", "10.88.0.1")
    assert not agent.writer.sent, "two of three slices are left"
    # Another event meanwhile: all is resolved again, and the writer follows the next hops as before.
    agent.kernel.host_changed(NUMBERED)
    assert not any(isinstance(message, Track) for message in agent.writer.sent)
    agent.settle()
    assert not any(batch.routes for batch in agent.writer.batches)
    assert sum(len(batch.moves) for batch in agent.writer.batches) == 25
    assert agent.routes == WITHOUT_ONE
    agent.kernel.session_restored("main", "10.88.0.1")
    assert agent.settle().routes == before
    assert set(agent.writer.tracked.addresses) == tracked


@pytest.mark.usefixtures("ten_classes_of_a_slice")
def test_a_session_that_begins_leaves_a_pass_under_way_as_it_is() -> None:
    agent = with_many_classes()
    tracked = agent.writer.tracked
    agent.kernel.session_lost("main", "10.88.0.1")
    agent.kernel.host_changed(NUMBERED)
    agent.kernel.session_restored("main", "10.88.0.9")
    agent.kernel.session_restored("main", "10.88.0.9")
    assert agent.settle().routes == WITHOUT_ONE
    assert agent.writer.tracked == tracked


@pytest.mark.usefixtures("ten_classes_of_a_slice")
def test_a_route_that_is_written_during_a_pass_follows_an_event_that_reverts_it() -> None:
    agent = with_many_classes()
    before = agent.routes
    first = paths(path("10.88.0.1"), internal("10.88.0.20", peer="other"))
    agent.kernel.session_lost("main", "10.88.0.1")
    change = BestPathChange(IPV4_UNICAST, NO_PATHS, first, (wire(PREFIX),))
    agent.kernel.best_paths("main", [change], [change])
    agent.writer.run()
    agent.kernel.session_restored("main", "10.88.0.1")
    assert agent.settle().routes == before | {PREFIX: hops("10.88.0.1", "10.88.0.20")}


@pytest.mark.usefixtures("ten_classes_of_a_slice")
def test_a_whole_comparison_has_all_routes_while_next_hops_are_resolved_again() -> None:
    agent = with_many_classes()
    pieces = agent.kernel.pieces(agent.db.snapshot(), KEY, 5)
    parts = list(next(pieces))
    agent.kernel.session_lost("main", "10.88.0.1")
    parts += [nlri for piece in pieces for nlri in piece]
    assert sorted(parts) == sorted(map(wire, many(25)))


@pytest.mark.usefixtures("ten_classes_of_a_slice")
def test_rounds_end_and_routes_move_although_each_turn_has_an_event() -> None:
    agent = with_many_classes()
    agent.kernel.session_lost("main", "10.88.0.1")
    lost = True
    for _ in range(2):
        for _ in itertools.islice(agent.runner.slices(lambda: 0.0), 20):
            lost = not lost
            event = agent.kernel.session_lost if lost else agent.kernel.session_restored
            event("main", "10.88.0.2")
        agent.writer.run()
    assert agent.routes == WITHOUT_ONE


@pytest.mark.usefixtures("ten_classes_of_a_slice")
def test_the_writer_follows_the_next_hops_of_a_pass_that_an_event_ends() -> None:
    agent = with_many_classes()
    agent.kernel.best_paths("main", [TableBegin(), SelectionEnd()])
    agent.kernel.host_changed(NUMBERED)
    assert agent.writer.sent == [Track()], "without a round"


@pytest.mark.usefixtures("ten_classes_of_a_slice")
def test_events_alone_end_a_pass_and_narrow_the_next_hops_that_the_writer_follows() -> None:
    agent = with_many_classes()
    gone = {wire(prefix) for prefix in many(5)}
    agent.kernel.best_paths("main", [BestPathChange(IPV4_UNICAST, ONE, NO_PATHS, tuple(gone))])
    followed = []
    for _ in range(4):
        agent.kernel.host_changed(NUMBERED)
        followed += [len(m.addresses) for m in agent.writer.sent if isinstance(m, Track)]
    assert followed[-1] == 21


def test_a_single_change_after_the_loss_of_a_peer_sees_its_route_moved() -> None:
    prefixes = many(2 * LOOKED_AT)
    agent = Agent().start().table(BOTH, *prefixes)
    agent.kernel.session_lost("main", "10.88.0.1")
    change = BestPathChange(IPV4_UNICAST, BOTH, TWO, (wire(prefixes[0]),))
    agent.kernel.best_paths("main", [change], [change])
    assert [len(message.routes) for message in agent.writer.sent if isinstance(message, Batch)] == [
        0
    ], "it is moved, and not written"
    assert set(agent.settle().routes.values()) == {hops("10.88.0.2")}


def test_a_verification_leaves_out_the_routes_of_a_lost_peer_until_they_are_looked_at() -> None:
    agent = Agent().start().table(BOTH, *many(2 * LOOKED_AT)).change(TWO, PREFIX)
    agent.kernel.session_lost("main", "10.88.0.1")
    pieces = agent.kernel.pieces(agent.db.snapshot(), KEY, 100)
    assert [nlri for piece in pieces for nlri in piece] == [wire(PREFIX)]
    agent.settle()
    pieces = agent.kernel.pieces(agent.db.snapshot(), KEY, 100)
    assert sum(map(len, pieces)) == 2 * LOOKED_AT + 1


def test_a_route_whose_new_next_hop_turns_out_to_lead_nowhere_is_removed() -> None:
    """It keeps its next hops only until the writer has looked the new one up."""
    agent = Agent().start().table(ONE, PREFIX)
    agent.kernel.best_paths(
        "main", [BestPathChange(IPV4_UNICAST, ONE, paths(internal("192.0.2.1")), (wire(PREFIX),))]
    )
    agent.round()
    assert agent.routes == {PREFIX: hops("10.88.0.1")}
    assert agent.settle().routes == {}
