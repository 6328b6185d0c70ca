"""A running agent with a thousand objects in conflict: `waggle status` names each of them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cmd.lab import NODE, PYTHON
from tests.dialects.conflicts import CONFLICTS, COUNT
from tests.reconcilers.metallb import objects as metallb
from tests.support.agent import Agent
from tests.support.wait import eventually

pytestmark = pytest.mark.program

CELLS = tuple(word for name in ("frrk8s", "metallb", "cilium") for word in ("--enable-cell", name))
CPU_SECONDS = 2.0
"""Of the agent, from the new manifest until the status names the last object."""
NODE_OBJECT = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
SHOWN = (
    "FRRConfigurations: port",
    "IPAddressPools: overlap",
    "CiliumBGPClusterConfigs: node",
    "BGPPeers: router ID",
)
"""Kinds of conflicts, with objects of other names each."""


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


@pytest.mark.parametrize("name", ["BGPAdvertisements: selections", *SHOWN])
def test_the_status_names_the_last_of_a_thousand_objects_in_conflict(
    agent: Agent, name: str
) -> None:
    objects = list(CONFLICTS[name]() if name in SHOWN else selections())
    last = objects[-1]["metadata"]["name"]
    before = cpu_seconds(agent.daemon.pid)
    agent.write_objects("conflicts.json", *objects)

    def named() -> None:
        (status,) = agent.ask("/v1/status")
        of_kind = f"{objects[-1]['kind']}/"
        found = {ref for problem in status["problems"] for ref in problem["objects"]}
        assert any(ref.startswith(of_kind) and ref.endswith(f"/{last}") for ref in found)

    # The clock of the process, as others share its core: it is idle while it is not computing.
    eventually(named, within=60, interval=0.2)
    assert cpu_seconds(agent.daemon.pid) - before < CPU_SECONDS


def test_each_line_of_the_status_can_be_read(agent: Agent) -> None:
    agent.write_objects("conflicts.json", *CONFLICTS["CiliumBGPClusterConfigs: node"]())

    def printed() -> None:
        status = subprocess.run(
            [*PYTHON, "waggle", "status", "--socket", str(agent.socket)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert f"o{COUNT - 1:04}: spec.nodeSelector" in status.stdout
        assert max(map(len, status.stdout.splitlines())) < 1200

    eventually(printed, within=60, interval=0.5)
