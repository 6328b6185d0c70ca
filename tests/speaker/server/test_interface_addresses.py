"""The address of a connection's interface that is of the other IP version."""

from __future__ import annotations

import socket
import struct

import pytest

from speaker.server.interface_addresses import other_version, read_ipv4, read_ipv6

WIDE = struct.calcsize("P") == 8


def ifreq(name: str, address: str) -> bytes:
    """Return an entry of SIOCGIFCONF's answer (netdevice(7))."""
    octets = name.encode().ljust(16, b"\x00")
    octets += struct.pack("=HH4s8x", socket.AF_INET, 0, socket.inet_aton(address))
    return octets.ljust(40 if WIDE else 32, b"\x00")


def line(address: str, name: str, *, scope: int = 0, flags: int = 0x80) -> str:
    """Return a line of /proc/net/if_inet6."""
    packed = socket.inet_pton(socket.AF_INET6, address).hex()
    return f"{packed} 02 40 {scope:02x} {flags:02x} {name:>8}\n"


IPV4 = (
    *(ifreq("lo", "127.0.0.1"), ifreq("lo", "203.0.113.1")),
    *(ifreq("eth0", "192.0.2.7"), ifreq("eth0", "192.0.2.3"), ifreq("eth0:1", "192.0.2.8")),
    *(ifreq("eth1:web", "198.51.100.9"), ifreq("eth1", "198.51.100.4")),
)
IPV6 = (
    *(line("::1", "lo", scope=0x10), line("fd00:a::1", "lo")),
    *(line("fe80::2", "eth0", scope=0x20), line("fd00:b::9", "eth0"), line("fd00:b::5", "eth0")),
    *(line("fd00:b::2", "eth0", flags=0), line("fd00:b::1", "eth0", flags=0x01)),
    *(line("fd00:c::4", "eth01"), line("fd00:d::1", "eth1", flags=0xC0), line("fd00:d::7", "eth2")),
)


def other(local: str) -> str | None:
    return other_version(local, lambda: b"".join(IPV4), lambda: "".join(IPV6))


@pytest.mark.parametrize(
    ("local", "expected"),
    [
        # Of IPv4 the first address of the interface, whatever label it has; no loopback address.
        ("fd00:b::5", "192.0.2.7"),
        ("fe80::2%eth0", "192.0.2.7"),
        ("fd00:a::1", "203.0.113.1"),
        ("fe80::2%eth1", "198.51.100.9"),
        # Of IPv6 the lowest static one: /proc has no order; no temporary, link-local or tentative one.
        ("192.0.2.8", "fd00:b::5"),
        ("203.0.113.1", "fd00:a::1"),
        ("198.51.100.4", None),
        # An interface without one, and an address of none.
        ("fd00:d::7", None),
        ("fd00:c::4", None),
        ("203.0.113.99", None),
        ("fd00::99", None),
        ("", None),
    ],
)
def test_it_is_of_the_interface_with_the_local_address(local: str, expected: str | None) -> None:
    assert other(local) == expected


def test_a_kernel_that_cannot_be_read_has_none() -> None:
    def failing() -> bytes:
        raise PermissionError

    assert other_version("192.0.2.7", failing, lambda: "".join(IPV6)) is None


def test_this_hosts_addresses_are_read() -> None:
    assert ifreq("lo", "127.0.0.1")[:24] in read_ipv4()
    assert other_version("127.0.0.1", ipv6=lambda: line("fd00::5", "lo")) == "fd00::5"
    assert isinstance(read_ipv6(), str)
