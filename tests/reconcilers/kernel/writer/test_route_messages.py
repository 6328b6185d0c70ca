"""What the kernel may answer: errors of all kinds, unknown attributes, other orders; what is sent."""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Callable

import pytest

from reconcilers.kernel.writer import listings, netlink, route_messages
from reconcilers.kernel.writer.changes import Changes, changes_of, note
from reconcilers.kernel.writer.failures import Failures, reason_of
from reconcilers.kernel.writer.netlink import Kernel, Listing, Rejected
from reconcilers.kernel.writer.protocol_messages import (
    BLACKHOLE,
    IPV4,
    IPV6,
    Batch,
    Change,
    NextHop,
    Reason,
    Routes,
    RouteTable,
    SetRoutes,
    Settings,
)
from reconcilers.kernel.writer.route_writer import RouteWriter
from tests.support.kernel_writer import hop, wire

MAIN = RouteTable(254, IPV4, 20)
UNKNOWN = netlink.attribute(99, b"from the future")


class StandIn(Kernel):
    """A kernel that refuses some requests, and has only the routes that it is given."""

    def __init__(self, refuse: Callable[[int, bytes], tuple[int, str] | None]) -> None:
        self._refuse = refuse
        self._sequence = 0
        self.requests = 0
        self.listed: dict[int, list[bytes]] = {}

    def change(self, datagram: bytes, requests: int) -> list[Rejected]:
        self.requests += requests
        rejected = []
        for kind, _, start, end in netlink.messages(datagram):
            refused = self._refuse(kind, datagram[start:end])
            if refused is not None:
                rejected.append(Rejected(datagram[start:end], *refused))
        return rejected

    def dump(self, kind: int, body: bytes, listing: Listing) -> None:
        assert body
        listing.clear()
        for octets in self.listed.get(kind, ()):
            listing.take(octets, 0, len(octets))


def answer(kind: int, body: bytes) -> bytes:
    return netlink.HEADER.pack(16 + len(body), kind, 2, 1, 0) + body


def route(prefix: str, *attributes: bytes, family: int = IPV4, protocol: int = 186) -> bytes:
    octets = wire(prefix)
    length = octets[0]
    address = octets[1:].ljust(4 if family == IPV4 else 16, b"\0")
    body = struct.pack("=BBBBBBBBI", family, length, 0, 0, 254, protocol, 0, 1, 0)
    fixed = (netlink.number(15, 254), netlink.attribute(1, address), netlink.number(6, 20))
    return answer(route_messages.NEW_ROUTE, body + b"".join((*fixed, *attributes)))


@pytest.mark.parametrize(
    ("error", "text", "reason"),
    [
        (errno.EPERM, "", Reason.NOT_PERMITTED),
        (errno.EROFS, "", Reason.NOT_PERMITTED),
        (errno.ENOSPC, "", Reason.TABLE_FULL),
        (errno.ENOMEM, "", Reason.TABLE_FULL),
        (errno.ENETDOWN, "", Reason.UNUSABLE_NEXT_HOP),
        (errno.EINVAL, "Nexthop has invalid gateway", Reason.UNUSABLE_NEXT_HOP),
        (errno.EINVAL, "Invalid prefix for given prefix length", Reason.REFUSED),
        (errno.EEXIST, "", Reason.OCCUPIED),
        (4095, "", Reason.REFUSED),
    ],
)
def test_each_error_has_its_reason(error: int, text: str, reason: Reason) -> None:
    assert reason_of(error, text) is reason
    failures = Failures()
    failures.add(MAIN, (wire("10.0.0.0/8"),), error, text)
    (failure,) = failures.values()
    assert (failure.reason, failure.error, bool(failure.text)) == (reason, error, True)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.ENOMEM, errno.EPERM, errno.EROFS])
