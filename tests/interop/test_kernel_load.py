"""Many sessions and many routes in the kernel of an agent's namespace, as ``ip route`` reads them.

One router has all sessions, each between two addresses of its own: FRR knows its neighbors by their
addresses alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import pytest

from tests.cells.kernel.test_writer_process import children
from tests.interop.conftest import NeedRouter
from tests.interop.test_kernel_routes import (
    OTHERS,
    OURS,
    PORT,
    PREFIX,
    Lab,
    accepting,
    address,
    running,
)
from tests.interop.test_migration import FrrOfNode
from tests.support.agent import Agent
from tests.support.netns import DEVICE, Namespace, linked_namespaces
from tests.support.routers import KINDS, PeerSettings, Router, RouterSettings
from tests.support.routers.base import IPV4
from tests.support.routers.bird import Bird
from tests.support.wait import eventually

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

ASN, OTHER_ASN = 64701, 64702
ROUTES = 20_000
BETWEEN_READINGS = 2.0
"""Seconds: a reading of so many routes takes half a second of CPU time."""


def ours(number: int) -> str:
    """Return the agent's address of a session."""
    return f"10.99.0.{101 + number}"


@contextlib.contextmanager
def lab(
    asns: Sequence[int], directory: Path, kind: str = "bird", *, plain: bool = False
) -> Iterator[Lab]:
    """Run an agent with a session for each AS number."""
    numbers = range(len(asns))
    with linked_namespaces() as link:
        link.left.add_address(f"{OURS[0]}/24")
        link.left.batch(*(f"addr add {ours(n)}/24 dev {DEVICE}" for n in numbers))
        link.right.batch(*(f"addr add {address(n)}/24 dev {DEVICE}" for n in numbers))
        sessions = tuple(
            PeerSettings(
                ours(number),
                64710,
                port=PORT,
                families=(IPV4,),
                local_address=address(number),
                local_asn=asn,
                restart_time=300,
            )
            for number, asn in enumerate(asns)
        )
        settings = RouterSettings(ASN, address(0), tuple(map(address, numbers)), sessions, PORT)
        router: Router = KINDS[kind](settings, link.right, directory / kind)
        neighbors = (
            {
                "address": address(number),
                "sourceaddress": ours(number),
                "asn": asn,
                "enableGracefulRestart": True,
            }
            for number, asn in enumerate(asns)
        )
        with running(link, directory, [router], accepting(*neighbors), plain=plain) as found:
            yield found


def via(numbers: Iterable[int]) -> list[str]:
    return sorted(map(address, numbers))


def objects(side: Namespace) -> list[str]:
    """Return what each nexthop object has that is not FRR's: a gateway, or "group"."""
    listed = json.loads(side.run("ip", "-j", "nexthop", "show") or "[]")
    ours = (row for row in listed if row["protocol"] != "zebra")
    return sorted(row.get("gateway", "group") for row in ours)


def unused_objects(side: Namespace) -> list[str]:
    """Return the nexthop objects that are not FRR's and that neither a route nor a used group has.

    Two groups may have the same next hops, and each its routes: after one has been moved.
    """
    ours = {
        row["id"]: row
        for row in json.loads(side.run("ip", "-j", "nexthop", "show") or "[]")
        if row["protocol"] != "zebra"
    }
    if not ours:
        return []
    routes = json.loads(side.run("ip", "-j", "route", "show", "table", "all"))
    used = {row["nhid"] for row in routes if "nhid" in row}
    members = {hop["id"] for group in used if group in ours for hop in ours[group].get("group", ())}
    return [str(row) for number, row in ours.items() if number not in used | members]


