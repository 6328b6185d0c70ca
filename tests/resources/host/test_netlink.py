"""The kernel's own words, in a network namespace: read once, and again after every change."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from socket import AF_INET, AF_INET6
from typing import Any

import pytest
from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg

from resources.host import Vrf
from resources.host.netlink import host_of
from tests.support.netns import DEVICE, Link, linked_namespaces, unavailable
from tests.support.paused import paused

pytestmark = [pytest.mark.netns, pytest.mark.program]

WATCH = """
import asyncio, json, sys, msgspec, uvloop
from resources.host import netlink
reads = 0
def counted(read=netlink.main_default_routes):
    global reads
    reads += 1
    return read()
netlink.main_default_routes = counted
def found(host):
    print(json.dumps(msgspec.to_builtins(host) | {"reads": reads}), flush=True)
{"asyncio": asyncio, "uvloop": uvloop}[sys.argv[1]].run(netlink.watch(found))
"""


@pytest.fixture
def link() -> Iterator[Link]:
    reason = unavailable()
    if reason is not None:
        pytest.skip(reason)
    with linked_namespaces() as made:
        yield made


class Watch:
    """`netlink.watch` in a process inside of the namespace."""

    def __init__(self, link: Link, loop: str) -> None:
        self.process = subprocess.Popen(
            [*link.left.command(), sys.executable, "-c", WATCH, loop],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
        )

    def until(self, right: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Read until the host is as wanted; the test's timeout ends a wait in vain."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            host: dict[str, Any] = json.loads(line)
            if right(host):
                return host
        raise AssertionError("the watch has ended")

    def end(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=60)


def device(host: dict[str, Any], name: str) -> dict[str, Any]:
    return next((d for d in host["devices"] if d["name"] == name), {})


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_addresses_states_and_default_routes_follow_the_kernel(link: Link, loop: str) -> None:
    link.left.batch(
        "link add lo1 type veth peer name lo2",
        "link set lo1 up",
        "link set lo2 up",
        "addr add 192.0.2.1/24 dev lo1",
        "addr add fd00::1/64 dev lo1 nodad",
    )
    watch = Watch(link, loop)
    try:
        host = watch.until(lambda h: device(h, "lo1").get("oper_state") == "up")
        lo1 = device(host, "lo1")
        assert lo1["admin_up"] is True
        assert {"192.0.2.1", "fd00::1"} <= set(lo1["addresses"])
        assert {"192.0.2.0/24", "fd00::/64"} <= set(lo1["networks"])
        assert lo1["index"] > 1
        assert host["default_routes"] == []

        link.left.batch("addr add 192.0.2.7/24 dev lo1")
        watch.until(lambda h: "192.0.2.7" in device(h, "lo1")["addresses"])

        link.left.batch(
            "addr add 198.51.100.1/24 dev " + DEVICE,
            f"route add default via 198.51.100.2 dev {DEVICE} metric 7",
            f"route add default via 198.51.100.3 dev {DEVICE} metric 5 table 77",
        )
        host = watch.until(lambda h: bool(h["default_routes"]))
        assert host["default_routes"] == [
            {"metric": 7, "gateway": "198.51.100.2", "device": DEVICE}
        ]
        assert device(host, DEVICE)["oper_state"] == "up"

        link.left.batch("link set lo1 down")
        watch.until(lambda h: device(h, "lo1")["admin_up"] is False)
        link.left.batch("link del lo1")
        watch.until(lambda h: not device(h, "lo1"))
    finally:
        watch.end()


def test_vrfs_and_their_members_follow_the_kernel(link: Link) -> None:
    try:
        link.left.batch("link add red type vrf table 1001", "link set red up")
    except RuntimeError as error:
        pytest.skip(f"this kernel has no VRFs: {error}")
    watch = Watch(link, "asyncio")
    try:
        host = watch.until(lambda h: bool(h["vrfs"]))
        assert host["vrfs"] == [{"name": "red", "table": 1001}]
        assert device(host, DEVICE)["vrf"] == ""
        link.left.batch(f"link set {DEVICE} master red")
        watch.until(lambda h: device(h, DEVICE)["vrf"] == "red")
        link.left.batch("link del red")
        host = watch.until(lambda h: h["vrfs"] == [])
        assert device(host, DEVICE)["vrf"] == ""
    finally:
        watch.end()


def link_message(index: int, name: str, *attributes: tuple[str, object]) -> ifinfmsg:
    """Return a message about an interface, as it comes from the kernel."""
    message = ifinfmsg()
    message["index"] = index
    message["attrs"] = [("IFLA_IFNAME", name), *attributes]
    message.encode()
    found = ifinfmsg(message.data)
    found.decode()
    return found


def test_a_vrf_has_its_table_and_its_members_have_its_name() -> None:
    data = {"attrs": [("IFLA_VRF_TABLE", 1001)]}
    kind = {"attrs": [("IFLA_INFO_KIND", "vrf"), ("IFLA_INFO_DATA", data)]}
    bridge = {"attrs": [("IFLA_INFO_KIND", "bridge")]}
    host = host_of(
        [
            link_message(1, "lo"),
            link_message(2, "red", ("IFLA_LINKINFO", kind)),
            link_message(3, "br0", ("IFLA_LINKINFO", bridge)),
            link_message(4, "eth0", ("IFLA_MASTER", 2)),
            link_message(5, "eth1", ("IFLA_MASTER", 3)),
        ],
        [],
        [],
    )
    assert host.vrfs == (Vrf("red", 1001),)
    masters = {device.name: device.vrf for device in host.devices}
    assert masters == {"lo": "", "red": "", "br0": "", "eth0": "red", "eth1": ""}


def address_message(index: int, length: int, **attributes: str) -> ifaddrmsg:
    """Return a message about an address, as it comes from the kernel."""
    message = ifaddrmsg()
    message["index"], message["prefixlen"] = index, length
    message["family"] = AF_INET6 if any(":" in text for text in attributes.values()) else AF_INET
    message["attrs"] = [(f"IFA_{name.upper()}", text) for name, text in attributes.items()]
    message.encode()
    found = ifaddrmsg(message.data)
    found.decode()
    return found


def test_an_interface_has_its_number_and_the_networks_of_its_addresses() -> None:
    addresses = [
        address_message(4, 24, address="192.0.2.7", local="192.0.2.7"),
        address_message(4, 24, address="192.0.2.9", local="192.0.2.9"),
        address_message(4, 64, address="fd00::1"),
        address_message(5, 32, address="198.51.100.2", local="198.51.100.1"),
    ]
    host = host_of([link_message(4, "eth0"), link_message(5, "wg0")], addresses, [])
    eth0, wg0 = host.devices
    assert (eth0.index, eth0.networks) == (4, ("192.0.2.0/24", "fd00::/64"))
    assert eth0.addresses == ("192.0.2.7", "192.0.2.9", "fd00::1")
    assert (wg0.addresses, wg0.networks) == (("198.51.100.1",), ("198.51.100.2/32",))


FOREIGN = 20_000
CPU_SECONDS = 0.1
"""For 50,000 routes; a fifth of it is what one wake-up for each route takes."""


DUMP_CPU_SECONDS = 0.5
"""For a report with so many foreign routes."""


def cpu_of(pid: int) -> float:
    """Return the CPU time of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_only_default_routes_wake_the_watch(link: Link) -> None:
    link.left.batch(f"addr add 198.51.100.1/24 dev {DEVICE}")
    watch = Watch(link, "asyncio")
    try:
        watch.until(lambda h: "198.51.100.1" in device(h, DEVICE).get("addresses", []))
        link.left.batch(f"addr add 198.51.100.7/24 dev {DEVICE}")
        watch.until(lambda h: "198.51.100.7" in device(h, DEVICE)["addresses"])
        before = cpu_of(watch.process.pid)
        link.left.batch(
            "route add default via 198.51.100.3 table 77",
            *(
                f"route add 10.{n >> 8 & 255}.{n & 255}.0/24 via 198.51.100.2"
                for n in range(FOREIGN)
            ),
        )
        idle = cpu_of(watch.process.pid)
        assert idle - before < CPU_SECONDS * FOREIGN / 50_000
        # The next report is the one about the default route: nothing was reported between.
        link.left.batch("route add default via 198.51.100.2 metric 3")
        host = watch.until(lambda _: True)
        # Of the other routes it reads only the headers: to decode them takes three times that.
        assert cpu_of(watch.process.pid) - idle < DUMP_CPU_SECONDS
        (found,) = host["default_routes"]
        assert found["gateway"] == "198.51.100.2"
        link.left.batch("route del default via 198.51.100.2 metric 3")
        assert watch.until(lambda _: True)["default_routes"] == []
    finally:
        watch.end()


