"""Routes follow the moves of their next hops when they are read, and in slices."""

from __future__ import annotations

from reconcilers.kernel.unsettled_moves import SETTLED, HeldRoutes, UnsettledMoves
from reconcilers.kernel.writer.protocol_messages import NextHopSet
from tests.reconcilers.kernel.reconciler.reconciler_in_memory import MAIN, RED, hops, many, wire

A, B, C = hops("10.88.0.1"), hops("10.88.0.2"), hops("10.88.0.3")
ONE, OTHER = wire("192.0.2.0/24"), wire("203.0.113.0/24")


def routes(**named: NextHopSet) -> HeldRoutes:
    return {MAIN: {ONE: named["one"], OTHER: named["other"]}}


def finish(moves: UnsettledMoves, held: HeldRoutes) -> None:
    for _ in moves.settle_all(held):
        pass
    assert not moves.tables


def test_a_route_follows_when_it_is_read_and_the_others_in_slices() -> None:
    moves, held = UnsettledMoves(), routes(one=A, other=A)
    moves.add({A: B}, held)
    moves.settle(MAIN, held, [ONE])
    assert held == routes(one=B, other=A)
    finish(moves, held)
    assert held == routes(one=B, other=B)


def test_a_route_follows_each_move_once_and_in_order() -> None:
    moves, held = UnsettledMoves(), routes(one=A, other=A)
    moves.add({A: B}, held)
    moves.settle(MAIN, held, [ONE])
    moves.add({B: C, C: A}, held)
    moves.settle(MAIN, held, [ONE, ONE])
    finish(moves, held)
    assert held == routes(one=C, other=C)


def test_routes_of_a_removed_set_go() -> None:
    moves, held = UnsettledMoves(), routes(one=A, other=B)
    moves.add({A: None}, held)
    moves.add({B: A}, held)
    finish(moves, held)
    assert held == {MAIN: {OTHER: A}}


def test_a_route_that_is_written_after_a_move_does_not_follow_it() -> None:
    moves, held = UnsettledMoves(), routes(one=A, other=B)
    moves.add({A: C}, held)
    new = wire("198.51.100.0/24")
    moves.settle(MAIN, held, [OTHER, new])
    held[MAIN].update(dict.fromkeys((OTHER, new), A))
    finish(moves, held)
    assert held == {MAIN: {ONE: C, OTHER: A, new: A}}


def test_a_table_does_not_follow_again_what_it_has_followed() -> None:
    large = dict.fromkeys(map(wire, many(SETTLED)), A)
    moves, held = UnsettledMoves(), {**routes(one=A, other=A), RED: large}
    moves.add({A: B}, held)
    slices = moves.settle_all(held)
    next(slices)
    assert (held[MAIN][ONE], next(iter(large.values()))) == (B, A)
    held[MAIN][ONE] = A
    moves.add({B: C}, held)
    finish(moves, held)
    assert held[MAIN] == {ONE: A, OTHER: C}
    assert set(large.values()) == {C}


def test_a_slice_is_a_number_of_routes() -> None:
    large = dict.fromkeys(map(wire, many(2 * SETTLED + 1)), A)
    moves, held = UnsettledMoves(), {MAIN: large}
    moves.add({A: B}, held)
    assert B not in large.values()
    followed = [list(large.values()).count(B) for _ in moves.settle_all(held)]
    assert followed == [SETTLED, 2 * SETTLED]
    assert set(large.values()) == {B}


def test_routes_that_were_listed_again_follow_nothing() -> None:
    moves, held = UnsettledMoves(), routes(one=A, other=A)
    moves.add({A: B}, held)
    moves.clear()
    finish(moves, held)
    assert held == routes(one=A, other=A)