@pytest.mark.parametrize(
    ("kind", "plain"),
    [("bird", False), ("bird", True), ("frr", False)],
    ids=["bird", "bird-plain", "frr"],
)
def test_a_route_has_the_next_hops_of_all_equal_paths(
    kind: str, need_router: NeedRouter, tmp_path: Path, *, plain: bool
) -> None:
    """Of 64, 8 and 2 sessions; the path over another AS is not equal, and follows them.

    ``plain``: without nexthop objects, as with kernels before 5.3.
    """
    need_router(kind)
    with lab([ASN] * 64 + [OTHER_ASN], tmp_path, kind, plain=plain) as found:
        (router,) = found.routers
        router.announce(PREFIX, OTHERS)
        left = 64
        for count in (64, 8, 2, 0):
            for number in range(count, left):
                router.shut_down(ours(number), "bye")
            left = count
            hops = via(range(count) if count else [64])
            found.until({PREFIX: hops, OTHERS: hops})
            assert set(objects(found.link.left)) >= set(() if plain else hops)
            assert not plain or not objects(found.link.left)


def prefix(number: int) -> str:
    return f"20.{number >> 8}.{number & 255}.0/24"


def swap(bird: Router, table: int) -> None:
    """Announce one of two tables in place of the other one."""
    of_table = [prefix(n + table * ROUTES) for n in range(ROUTES)]
    bird.withdraw(*(set(bird.announced) - set(of_table)))
    bird.announce(*of_table)


@contextlib.contextmanager
def frr_with(prefixes: Sequence[str], found: Lab, directory: Path) -> Iterator[FrrOfNode]:
    """FRR in the agent's namespace, whose own peer announces these prefixes."""
    side, far = found.link.left, address(9)
    found.link.right.batch(f"addr add {far}/24 dev {DEVICE}")
    session = PeerSettings(OURS[0], 64710, port=PORT, families=(IPV4,), passive=True)
    peer: Router = KINDS["bird"](
        RouterSettings(OTHER_ASN, far, (far,), (session,), PORT),
        found.link.right,
        directory / "frr-peer",
    )
    to_peer = PeerSettings(far, OTHER_ASN, port=PORT, families=(IPV4,), passive=False)
    settings = RouterSettings(64710, OURS[0], (OURS[0],), (to_peer,), PORT)
    frr = FrrOfNode(settings, side, directory / "frr")
    with contextlib.ExitStack() as stack:
        for part in (peer, frr):
            part.start()
            stack.callback(part.stop)
            part.wait_ready()
        peer.announce(*prefixes)
        yield frr


def writers(found: Lab) -> list[int]:
    """Return the processes that write into the kernel: the keeper of one has none for a moment."""
    keepers = children(found.agent.daemon.pid)
    return [pid for keeper in keepers for pid in children(keeper)]


def kill_writer(found: Lab, rng: random.Random) -> int:
    """Kill -9, within half a second; a successor starts. Returns the process that ended."""
    if found.writer is not None:
        time.sleep(rng.uniform(0.0, 0.5))
        writer = found.writer.pid
        found.writer.kill()
        found.writer.start()
        return writer

    def one() -> int:
        (writer,) = writers(found)
        return writer

    eventually(one, context=found.logs)
    time.sleep(rng.uniform(0.0, 0.5))
    writer = eventually(one, context=found.logs)
    os.kill(writer, signal.SIGKILL)
    eventually(lambda: gone(writer), context=found.logs)
    return writer


