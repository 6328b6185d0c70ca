"""A running agent: the last good state of FRRConfigurations survives kill -9, its passwords do not."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cells.api.client import at_socket
from tests.reconcilers.frrk8s.build import configuration, neighbor, router
from tests.support.agent import Agent
from tests.support.wait import eventually

pytestmark = pytest.mark.program
STATE = "frrk8s.state"
FIRST, SECOND = "127.0.0.9", "127.0.0.10"
"""Neighbours; the second one is of the object y alone."""
NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "test-node"},
    "status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}]},
}


def own(name: str, *prefixes: str, **settings: object) -> dict[str, Any]:
    advertise = {"allowed": {"mode": "all"}}
    first = neighbor(address=FIRST, toAdvertise=advertise, **settings)
    second = [neighbor(address=SECOND)] if name == "y" else []
    one = router(first, *second, prefixes=list(prefixes))
    return configuration(name, {"bgp": {"routers": [one]}})


@pytest.fixture
def it(tmp_path: Path) -> Iterator[Agent]:
    agent = Agent(
        None,
        tmp_path / "agent",
        arguments=("--enable-cell", "frrk8s", "--state-directory", str(tmp_path / "state")),
    )
    agent.write_objects("node.json", NODE)
    agent.write_objects("x.json", own("x", "10.1.0.0/16", port=1790, password="pass-word"))
    agent.start()
    try:
        agent.wait_ready()
        eventually(lambda: _has(agent, FIRST))
        yield agent
    finally:
        agent.stop()


def _has(it: Agent, *addresses: str) -> None:
    assert {peer["address"] for peer in it.peers().values()} == {*addresses}


def restart(it: Agent) -> None:
    it.daemon.kill()
    it.start()
    it.wait_ready()


def test_kill_and_start_while_the_objects_do_not_go_together(it: Agent, tmp_path: Path) -> None:
    file = tmp_path / "state" / STATE
    eventually(lambda: _assert(file.exists()))
    assert b"pass-word" not in file.read_bytes()
    it.write_objects("y.json", own("y", port=1791))
    eventually(lambda: _assert(bool(_conflicts(it))))
    restart(it)
    eventually(lambda: _has(it, FIRST))
    assert _conflicts(it)
    it.remove("x.json")
    eventually(lambda: _has(it, FIRST, SECOND))
    assert not _conflicts(it)


def test_a_damaged_file_is_reported_and_not_used(it: Agent, tmp_path: Path) -> None:
    file = tmp_path / "state" / STATE
    eventually(lambda: _assert(file.exists()))
    it.write_objects("y.json", own("y", port=1791))
    it.daemon.kill()
    file.write_bytes(file.read_bytes()[:-1])
    it.start()
    it.wait_ready()
    eventually(lambda: _assert(bool(_conflicts(it))))
    assert it.peers() == {}
    # Why there are none: the conflicts (port and password), and not their conditions as well.
    assert len(at_socket(it.socket).get("/v1/peers", {})["problems"]) == 2
    text = str(it.health())
    assert f"{file} is not used: its checksum differs" in text


def _assert(value: bool) -> None:
    assert value


def _conflicts(it: Agent) -> list[Any]:
    (status,) = it.ask("/v1/status")
    return [one for one in status.get("problems", ()) if "port differs" in one["message"]]
