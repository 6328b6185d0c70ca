"""The host's own routes, per VRF: what the next hops of received routes are resolved by. Pure.

Routes that Waggle installed are none of them, so that no route leads to itself. `HostRouting` knows
the facts of a `Host`: the networks of interfaces and the default routes. A running agent has the
kernel look gateways up.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, Protocol, final

from reconcilers.kernel.options import MAIN_TABLE
from resources.host import Device, Host
from speaker.iana import Afi
from speaker.nlri import Family, covering_prefixes, prefix_to_wire

ASSUMED_LENGTHS: Final = {4: 24, 6: 64}
"""Of the networks of addresses, by IP version, where a manifest has no length."""
DEFAULT_VRF: Final = ""
"""The name of the default VRF."""
_ADDRESS_BITS: Final = {4: 32, 16: 128}
_DEFAULT_ROUTES: Final = {4: "0.0.0.0/0", 16: "::/0"}


class Hop(NamedTuple):
    """A next hop that the kernel reaches directly: a gateway, and its interface."""

    gateway: bytes
    """4 or 16 octets; IPv6 for an IPv4 route as well (RFC 8950). Of a network: empty."""
    device: str
    """Empty where the kernel finds it by itself."""


class HostRoute(NamedTuple):
    """A route of the host's own."""

    prefix: str
    hops: tuple[Hop, ...]
    """Without a gateway: a network of that interface. None at all: packets are discarded."""
    metric: int = 0


class Routing(Protocol):
    """The input of the resolution of next hops. The VRF is its name; empty is the default one."""

    def begin(self) -> None:
        """Begin to resolve all next hops again: what was looked up before is followed until `end`."""

    def end(self) -> None:
        """End the resolution of all next hops: what was looked up since `begin` is followed."""

    def table_of(self, vrf: str) -> int | None:
        """Return the host's routing table for the routes of a VRF.

        None if the host has no VRF of this name, or another VRF has its table (`table_holder`).
        """

    def table_holder(self, vrf: str) -> str | None:
        """Return the VRF whose routes stand in a VRF's routing table instead; None without one."""

    def lookup(self, vrf: str, address: bytes, *, neighbor: bool = False) -> HostRoute | None:
        """Return the host's most specific own route to an address of 4 or 16 octets.

        ``neighbor``: the address is that of a peer on a link of the host. Raises `NotKnown` where the
        host's routes are not known, or not known yet.
        """

    def index_of(self, device: str) -> int | None:
        """Return the kernel's number of an interface of the host; None if unknown, 0 offline."""

    def is_own(self, vrf: str, address: bytes) -> bool:
        """True if an interface of the host in the VRF has the address."""

    def is_usable(self, device: str) -> bool:
        """True if an interface of the host exists and is up."""

    def networks(self, vrf: str, family: Family) -> Mapping[bytes, str]:
        """Return the networks of the host's interfaces by prefix, each with its interface."""


class NotKnown(Exception):  # noqa: N818  no error: facts are incomplete
    """The host's routes are not known; ``pending``: they will be."""

    def __init__(self, *, pending: bool) -> None:
        super().__init__(pending)
        self.pending = pending


@final
class _VrfRoutes:
    """The routes of one VRF."""

    def __init__(self) -> None:
        self.routes: dict[tuple[bool, bytes], HostRoute] = {}
        """By IP version (True is IPv6) and prefix in wire form."""
        self.connected: dict[bool, dict[bytes, str]] = {False: {}, True: {}}
        """By IP version, the networks of interfaces with the interface; none of assumed length."""
        self.own: set[bytes] = set()
        """The addresses of interfaces."""
        self._devices: list[tuple[bytes, str]] = []
        """The addresses of usable interfaces, each with its interface."""
        self.is_assumed = False
        """True if a network has an assumed length."""

    def add(self, route: HostRoute) -> None:
        """Add a route of the host's own in a VRF; the one with the lowest metric is used."""
        family, wire = prefix_to_wire(route.prefix)
        key = (_is_ipv6(family), wire)
        known = self.routes.get(key)
        if known is None or route.metric < known.metric:
            self.routes[key] = route

    def add_device(self, device: Device) -> None:
        """Add the addresses and networks of an interface of the host in a VRF."""
        self.own.update(map(_octets, device.addresses))
        if not device.usable:
            return
        self._devices += ((_octets(text), device.name) for text in device.addresses)
        for network, assumed in _networks(device):
            self.add(HostRoute(network, (Hop(b"", device.name),)))
            if assumed:
                self.is_assumed = True
            else:
                family, wire = prefix_to_wire(network)
                self.connected[_is_ipv6(family)].setdefault(wire, device.name)

    def likely_device(self, address: bytes) -> str | None:
        """Return the host's interface with most bits in common with an address; None without any."""
        number = int.from_bytes(address, "big")
        similar = [
            (int.from_bytes(own, "big") ^ number, device)
            for own, device in self._devices
            if len(own) == len(address)
        ]
        return min(similar)[1] if similar else None

    def lookup(self, address: bytes) -> HostRoute | None:
        """Return the host's most specific route in a VRF to an address, or None."""
        version = len(address) == 16
        for wire in covering_prefixes(bytes((_ADDRESS_BITS[len(address)],)) + address):
            route = self.routes.get((version, wire))
            if route is not None:
                return route
        return None


