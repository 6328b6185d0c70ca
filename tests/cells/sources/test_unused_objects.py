"""Objects of a dialect that is off are counted and named with its flag: log, status, and no peers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from cells.agent import agent_cells
from cells.api.client import at_socket
from cells.dialects import cilium
from cells.hive import Cell, load
from cells.hive.hive import Hive
from cells.sources import kubernetes
from reconcilers.compile_manifests import OfflineSettings, compile_manifests
from reconcilers.unused_objects import UnusedObjects
from speaker.api import SpeakerPort
from statedb import Database, Table
from tests.cmd.lab import NODE, configuration
from tests.dialects.beacon.dialect import BeaconDialect
from tests.dialects.dialect_programs import AGENT as CELLS
from tests.dialects.objects import beacon
from tests.reconcilers.build import cluster_config
from tests.support.apiserver import ApiServer, status
from tests.support.wait import until
from waggle.__main__ import main

BEACONS = "not read: 2 Beacon (Beacons is off; --enable-cell beacon switches it on)"


def agent(tmp_path: Path, cells: Sequence[Cell] = CELLS, **switches: Any) -> Hive:  # noqa: ANN401
    """Make an agent that reads manifests; its socket is ``agent.sock``."""
    flags = {
        "--manifests": [str(tmp_path / "manifests")],
        "--node-name": NODE,
        "--api-socket": str(tmp_path / "agent.sock"),
        "--ready-timeout-seconds": "0",
        **switches,
    }
    (tmp_path / "manifests").mkdir(exist_ok=True)
    return Hive(cells, load(cells, flags=flags))


def write(tmp_path: Path, *objects: dict[str, Any]) -> None:
    """Put manifests in place."""
    for item in objects:
        path = tmp_path / "manifests" / f"{item['kind']}-{item['metadata']['name']}.json"
        path.write_text(json.dumps(item))


def unused(agent: Hive) -> list[str]:
    """Return the rows of the table."""
    table = agent.get(Table[UnusedObjects])
    return [row.message for row in table.all(agent.get(Database).snapshot())]


def speaker(agent: Hive) -> SpeakerPort:
    """Return the agent's speaker."""
    return agent.get(SpeakerPort)  # type: ignore[type-abstract]  # a protocol is the key


def running(hive: Hive, scenario: Callable[[], Awaitable[None]]) -> None:
    """Run an agent for as long as a scenario takes."""

    async def run() -> None:
        started = asyncio.Event()
        task = asyncio.create_task(hive.run(started.set))
        await started.wait()
        try:
            await scenario()
        finally:
            hive.shutdown()
            await task

    asyncio.run(run())


async def waggle(tmp_path: Path, *arguments: str) -> None:
    """Run a command against the agent."""
    socket = ["--socket", str(tmp_path / "agent.sock"), "--color", "never"]
    await asyncio.to_thread(main, [*arguments, *socket])


def test_manifests_of_a_dialect_that_is_off_are_named_with_its_flag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    it = agent(tmp_path)
    write(tmp_path, beacon("a"), {**beacon("b"), "apiVersion": "test.waggle.dev/v2"})
    # Kinds of no dialect are not counted.
    write(tmp_path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})

    async def scenario() -> None:
        await until(lambda: unused(it) == [BEACONS])
        answer = await asyncio.to_thread(at_socket(tmp_path / "agent.sock").get, "/v1/peers", {})
        assert answer["notes"] == [BEACONS]
        capsys.readouterr()
        await waggle(tmp_path, "peers")
        await waggle(tmp_path, "status")
        shown = capsys.readouterr()
        assert f"waggle peers: {BEACONS}\n" in shown.err
        assert f"unused     {BEACONS}\n" in shown.out
        (item,) = (
            await asyncio.to_thread(at_socket(tmp_path / "agent.sock").get, "/v1/status", {})
        )["items"]
        assert item["unusedObjects"] == [
            {
                "dialect": "beacon",
                "objects": {"Beacon": 2},
                "flag": "--enable-cell beacon",
                "message": BEACONS,
            }
        ]
        (tmp_path / "manifests" / "Beacon-a.json").unlink()
        await until(lambda: unused(it) == [BEACONS.replace("2", "1", 1)])
        (tmp_path / "manifests" / "Beacon-b.json").unlink()
        await until(lambda: unused(it) == [])

    running(it, scenario)


def test_a_change_is_logged_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    it = agent(tmp_path, disable_cell=["logging"])
    write(tmp_path, beacon("a"))

    async def scenario() -> None:
        await until(lambda: len(unused(it)) == 1)
        write(tmp_path, *configuration([1]))
        await until(lambda: bool(speaker(it).peers()))
        (tmp_path / "manifests" / "Beacon-a.json").unlink()
        await until(lambda: unused(it) == [])

    running(it, scenario)
    lines = [line for line in capsys.readouterr().out.splitlines() if "dialects." in line]
    assert ["dialects.unused" in line for line in lines] == [True, False]
    assert "1 Beacon" in lines[0]
    assert "--enable-cell beacon" in lines[0]


