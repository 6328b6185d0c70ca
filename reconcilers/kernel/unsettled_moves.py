"""Moves of next hops that are not shown by each route yet: the kernel moves all routes by one message.

A table may have a hundred thousand of them, so that the routes follow as they are read or changed, and
in slices. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeAlias, final

from reconcilers.kernel.writer.protocol_messages import NextHopSet, RouteTable
from reconcilers.sliced_work import Slices

Moves: TypeAlias = Mapping[NextHopSet, NextHopSet | None]
"""New sets of next hops by the former ones; None removes the routes."""
HeldRoutes: TypeAlias = dict[RouteTable, dict[bytes, NextHopSet]]

SETTLED: Final = 5000
"""Routes of a slice that follow up to `FEW_MOVES`: about a millisecond."""
FEW_MOVES: Final = 4


class _Table:
    """The routes of one table while some have moves to follow."""

    def __init__(self, first: int) -> None:
        self.first = first
        """The number of the first move."""
        self.rest: Iterator[bytes] = iter(())
        """The prefixes that the slices still come to."""
        self.followed: dict[bytes, int] = {}
        """Prefixes with the number of moves that need not be followed any more."""


@final
class UnsettledMoves:
    """Moves in their order, and which of them each route has followed."""

    def __init__(self) -> None:
        self._moves: list[Moves] = []
        self.tables: dict[RouteTable, _Table] = {}
        """Tables with routes that have moves to follow; empty without any."""

    def add(self, moves: Moves, held: HeldRoutes) -> None:
        """Note a move of all routes, which takes no step of the interpreter for each."""
        first = len(self._moves)
        self._moves.append(moves)
        for table, routes in held.items():
            self.tables.setdefault(table, _Table(first)).rest = iter(tuple(routes))

    def settle(self, table: RouteTable, held: HeldRoutes, prefixes: Iterable[bytes]) -> None:
        """Have some routes follow their moves; to be called before they are read or changed."""
        behind = self.tables.get(table)
        if behind is None:
            return
        first, followed, routes = behind.first, behind.followed, held[table]
        last: NextHopSet | None = None
        last_number, new, end = -1, last, len(self._moves)
        for nlri in prefixes:
            number = followed.get(nlri, first)
            followed[nlri] = end
            hops = routes.get(nlri)
            if hops is None or number == end:
                continue
            if hops is not last or number != last_number:
                # Hashing a set takes longer than all else, and neighbours have the same, mostly.
                last, last_number, new = hops, number, _moved(hops, self._moves[number:])
            if new is None:
                del routes[nlri]
            elif new is not hops:
                routes[nlri] = new

    def settle_all(self, held: HeldRoutes) -> Slices[None]:
        """Have all routes follow their moves, in slices."""
        while self.tables:
            table, behind = next(iter(self.tables.items()))
            # Each route takes a step for each move.
            size = max(1, SETTLED // max(1, len(self._moves) // FEW_MOVES))
            piece = list(islice(behind.rest, size))
            self.settle(table, held, piece)
            if len(piece) < size:
                del self.tables[table]
            if self.tables:
                yield
        self._moves.clear()

    def clear(self) -> None:
        """Forget all moves: the routes were listed again."""
        self.tables.clear()
        self._moves.clear()


def _moved(hops: NextHopSet, moves: Sequence[Moves]) -> NextHopSet | None:
    """Return the next hops of a route after some moves."""
    new: NextHopSet | None = hops
    for move in moves:
        if new is None:
            break
        new = move.get(new, new)
    return new