class HostRouting:
    """The networks and default routes of one host, and its VRFs (`Routing`)."""

    def __init__(self, host: Host | None, table: int = MAIN_TABLE) -> None:
        """``table`` is that of the routes of the default VRF. Without a host nothing is known."""
        self._table = table
        self.set_host(host)

    def set_host(self, host: Host | None) -> None:
        """Resolve next hops by other interfaces, addresses and VRFs."""
        self._host = host
        self._vrf_tables = {vrf.name: vrf.table for vrf in (host and host.vrfs) or ()}
        self._holders: dict[int, str] = {self._table: DEFAULT_VRF}
        """The VRF whose routes stand in a table: the default one, or the first one by name."""
        for name, number in sorted(self._vrf_tables.items()):
            self._holders.setdefault(number, name)
        self._vrfs: dict[str, _VrfRoutes] = {}
        for device in () if host is None else host.devices:
            vrf = device.name if device.name in self._vrf_tables else device.vrf
            self._vrfs.setdefault(vrf, _VrfRoutes()).add_device(device)
        for default in () if host is None else host.default_routes:
            if self.is_usable(default.device):
                gateway = _octets(default.gateway)
                hops = (Hop(gateway, default.device),)
                route = HostRoute(_DEFAULT_ROUTES[len(gateway)], hops, default.metric)
                self._vrfs.setdefault(DEFAULT_VRF, _VrfRoutes()).add(route)

    def begin(self) -> None:
        """See `Routing`. What is looked up is not followed."""

    def end(self) -> None:
        """See `Routing`."""

    def table_of(self, vrf: str) -> int | None:
        """Return the host's routing table for the routes of a VRF; None without one of its own."""
        number = self._table if vrf == DEFAULT_VRF else self._vrf_tables.get(vrf)
        return None if number is None or self._holders[number] != vrf else number

    def table_holder(self, vrf: str) -> str | None:
        """Return the VRF of the host whose routes stand in a VRF's routing table instead."""
        number = self._vrf_tables.get(vrf)
        holder = vrf if number is None else self._holders[number]
        return None if holder == vrf else holder

    def lookup(self, vrf: str, address: bytes, *, neighbor: bool = False) -> HostRoute | None:
        """Return the most specific route to an address in the routing of this host.

        Where the length of a network is assumed, a neighbour may be on a larger network.
        """
        known = self._vrfs.get(vrf)
        if known is None or not known.routes:
            raise NotKnown(pending=False)
        route = known.lookup(address)
        is_connected = route is not None and not all(hop.gateway for hop in route.hops)
        if neighbor and known.is_assumed and not is_connected:
            device = known.likely_device(address)
            if device is not None:
                bits = _ADDRESS_BITS[len(address)]
                return HostRoute(f"{ipaddress.ip_address(address)}/{bits}", (Hop(b"", device),))
        return route

    def lookup_table_of(self, vrf: str) -> int | None:
        """Return the routing table that leads to the next hops of a VRF; None if unknown."""
        return MAIN_TABLE if vrf == DEFAULT_VRF else self._vrf_tables.get(vrf)

    def index_of(self, device: str) -> int | None:
        """Return 0: an interface of this host's routing has no number, offline."""
        del device
        return 0

    def is_own(self, vrf: str, address: bytes) -> bool:
        """True if an interface of this host in the VRF has the address."""
        known = self._vrfs.get(vrf)
        return known is not None and address in known.own

    def is_usable(self, device: str) -> bool:
        """True if an interface of this host exists and is up; every one of an unknown host."""
        known = None if self._host is None else self._host.device(device)
        return self._host is None or (known is not None and known.usable)

    def networks(self, vrf: str, family: Family) -> Mapping[bytes, str]:
        """Return the networks of this host's interfaces, except for networks of assumed length."""
        known = self._vrfs.get(vrf)
        return {} if known is None else known.connected[_is_ipv6(family)]


def _is_ipv6(family: Family) -> bool:
    return family.afi == Afi.IPV6


def _octets(text: str) -> bytes:
    return ipaddress.ip_address(text).packed


def _networks(device: Device) -> Iterator[tuple[str, bool]]:
    """Yield the networks of an interface, and whether their length is assumed."""
    known = [ipaddress.ip_network(text) for text in device.networks]
    for network in known:
        if not network.is_link_local:
            yield str(network), False
    for text in device.addresses:
        address = ipaddress.ip_address(text)
        if address.is_loopback or address.is_multicast or address.is_unspecified:
            continue
        if address.version == 6 and (address.is_link_local or address.ipv4_mapped is not None):
            continue
        if not any(address in network for network in known):
            length = ASSUMED_LENGTHS[address.version]
            yield str(ipaddress.ip_network((address, length), strict=False)), True
