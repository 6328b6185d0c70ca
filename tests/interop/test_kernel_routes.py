"""Received routes in the kernel of an agent's namespace, as ``ip route`` reads them."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.conftest import NeedRouter
from tests.support.agent import Agent
from tests.support.daemon import Daemon
from tests.support.netns import DEVICE, Link, Namespace, linked_namespaces, neighbors_of
from tests.support.routers import KINDS, PeerSettings, Router, RouterSettings
from tests.support.routers.base import IPV4
from tests.support.wait import eventually

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

OURS, PORT = ("10.99.0.1", "fd00:99::1"), 1790
PREFIX = "203.0.113.0/24"
OTHERS = "198.51.100.0/24"


class Lab:
    """An agent that accepts all, its neighbors' routers, and the writer where it is no child."""

    def __init__(
        self, agent: Agent, link: Link, routers: list[Router], sessions: int, writer: Daemon | None
    ) -> None:
        self.agent, self.link, self.routers = agent, link, routers
        self.sessions, self.writer = sessions, writer

    def established(self) -> None:
        states = [peer["state"] for peer in self.agent.peers().values()]
        assert states == ["Established"] * self.sessions

    @property
    def routes(self) -> dict[str, list[str]]:
        """The gateways of our routes of the main table."""
        show = ("-j", "route", "show", "proto", "186")
        rows = [
            row
            for family in ("-4", "-6")
            for row in json.loads(self.link.left.run("ip", family, *show))
        ]
        return {row["dst"]: sorted(_gateways(row)) for row in rows if row.get("metric") == 20}

    def hold(self, expected: dict[str, list[str]]) -> None:
        assert self.routes == expected

    def until(self, expected: dict[str, list[str]]) -> None:
        eventually(lambda: self.hold(expected), context=self.logs)

    def logs(self) -> str:
        parts = [self.agent.daemon, *(router.daemon for router in self.routers)]
        return "\n".join(part.tail() for part in parts)


def _gateways(row: dict[str, Any]) -> Iterator[str]:
    for hop in row.get("nexthops", [row]):
        assert hop["dev"] == DEVICE
        # Beside a prefix of the other family (RFC 8950) the gateway is "via".
        yield hop["gateway"] if "gateway" in hop else hop["via"]["host"]


def address(number: int) -> str:
    return f"10.99.0.{11 + number}"


@contextlib.contextmanager
def running(
    link: Link,
    directory: Path,
    routers: list[Router],
    objects: dict[str, Any],
    *arguments: str,
    plain: bool = False,
) -> Iterator[Lab]:
    """Run an agent and routers until all sessions are established.

    ``plain``: with a writer of its own that makes no nexthop objects.
    """
    directory.mkdir(exist_ok=True)
    flags = ["--enable-cell", "frrk8s", "--disable-cell", "cilium", *arguments]
    with contextlib.ExitStack() as stack:
        writer = plain_writer(link.left, directory) if plain else None
        if writer is not None:
            flags += ["--fib-socket", str(directory / "kernel.sock")]
        agent = Agent(link.left, directory / "agent", arguments=flags, kernel=True)
        agent.write_objects("configuration.json", objects)
        parts: list[Agent | Router] = [agent, *routers]
        for part in (*([] if writer is None else [writer]), *parts):
            part.start()
            stack.callback(part.stop)
        for ready in parts:
            ready.wait_ready()
        (router,) = objects["spec"]["bgp"]["routers"]
        found = Lab(agent, link, routers, len(router["neighbors"]), writer)
        eventually(found.established, context=found.logs)
        yield found


def plain_writer(side: Namespace, directory: Path) -> Daemon:
    """Return a writer whose routes carry their next hops, as with kernels before 5.3."""
    program = [sys.executable, "-m", "waggle_kernel", "--nexthop-objects=never"]
    command = [*program, "--socket", str(directory / "kernel.sock")]
    return Daemon("waggle-kernel", command, log=directory / "writer.log", namespace=side)


@contextlib.contextmanager
def lab(
    kind: str, count: int, directory: Path, *arguments: str, plain: bool = False
) -> Iterator[Lab]:
    """Run routers with IPv4 sessions to an agent."""
    with linked_namespaces() as link:
        link.left.add_address(f"{OURS[0]}/24")
        for number in range(count):
            link.right.add_address(f"{address(number)}/24")
        session = PeerSettings(OURS[0], 64710, port=PORT, families=(IPV4,), passive=True)
        routers = [
            KINDS[kind](
                RouterSettings(64701, own, (own,), (session,), PORT),
                link.right,
                directory / f"router-{number}",
            )
            for number, own in enumerate(map(address, range(count)))
        ]
        with running(
            link, directory, routers, configuration(count), *arguments, plain=plain
        ) as found:
            yield found


