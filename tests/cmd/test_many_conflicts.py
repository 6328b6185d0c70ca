"""A running agent with a thousand objects in conflict: `waggle status` names each of them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cmd.lab import NODE
from tests.dialects.conflicts import CONFLICTS, COUNT, address
from tests.reconcilers.metallb import objects as metallb
from tests.support.agent import Agent
from tests.support.wait import eventually
from waggle.__main__ import main

pytestmark = [pytest.mark.program, pytest.mark.xdist_group("agent-of-conflicts")]

DIALECTS = ("frrk8s", "metallb", "cilium", "antrea")
CELLS = tuple(word for name in DIALECTS for word in ("--enable-cell", name))
CPU_SECONDS = 2.0
"""Of the agent, from the new manifest until the status names the last object."""
LONGEST_LINE = 1200
NODE_OBJECT = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": NODE, "annotations": {"node.antrea.io/bgp-router-id": "10.0.0.9"}},
    "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.9"}]},
}
FIELDS = {
    "FRRConfigurations: AS number": "spec.bgp.routers[0].asn",
    "FRRConfigurations: port": "spec.bgp.routers[0].neighbors[0].port",
    "FRRConfigurations: local preference": "withLocalPref[0].localPref",
    "FRRConfigurations: BFD profile": "spec.bgp.bfdProfiles[0].receiveInterval",
    "IPAddressPools: overlap": "spec.addresses",
    "BGPAdvertisements: local preference": "spec.localPref",
    "BGPAdvertisements: aggregation length": "spec.aggregationLength",
    "BGPAdvertisements: selections": "spec.localPref",
    "BGPPeers: AS number": "spec.myASN",
    "BGPPeers: router ID": "spec.routerID",
    "BGPPeers: address": "spec.peerAddress",
    "BGPPeers: echo mode": "spec.echoMode",
    "Communities: alias": "spec.communities",
    "BGPPolicies: address of a peer": "spec.bgpPeers[4]",
    "CiliumBGPClusterConfigs: node": "spec.nodeSelector",
    "CiliumBGPClusterConfigs: address of a peer": "peers[999].peerAddress",
    "CiliumBGPPeeringPolicies: node": "spec.nodeSelector",
    "two dialects: address of a peer": "",
}
"""The end of the field of a problem that has the last object, by the kind of conflict."""
PEERS = {
    "CiliumBGPClusterConfigs: address of a peer": f"peer 'o{COUNT - 1:04}'",
    "two dialects: address of a peer": f"peer '{address(COUNT - 1)}'",
}
"""The last peer, by the kind of conflict of the peers of one object."""
WITHOUT_PROBLEM = "BGPPolicies: node"
"""Antrea has one effective policy of a node, and the others are none of its problems."""


def selections() -> Iterator[dict[str, Any]]:
    """Yield pools, and advertisements with other local preferences, each with its own selection."""
    for i in range(COUNT):
        name = f"s{i:04}"
        yield metallb.pool(name, f"10.{i >> 8}.{i & 255}.0/24", pool=name)
        others = {"key": "pool", "operator": "NotIn", "values": [name]}
        selectors = [{"matchExpressions": [others]}]
        yield metallb.advertisement(name, localPref=i + 1, ipAddressPoolSelectors=selectors)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture(scope="module", name="agent")
def running_agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    made = Agent(None, tmp_path_factory.mktemp("agent"), node=NODE, arguments=CELLS)
    made.write_objects("node.json", NODE_OBJECT)
    made.start()
    try:
        made.wait_ready()
        yield made
    finally:
        made.stop()


@pytest.mark.parametrize("name", FIELDS)
def test_the_status_names_the_last_of_a_thousand_objects_in_conflict(
    agent: Agent, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    objects = list(CONFLICTS[name]() if name in CONFLICTS else selections())
    is_last = re.compile(rf"{objects[-1]['kind']}/(.+/)?{objects[-1]['metadata']['name']}")
    before = cpu_seconds(agent.daemon.pid)
    agent.write_objects("conflicts.json", *objects)

    def printed(*arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        code = main(["status", "--socket", str(agent.socket), *arguments])
        return code, capsys.readouterr().out

    def named() -> None:
        (status,) = json.loads(printed("-o", "json")[1])["items"]
        assert any(
            problem["field"].endswith(FIELDS[name])
            and (
                PEERS[name] in problem["message"]
                if name in PEERS
                else any(is_last.fullmatch(ref) for ref in problem["objects"])
            )
            for problem in status["problems"]
        )

    # The clock of the process, as others share its core: it is idle while it is not computing.
    eventually(named, interval=0.2)
    assert cpu_seconds(agent.daemon.pid) - before < CPU_SECONDS
    # Its text has a line for it, and each line can be read.
    code, text = printed()
    assert code == 1
    lines = text.splitlines()
    assert any(line.startswith("problem ") and FIELDS[name] in line for line in lines)
    assert max(map(len, lines)) < LONGEST_LINE


def test_each_kind_of_conflict_with_a_problem_is_tried() -> None:
    assert {*CONFLICTS, "BGPAdvertisements: selections"} - FIELDS.keys() == {WITHOUT_PROBLEM}