def test_a_dialect_that_is_on_has_no_unused_objects(tmp_path: Path) -> None:
    it = agent(tmp_path, enable_cell=["beacon"])
    write(tmp_path, beacon())

    async def scenario() -> None:
        await until(lambda: bool(speaker(it).instances()))
        assert unused(it) == []

    running(it, scenario)


def test_with_peers_there_are_no_notes_and_offline_every_dialect_is_on(tmp_path: Path) -> None:
    it = agent(tmp_path)
    write(tmp_path, beacon("a"), *configuration([1]))

    async def scenario() -> None:
        await until(lambda: len(unused(it)) == 1)

        def answer() -> dict[str, Any]:
            return at_socket(tmp_path / "agent.sock").get("/v1/peers", {})

        await until(lambda: bool(speaker(it).peers()))
        assert "notes" not in await asyncio.to_thread(answer)

    running(it, scenario)
    (tmp_path / "render").mkdir()
    (tmp_path / "render" / "beacon.json").write_text(json.dumps(beacon("a")))
    compiled = compile_manifests([str(tmp_path / "render")], [BeaconDialect], OfflineSettings("a"))
    document = compiled.whole_document()
    assert [instance["name"] for instance in document["instances"]] == ["beacon"]


# An API server


async def off(
    server: ApiServer, tmp_path: Path, scenario: Callable[[Hive], Awaitable[None]]
) -> None:
    """Run an agent with Cilium off that reads a server."""
    flags = {
        "--kubeconfig": str(server.kubeconfig(tmp_path / "kubeconfig")),
        "--node-name": NODE,
        "disable_cell": ["cilium", "api", "logging"],
    }
    it = Hive(ONLY_CILIUM, load(ONLY_CILIUM, flags=flags))
    started = asyncio.Event()
    task = asyncio.create_task(it.run(started.set))
    await started.wait()
    try:
        await scenario(it)
    finally:
        it.shutdown()
        await task


ONLY_CILIUM = agent_cells(cilium.DIALECT)
CILIUM = (
    "not read: 3 CiliumBGPClusterConfig (Cilium BGP is off; --enable-cell cilium switches it on)"
)


def put(server: ApiServer, *names: str) -> None:
    """Create ClusterConfigs."""
    for name in names:
        server.put({"kind": "CiliumBGPClusterConfig", **cluster_config(name)})


def test_objects_of_an_api_server_are_counted_by_lists_of_one_object(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes, "POLL_INTERVAL_SECONDS", 0.05)

    async def whole() -> None:
        async with ApiServer() as server:
            put(server, "a", "b", "c")

            async def scenario(it: Hive) -> None:
                await until(lambda: unused(it) == [CILIUM])
                assert {q["limit"] for q in server.queries("list", "ciliumbgpclusterconfigs")} == {
                    "1"
                }
                # Kinds that configure no peer are not listed.
                assert not server.queries("list", "ciliumnodes")
                server.delete("CiliumBGPClusterConfig", "a")
                await until(lambda: unused(it) == [CILIUM.replace("3", "2", 1)])
                server.served["ciliumbgpclusterconfigs"] = ()
                await until(lambda: unused(it) == [])

            await off(server, tmp_path, scenario)

    asyncio.run(whole())


@pytest.mark.parametrize("code", [403, 404])
def test_a_kind_that_may_not_be_counted_is_left_out_silently(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(kubernetes, "POLL_INTERVAL_SECONDS", 0.02)

    async def whole() -> None:
        async with ApiServer() as server:
            put(server, "a")
            server.always("list", "ciliumbgpclusterconfigs", status(code, "No", "no"))

            async def scenario(it: Hive) -> None:
                await until(lambda: len(server.queries("list", "ciliumbgpclusterconfigs")) > 2)
                assert unused(it) == []
                assert it.health.scope("unused-objects").level() == "ok"

            await off(server, tmp_path, scenario)

    asyncio.run(whole())


def test_a_count_that_fails_is_repeated_and_keeps_what_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes, "POLL_INTERVAL_SECONDS", 0.02)
    monkeypatch.setattr(kubernetes, "RETRY_SECONDS", 0.02)

    async def whole() -> None:
        async with ApiServer() as server:
            put(server, "a", "b", "c")
            kind = "ciliumbgpclusterconfigs"

            async def scenario(it: Hive) -> None:
                await until(lambda: unused(it) == [CILIUM])
                server.always("list", kind, status(500, "InternalError", "no"))
                before = len(server.queries("list", kind))
                await until(lambda: len(server.queries("list", kind)) > before + 2)
                assert unused(it) == [CILIUM]
                put(server, "d")
                server.always("list", kind, None)
                await until(lambda: unused(it) == [CILIUM.replace("3", "4", 1)])

            await off(server, tmp_path, scenario)

    asyncio.run(whole())