def configuration(count: int) -> dict[str, Any]:
    """Return an FRRConfiguration that accepts all from these routers."""
    return accepting(*({"address": address(number), "asn": 64701} for number in range(count)))


def accepting(*sessions: dict[str, Any]) -> dict[str, Any]:
    """Return an FRRConfiguration that accepts all from these neighbors."""
    common = {"port": PORT, "toReceive": {"allowed": {"mode": "all"}}}
    neighbors = [{**common, **neighbor} for neighbor in sessions]
    router = {"asn": 64710, "id": OURS[0], "neighbors": neighbors}
    return {
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "kind": "FRRConfiguration",
        "metadata": {"name": "spine", "namespace": "frr-k8s-system"},
        "spec": {"bgp": {"routers": [router]}},
    }


SENDER = """
import socket, sys, threading, time
# Of several ports, so that both next hops have some.
sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(8)]
ended, number, due = threading.Event(), 0, time.monotonic()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
# Some of them after the last change, however quick all changes were.
while number < 1000 or not ended.is_set():
    try:
        sockets[number % 8].sendto(number.to_bytes(8, "big"), (sys.argv[1], 9))
    except OSError as error:
        # Without a route: the packet is lost, the ones after it may not be.
        print(f"{time.time():.3f}: packet {number}: {error}", file=sys.stderr, flush=True)
    if not number:
        print("sending", flush=True)
    number += 1
    # What it is kept from sending is not sent at once afterwards: queues have a limit.
    due = max(due + 0.001, time.monotonic())
    time.sleep(max(0.0, due - time.monotonic()))
print(number)
"""
RECEIVER = """
import select, socket, sys
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE: it may be late
receiver.bind((sys.argv[1], 9))
print("bound", flush=True)
seen, sent, patience = set(), None, None
while sent is None or len(seen) < sent:
    sources = [receiver, sys.stdin] if sent is None else [receiver]
    ready = select.select(sources, [], [], patience)[0]
    if receiver in ready:
        seen.add(receiver.recv(64))
    elif ready:
        # How many were sent, after the last one: what is not there is lost, or still on its way.
        sent, patience = int(sys.stdin.readline()), 5
    else:
        break
print(len(seen))
"""


