"""A reading of the kernel's routes for a verification: what it has, and what we took it to have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import final

from reconcilers.kernel.writer.protocol_messages import NextHopSet, RouteTable

Held = Mapping[RouteTable, Mapping[bytes, NextHopSet]]


@final
class Reading:
    """The routes of one `Read` as they come."""

    def __init__(self, number: int, done: Callable[[], None]) -> None:
        """``done`` is called once all have come, or none will."""
        self.number = number
        self.done = done
        self.routes: dict[RouteTable, dict[bytes, NextHopSet]] = {}

    def add(self, table: RouteTable, prefixes: Iterable[bytes], hops: NextHopSet) -> None:
        """Take some routes that a reading of the kernel has found."""
        self.routes.setdefault(table, {}).update(dict.fromkeys(prefixes, hops))

    def differences(
        self, held: Held, busy: Mapping[RouteTable, AbstractSet[bytes]]
    ) -> dict[RouteTable, dict[bytes, NextHopSet | None]]:
        """Return the routes of a reading that differ from ``held``; None is no route.

        ``busy`` are prefixes that changed since.
        """
        differing: dict[RouteTable, dict[bytes, NextHopSet | None]] = {}
        for table in held.keys() | self.routes.keys():
            known, now = held.get(table, {}), self.routes.get(table, {})
            if known == now:
                continue
            others = {nlri: hops for nlri, hops in now.items() if known.get(nlri) != hops}
            gone = dict.fromkeys(known.keys() - now.keys())
            part = {
                nlri: hops
                for nlri, hops in {**others, **gone}.items()
                if nlri not in busy.get(table, ())
            }
            if part:
                differing[table] = part
        return differing
