"""Changes of routes as the batches that the writer takes: prefixes by their next hops. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias, final

from reconcilers.kernel.writer.protocol_messages import (
    MAX_ROUTES,
    Batch,
    NextHopSet,
    Routes,
    RouteTable,
    SetRoutes,
)
from speaker.nlri import ENCODED_SIZE

RouteChanges: TypeAlias = dict[RouteTable, dict[bytes, NextHopSet | None]]
"""Prefixes with their next hops; None removes a route."""

BATCH_SECONDS: Final = 0.005
"""Of the writer's time for a batch: with two of them on their way a change waits for no more than both,
and the writer never waits."""
MIN_ROUTES: Final = 500
"""Routes of a batch, however slow the kernel is: one datagram for it."""


@final
class BatchSize:
    """The number of routes that the writer takes in `BATCH_SECONDS`, by the last batches."""

    def __init__(self) -> None:
        self.routes = MAX_ROUTES // 2

    def confirmed(self, routes: int, seconds: float) -> None:
        """Take the time of a confirmed batch for the size of the next. Small batches have no effect."""
        if routes >= MIN_ROUTES:
            possible = routes * BATCH_SECONDS / max(seconds, BATCH_SECONDS / 4)
            mean = (3 * self.routes + possible) / 4
            self.routes = int(min(max(mean, MIN_ROUTES), MAX_ROUTES))


def batch_of(changes: Mapping[RouteTable, Mapping[bytes, NextHopSet | None]]) -> Batch:
    """Return changes of routes as a batch, without a number; None removes a route."""
    removed, routes = [], []
    for table, part in changes.items():
        for hops, prefixes in _by_set(part).items():
            octets = Routes(table, b"".join(prefixes))
            if hops is None:
                removed.append(octets)
            else:
                routes.append(SetRoutes(hops, (octets,)))
    return Batch(0, removed=tuple(removed), routes=tuple(routes))


def moved_routes(
    routes: Mapping[bytes, NextHopSet | None], moves: Mapping[NextHopSet, NextHopSet | None]
) -> list[tuple[bytes, NextHopSet | None]]:
    """Return the routes of a batch whose next hops are replaced, with the new; None: removed."""
    moved: list[tuple[bytes, NextHopSet | None]] = []
    last: NextHopSet | None = None
    is_moved, new = False, None
    for nlri, hops in routes.items():
        if hops is None:
            continue
        if hops is not last:
            last, is_moved, new = hops, hops in moves, moves.get(hops)
        if is_moved:
            moved.append((nlri, new))
    return moved


def _by_set(part: Mapping[bytes, NextHopSet | None]) -> dict[NextHopSet | None, list[bytes]]:
    """Group prefixes by their next hops."""
    if len(set(map(id, part.values()))) == 1:
        return {next(iter(part.values())): list(part)}
    by_set: dict[NextHopSet | None, list[bytes]] = {}
    last: object = by_set
    prefixes: list[bytes] = []
    for nlri, hops in part.items():
        if hops is not last:
            # Hashing a set takes longer than all else, and neighbours have the same, mostly.
            last, prefixes = hops, by_set.setdefault(hops, [])
        prefixes.append(nlri)
    return by_set


def split(octets: bytes) -> list[bytes]:
    """Return the prefixes of a batch from their concatenated wire forms."""
    parts, at, end = [], 0, len(octets)
    while at < end:
        next_ = at + ENCODED_SIZE[octets[at]]
        parts.append(octets[at:next_])
        at = next_
    return parts