class Traffic:
    """A packet each millisecond over the installed route, to a host behind the routers."""

    HOST = "203.0.113.1"

    def __init__(self, found: Lab) -> None:
        left, right = found.link.left, found.link.right
        left.run("sh", "-c", "echo 1 >/proc/sys/net/ipv4/fib_multipath_hash_policy")
        right.run("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
        self._stack = contextlib.ExitStack()
        far = self._stack.enter_context(neighbors_of(right, "far"))["far"]
        right.batch("addr add 203.0.113.254/24 dev far")
        far.batch(f"addr add {self.HOST}/24 dev {DEVICE}", "route add default via 203.0.113.254")
        self._receiver = self._run(far, RECEIVER)
        assert self._receiver.stdout is not None
        assert self._receiver.stdout.readline() == "bound\n"
        self._sender = self._run(left, SENDER)
        assert self._sender.stdout is not None
        assert self._sender.stdout.readline() == "sending\n"

    def _run(self, side: Namespace, program: str) -> subprocess.Popen[str]:
        command = [*side.command(), sys.executable, "-c", program, self.HOST]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self._stack.callback(process.kill)
        return process

    def end(self) -> tuple[int, int]:
        """Return the numbers of sent and of lost packets."""
        with self._stack:
            sent = int(self._sender.communicate(timeout=60)[0])
            received = int(self._receiver.communicate(f"{sent}\n", timeout=60)[0])
        return sent, sent - received


@pytest.mark.parametrize(
    ("kind", "plain"),
    [("bird", False), ("bird", True), ("frr", False)],
    ids=["bird", "bird-plain", "frr"],
)
def test_routes_follow_their_peers(
    kind: str, need_router: NeedRouter, tmp_path: Path, *, plain: bool
) -> None:
    """``plain``: without nexthop objects."""
    need_router(kind)
    with lab(kind, 2, tmp_path, plain=plain) as found:
        one, two = found.routers
        one.announce(PREFIX, OTHERS)
        two.announce(PREFIX)
        both = [address(0), address(1)]
        found.until({PREFIX: both, OTHERS: [address(0)]})
        two.withdraw(PREFIX)
        found.until({PREFIX: [address(0)], OTHERS: [address(0)]})
        two.announce(PREFIX)
        found.until({PREFIX: both, OTHERS: [address(0)]})
        one.stop()
        found.until({PREFIX: [address(1)]})
        assert "not installed in the kernel" not in found.agent.daemon.tail()


@pytest.mark.parametrize("plain", [False, True], ids=["nexthop-objects", "plain"])
def test_packets_go_on_while_the_agent_restarts_and_a_peer_is_removed(
    need_router: NeedRouter, tmp_path: Path, *, plain: bool
) -> None:
    need_router("bird")
    with lab("bird", 2, tmp_path, plain=plain) as found:
        for router in found.routers:
            router.announce(PREFIX)
        found.until({PREFIX: [address(0), address(1)]})
        traffic = Traffic(found)
        found.agent.stop()
        found.hold({PREFIX: [address(0), address(1)]})
        found.routers[0].announce(OTHERS)
        found.agent.start()
        eventually(found.established, context=found.logs)
        found.until({PREFIX: [address(0), address(1)], OTHERS: [address(0)]})
        found.agent.write_objects("configuration.json", configuration(1))
        found.until({PREFIX: [address(0)], OTHERS: [address(0)]})
        sent, lost = traffic.end()
    assert sent >= 1000
    assert lost <= 3


def test_routes_of_other_programs_stay_and_ours_waits_until_its_place_is_free(
    need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router("bird")
    with lab("bird", 1, tmp_path, "--fib", "--fib-keep=false") as found:
        (router,) = found.routers
        theirs = f"{OTHERS} via {address(0)} dev {DEVICE} metric 20"
        found.link.left.batch(f"route add {theirs} proto static")
        router.announce(PREFIX, OTHERS)
        found.until({PREFIX: [address(0)]})
        items = found.agent.command("routes", "kernel")["items"]
        states = {item["prefix"]: item.get("reason", item["state"]) for item in items}
        assert states == {PREFIX: "Installed", OTHERS: "Occupied"}
        found.link.left.batch(f"route del {theirs}")
        found.until({PREFIX: [address(0)], OTHERS: [address(0)]})
        found.link.left.batch(f"route add {PREFIX} via {address(0)} dev {DEVICE} metric 7")
        found.agent.stop()
        found.until({})
        assert PREFIX in found.link.left.run("ip", "route", "show", "metric", "7")


LISTENER = """
import socket, sys
listening = socket.create_server((sys.argv[1], 10250))
print("listening", flush=True)
while True:
    listening.accept()[0].close()
"""
"""What a kubelet does, as far as a check of what is reached connects to it."""
OTHER_NODE = "10.77.0.1"
CUT = "10.77.0.0/24"


def test_routes_with_which_another_node_is_lost_are_removed_and_wait_for_approval(
    need_router: NeedRouter, tmp_path: Path
) -> None:
    """The node is on a network of the agent; the announced route is more specific, and leads astray."""
    need_router("bird")
    with lab("bird", 1, tmp_path) as found, contextlib.ExitStack() as stack:
        left, right, agent = found.link.left, found.link.right, found.agent
        # So that each connection fails at once.
        right.run("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
        right.batch(f"route add unreachable {CUT}")
        far = stack.enter_context(neighbors_of(left, "side"))["side"]
        left.batch("addr add 10.77.0.254/16 dev side")
        far.add_address(f"{OTHER_NODE}/16")
        command = [*far.command(), sys.executable, "-c", LISTENER, OTHER_NODE]
        kubelet = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        stack.callback(kubelet.communicate)
        stack.callback(kubelet.kill)
        assert kubelet.stdout is not None
        assert kubelet.stdout.readline() == "listening\n"
        addresses = [{"type": "InternalIP", "address": OTHER_NODE}]
        other = {"metadata": {"name": "other"}, "status": {"addresses": addresses}}
        agent.write_objects("nodes.json", {"apiVersion": "v1", "kind": "Node", **other})

        def reports(text: str) -> None:
            assert text in agent.health()["kernel/reachability"]["message"], agent.health()

        eventually(lambda: reports("reaches 1 address of the cluster"), context=found.logs)
        found.routers[0].announce(CUT)
        eventually(lambda: reports(f"the node {OTHER_NODE}"), context=found.logs)
        found.until({})
        (item,) = agent.command("routes", "kernel")["items"]
        assert (item["prefix"], item["reason"]) == (CUT, "Withheld")
        (item,) = agent.command("routes", "kernel", "--approve")["items"]
        assert item["prefix"] == CUT
        found.until({CUT: [address(0)]})
