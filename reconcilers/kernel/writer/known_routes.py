"""Our routes as the kernel has confirmed them, and the places that others occupy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from reconcilers.kernel.writer.next_hop_groups import Group
from reconcilers.kernel.writer.protocol_messages import Routes, RouteTable, SetRoutes

LISTED: Final = 20_000
"""Routes of one piece of a listing."""


class KnownRoutes:
    """A dictionary for each table, from the prefix in wire form to the group of the route."""

    def __init__(self) -> None:
        self.tables: dict[RouteTable, dict[bytes, Group]] = {}
        self.occupied: dict[RouteTable, set[bytes]] = {}
        """Prefixes that we were to install where a foreign route is."""
        self.foreign: dict[RouteTable, set[bytes]] = {}
        """Prefixes of foreign routes with our keys: what the kernel says exists need not be read."""

    def families(self) -> list[tuple[int, int]]:
        """Return table and family of our known routes, and of routes that wait for a place."""
        return sorted({(k.table, k.family) for k in (*self.tables, *self.occupied)})

    def pieces(self, table: RouteTable | None) -> Iterator[tuple[SetRoutes, ...]]:
        """Yield our known routes, of all tables or one, in pieces."""
        piece: list[SetRoutes] = []
        size = 0
        for key, known in self.tables.items():
            if table not in (None, key):
                continue
            by_group: dict[Group, list[bytes]] = {}
            for prefix, group in known.items():
                by_group.setdefault(group, []).append(prefix)
            for group, prefixes in by_group.items():
                for at in range(0, len(prefixes), LISTED):
                    some = prefixes[at : at + LISTED]
                    piece.append(SetRoutes(group.next_hops, (Routes(key, b"".join(some)),)))
                    size += len(some)
                    if size >= LISTED:
                        yield tuple(piece)
                        piece, size = [], 0
        if piece:
            yield tuple(piece)

    def of_groups(self, groups: set[Group]) -> dict[RouteTable, list[bytes]]:
        """Return the known routes of some groups of next hops."""
        of_groups = {
            table: [prefix for prefix, group in known.items() if group in groups]
            for table, known in self.tables.items()
        }
        return {table: prefixes for table, prefixes in of_groups.items() if prefixes}

    def confirm(self, table: RouteTable, prefixes: Collection[bytes], group: Group) -> None:
        """Note that the kernel is known to have these routes, and of which group."""
        known = self.tables.setdefault(table, {})
        for elsewhere in (self.occupied.get(table), self.foreign.get(table)):
            if elsewhere:
                elsewhere.difference_update(prefixes)
        if not known.keys().isdisjoint(prefixes):
            for before in map(known.get, set(prefixes)):
                if before is not None:
                    before.routes -= 1
        added = dict.fromkeys(prefixes, group)
        known.update(added)
        group.routes += len(added)

    def forget(self, table: RouteTable, prefixes: Iterable[bytes]) -> None:
        """Note that the kernel is known not to have these routes."""
        known = self.tables.get(table, {})
        for prefix in prefixes:
            group = known.pop(prefix, None)
            if group is not None:
                group.routes -= 1
        if not known:
            self.tables.pop(table, None)
