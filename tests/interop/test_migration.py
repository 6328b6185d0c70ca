"""A node that goes over from FRR's daemons: their routes have the protocol and the metric of ours."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from tests.interop.conftest import NeedRouter
from tests.interop.test_kernel_routes import OURS, PORT, PREFIX, address, configuration
from tests.support.agent import Agent
from tests.support.netns import linked_namespaces
from tests.support.routers import KINDS, PeerSettings, Router, RouterSettings
from tests.support.routers.base import IPV4
from tests.support.routers.frr import Frr
from tests.support.wait import eventually

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]


class FrrOfNode(Frr):
    """FRR with zebra, which writes routes into the kernel."""

    def _has_interfaces(self) -> bool:
        return True

    def kill(self) -> None:
        """End both daemons without their leave: the routes stay."""
        assert self._zebra is not None
        for daemon in (self._zebra, self.daemon):
            daemon.kill()


def test_routes_that_frr_left_are_occupied_until_they_are_removed(
    need_router: NeedRouter, tmp_path: Path
) -> None:
    need_router("bird")
    need_router("frr")
    session = PeerSettings(OURS[0], 64710, port=PORT, families=(IPV4,), passive=True)
    with linked_namespaces() as link, contextlib.ExitStack() as stack:
        link.left.add_address(f"{OURS[0]}/24")
        link.right.add_address(f"{address(0)}/24")
        router: Router = KINDS["bird"](
            RouterSettings(64701, address(0), (address(0),), (session,), PORT),
            link.right,
            tmp_path / "router",
        )
        to_router = PeerSettings(address(0), 64701, port=PORT, families=(IPV4,), passive=False)
        frr = FrrOfNode(
            RouterSettings(64710, OURS[0], (OURS[0],), (to_router,), PORT),
            link.left,
            tmp_path / "frr",
        )
        agent = Agent(
            link.left,
            tmp_path / "agent",
            arguments=("--enable-cell", "frrk8s", "--disable-cell", "cilium"),
            kernel=True,
        )
        agent.write_objects("configuration.json", configuration(1))

        def logs() -> str:
            return "\n".join(part.tail() for part in (agent.daemon, router.daemon, frr.daemon))

        def kernel() -> list[tuple[str, int, bool]]:
            """Return prefix, metric and whether it is FRR's, of the routes of BGP."""
            rows = json.loads(link.left.run("ip", "-j", "-d", "route", "show", "proto", "186"))
            objects = json.loads(link.left.run("ip", "-j", "nexthop", "show") or "[]")
            ours = {entry["id"] for entry in objects if str(entry.get("protocol")) == "87"}
            return [(row["dst"], row["metric"], row.get("nhid") not in ours) for row in rows]

        def installed(*, by_frr: bool) -> None:
            assert kernel() == [(PREFIX, 20, by_frr)]

        def states(state: str) -> None:
            items = agent.command("routes", "kernel")["items"]
            assert [item.get("reason", item["state"]) for item in items] == [state]

        for part in (router, frr):
            part.start()
            stack.callback(part.stop)
            part.wait_ready()
        router.announce(PREFIX)
        eventually(lambda: installed(by_frr=True), context=logs)
        frr.kill()
        agent.start()
        stack.callback(agent.stop)
        agent.wait_ready()
        eventually(lambda: states("Occupied"), context=logs)
        installed(by_frr=True)
        # As docs/kernel.md has it.
        link.left.batch(f"route del {PREFIX} proto 186")
        eventually(lambda: installed(by_frr=False), context=logs)
        eventually(lambda: states("Installed"), context=logs)