def gone(pid: int) -> None:
    """Fails while a process is there."""
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("lives", "plain"), [(10, False), (3, True)], ids=["nexthop-objects", "plain"]
)
def test_kills_during_a_load_and_a_graceful_restart_leave_exactly_what_is_wanted(
    lives: int, need_router: NeedRouter, tmp_path: Path, *, plain: bool
) -> None:
    """``plain``: without nexthop objects."""
    need_router("bird")
    need_router("frr")
    rng = random.Random(186)  # noqa: S311
    with contextlib.ExitStack() as stack:
        found = stack.enter_context(lab([ASN, ASN], tmp_path, plain=plain))
        side, agent, bird = found.link.left, found.agent, cast("Bird", found.routers[0])
        # FRR's routes have our protocol number, our table and our metric. One more is static.
        theirs = {prefix(n): "bgp" for n in rng.sample(range(8, 2 * ROUTES), 200)}
        stack.enter_context(frr_with(list(theirs), found, tmp_path))
        theirs[prefix(7)] = "static"
        side.batch(f"route add {prefix(7)} via {address(9)} dev {DEVICE} proto static metric 20")

        def rows() -> dict[str, list[str]]:
            listed = json.loads(side.run("ip", "-j", "route", "show", "metric", "20"))
            return {
                row["dst"]: [
                    row["protocol"],
                    *sorted(h["gateway"] for h in row.get("nexthops", [row])),
                ]
                for row in listed
            }

        foreign = {place: [proto, address(9)] for place, proto in theirs.items()}

        def they_are_there() -> None:
            assert_equal(rows(), foreign)

        eventually(they_are_there, context=found.logs)
        killed: set[int] = set()
        for life in range(lives):
            swap(bird, life % 2)
            killed.add(kill_writer(found, rng))
            time.sleep(rng.uniform(0.0, 0.5))
            agent.daemon.kill()
            agent.start()
            eventually(found.established, context=found.logs)
        assert len(killed) == lives
        swap(bird, 0)
        wanted = {prefix(n): ["bgp", *via((0, 1))] for n in range(ROUTES)} | foreign

        def right() -> None:
            assert_equal(rows(), wanted)

        eventually(right, interval=BETWEEN_READINGS, context=found.logs)

        with monitored(side, tmp_path / "monitor") as monitor:
            bird.kill()
            bird.resume()
            eventually(found.established, context=found.logs)
            eventually(lambda: fresh(agent), context=found.logs)
            right()
        # No route is replaced either, and no group has one member for a moment.
        assert monitor == []

        assert (objects(side) == []) is plain

        def no_objects_of_before_the_kills() -> None:
            assert unused_objects(side) == []

        # Objects that the last urgent change has left go with the verification of each minute.
        eventually(
            no_objects_of_before_the_kills,
            within=180,
            interval=BETWEEN_READINGS,
            context=found.logs,
        )
        bird.withdraw(*bird.announced)
        eventually(they_are_there, interval=BETWEEN_READINGS, context=found.logs)
        eventually(
            lambda: no_objects(side), within=180, interval=BETWEEN_READINGS, context=found.logs
        )


def assert_equal(have: Mapping[str, list[str]], wanted: Mapping[str, list[str]]) -> None:
    """Fail with the prefixes that differ: pytest's own difference of so many takes seconds."""
    wrong = [p for p in have.keys() | wanted.keys() if have.get(p) != wanted.get(p)]
    assert not wrong, (len(wrong), sorted(wrong)[:3])


def no_objects(side: Namespace) -> None:
    """Fails while the kernel has any but FRR's."""
    assert objects(side) == []


@contextlib.contextmanager
def monitored(side: Namespace, log: Path) -> Iterator[list[str]]:
    """Have what ``ip monitor`` prints of routes and nexthop objects in a list, after the block.

    Without FRR's own nexthop objects: it makes and removes them by timers of its own.
    """

    def notified(mark: str) -> None:
        """Fail unless the monitor has printed what was notified before."""
        route = f"blackhole {mark} table 9"
        side.batch(f"route add {route}", f"route del {route}")
        assert f"Deleted blackhole {mark} " in log.read_text()

    found: list[str] = []
    with log.open("w") as output:
        command = [*side.command(), "ip", "monitor", "route", "nexthop"]
        monitor = subprocess.Popen(command, stdout=output)
    try:
        eventually(lambda: notified("192.0.2.1"))
        yield found
        eventually(lambda: notified("192.0.2.2"))
    finally:
        monitor.terminate()
        monitor.wait(60)
    foreign = ("blackhole 192.0.2.", "proto zebra")
    lines = log.read_text().splitlines()
    found += (line for line in lines if not any(text in line for text in foreign))


def fresh(agent: Agent) -> None:
    """Fails while routes of before a restart are kept (RFC 4724)."""
    for peer in agent.peers().values():
        assert "stale" not in peer
        assert [family["routes"] for family in peer["received"]] == [ROUTES]
