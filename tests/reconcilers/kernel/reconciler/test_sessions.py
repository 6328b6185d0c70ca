"""No route uses a peer whose session has ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet

import pytest

from reconcilers.kernel.forwarding import Forwarding, ForwardingClass, ForwardingKey
from reconcilers.kernel.state_rows import next_hop_rows
from reconcilers.kernel.unsettled_moves import SETTLED
from reconcilers.kernel.wanted_tables import LOOKED_AT
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
    resolve = rules._resolved

    def counted(key: ForwardingKey) -> Forwarding:
        resolved.append(key)
        return resolve(key)

    rules._resolved = counted  # type: ignore[method-assign]
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
        assert len(next_hop_rows(agent.kernel.wanted_tables)) == 1
    assert len(agent.routes) == 200


def test_many_classes_are_resolved_in_turns_and_their_routes_move_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reconcilers.kernel.forwarding.RESOLVED", 10)
    agent = Agent().start()
    sets = [paths(path("10.88.0.1"), internal(f"10.88.0.{n}", peer="other")) for n in range(20, 45)]
    for one, prefix in zip(sets, many(25), strict=True):
        agent.change(one, prefix)
    before, tracked = agent.routes, set(agent.writer.tracked.addresses)
    agent.writer.batches.clear()
    agent.kernel.session_lost("main", "10.88.0.1")
    assert not agent.writer.sent, "two of three slices are left"
    # Another event meanwhile: all is resolved again, and the writer follows the next hops as before.
    agent.kernel.host_changed(NUMBERED)
    assert all(
        tracked <= set(message.addresses)
        for message in agent.writer.sent
        if isinstance(message, Track)
    )
    agent.settle()
    (batch,) = agent.writer.batches
    assert len(batch.moves) == 25
    assert agent.routes == {
        prefix: hops(f"10.88.0.{n}") for prefix, n in zip(many(25), range(20, 45), strict=True)
    }
    agent.kernel.session_restored("main", "10.88.0.1")
    assert agent.settle().routes == before
    assert set(agent.writer.tracked.addresses) == tracked


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
