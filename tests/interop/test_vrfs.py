"""VRFs of an agent's namespace: sessions, and received routes in the tables of the kernel.

One agent has a router in the default VRF and one in each of two VRFs, each with a neighbour of its own.
The routers of the VRFs have the same address, and announce the same prefix. The tests change the VRFs
one after the other, and put them back.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.interop.conftest import NeedRouter
from tests.support.agent import Agent
from tests.support.netns import DEVICE, NO_VRF, Link, Namespace, linked_namespaces, neighbors_of
from tests.support.routers import KINDS, PeerSettings, Router, RouterSettings
from tests.support.routers.base import IPV4
from tests.support.wait import eventually, settles

pytestmark = [
    pytest.mark.interop,
    pytest.mark.netns,
    pytest.mark.program,
    pytest.mark.vrf,
    pytest.mark.xdist_group("vrf"),
]

TABLES = {"": 254, "red": 1001, "blue": 1002}
OURS = {"": "10.1.0.1", "red": "10.7.0.1", "blue": "10.7.0.1"}
THEIRS = {"": "10.1.0.2", "red": "10.7.0.2", "blue": "10.7.0.2"}
CABLES = {"": "to-main", "red": "to-red", "blue": "to-blue"}
SHARED = "203.0.113.0/24"
"""Announced in both VRFs."""
OWN = {"": "198.51.100.0/24", "red": "192.0.2.0/25", "blue": "192.0.2.128/25"}
"""Announced in one."""

Table = dict[str, tuple[str, str]]
"""Prefix -> gateway and interface."""


def via(vrf: str) -> tuple[str, str]:
    return THEIRS[vrf], CABLES[vrf]


ALONE: dict[str, Table] = {
    "": {OWN[""]: via(""), OWN["red"]: via("red"), SHARED: via("red")},
    "red": {OWN["red"]: via("red"), SHARED: via("red"), OWN[""]: via("")},
    "blue": {OWN["blue"]: via("blue"), SHARED: via("blue")},
}
"""What stands in the tables: the default VRF and the red one import each other."""


class Lab:
    """The agent, its namespace and the routers by VRF."""

    def __init__(self, agent: Agent, node: Namespace, routers: dict[str, Router]) -> None:
        self.agent, self.node, self.routers = agent, node, routers

    def table(self, number: int) -> Table:
        """Read the routes of a table that have our protocol."""
        text = self.node.run("ip", "-j", "route", "show", "table", str(number), "proto", "186")
        return {row["dst"]: (row["gateway"], row["dev"]) for row in json.loads(text or "[]")}

    def hold(self, expected: dict[str, Table], **tables: int) -> None:
        found = {vrf: self.table({**TABLES, **tables}[vrf]) for vrf in expected}
        assert found == expected

    def until(self, expected: dict[str, Table], **tables: int) -> None:
        eventually(lambda: self.hold(expected, **tables), interval=0.3, context=self.logs)

    def established(self) -> None:
        states = {item["instance"]: item["state"] for item in self.agent.ask("/v1/peers")}
        assert list(states.values()) == ["Established"] * 3, states

    def lost(self, vrf: str) -> None:
        (peer,) = (item for item in self.agent.ask("/v1/peers") if item["instance"] == vrf)
        assert peer["state"] != "Established", peer

    def logs(self) -> str:
        parts = [self.agent.daemon, *(router.daemon for router in self.routers.values())]
        return "\n".join([str(self.agent.ask("/v1/peers")), *(part.tail() for part in parts)])


def configuration() -> dict[str, Any]:
    """Return an FRRConfiguration with a router for each VRF."""
    imports = {"": [{"vrf": "red"}], "red": [{"vrf": "default"}], "blue": []}
    routers = [
        {
            "asn": 64710,
            "id": "10.1.0.1",
            **({"vrf": vrf} if vrf else {}),
            "imports": imports[vrf],
            "neighbors": [
                {
                    "address": THEIRS[vrf],
                    "asn": 64701,
                    "holdTime": "90s",
                    "keepaliveTime": "30s",
                    "toReceive": {"allowed": {"mode": "all"}},
                }
            ],
        }
        for vrf in TABLES
    ]
    return {
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "kind": "FRRConfiguration",
        "metadata": {"name": "spine", "namespace": "frr-k8s-system"},
        "spec": {"bgp": {"routers": routers}},
    }


def make_vrf(node: Namespace, vrf: str, table: int) -> None:
    """Make a VRF with its interface."""
    try:
        node.batch(f"link add {vrf} type vrf table {table}", f"link set {vrf} up")
    except RuntimeError as error:
        if "Unknown device type" not in str(error):
            raise
        pytest.skip(NO_VRF)
    node.batch(f"link set {CABLES[vrf]} master {vrf}")


@pytest.fixture(scope="module")
def lab(
    need_router: NeedRouter, no_namespaces: str | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lab]:
    need_router("bird")
    assert no_namespaces is None
    directory = tmp_path_factory.mktemp("vrfs")
    with contextlib.ExitStack() as stack:
        link: Link = stack.enter_context(linked_namespaces())
        node = link.left
        others = stack.enter_context(neighbors_of(node, *CABLES.values()))
        for vrf in ("red", "blue"):
            make_vrf(node, vrf, TABLES[vrf])
        routers = {}
        for vrf, cable in CABLES.items():
            node.batch(f"addr add {OURS[vrf]}/24 dev {cable}")
            others[cable].batch(f"addr add {THEIRS[vrf]}/24 dev {DEVICE}")
            peer = PeerSettings(OURS[vrf], 64710, families=(IPV4,), hold_time=90)
            settings = RouterSettings(64701, THEIRS[vrf], (THEIRS[vrf],), (peer,))
            routers[vrf] = KINDS["bird"](settings, others[cable], directory / f"router-{cable}")
        agent = Agent(
            node,
            directory / "agent",
            arguments=("--enable-cell", "frrk8s", "--disable-cell", "cilium"),
            kernel=True,
        )
        agent.write_objects("configuration.json", configuration())
        parts: list[Agent | Router] = [agent, *routers.values()]
        for part in parts:
            part.start()
            stack.callback(part.stop)
        for part in parts:
            part.wait_ready()
        found = Lab(agent, node, routers)
        eventually(found.established, context=found.logs)
        for vrf, router in routers.items():
            router.announce(OWN[vrf], *((SHARED,) if vrf else ()))
        found.until(ALONE)
        yield found


def test_one_prefix_in_two_vrfs_and_imports_in_both_directions(lab: Lab) -> None:
    lab.hold(ALONE)
    assert not lab.agent.command("verify")["items"]
    lab.routers["blue"].withdraw(SHARED)
    lab.until({**ALONE, "blue": {OWN["blue"]: via("blue")}})
    lab.routers["blue"].announce(SHARED)
    lab.until(ALONE)
    lab.routers["red"].withdraw(SHARED)
    without = {
        vrf: {prefix: hop for prefix, hop in table.items() if prefix != SHARED or vrf == "blue"}
        for vrf, table in ALONE.items()
    }
    lab.until(without)
    lab.routers["red"].announce(SHARED)
    lab.until(ALONE)


def test_routes_stand_again_after_their_link_was_in_a_vrf(lab: Lab) -> None:
    lab.node.batch("link add green type vrf table 1003", "link set green up")
    try:
        # The kernel drops all routes over the link, in every table, without a notification of them.
        lab.node.batch(f"link set {CABLES['']} master green", f"link set {CABLES['']} nomaster")
        settles(lambda: lab.hold(ALONE), stays=1.0, interval=0.3, context=lab.logs)
        lab.node.batch(f"link set {CABLES['']} master green")
        own = OWN[""]
        gone = {
            vrf: {prefix: hop for prefix, hop in table.items() if prefix != own}
            for vrf, table in ALONE.items()
        }
        lab.until(gone)
        lab.node.batch(f"link set {CABLES['']} nomaster")
        lab.until(ALONE)
    finally:
        lab.node.batch("link del green")


def test_a_vrf_that_is_deleted_and_made_again_with_another_table(lab: Lab) -> None:
    without_red: dict[str, Table] = {"": {OWN[""]: via("")}, "blue": ALONE["blue"]}
    lab.node.batch("link del red")
    eventually(lambda: lab.lost("red"), context=lab.logs)
    lab.until({**without_red, "red": {}})
    for table in (1011, TABLES["red"]):
        make_vrf(lab.node, "red", table)
        lab.routers["red"].stop()
        lab.routers["red"].start()
        eventually(lab.established, context=lab.logs)
        lab.until(ALONE, red=table)
        if table != TABLES["red"]:
            assert not lab.table(TABLES["red"])
            lab.node.batch("link del red")
            lab.until({**without_red, "red": {}}, red=table)


def test_a_renamed_vrf_is_a_new_vrf(lab: Lab) -> None:
    def rename(before: str, after: str) -> None:
        lab.node.batch(
            f"link set {before} down", f"link set {before} name {after}", f"link set {after} up"
        )

    rename("blue", "teal")
    eventually(lambda: lab.lost("blue"), context=lab.logs)
    lab.until({**ALONE, "blue": {}})
    rename("teal", "blue")
    lab.routers["blue"].stop()
    lab.routers["blue"].start()
    eventually(lab.established, context=lab.logs)
    lab.until(ALONE)