@pytest.mark.parametrize("objects", [True, False])
def test_a_full_table_fails_the_routes_that_it_does_not_take(error: int, *, objects: bool) -> None:
    full = wire("10.2.0.0/16")

    def refuse(kind: int, request: bytes) -> tuple[int, str] | None:
        is_full = kind == route_messages.NEW_ROUTE and route_messages.destination(request) == full
        return (error, "") if is_full else None

    writer = RouteWriter(StandIn(refuse), Settings(), objects=objects)
    wanted = (Routes(MAIN, wire("10.1.0.0/16") + full + wire("10.3.0.0/16")),)
    confirmed = writer.apply(Batch(1, routes=(SetRoutes((hop("192.0.2.1", 2),), wanted),)))
    (failure,) = confirmed.failures
    assert (failure.error, failure.routes) == (error, (Routes(MAIN, full),))
    assert set(writer.known.tables[MAIN]) == {wire("10.1.0.0/16"), wire("10.3.0.0/16")}


def test_objects_that_cannot_be_made_fail_their_routes_alone() -> None:
    def refuse(kind: int, request: bytes) -> tuple[int, str] | None:
        is_bad = kind == route_messages.NEW_NEXTHOP and netlink.number(5, 9) in request
        return (errno.ENODEV, "Invalid device index") if is_bad else None

    writer = RouteWriter(StandIn(refuse), Settings(), objects=True)
    confirmed = writer.apply(
        Batch(
            1,
            routes=(
                SetRoutes((hop("192.0.2.1", 9),), (Routes(MAIN, wire("10.1.0.0/16")),)),
                SetRoutes((hop("192.0.2.1", 2),), (Routes(MAIN, wire("10.2.0.0/16")),)),
            ),
        )
    )
    (failure,) = confirmed.failures
    assert failure.reason is Reason.UNUSABLE_NEXT_HOP
    assert failure.text == "Invalid device index"
    assert set(writer.known.tables[MAIN]) == {wire("10.2.0.0/16")}


def test_a_removal_that_the_kernel_refuses_is_a_failure_and_the_route_stays_known() -> None:
    def refuse(kind: int, _: bytes) -> tuple[int, str] | None:
        return (errno.EPERM, "") if kind == route_messages.DELETE_ROUTE else None

    writer = RouteWriter(StandIn(refuse), Settings(), objects=True)
    routes = (Routes(MAIN, wire("10.1.0.0/16")),)
    writer.apply(Batch(1, routes=(SetRoutes((hop("192.0.2.1", 2),), routes),)))
    (failure,) = writer.apply(Batch(2, removed=routes)).failures
    assert failure.reason is Reason.NOT_PERMITTED
    assert set(writer.known.tables[MAIN]) == {wire("10.1.0.0/16")}


def test_attributes_that_are_not_known_are_passed_over() -> None:
    gateway = netlink.attribute(5, socket.inet_aton("192.0.2.1"))
    kernel = StandIn(lambda *_: None)
    kernel.listed[route_messages.GET_ROUTE] = [
        route("10.1.0.0/16", UNKNOWN, gateway, netlink.number(4, 3)),
        route("10.2.0.0/16", gateway, netlink.number(4, 3), UNKNOWN),
        route("10.3.0.0/16", gateway, netlink.number(4, 3), UNKNOWN),
    ]
    groups = list(listings.routes(kernel, IPV4, 254))
    assert [(g.next_hops, g.prefixes) for g in groups] == [
        ((hop("192.0.2.1", 3),), [wire("10.1.0.0/16")]),
        ((hop("192.0.2.1", 3),), [wire("10.2.0.0/16"), wire("10.3.0.0/16")]),
    ]
    kernel.listed[route_messages.GET_NEXTHOP] = [
        answer(
            route_messages.NEW_NEXTHOP,
            route_messages.hop_object(7, 87, IPV4, hop("192.0.2.1", 3)) + UNKNOWN,
        )
    ]
    (found,) = listings.objects(kernel)
    assert (found.id, found.protocol, found.hop) == (7, 87, hop("192.0.2.1", 3))


