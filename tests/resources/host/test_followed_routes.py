"""Routes kept by notifications: what is certain is taken, and the rest is read again."""

from __future__ import annotations

import socket
import struct

import pytest

from resources.host.followed_routes import FollowedRoute, FollowedRoutes, parse_route
from resources.host.netlink import is_main_default

IPV4, IPV6 = socket.AF_INET, socket.AF_INET6
NEW, DELETE, NEW_LINK, DELETE_ADDRESS = 24, 25, 16, 21
REPLACE = 0x100
UP, LOWER_UP = 0x1, 0x10000


def attribute(kind: int, value: bytes) -> bytes:
    octets = struct.pack("=HH", 4 + len(value), kind) + value
    return octets + bytes(-len(octets) % 4)


def number(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack("=I", value))


def message(kind: int, body: bytes, flags: int = 0) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, flags, 0, 0) + body


def route(
    kind: int,
    gateway: str,
    interface: int = 2,
    *,
    metric: int = 0,
    flags: int = 0,
    table: int = 254,
    length: int = 0,
    protocol: int = 3,
    extra: bytes = b"",
) -> bytes:
    family = IPV6 if ":" in gateway else IPV4
    body = struct.pack("=BBBBBBBBI", family, length, 0, 0, table, protocol, 0, 1, 0)
    body += attribute(5, socket.inet_pton(family, gateway)) + number(4, interface)
    return message(kind, body + number(6, metric) + extra, flags)


def link(index: int, flags: int, master: int = 0, kind: int = NEW_LINK) -> bytes:
    body = struct.pack("=BxHiII", 0, 1, index, flags, 0)
    return message(kind, body + (number(10, master) if master else b""))


def parsed(*read: bytes) -> list[FollowedRoute]:
    routes = [parse_route(octets, 0, len(octets)) for octets in read]
    return [route for route in routes if route is not None]


def loaded(*read: bytes) -> FollowedRoutes:
    routes = FollowedRoutes(is_main_default)
    assert routes.stale
    routes.begin()
    routes.load(parsed(*read))
    return routes


def gateways(routes: FollowedRoutes) -> list[str]:
    assert not routes.stale
    return sorted(each.gateway for each in routes.routes())


def test_routes_come_and_go_and_are_replaced() -> None:
    routes = loaded(route(NEW, "192.0.2.1"))
    routes.notified(route(NEW, "192.0.2.7", metric=7))
    routes.notified(route(NEW, "2001:db8::1"))
    routes.notified(route(NEW, "192.0.2.2", flags=REPLACE))
    assert gateways(routes) == ["192.0.2.2", "192.0.2.7", "2001:db8::1"]
    routes.notified(route(DELETE, "192.0.2.7", metric=7))
    routes.notified(route(DELETE, "192.0.2.99", metric=99))
    assert gateways(routes) == ["192.0.2.2", "2001:db8::1"]


def test_other_routes_have_no_effect() -> None:
    routes = loaded()
    routes.notified(route(NEW, "192.0.2.1", table=77))
    routes.notified(route(NEW, "192.0.2.1", length=8))
    routes.notified(route(NEW, "192.0.2.1", extra=number(15, 1000)))
    assert gateways(routes) == []


def test_a_link_that_is_down_takes_ipv4_routes_and_reports_ipv6_ones() -> None:
    routes = loaded(
        route(NEW, "192.0.2.1"), route(NEW, "198.51.100.1", 3, metric=3), route(NEW, "2001:db8::1")
    )
    routes.notified(link(2, UP))  # its carrier is lost: the route stays
    assert gateways(routes) == ["192.0.2.1", "198.51.100.1", "2001:db8::1"]
    routes.notified(link(2, 0))
    assert gateways(routes) == ["198.51.100.1", "2001:db8::1"]
    routes.notified(link(3, UP | LOWER_UP, kind=17))
    assert gateways(routes) == ["2001:db8::1"]


@pytest.mark.parametrize(
    "octets",
    [
        route(NEW, "192.0.2.2"),  # beside the first one
        route(DELETE, "192.0.2.2"),  # a route that was not known
        link(2, UP | LOWER_UP, master=9),
        message(DELETE_ADDRESS, struct.pack("=BBBBI", IPV4, 24, 0, 0, 2)),
    ],
)
def test_what_leaves_open_what_remains_leads_to_a_reading(octets: bytes) -> None:
    routes = loaded(route(NEW, "192.0.2.1"))
    routes.notified(octets)
    assert routes.stale


def test_a_route_by_an_object_may_go_with_the_carrier() -> None:
    routes = loaded(route(NEW, "192.0.2.1", extra=number(30, 7)))
    routes.notified(link(2, UP | LOWER_UP))
    assert not routes.stale
    routes.notified(link(2, UP))
    assert routes.stale


def test_a_nexthop_object_that_is_deleted_may_have_been_that_of_a_route() -> None:
    plain, by_object = route(NEW, "192.0.2.1"), route(NEW, "192.0.2.1", extra=number(30, 7))
    for octets, is_stale in ((plain, False), (by_object, True)):
        routes = loaded(octets)
        routes.notified(message(105, bytes(8)))
        assert routes.stale is is_stale


def test_a_link_that_is_down_takes_no_route_that_discards_packets() -> None:
    body = struct.pack("=BBBBBBBBI", IPV4, 0, 0, 0, 254, 3, 0, 6, 0)
    routes = loaded(message(NEW, body))
    routes.notified(link(2, 0))
    assert not routes.stale
    assert len(routes.routes()) == 1


def test_an_unselected_route_may_replace_a_selected_route() -> None:
    routes = FollowedRoutes(lambda route: route.protocol == 3)
    routes.begin()
    routes.load(parsed(route(NEW, "192.0.2.1")))
    routes.notified(route(NEW, "192.0.2.9", metric=9, protocol=4))
    routes.notified(route(DELETE, "192.0.2.1", protocol=4))
    assert gateways(routes) == ["192.0.2.1"]
    routes.notified(route(NEW, "192.0.2.1", protocol=4, flags=REPLACE))
    assert routes.stale


def test_notifications_during_a_reading_come_on_top_of_it() -> None:
    routes = FollowedRoutes(is_main_default)
    routes.begin()
    routes.notified(route(DELETE, "192.0.2.1"))
    routes.notified(route(NEW, "192.0.2.2", metric=2))
    routes.load(parsed(route(NEW, "192.0.2.1"), route(NEW, "192.0.2.2", metric=2)))
    assert gateways(routes) == ["192.0.2.2"]


def test_a_notification_that_is_cut_is_none() -> None:
    whole = route(NEW, "192.0.2.1") + link(2, 0)
    for end in range(len(whole)):
        loaded().notified(whole[:end])