def test_a_link_that_flaps_costs_no_reading_of_the_table(link: Link) -> None:
    link.left.batch(
        "link add lo1 type veth peer name lo2",
        "link set lo2 up",
        "link set lo1 up",
        "addr add 192.0.2.1/24 dev lo1",
        f"addr add 198.51.100.1/24 dev {DEVICE}",
        f"route add default via 198.51.100.2 dev {DEVICE}",
        "route add default via 192.0.2.2 dev lo1 metric 7",
    )
    watch = Watch(link, "asyncio")
    try:
        host = watch.until(lambda h: device(h, "lo1")["oper_state"] == "up")
        assert len(host["default_routes"]) == 2
        before = host["reads"]
        for _ in range(10):
            link.left.batch("link set lo1 down", "link set lo1 up")
        # It came back without its route, which went without a message.
        host = watch.until(lambda h: device(h, "lo1")["oper_state"] == "up")
        assert [r["gateway"] for r in host["default_routes"]] == ["198.51.100.2"]
        link.left.batch("route add default via 192.0.2.3 dev lo1 metric 7")
        host = watch.until(lambda h: len(h["default_routes"]) == 2)
        link.left.batch(f"route replace default via 198.51.100.9 dev {DEVICE}")
        host = watch.until(lambda h: "198.51.100.9" in str(h["default_routes"]))
        assert "198.51.100.2" not in str(host["default_routes"])
        assert host["reads"] == before
        # An address takes what prefers it without a message: the table is read.
        link.left.batch(f"addr del 198.51.100.1/24 dev {DEVICE}")
        host = watch.until(lambda h: len(h["default_routes"]) == 1)
        assert host["reads"] > before
    finally:
        watch.end()


