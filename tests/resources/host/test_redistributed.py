"""Routes of other programs as the kernel has them: read, filtered, and read again after each change."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.netns import DEVICE, Link, linked_namespaces, unavailable
from tests.support.paused import paused
from tests.support.run_delay import run_delay

pytestmark = [pytest.mark.netns, pytest.mark.program]

WATCH = """
import asyncio, json, sys, time, uvloop
from resources.host import KernelTable, redistributed
tables = frozenset(KernelTable(*pair) for pair in json.loads(sys.argv[1]))
readings, read = [], redistributed._read
redistributed._read = lambda tables: readings.append(tables) or read(tables)
def found(routes):
    rows = sorted((route.prefix, route.table, route.protocol) for route in routes)
    print(json.dumps([time.monotonic(), len(readings), rows]), flush=True)
uvloop.run(redistributed.watch(tables, found))
"""
KUBE_VIP, LARGE = (198, 248), (70_000, None)


class Watch:
    """`redistributed.watch` in a process inside of a namespace."""

    def __init__(self, link: Link, *tables: tuple[int, int | None]) -> None:
        self.process = subprocess.Popen(
            [*link.left.command(), sys.executable, "-c", WATCH, json.dumps(tables)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
        )
        self.reports = self.readings = 0
        self.at = 0.0

    def until(self, *expected: tuple[str, int, int]) -> None:
        """Read until the routes are as expected; the test's timeout ends a wait in vain."""
        wanted = sorted(map(list, expected))
        assert self.process.stdout is not None
        for line in self.process.stdout:
            found: list[Any]
            self.at, self.readings, found = json.loads(line)
            self.reports += 1
            if found == wanted:
                return
        raise AssertionError("the watch has ended")

    def end(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=60)


@pytest.fixture
def link() -> Iterator[Link]:
    reason = unavailable()
    if reason is not None:
        pytest.skip(reason)
    with linked_namespaces() as made:
        made.left.add_address("10.99.0.1/24")
        yield made


def test_routes_of_a_table_and_protocol_follow_the_kernel(link: Link) -> None:
    vip = ("192.0.2.10/32", *KUBE_VIP)
    of_ipv6 = ("2001:db8::1/128", *KUBE_VIP)
    large = ("198.51.100.0/24", LARGE[0], 4)
    link.left.batch(
        f"route add 192.0.2.10 dev {DEVICE} table 198 proto 248",
        f"route add 192.0.2.11 dev {DEVICE} table 198 proto static",
        f"route add 192.0.2.12 dev {DEVICE} table 199 proto 248",
    )
    watch = Watch(link, KUBE_VIP, LARGE)
    try:
        watch.until(vip)
        link.left.batch(
            f"route add 2001:db8::1 dev {DEVICE} table 198 proto 248",
            "route add blackhole 198.51.100.0/24 table 70000 proto static",
        )
        watch.until(vip, of_ipv6, large)
        waited, began = run_delay(watch.process.pid), time.monotonic()
        link.left.batch("route del 192.0.2.10 table 198 proto 248")
        watch.until(of_ipv6, large)
        assert watch.at - began - (run_delay(watch.process.pid) - waited) < 0.5
        # Notifications of other tables and protocols do not arrive.
        before = watch.reports
        link.left.batch(
            *(f"route add 203.0.113.{n} dev {DEVICE} table 198 proto boot" for n in range(50)),
            "route del 198.51.100.0/24 table 70000",
        )
        watch.until(of_ipv6)
        assert watch.reports == before + 1
    finally:
        watch.end()


def test_routes_that_vanish_without_a_message_are_noticed(link: Link) -> None:
    link.left.batch(
        "link add other type veth peer name other2",
        "link set other up",
        "link set other2 up",
        "addr add 10.98.0.1/24 dev other",
        "addr add 10.98.0.9/24 dev other",
        "route add 192.0.2.10 dev other table 198 proto 248",
        "route add 192.0.2.11 dev other src 10.98.0.9 proto 248",
        f"route add 192.0.2.12 dev {DEVICE} table 198 proto 248",
    )
    one, stays = ((f"192.0.2.{n}/32", *KUBE_VIP) for n in (10, 12))
    # With the address that it prefers a route of the main table goes, the others' routes stay.
    with_source = ("192.0.2.11/32", 254, 248)
    watch = Watch(link, KUBE_VIP, (254, 248))
    try:
        watch.until(one, with_source, stays)
        link.left.batch("addr del 10.98.0.9/24 dev other")
        watch.until(one, stays)
        link.left.batch("link set other down")
        watch.until(stays)
        # A link that flaps, and that none of the routes has, costs no reading.
        before = watch.reports
        for _ in range(10):
            link.left.batch("link set other up", "link set other down")
        link.left.batch("route del 192.0.2.12 table 198")
        watch.until()
        assert watch.reports == before + 1
    finally:
        watch.end()


def test_a_route_of_a_large_table_that_comes_or_goes_costs_no_reading(link: Link) -> None:
    many = [f"20.0.{n >> 8}.{n & 255}" for n in range(2000)]
    route = f"blackhole 192.0.2.10 table {KUBE_VIP[0]} proto {KUBE_VIP[1]}"
    link.left.batch(*(f"route add blackhole {one} table 198 proto 248" for one in many))
    watch = Watch(link, KUBE_VIP)
    rows = [(f"{one}/32", *KUBE_VIP) for one in many]
    try:
        watch.until(*rows)
        for _ in range(5):
            link.left.batch(f"route add {route}")
            watch.until(*rows, ("192.0.2.10/32", *KUBE_VIP))
            link.left.batch(f"route del {route}")
            watch.until(*rows)
        assert watch.readings == 1
    finally:
        watch.end()


def test_a_route_that_one_of_another_protocol_replaces_is_gone(link: Link) -> None:
    route = f"192.0.2.10 dev {DEVICE} table 198 proto"
    link.left.batch(f"route add {route} 248")
    watch = Watch(link, KUBE_VIP)
    try:
        watch.until(("192.0.2.10/32", *KUBE_VIP))
        link.left.batch(f"route replace {route} static")
        watch.until()
        link.left.batch(f"route replace {route} 248")
        watch.until(("192.0.2.10/32", *KUBE_VIP))
    finally:
        watch.end()


OVERFLOWING = 3000
"""Notifications that are more than the socket of a process that stands still holds."""


def test_what_changes_while_notifications_are_lost_is_read_again(link: Link) -> None:
    gone, stays, new = (f"192.0.2.{n}" for n in (10, 11, 12))
    route = "blackhole {} table 198 proto 248"
    link.left.batch(*(f"route add {route.format(one)}" for one in (gone, stays)))
    watch = Watch(link, KUBE_VIP)
    rows = {one: (f"{one}/32", *KUBE_VIP) for one in (gone, stays, new)}
    try:
        watch.until(rows[gone], rows[stays])
        with paused(watch.process.pid):
            # Then what is not notified any more: one route goes, and another route comes.
            link.left.batch(
                *(
                    f"route add blackhole 20.0.{n >> 8}.{n & 255} table 198 proto static"
                    for n in range(OVERFLOWING)
                ),
                f"route del {route.format(gone)}",
                f"route add {route.format(new)}",
            )
        watch.until(rows[stays], rows[new])
        assert watch.readings > 1, "no notification was lost"
        # Afterwards notifications are enough again.
        readings = watch.readings
        link.left.batch(f"route del {route.format(new)}")
        watch.until(rows[stays])
        assert watch.readings == readings
    finally:
        watch.end()
