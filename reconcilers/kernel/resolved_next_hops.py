"""The host's own routes as the writer looks them up in the kernel (`Routing`), address by address.

The kernel has the most specific route, whatever the number of its routes: the agent reads none of them.
The writer looks up the next hops in use. Interfaces, addresses and VRFs come from
the `Host`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import final

from reconcilers.kernel.routing import Hop, HostRoute, HostRouting, NotKnown
from reconcilers.kernel.writer.protocol_messages import (
    BLACKHOLE,
    IPV4,
    KernelRoute,
    Resolution,
    TrackedAddress,
)
from resources.host import Host
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, prefix_to_text


@final
class TrackedRouting(HostRouting):
    """Next hops that the writer has resolved, and next hops to look up."""

    def __init__(self, table: int) -> None:
        """``table`` is that of the routes of the default VRF."""
        super().__init__(None, table)
        self._found: dict[TrackedAddress, KernelRoute | None] = {}
        self._wanted: set[TrackedAddress] = set()
        self._former: set[TrackedAddress] = set()
        """The next hops to resolve until all classes are resolved again."""
        self.revision = 0
        """It differs where `wanted` may: to compare tens of thousands takes longer than a change."""

    def set_host(self, host: Host | None) -> None:
        """Resolve next hops by other interfaces, with their numbers, addresses and VRFs."""
        super().set_host(host)
        devices = () if host is None else host.devices
        self._names = {device.index: device.name for device in devices}
        self._indexes = {device.name: device.index for device in devices}

    def resolved(self, resolutions: Iterable[Resolution]) -> None:
        """Take the next hops that the writer has resolved."""
        for address, route in resolutions:
            self._found[address] = route

    def keep(self, tracked: AbstractSet[TrackedAddress]) -> None:
        """Forget the next hops that the writer follows no more: what it found of them may change."""
        for address in self._found.keys() - tracked:
            del self._found[address]

    def begin(self) -> None:
        """Begin to collect the next hops to resolve; until `end` the former ones are resolved, too."""
        self._former, self._wanted = self._former | self._wanted, set()
        self.revision += 1

    def end(self) -> None:
        """Resolve no next hop any more that was not looked up since `begin`."""
        self._former = set()
        self.revision += 1

    @contextlib.contextmanager
    def collecting(self) -> Iterator[Collection[TrackedAddress]]:
        """Collect the next hops that are looked up meanwhile to resolve: not among `wanted`."""
        wanted, self._wanted = self._wanted, set()
        try:
            yield self._wanted
        finally:
            self._wanted = wanted

    @property
    def wanted(self) -> set[TrackedAddress]:
        """The next hops to resolve: addresses that were looked up since the last pass began."""
        return self._former | self._wanted

    @property
    def host_known(self) -> bool:
        """Whether the interfaces and VRFs of the host are known: without them no VRF has a table."""
        return self._host is not None

    def index_of(self, device: str) -> int | None:
        """Return the kernel's number of an interface, for a resolved next hop."""
        return self._indexes.get(device)

    def lookup(self, vrf: str, address: bytes, *, neighbor: bool = False) -> HostRoute | None:
        """Return the route by which the writer has resolved a next hop, and track it.

        The writer may know an interface that the agent has not read yet, at its start all of them: what
        leads over it is pending, so that the routes which an earlier process installed stay.
        """
        del neighbor  # the kernel knows the networks
        lookup_table = self.lookup_table_of(vrf)
        if lookup_table is None:
            if self._host is None:
                raise NotKnown(pending=True)
            return None
        tracked = TrackedAddress(lookup_table, address)
        if tracked not in self._wanted:
            self._wanted.add(tracked)
            self.revision += 1
        if tracked not in self._found:
            raise NotKnown(pending=True)
        route = self._found[tracked]
        return None if route is None else self._host_route(route)

    def _host_route(self, route: KernelRoute) -> HostRoute:
        family = IPV4_UNICAST if route.table.family == IPV4 else IPV6_UNICAST
        prefix = prefix_to_text(family, route.prefix)
        if route.next_hops == BLACKHOLE:
            return HostRoute(prefix, (), route.table.metric)
        if any(hop.interface not in self._names for hop in route.next_hops):
            raise NotKnown(pending=True)
        hops = tuple(Hop(hop.gateway, self._names[hop.interface]) for hop in route.next_hops)
        return HostRoute(prefix, hops, route.table.metric)