def test_attributes_may_come_in_another_order() -> None:
    body = struct.pack("=BBBBBBBBI", IPV4, 16, 0, 0, 254, 186, 0, 1, 0)
    attributes = (netlink.number(6, 20), netlink.attribute(1, bytes((10, 1, 0, 0))))
    kernel = StandIn(lambda *_: None)
    kernel.listed[route_messages.GET_ROUTE] = [
        answer(route_messages.NEW_ROUTE, body + b"".join((*attributes, netlink.number(15, 254))))
    ]
    (group,) = listings.routes(kernel, IPV4, 254)
    assert (group.route.table, group.prefixes) == (MAIN, [wire("10.1.0.0/16")])


@pytest.mark.parametrize("length", range(0, 72, 4))
def test_a_message_that_is_cut_does_no_harm(length: int) -> None:
    octets = route("10.1.0.0/16", netlink.attribute(9, bytes(16)), UNKNOWN)
    found = route_messages.parse_route(octets, 0, min(28 + length, len(octets)))
    if found is not None:
        route_messages.next_hops(octets, found)


@pytest.mark.parametrize("family", [IPV4, IPV6])
def test_packed_requests_equal_single_requests(family: int) -> None:
    """All that differs is the destination, and the acknowledgement of the last one."""
    table = RouteTable(1000, family, 20)
    texts = ("10.0.0.0/8", "10.128.0.0/9", "0.0.0.0/0", "192.0.2.1/32", "11.0.0.0/8")
    if family == IPV6:
        texts = ("2001:db8::/32", "::/0", "2001:db8::1/128", "2001:db9::/32", "fc00::/7")
    prefixes = [wire(text) for text in texts]
    requests = route_messages.RouteRequests(24, 0x600, table, 186, route_messages.by_object(7), 1)
    kernel = StandIn(lambda *_: None)
    packed = []
    for datagram, count in requests.datagrams(kernel, prefixes):
        whole = list(netlink.messages(datagram))
        assert len(whole) == count
        flags = [flags & netlink.ACK for _, flags, _, _ in whole]
        assert flags == [0] * (count - 1) + [netlink.ACK]
        for _, _, start, end in whole:
            found = route_messages.parse_route(datagram, start, end)
            assert found is not None
            assert (found.table, found.protocol, found.object) == (table, 186, 7)
            assert found.prefix == route_messages.destination(datagram[start:end])
            packed.append(found.prefix)
    assert sorted(packed) == sorted(prefixes)


def test_next_hops_of_a_route_come_back_as_they_were_sent() -> None:
    sets = [
        (hop("192.0.2.1", 2),),
        (hop("192.0.2.1", 2, onlink=True),),
        (hop("fe80::1", 2),),
        (NextHop(b"", 2),),
        (hop("192.0.2.1", 2, 7), hop("2001:db8::1", 3, 256, onlink=True)),
        BLACKHOLE,
    ]
    for next_hops in sets:
        forwarding = route_messages.by_next_hops(next_hops, IPV4)
        kind = route_messages.type_of(next_hops)
        requests = route_messages.RouteRequests(24, 0, MAIN, 186, forwarding, kind)
        kernel = StandIn(lambda *_: None)
        ((octets, _),) = requests.datagrams(kernel, [wire("10.0.0.0/8")])
        found = route_messages.parse_route(octets, 0, len(octets))
        assert found is not None
        assert found.marked
        assert route_messages.next_hops(octets, found) == tuple(sorted(next_hops))


def test_changes_are_sent_by_their_reasons() -> None:
    changes: Changes = {}
    note(changes, Reason.MISSING, MAIN, [wire("10.0.0.0/8"), wire("11.0.0.0/8")])
    note(changes, Reason.OCCUPIED, MAIN, [])
    assert changes_of(changes) == (
        Change(Reason.MISSING, (Routes(MAIN, wire("10.0.0.0/8", "11.0.0.0/8")),)),
    )
