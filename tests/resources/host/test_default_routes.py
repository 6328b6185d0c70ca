"""The gateways in the kernel's messages about default routes (linux/rtnetlink.h)."""

from __future__ import annotations

import socket
import struct

from resources.host.default_routes import gateways_of

GATEWAY, MULTIPATH, VIA, PRIORITY = 5, 9, 18, 6


def attribute(kind: int, value: bytes) -> bytes:
    octets = struct.pack("=HH", 4 + len(value), kind) + value
    return octets + bytes(-len(octets) % 4)


def message(*attributes: bytes) -> bytes:
    body = struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 3, 0, 1, 0) + b"".join(attributes)
    return struct.pack("=IHHII", 16 + len(body), 24, 2, 1, 0) + body


def next_hop(*attributes: bytes) -> bytes:
    inner = b"".join(attributes)
    return struct.pack("=HBBi", 8 + len(inner), 0, 0, 2) + inner


IPV4 = socket.inet_pton(socket.AF_INET, "192.0.2.1")
IPV6 = socket.inet_pton(socket.AF_INET6, "2001:db8::1")
OF_IPV6 = struct.pack("=H", socket.AF_INET6) + IPV6


def test_a_route_has_one_gateway() -> None:
    assert list(gateways_of(message(attribute(PRIORITY, bytes(4)), attribute(GATEWAY, IPV4)))) == [
        "192.0.2.1"
    ]
    assert list(gateways_of(message(attribute(GATEWAY, IPV6)))) == ["2001:db8::1"]


def test_an_ipv4_route_may_have_an_ipv6_gateway() -> None:
    assert list(gateways_of(message(attribute(VIA, OF_IPV6)))) == ["2001:db8::1"]


def test_a_multipath_route_has_several() -> None:
    hops = next_hop(attribute(GATEWAY, IPV4)) + next_hop(attribute(VIA, OF_IPV6)) + next_hop()
    assert list(gateways_of(message(attribute(MULTIPATH, hops)))) == ["192.0.2.1", "2001:db8::1"]


def test_a_route_of_a_device_has_none() -> None:
    assert list(gateways_of(message(attribute(4, bytes(4))))) == []


def test_a_message_that_is_cut_has_what_is_whole() -> None:
    whole = message(attribute(GATEWAY, IPV4), attribute(MULTIPATH, next_hop(attribute(5, IPV4))))
    for end in range(16, len(whole)):
        assert set(gateways_of(whole[:end])) <= {"192.0.2.1"}
