"""Interfaces, addresses and default routes of one host, and the addresses that BGP uses. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Final

import msgspec


class Device(msgspec.Struct, frozen=True, order=True):
    """One network interface."""

    name: str
    admin_up: bool = True
    """IFF_UP."""
    oper_state: str = "up"
    """IF_OPER_* of the kernel in lower case: up, unknown (interfaces without a carrier), down ..."""
    addresses: tuple[str, ...] = ()
    """Canonical text, without prefix length and zone."""
    mac: str = ""
    """The link-layer address in lower case, as 02:00:5e:10:00:01; empty if it has none."""
    vrf: str = ""
    """The VRF device that it belongs to; empty for the default VRF."""
    networks: tuple[str, ...] = ()
    """The networks of its addresses, as 10.88.0.0/24, where their lengths are known."""
    index: int = 0
    """The number by which the kernel knows it; 0 where that is not known."""

    @property
    def usable(self) -> bool:
        """True if the addresses of the host's interface are reachable."""
        return self.admin_up and self.oper_state in ("up", "unknown")


class DefaultRoute(msgspec.Struct, frozen=True, order=True):
    """One default route through a gateway."""

    metric: int
    gateway: str
    device: str


class Gateway(msgspec.Struct, frozen=True, order=True):
    """A gateway of a default route, of any routing table; the row of the table ``gateways``."""

    address: str


BGP_PROTOCOL: Final = 186
"""RTPROT_BGP of linux/rtnetlink.h."""


class KernelTable(msgspec.Struct, frozen=True):
    """Routes of a routing table that one program installs, or all programs."""

    table: int
    protocol: int | None = None
    """The protocol number (RTPROT_* of linux/rtnetlink.h); None is any."""

    def has(self, route: KernelRoute) -> bool:
        """True if a route of the host's network is one of the table's."""
        return route.table == self.table and self.protocol in (None, route.protocol)

    def __str__(self) -> str:
        """Return it for people."""
        protocol = "" if self.protocol is None else f", protocol {self.protocol}"
        return f"table {self.table}{protocol}"


class KernelRoute(msgspec.Struct, frozen=True, order=True):
    """A route that another program has installed; the row of the table ``kernel-routes``."""

    prefix: str
    """In canonical form."""
    table: int
    protocol: int

    @property
    def key(self) -> tuple[int, int, str]:
        """The key of a row of the host's network: routes with other metric or TOS are one row."""
        return (self.table, self.protocol, self.prefix)


class Vrf(msgspec.Struct, frozen=True, order=True):
    """One VRF device, and the number of its routing table."""

    name: str
    table: int


class Host(msgspec.Struct, frozen=True):
    """The network of one host; the row of the table ``host``."""

    devices: tuple[Device, ...] = ()
    default_routes: tuple[DefaultRoute, ...] = ()
    vrfs: tuple[Vrf, ...] | None = None
    """None where they are not known."""
    routes: tuple[KernelRoute, ...] = ()
    """Routes of other programs that objects redistribute (`KernelTable`)."""

    @property
    def key(self) -> tuple[str, str]:
        """The constant key of the host's network: there is one host."""
        return ("", "host")

    def device(self, name: str) -> Device | None:
        """Return an interface of the host's network by name, or None."""
        return next((device for device in self.devices if device.name == name), None)


def advertisable(device: Device) -> Iterator[str]:
    """Yield the addresses of an interface of the host's network that may be advertised, each once.

    Loopback, multicast, unspecified, IPv6 link-local and IPv4-mapped addresses are excluded, IPv4
    link-local ones are not.
    """
    if not device.usable:
        return
    for text in dict.fromkeys(device.addresses):
        address = ipaddress.ip_address(text)
        if address.is_loopback or address.is_multicast or address.is_unspecified:
            continue
        if isinstance(address, ipaddress.IPv6Address) and (
            address.is_link_local or address.ipv4_mapped is not None
        ):
            continue
        yield text


def source_address(host: Host, interface: str, version: int) -> str:
    """Return the only source address of an interface of the host's network, of an IP version.

    Raises `ValueError` with the reason if there is none, or several.
    """
    device = host.device(interface)
    if device is None:
        raise ValueError(f"there is no interface {interface}")
    addresses = dict.fromkeys(device.addresses)
    usable = [text for text in addresses if _is_source(ipaddress.ip_address(text), version)]
    if not usable:
        raise ValueError(f"interface {interface} has no usable IPv{version} address")
    if len(usable) > 1:
        raise ValueError(
            f"interface {interface} has {len(usable)} usable IPv{version} addresses, one is needed"
        )
    return usable[0]


def _is_source(address: ipaddress.IPv4Address | ipaddress.IPv6Address, version: int) -> bool:
    return (
        address.version == version
        and not address.is_loopback
        and not address.is_multicast
        and not address.is_unspecified
        and not (
            isinstance(address, ipaddress.IPv6Address)
            and (address.is_link_local or address.ipv4_mapped is not None)
        )
    )


def default_gateway(host: Host, version: int) -> str:
    """Return the gateway of the host network's default route with the lowest metric.

    Its interface has to be up, and the gateway not link-local. Raises `ValueError` with the reason if
    there is none.
    """
    interfaces_up = {d.name for d in host.devices if d.admin_up and d.oper_state == "up"}
    routes_down = []
    for route in sorted(host.default_routes):
        address = ipaddress.ip_address(route.gateway)
        if address.version != version or address.is_unspecified or address.is_link_local:
            continue
        if route.device in interfaces_up:
            return route.gateway
        routes_down.append(route)
    if routes_down:
        device = routes_down[0].device
        raise ValueError(f"the interface of the IPv{version} default route, {device}, is not up")
    raise ValueError(f"there is no IPv{version} default route by a gateway")
