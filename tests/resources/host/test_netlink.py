"""The kernel's own words, in a network namespace: read once, and again after every change."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.netns import DEVICE, Link, linked_namespaces, unavailable

pytestmark = [pytest.mark.netns, pytest.mark.program]

WATCH = """
import asyncio, json, sys, msgspec, uvloop
from resources.host import netlink
def found(host):
    print(json.dumps(msgspec.to_builtins(host)), flush=True)
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
        self.process.communicate(timeout=5)


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
