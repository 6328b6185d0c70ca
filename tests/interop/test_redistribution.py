"""Routes that another program installs in the kernel, as a health checker does, at a router."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.interop.conftest import NeedRouter
from tests.interop.test_kernel_routes import OURS, PORT, Lab, address, configuration, lab
from tests.support.agent import Agent
from tests.support.netns import DEVICE, Link, Namespace
from tests.support.routers.base import IPV4
from tests.support.wait import eventually

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

ROOT = Path(__file__).parents[2]
VIP = "192.0.2.10/32"
PREFIXES = [{"prefix": "192.0.2.0/24", "ge": 32}]
ROUTE = f"{VIP} dev {DEVICE} table 198 proto 248"
WITHDRAWN_WITHIN_SECONDS = 0.05
WITHDRAWALS = 60
MOST = 57
"""Of the withdrawals: 95 of 100."""
OTHERS = 2000
"""Routes in the same table."""


def redistributing() -> dict[str, Any]:
    """Return an FRRConfiguration that originates the addresses of a table, for one neighbor."""
    vips = configuration(1)
    redistributed = [{"table": 198, "protocol": 248, "prefixes": PREFIXES}]
    vips["metadata"] |= {
        "name": "vips",
        "annotations": {"waggle.dev/redistribute": json.dumps(redistributed)},
    }
    (neighbor,) = vips["spec"]["bgp"]["routers"][0]["neighbors"]
    neighbor["toAdvertise"] = {"allowed": {"mode": "all"}}
    return vips


def advertised(found: Lab, *prefixes: str) -> None:
    (router,) = found.routers
    assert set(router.routes(IPV4)) == set(prefixes)


@pytest.mark.parametrize("kind", ["bird", "frr"])
def test_a_route_is_advertised_while_the_kernel_has_it(
    kind: str, need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router(kind)
    with lab(kind, 1, tmp_path) as found:
        kernel = found.link.left
        kernel.batch(f"route add {ROUTE}", f"route add 192.0.2.11 dev {DEVICE} table 198")
        found.agent.write_objects("vips.json", redistributing())
        eventually(lambda: advertised(found, VIP), context=found.logs)
        for _ in range(3):
            kernel.batch(f"route del {ROUTE}")
            eventually(lambda: advertised(found), context=found.logs)
            kernel.batch(f"route add {ROUTE}")
            eventually(lambda: advertised(found, VIP), context=found.logs)
        (item,) = found.agent.ask("/v1/explain", target=VIP, peer=address(0))
        assert (item["addressType"], item["reason"]) == ("KernelRoute", "Advertised")


PEER = """
import os, socket, sys, time
from tests.support.run_delay import run_delay
connection, _ = socket.create_server((sys.argv[1], int(sys.argv[2]))).accept()
rest = b""
def receive():
    global rest
    while len(rest) < 19 or len(rest) < int.from_bytes(rest[16:18], "big"):
        octets = connection.recv(65536)
        if not octets:
            sys.exit()
        rest += octets
    length = int.from_bytes(rest[16:18], "big")
    kind, body, rest = rest[18], rest[19:length], rest[length:]
    return kind, body
def send(kind, body=b""):
    connection.sendall(bytes([255]) * 16 + (19 + len(body)).to_bytes(2, "big") + bytes([kind]) + body)
# Version 4, AS 64701, no hold timer, router ID; the capability IPv4 unicast.
send(1, bytes.fromhex("04fcbd0000" "0a63000b" "08" "0206" "010400010001"))
send(4)
agent = sys.stdin.readline().strip()
while True:
    kind, body = receive()
    at, waited = time.monotonic(), run_delay(agent, os.getpid())
    withdrawn = int.from_bytes(body[:2], "big") if kind == 2 else 0
    if kind == 2 and len(body) > 4:
        print(at, waited, "withdrawn" if withdrawn else "announced", flush=True)
"""
"""A peer that prints when each UPDATE arrived, and how long the agent and it have waited until then."""
KERNEL = """
import socket, struct, sys, time
from pyroute2 import IPBatch, IPRoute
from tests.support.run_delay import run_delay
with IPRoute() as found:
    place = {"dst": sys.argv[1], "oif": found.link_lookup(ifname=sys.argv[2])[0]}
kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
batch = IPBatch()
for line in sys.stdin:
    batch.reset()
    batch.route(line.strip(), table=198, proto=248, scope="link", **place)
    message = bytes(batch.batch)
    waited, began = run_delay(*sys.argv[3:]), time.monotonic()
    kernel.send(message)
    (error,) = struct.unpack_from("=i", kernel.recv(65536), 16)
    assert not error, error
    print(began, waited, flush=True)
"""
"""Adds and deletes the route; prints when, and how long agent and peer have waited until then."""


@contextlib.contextmanager
def program(side: Namespace, text: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    command = [*side.command(), sys.executable, "-c", text, *arguments]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT) as process:
        yield process
        process.kill()


def test_a_route_that_goes_is_withdrawn_within_50_ms(link: Link, tmp_path: Path) -> None:
    """On the wire, with two thousand other routes in the table: the 95th percentile.

    From before the kernel's change until the peer has read the UPDATE, without the time between for
    which the main threads of agent and peer, which are on the way, waited for a processor.
    """
    link.left.add_address(f"{OURS[0]}/24")
    link.right.add_address(f"{address(0)}/24")
    others = (f"20.0.{n >> 8}.{n & 255}" for n in range(OTHERS))
    link.left.batch(*(f"route add blackhole {one} table 198 proto 248" for one in others))
    agent = Agent(
        link.left, tmp_path, arguments=("--enable-cell", "frrk8s", "--disable-cell", "cilium")
    )
    agent.write_objects("vips.json", redistributing())
    with contextlib.ExitStack() as stack:
        peer = stack.enter_context(program(link.right, PEER, address(0), str(PORT)))
        agent.start()
        stack.callback(agent.stop)
        write(peer, str(agent.daemon.pid))
        pids = (str(agent.daemon.pid), str(peer.pid))
        kernel = stack.enter_context(program(link.left, KERNEL, VIP, DEVICE, *pids))
        withdrawals: list[Withdrawal] = []
        for _ in range(WITHDRAWALS):
            began(kernel, "add")
            arrived(peer, "announced")
            at, waited = began(kernel, "del")
            until, waited_until = arrived(peer, "withdrawn")
            withdrawals.append(Withdrawal(until - at, waited_until - waited))
    withdrawals.sort(key=lambda one: one.without_waiting)
    assert withdrawals[MOST - 1].without_waiting <= WITHDRAWN_WITHIN_SECONDS, withdrawals


class Withdrawal(NamedTuple):
    """One withdrawal, in seconds."""

    by_the_clock: float
    waited: float
    """For a processor."""

    @property
    def without_waiting(self) -> float:
        return self.by_the_clock - self.waited


def write(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{text}\n")
    process.stdin.flush()


def began(kernel: subprocess.Popen[str], verb: str) -> tuple[float, float]:
    """Add or delete the route; return when that began, and the waiting until then."""
    write(kernel, verb)
    assert kernel.stdout is not None
    at, waited = kernel.stdout.readline().split()
    return float(at), float(waited)


def arrived(peer: subprocess.Popen[str], expected: str) -> tuple[float, float]:
    """Return when the next UPDATE arrived, and the waiting until then."""
    assert peer.stdout is not None
    at, waited, what = peer.stdout.readline().split()
    assert what == expected
    return float(at), float(waited)
