"""No route uses a peer whose session has ended."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from reconcilers.kernel.writer.protocol_messages import Move
from speaker.api import NO_PATHS, BestPathChange, PathSet, SelectionEnd, TableBegin, TableEnd
from speaker.nlri import IPV4_UNICAST, Family
from tests.reconcilers.kernel.reconciler.reconciler_in_memory import (
    BOTH,
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

    def looked(family: Family, some: AbstractSet[PathSet]) -> list[bytes]:
        sent.append(len(agent.writer.sent))
        return having(family, some)

    routes.having = looked  # type: ignore[method-assign]
    agent.kernel.session_lost("main", "10.88.0.2")
    assert sent == [1]
