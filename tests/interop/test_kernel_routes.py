"""Received routes in the kernel of an agent's namespace, as ``ip route`` reads them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.conftest import NeedRouter
from tests.support.agent import Agent
from tests.support.netns import DEVICE, Link, linked_namespaces
from tests.support.routers import KINDS, PeerSettings, Router, RouterSettings
from tests.support.routers.base import IPV4
from tests.support.wait import eventually

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

OURS, PORT = ("10.99.0.1", "fd00:99::1"), 1790
PREFIX = "203.0.113.0/24"
OTHERS = "198.51.100.0/24"


class Lab:
    """An agent that accepts all, and routers of one AS."""

    def __init__(self, agent: Agent, link: Link, routers: list[Router]) -> None:
        self.agent, self.link, self.routers = agent, link, routers

    def established(self) -> None:
        states = [peer["state"] for peer in self.agent.peers().values()]
        assert states == ["Established"] * len(self.routers)

    @property
    def routes(self) -> dict[str, list[str]]:
        """The gateways of our routes of the main table."""
        rows = json.loads(self.link.left.run("ip", "-j", "route", "show", "proto", "186"))
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
        yield hop["gateway"]


def address(number: int) -> str:
    return f"10.99.0.{11 + number}"


@contextlib.contextmanager
def lab(kind: str, count: int, directory: Path, *arguments: str) -> Iterator[Lab]:
    with linked_namespaces() as link, contextlib.ExitStack() as stack:
        link.left.add_address(f"{OURS[0]}/24")
        for number in range(count):
            link.right.add_address(f"{address(number)}/24")
        agent = Agent(
            link.left,
            directory / "agent",
            arguments=("--enable-cell", "frrk8s", "--disable-cell", "cilium", *arguments),
            kernel=True,
        )
        agent.write_objects("configuration.json", configuration(count))
        routers = [
            KINDS[kind](
                RouterSettings(
                    asn=64701,
                    router_id=address(number),
                    addresses=(address(number),),
                    port=PORT,
                    peers=(
                        PeerSettings(OURS[0], 64710, port=PORT, families=(IPV4,), passive=True),
                    ),
                ),
                link.right,
                directory / f"router-{number}",
            )
            for number in range(count)
        ]
        parts: list[Agent | Router] = [agent, *routers]
        for part in parts:
            part.start()
            stack.callback(part.stop)
        for part in parts:
            part.wait_ready()
        found = Lab(agent, link, routers)
        eventually(found.established, within=30, context=found.logs)
        yield found


def configuration(count: int) -> dict[str, Any]:
    """Return an FRRConfiguration that accepts all from these routers."""
    neighbors = [
        {
            "address": address(number),
            "asn": 64701,
            "port": PORT,
            "toReceive": {"allowed": {"mode": "all"}},
        }
        for number in range(count)
    ]
    router = {"asn": 64710, "id": OURS[0], "neighbors": neighbors}
    return {
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "kind": "FRRConfiguration",
        "metadata": {"name": "spine", "namespace": "frr-k8s-system"},
        "spec": {"bgp": {"routers": [router]}},
    }


@pytest.mark.parametrize("kind", ["bird", "frr"])
def test_routes_follow_their_peers(kind: str, need_router: NeedRouter, tmp_path: Path) -> None:
    need_router(kind)
    with lab(kind, 2, tmp_path) as found:
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


def test_an_agent_that_is_started_again_adopts_what_it_left(
    need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router("bird")
    with lab("bird", 1, tmp_path, "--fib") as found:
        (router,) = found.routers
        router.announce(PREFIX)
        found.until({PREFIX: [address(0)]})
        found.agent.stop()
        found.hold({PREFIX: [address(0)]})
        router.announce(OTHERS)
        found.agent.start()
        found.until({PREFIX: [address(0)], OTHERS: [address(0)]})


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
