"""What the kernel's notifications say: lost links and addresses, nexthop objects, lost messages."""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from reconcilers.kernel.writer import netlink
from reconcilers.kernel.writer.monitor import LinkLost, Monitor, RouteEvent

NEW_LINK, DELETE_LINK, NEW_ADDRESS, DELETE_ADDRESS = 16, 17, 20, 21
NEW_ROUTE, DELETE_ROUTE, NEW_NEXTHOP, DELETE_NEXTHOP = 24, 25, 104, 105
UP = 1


def message(kind: int, body: bytes) -> bytes:
    return netlink.HEADER.pack(netlink.HEADER.size + len(body), kind, 0, 0, 0) + body


def link(kind: int, index: int, *, up: bool, master: int = 0) -> bytes:
    body = struct.pack("=BxHiII", 0, 0, index, UP if up else 0, 0)
    return message(
        kind, body + (netlink.attribute(10, struct.pack("=I", master)) if master else b"")
    )


def address(kind: int, family: int) -> bytes:
    return message(kind, struct.pack("=BBBBI", family, 24, 0, 0, 2))


def route(kind: int) -> bytes:
    head = struct.pack("=BBBBBBBBI", socket.AF_INET, 24, 0, 0, 254, 3, 0, 1, 0)
    return message(kind, head + netlink.attribute(1, bytes((198, 51, 100, 0))))


class Place:
    """A monitor whose kernel is the other end of a pair of sockets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *links: bytes) -> None:
        self.kernel, ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        monkeypatch.setattr(netlink, "open_socket", lambda *_: ours)

        def dump(_: int, __: bytes, target: Any) -> None:  # noqa: ANN401  the monitor
            target.clear()
            for octets in links:
                target.take(octets, 0, len(octets))

        made: Any = SimpleNamespace(port=7, dump=dump)
        self.ours = ours
        self.monitor = Monitor(made)

    def read(self, *datagrams: bytes) -> Any:  # noqa: ANN401  the events
        for octets in datagrams:
            self.kernel.send(octets)
        return self.monitor.read()


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    it = Place(monkeypatch, link(NEW_LINK, 2, up=True), link(NEW_LINK, 3, up=True, master=9))
    yield it
    it.kernel.close()
    it.ours.close()


def test_without_a_message_nothing_has_changed(place: Place) -> None:
    assert place.read() == ([], False, False, False, False)


@pytest.mark.parametrize(("kind", "added"), [(NEW_ROUTE, True), (DELETE_ROUTE, False)])
def test_a_route_is_an_event_and_costs_no_nexthop_object(
    place: Place, kind: int, added: bool
) -> None:
    events = place.read(route(kind))
    (event,) = events.in_order
    assert isinstance(event, RouteEvent)
    assert (event.added, event.octets) == (added, route(kind))
    assert events[1:] == (False, False, False, False)


@pytest.mark.parametrize("kind", [NEW_NEXTHOP, DELETE_NEXTHOP, NEW_ADDRESS, NEW_LINK])
def test_nexthop_objects_may_be_gone_after_a_change_of_one_of_an_address_or_of_a_link(
    place: Place, kind: int
) -> None:
    octets = link(kind, 2, up=True) if kind == NEW_LINK else address(kind, socket.AF_INET)
    assert place.read(octets) == ([], False, False, True, False)


@pytest.mark.parametrize(("family", "lost"), [(socket.AF_INET, True), (socket.AF_INET6, False)])
def test_an_ipv4_address_takes_routes_with_it(place: Place, family: int, lost: bool) -> None:
    assert place.read(address(DELETE_ADDRESS, family)) == ([], False, lost, True, False)


@pytest.mark.parametrize(
    ("octets", "lost"),
    [
        (link(NEW_LINK, 2, up=False), LinkLost(2, has_routes=False)),
        (link(DELETE_LINK, 2, up=False), LinkLost(2, has_routes=False)),
        (link(DELETE_LINK, 2, up=True), LinkLost(2, has_routes=False)),
        (link(NEW_LINK, 2, up=True, master=9), LinkLost(2, has_routes=True)),
        (link(NEW_LINK, 3, up=True), LinkLost(3, has_routes=True)),
        (link(NEW_LINK, 3, up=True, master=9), None),
        (link(NEW_LINK, 4, up=True, master=9), None),  # new
    ],
)
def test_a_link_that_is_down_gone_or_has_another_master_is_lost(
    place: Place, octets: bytes, lost: LinkLost | None
) -> None:
    events = place.read(octets)
    assert events.in_order == ([] if lost is None else [lost])
    assert (events.lost_link, events.objects) == (lost is not None, True)


def test_messages_are_in_order_and_a_link_that_is_up_again_has_routes_again(place: Place) -> None:
    events = place.read(
        route(DELETE_ROUTE) + link(NEW_LINK, 2, up=False),
        link(NEW_LINK, 2, up=True),
        route(NEW_ROUTE),
    )
    first, lost, last = events.in_order
    assert (first.added, lost, last.added) == (False, LinkLost(2, has_routes=False), True)
    assert (events.lost_link, events.objects, events.overflow) == (True, True, False)


def test_lost_messages_are_an_overflow_and_any_other_error_is_raised(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[object] = [OSError(errno.ENOBUFS, "lost"), route(NEW_ROUTE), BlockingIOError()]

    def recv(_: int) -> object:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(place.monitor, "_socket", SimpleNamespace(recv=recv))
    events = place.monitor.read()
    assert (events.overflow, len(events.in_order)) == (True, 1)
    answers.append(OSError(errno.EBADF, "closed"))
    with pytest.raises(OSError, match="closed"):
        place.monitor.read()
