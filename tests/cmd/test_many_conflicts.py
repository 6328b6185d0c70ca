"""A running agent with a thousand objects in conflict: `waggle status` names each of them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cmd.lab import NODE, PYTHON
from tests.support.agent import Agent
from tests.support.wait import eventually

pytestmark = pytest.mark.program

COUNT = 1000
CELLS = ("--enable-cell", "frrk8s", "--enable-cell", "metallb")
CPU_SECONDS = 2.0
"""Of the agent, from the new manifest until the status names the last object."""
NODE_OBJECT = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}


def metallb(kind: str, version: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": f"metallb.io/{version}",
        "kind": kind,
        "metadata": {"name": name, "namespace": "metallb-system", "labels": {"name": name}},
        "spec": spec,
    }


def conflicts() -> Iterator[dict[str, Any]]:
    """Yield pools, and advertisements with other local preferences, each with its own selection."""
    for i in range(COUNT):
        prefix = f"10.{i >> 8}.{i & 255}.0/24"
        yield metallb("IPAddressPool", "v1beta1", f"p{i:04}", {"addresses": [prefix]})
        left_out = {"key": "name", "operator": "NotIn", "values": [f"p{i:04}"]}
        selectors = [{"matchExpressions": [left_out]}]
        spec = {"localPref": i + 1, "ipAddressPoolSelectors": selectors}
        yield metallb("BGPAdvertisement", "v1beta1", f"a{i:04}", spec)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_the_status_names_the_last_of_a_thousand_objects_in_conflict(tmp_path: Path) -> None:
    agent = Agent(None, tmp_path, node=NODE, arguments=CELLS)
    agent.write_objects("node.json", NODE_OBJECT)
    agent.start()
    try:
        agent.wait_ready()
        before = cpu_seconds(agent.daemon.pid)
        agent.write_objects("conflicts.json", *conflicts())

        def named() -> None:
            (status,) = agent.ask("/v1/status")
            found = {name for problem in status["problems"] for name in problem["objects"]}
            assert any(name.endswith(f"/a{COUNT - 1:04}") for name in found)

        eventually(named, within=30, interval=0.5)
        used = cpu_seconds(agent.daemon.pid) - before
        status = subprocess.run(
            [*PYTHON, "waggle", "status", "--socket", str(agent.socket)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert f"a{COUNT - 1:04}" in status.stdout
        assert used < 2 * CPU_SECONDS
    finally:
        agent.stop()
