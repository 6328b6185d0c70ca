"""Foreign routes that resolve BGP next hops.

Of a table with a million routes only those are kept that cover a tracked address. Notifications keep
them current; a table is read when other addresses are tracked, and when a notification leaves open what
remains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from reconcilers.kernel.writer import listings, route_messages
from reconcilers.kernel.writer.monitor import RouteEvent
from reconcilers.kernel.writer.netlink import Kernel
from reconcilers.kernel.writer.protocol_messages import (
    BLACKHOLE,
    IPV4,
    IPV6,
    KernelRoute,
    NextHopSet,
    Resolution,
    TrackedAddress,
)
from reconcilers.kernel.writer.route_messages import RouteMessage

IsOurs: TypeAlias = Callable[[RouteMessage, NextHopSet], bool]
_Table: TypeAlias = tuple[int, int]
"""Table and family."""


class ForeignRoutes:
    """Routes of other programs, and of the kernel itself, that cover a tracked address."""

    def __init__(self, kernel: Kernel, is_ours: IsOurs) -> None:
        self._kernel = kernel
        self._is_ours = is_ours
        self._tracked: dict[_Table, tuple[TrackedAddress, ...]] = {}
        self._covers: dict[_Table, frozenset[bytes]] = {}
        """Every prefix that could cover a tracked address."""
        self._candidates: dict[_Table, dict[bytes, dict[int, KernelRoute]]] = {}
        """Prefix -> metric -> route."""
        self._resolved: dict[TrackedAddress, KernelRoute | None] = {}
        self._stale: set[_Table] = set()
        """Tables that have to be read again."""
        self._changed = False
        """Whether resolutions may have changed since the last call of `resolutions`."""

    def track(self, addresses: Iterable[TrackedAddress]) -> None:
        """Resolve these addresses by foreign routes, in place of the addresses before."""
        self._changed = True
        tracked: dict[_Table, list[TrackedAddress]] = {}
        for each in addresses:
            family = IPV4 if len(each.address) == 4 else IPV6
            tracked.setdefault((each.table, family), []).append(each)
        before, self._tracked = self._tracked, {t: tuple(a) for t, a in tracked.items()}
        for table, wanted in self._tracked.items():
            if set(wanted) != set(before.get(table, ())):
                self._covers[table] = frozenset(_covering(each.address for each in wanted))
                self._stale.add(table)
        for table in before.keys() - self._tracked.keys():
            del self._covers[table]
            self._candidates.pop(table, None)
        kept = {each for wanted in self._tracked.values() for each in wanted}
        self._resolved = {each: route for each, route in self._resolved.items() if each in kept}

    def read_again(self) -> None:
        """Read the foreign routes of every table again: notifications were lost."""
        self._stale |= self._tracked.keys()

    def link_lost(self, index: int) -> None:
        """Drop the foreign IPv4 routes over a link that is down: the kernel sends no message."""
        self._changed = True
        for (_, family), prefixes in self._candidates.items():
            if family != IPV4:
                continue
            for routes in prefixes.values():
                for metric, route in list(routes.items()):
                    left = tuple(h for h in route.next_hops if h.interface != index)
                    if not left and route.next_hops != BLACKHOLE:
                        del routes[metric]
                    elif left != route.next_hops:
                        routes[metric] = route._replace(next_hops=left)

    def event(self, event: RouteEvent) -> None:
        """Take the kernel's notification of a foreign route."""
        route = event.route
        table = (route.table.table, route.table.family)
        if table in self._stale or route.prefix not in self._covers.get(table, ()):
            return
        next_hops = route_messages.next_hops(event.octets, route)
        if self._is_ours(route, next_hops):
            return
        self._changed = True
        if event.added:
            routes = self._candidates.setdefault(table, {}).setdefault(route.prefix, {})
            routes[route.table.metric] = _kernel_route(route, route.prefix, next_hops)
        else:
            # Another route of the same metric may remain.
            self._stale.add(table)

    def refresh(self) -> None:
        """Read the tables of foreign routes that have to be read. Raises `OSError`."""
        while self._stale:
            self._changed = True
            table, family = key = next(iter(self._stale))
            covers = self._covers.get(key, frozenset())
            candidates: dict[bytes, dict[int, KernelRoute]] = {}
            for group in listings.routes(self._kernel, family, table):
                route = group.route
                if self._is_ours(route, group.next_hops):
                    continue
                for prefix in covers.intersection(group.prefixes):
                    kept = _kernel_route(route, prefix, group.next_hops)
                    candidates.setdefault(prefix, {})[route.table.metric] = kept
            if key in self._tracked:
                self._candidates[key] = candidates
            self._stale.discard(key)

    def resolutions(self) -> tuple[Resolution, ...]:
        """Return the tracked addresses that other foreign routes resolve since the last call."""
        if not self._changed:
            return ()
        self._changed = False
        changed = []
        for table, addresses in self._tracked.items():
            candidates = self._candidates.get(table, {})
            for address in addresses:
                route = _best(address.address, candidates)
                if address not in self._resolved or self._resolved[address] != route:
                    self._resolved[address] = route
                    changed.append(Resolution(address, route))
        return tuple(changed)


def _kernel_route(route: RouteMessage, prefix: bytes, next_hops: NextHopSet) -> KernelRoute:
    return KernelRoute(route.table, prefix, route.protocol, next_hops)


def _prefixes_of(address: bytes) -> Iterator[bytes]:
    """Yield the prefixes that cover an address, the longest first."""
    bits = 8 * len(address)
    whole = int.from_bytes(address, "big")
    for length in range(bits, -1, -1):
        masked = whole >> (bits - length) << (bits - length)
        used = (length + 7) >> 3
        yield bytes((length,)) + masked.to_bytes(len(address), "big")[:used]


def _covering(addresses: Iterable[bytes]) -> Iterator[bytes]:
    return (prefix for address in addresses for prefix in _prefixes_of(address))


def _best(address: bytes, candidates: dict[bytes, dict[int, KernelRoute]]) -> KernelRoute | None:
    for prefix in _prefixes_of(address):
        routes = candidates.get(prefix)
        if routes:
            return routes[min(routes)]
    return None
