"""The claims cell: the dialect that has a contested peer keeps it over a restart of the agent."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from cells.hive import load
from cells.hive.hive import Hive
from cells.state.claims import FILE, decode, encode
from reconcilers.intent.arbitrate import Claim
from reconcilers.intent_tables import IntentTables
from reconcilers.model import Problem
from speaker.api import SpeakerPort
from statedb import Database
from tests.cmd.lab import NODE, configuration
from tests.dialects.dialect_programs import AGENT as CELLS
from tests.dialects.objects import beacon
from tests.support.ports import free_port
from tests.support.wait import until

SHARED = "127.0.0.2"
"""The address of the peer that `configuration` has."""
OWNERS: dict[Claim, str] = {("peer", "", SHARED): "beacon", ("port", "red", "179"): "cilium"}


Step = Callable[[], None] | Callable[[], Awaitable[None]]


class Restarted:
    """An agent with two dialects that is started several times on the same directories."""

    def __init__(self, tmp_path: Path, *, remember: bool = True) -> None:
        self.manifests = tmp_path / "manifests"
        self.manifests.mkdir()
        self.state = tmp_path / "state"
        self._remember = remember

    def write(self, *objects: dict[str, Any]) -> None:
        for item in objects:
            path = self.manifests / f"{item['kind']}-{item['metadata']['name']}.json"
            path.write_text(json.dumps(item))

    def cilium(self) -> None:
        """Write a configuration of Cilium that wants the peer, with an old object."""
        for item in configuration([1]):
            item["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z"
            self.write(item)

    def beacon(self) -> None:
        """Write a Beacon that wants the peer, a newer object."""
        self.write(beacon(NODE, peerAddress=SHARED, created="2002-01-01T00:00:00Z"))

    def run(self, *steps: Step) -> list[tuple[str, ...]]:
        """Start, take each step, stop; returns the dialect that has the peer after each of them."""
        flags = {
            "--manifests": [str(self.manifests)],
            "--node-name": NODE,
            "--ready-timeout-seconds": "0",
            "disable_cell": ["logging", "api"],
            "enable_cell": ["beacon"],
            **({"--state-directory": str(self.state)} if self._remember else {}),
        }
        self.agent = Hive(CELLS, load(CELLS, flags=flags))
        return asyncio.run(self._run(steps))

    async def _run(self, steps: tuple[Step, ...]) -> list[tuple[str, ...]]:
        tables, database = self.agent.get(IntentTables), self.agent.get(Database)

        def owners() -> tuple[str, ...]:
            return tuple(row.dialect for row in tables.peers.all(database.snapshot()))

        def problems() -> list[Problem]:
            rows = tables.problems.all(database.snapshot())
            return [row for row in rows if row.category == "conflict"]

        task = asyncio.create_task(self.agent.run())
        found = []
        try:
            for step in steps:
                waiting = step()
                if waiting is not None:
                    await waiting
                both = len(list(self.manifests.glob("*Beacon*"))) and len(
                    list(self.manifests.glob("*ClusterConfig*"))
                )
                await until(lambda: bool(owners()) and len(problems()) == bool(both))  # noqa: B023
                found.append(owners())
        finally:
            self.agent.shutdown()
            await task
        return found


def nothing() -> None:
    """Change nothing."""


def test_the_dialect_that_came_first_keeps_the_peer_over_a_restart(tmp_path: Path) -> None:
    it = Restarted(tmp_path)
    # Cilium's objects are older, so that without a memory they would win.
    assert it.run(it.beacon, it.cilium) == [("beacon",), ("beacon",)]
    assert it.run(nothing) == [("beacon",)]
    assert decode((it.state / FILE).read_bytes())["peer", "", SHARED] == "beacon"


def test_so_does_the_other_one(tmp_path: Path) -> None:
    it = Restarted(tmp_path)
    assert it.run(it.cilium, it.beacon) == [("cilium",), ("cilium",)]
    assert it.run(nothing) == [("cilium",)]


def test_a_claim_passes_on_when_its_owner_goes_and_that_is_remembered_too(tmp_path: Path) -> None:
    it = Restarted(tmp_path)
    config = it.manifests / "CiliumBGPClusterConfig-rack.json"
    assert it.run(it.cilium, it.beacon, config.unlink, it.cilium) == [
        ("cilium",),
        ("cilium",),
        ("beacon",),
        ("beacon",),
    ]
    assert it.run(nothing) == [("beacon",)]


def test_without_a_state_directory_a_restart_decides_by_age(tmp_path: Path) -> None:
    it = Restarted(tmp_path, remember=False)
    assert it.run(it.beacon, it.cilium) == [("beacon",), ("beacon",)]
    assert it.run(nothing) == [("cilium",)]
    assert not it.state.exists()


@pytest.mark.parametrize("content", [b"", b"{", b'{"format":"waggle-claims/2","claims":[]}'])
def test_a_file_that_cannot_be_read_decides_nothing_and_is_replaced(
    tmp_path: Path, content: bytes
) -> None:
    it = Restarted(tmp_path)
    it.state.mkdir()
    (it.state / FILE).write_bytes(content)
    it.cilium()
    it.beacon()
    assert it.run(nothing) == [("cilium",)]
    # What is written next can be read again.
    assert decode((it.state / FILE).read_bytes())["peer", "", SHARED] == "cilium"
    assert it.run(nothing) == [("cilium",)]


def test_a_file_that_another_user_could_write_is_not_used(tmp_path: Path) -> None:
    it = Restarted(tmp_path)
    it.state.mkdir()
    (it.state / FILE).write_bytes(encode({("peer", "", SHARED): "beacon"}))
    (it.state / FILE).chmod(0o666)
    it.cilium()
    it.beacon()
    assert it.run(nothing) == [("cilium",)]


def test_a_directory_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    it = Restarted(tmp_path)
    it.state.write_text("a file where the directory should be")
    it.cilium()
    assert it.run(nothing) == [("cilium",)]
    status = it.agent.health.scope("claims").status
    assert status is not None
    assert status.level == "degraded"
    assert f"{it.state / FILE} cannot be" in status.message


def test_a_file_is_what_was_written() -> None:
    assert decode(encode(OWNERS)) == OWNERS
    with pytest.raises(ValueError, match="Expected `array`"):
        decode(b'{"format":"waggle-claims/1","claims":[["peer","beacon"]]}')


def test_a_listening_port_passes_on_to_the_other_dialect_in_one_round(tmp_path: Path) -> None:
    port = free_port("127.0.0.1")
    it = Restarted(tmp_path)
    it.cilium()
    override = {"bgpInstances": [{"name": "main", "localPort": port}]}
    kind = {"apiVersion": "cilium.io/v2", "kind": "CiliumBGPNodeConfigOverride"}
    it.write({**kind, "metadata": {"name": NODE}, "spec": override})
    config = it.manifests / "CiliumBGPClusterConfig-rack.json"
    applied = []

    def holds(instance: str) -> bool:
        """True if the speaker has this instance alone, and its socket is open."""
        speaker = it.agent.get(SpeakerPort)  # type: ignore[type-abstract]
        statuses = list(speaker.instances())
        return [status.name for status in statuses] == [instance] and bool(statuses[0].listening)

    def accepts() -> bool:
        with contextlib.suppress(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return True
        return False

    async def listening() -> None:
        """Wait for the speaker; check that it accepts a connection and that nothing failed."""
        instance = "main" if config.exists() else "beacon"
        await until(lambda: holds(instance))
        # The socket of the former instance may still be closing.
        await until(lambda: holds(instance) and accepts())
        tables, database = it.agent.get(IntentTables), it.agent.get(Database)
        rows = tables.reconcile_statuses.all(database.snapshot())
        assert [row for row in rows if row.attempts] == []
        applied.append(instance)

    def listener() -> None:
        it.write(beacon(NODE, peerAddress="127.0.0.3", listenPort=port))

    found = it.run(nothing, listening, listener, config.unlink, listening)
    assert found[-1] == ("beacon",)
    assert applied == ["main", "beacon"]