OVERFLOWING = 3000
"""Notifications that are more than the socket of a process that stands still holds."""


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_what_changes_while_notifications_are_lost_is_read_again(link: Link, loop: str) -> None:
    link.left.batch(
        "link add lo1 type veth peer name lo2",
        f"addr add 198.51.100.1/24 dev {DEVICE}",
        f"route add default via 198.51.100.2 dev {DEVICE} metric 7",
    )
    watch = Watch(link, loop)
    try:
        before = watch.until(lambda h: len(h["default_routes"]) == 1)["reads"]
        with paused(watch.process.pid):
            # Then what is not notified any more: routes, an address, and links.
            link.left.batch(
                *(f"addr add 10.{n >> 8}.{n & 255}.1/32 dev lo" for n in range(OVERFLOWING)),
                f"route del default via 198.51.100.2 dev {DEVICE} metric 7",
                f"route add default via 198.51.100.3 dev {DEVICE} metric 8",
                f"addr add 198.51.100.9/24 dev {DEVICE}",
                "link del lo1",
                "link add lo3 type veth peer name lo4",
            )
        host = watch.until(lambda h: "198.51.100.3" in str(h["default_routes"]))
        assert [route["metric"] for route in host["default_routes"]] == [8]
        assert host["reads"] > before, "no notification was lost"
        assert "198.51.100.9" in device(host, DEVICE)["addresses"]
        assert device(host, "lo3")
        assert not device(host, "lo1")
        assert len(device(host, "lo")["addresses"]) >= OVERFLOWING
        # Afterwards notifications are enough again.
        link.left.batch(f"route add default via 198.51.100.4 dev {DEVICE} metric 9")
        after = watch.until(lambda h: "198.51.100.4" in str(h["default_routes"]))
        assert after["reads"] == host["reads"]
    finally:
        watch.end()


def test_default_routes_of_both_families_are_read_among_many_others(link: Link) -> None:
    link.left.batch(
        f"addr add 198.51.100.1/24 dev {DEVICE}",
        f"addr add 2001:db8::1/64 dev {DEVICE} nodad",
        *(f"route add 10.{n >> 8 & 255}.{n & 255}.0/24 via 198.51.100.2" for n in range(3000)),
        *(f"route add 2001:db8:{n:x}::/48 via 2001:db8::2" for n in range(1, 1000)),
        "route add default via 198.51.100.9 metric 9",
        f"route add default via 2001:db8::9 dev {DEVICE} metric 10",
    )
    watch = Watch(link, "asyncio")
    try:
        host = watch.until(lambda _: True)
        found = {(r["gateway"], r["metric"], r["device"]) for r in host["default_routes"]}
        assert found == {("198.51.100.9", 9, DEVICE), ("2001:db8::9", 10, DEVICE)}
    finally:
        watch.end()
