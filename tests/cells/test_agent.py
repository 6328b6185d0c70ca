"""The real composition is complete, switchable cell by cell, and cheap to build."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cells.api.client import at_socket
from cells.declarations import SPEAKER
from cells.hive import Cell, DisabledCellError, HiveError, load, provide
from cells.hive.hive import Hive
from cells.hive.show import dot, views
from cells.intent.cell import IntentLoop
from cells.speaker.events import SpeakerEvents
from cells.speaker.sessions import Sessions
from reconcilers.intent_tables import IntentTables
from reconcilers.model import Route
from speaker.api import SpeakerPort
from statedb import Database
from tests.cells.stand_in_speaker import StandInSpeaker
from tests.cmd.lab import NODE, configuration, service
from tests.support.cells import rewired
from tests.support.metrics import scrape
from tests.support.wait import until
from waggle_agent.__main__ import CELLS

EVERYTHING = {
    "--http-address": "0",
    "--otlp-endpoint": "http://127.0.0.1:4318",
    "--trace-buffer": "100",
    "--manifests": ["/nonexistent"],
    "--kubeconfig": "/nonexistent/kubeconfig",
    "--api-socket": "/nonexistent/agent.sock",
    "--snapshot-file": "/nonexistent/snapshot",
    "--fib": "auto",
    "--bfd": "true",
}


def test_the_graph_is_complete_and_nothing_runs_before_start() -> None:
    threads = set(threading.enumerate())
    hive = Hive(CELLS, load(CELLS, flags=EVERYTHING))
    # With an API server as a source the operator's part runs in a process of its own.
    expected = {cell.name for cell in CELLS if cell.on_by_default} - {"operator"}
    assert {name for name, enabled in hive.settings.enabled.items() if enabled} == expected
    assert threads.issuperset(threading.enumerate())
    gates = {"sources", "first-pass", "configuration", "peers"}
    assert hive.readiness.waiting().keys() == gates


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_a_missing_cell_fails_the_cells_that_need_it_by_name(cell: Cell) -> None:
    settings = load(CELLS, flags=EVERYTHING | {"disable_cell": [cell.name]})
    needed = any(
        need.cell == cell.name and not need.optional
        for view in views(CELLS, settings)
        if view.enabled
        for need in view.needs
    )
    if not needed:
        assert not Hive(CELLS, settings).settings.enabled[cell.name]
        return
    with pytest.raises(DisabledCellError, match=f"of cell {cell.name}, which is disabled"):
        Hive(CELLS, settings)


def test_the_graph_for_graphviz_has_an_arrow_for_every_need() -> None:
    found = views(CELLS, load(CELLS))
    graph = dot(found)
    for view in found:
        for need in view.needs:
            assert f'"{view.name}" -> "{need.cell}" [label=' in graph


AT_FIRST = """
    logging, telemetry, job metrics.loop-lag, http, speaker, job speaker.sessions,
    job frrk8s.log-level, state-directory,
    claims, job claims.write-claims, frrk8s-state, job claims.write-frrk8s-state,
    metallb-state, job claims.write-metallb-state, job intent.rounds
"""
OF_MANIFESTS = """
    manifests-last-valid, job manifests.write-last-valid, manifests, job manifests.watch
"""
OF_AN_API_SERVER = """
    kubernetes, job kubernetes.watch, job kubernetes.log, job kubernetes.secrets,
    snapshot, job snapshot.resume, job snapshot.write
"""
WITH_EITHER = """
    job host.netlink, job host.gateways, job host.redistributed,
    session-addresses, job apply.write-session-addresses, job apply.session-addresses,
    learned-limits, job apply.write-learned-limits, job apply.learned-limits,
    job apply.rounds, job apply.verification, job apply.session-readings, job apply.peer-limits,
    job history.follow, job readiness.configuration, job readiness.gate, job status.rounds
"""
REPORTS = """
    job report.cluster-size, job report.status, job report.occurrences, job report.events,
    job report.objects, job report.object-writes-frrk8s,
    job report.object-writes-metallb
"""
"""Parts of the program in the order of their start. Lines of the log, the metric
waggle_task_restarts_total and /healthz?verbose have these names."""


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (
            {"--manifests": ["/nonexistent"]},
            (AT_FIRST, OF_MANIFESTS, WITH_EITHER, "api"),
        ),
        (
            {
                "--kubeconfig": "/nonexistent/kubeconfig",
                "--snapshot-file": "/nonexistent/snapshot",
            },
            (AT_FIRST, OF_AN_API_SERVER, WITH_EITHER, REPORTS, "api"),
        ),
    ],
    ids=["manifests", "API server"],
)
def test_the_parts_start_in_this_order(flags: dict[str, Any], expected: tuple[str, ...]) -> None:
    common = {
        "--http-address": "0",
        "--otlp-endpoint": "http://127.0.0.1:4318",
        "--api-socket": "/nonexistent/agent.sock",
        "--state-directory": "/nonexistent/state",
        "--node-name": NODE,
        "enable_cell": ["antrea,frrk8s,metallb,ovnk"],
    }
    hive = Hive(CELLS, load(CELLS, flags=common | flags))
    names = [name.strip() for part in expected for name in part.split(",")]
    assert list(hive.lifecycle.names) == names


def test_the_gates_of_readiness_say_what_they_wait_for() -> None:
    hive = Hive(CELLS, load(CELLS, flags={"--manifests": ["/nonexistent"]}))
    assert hive.readiness.waiting() == {
        "sources": "the first reading of all sources",
        "first-pass": "the first complete apply round",
        "configuration": "the first reading of the configuration",
        "peers": "the initial table of every peer",
    }


def test_a_wrong_endpoint_is_found_while_building() -> None:
    settings = load(CELLS, flags=EVERYTHING | {"--otlp-endpoint": "localhost"})
    with pytest.raises(HiveError, match="--otlp-endpoint: is not an http"):
        Hive(CELLS, settings)


def without_outside(tmp_path: Path) -> Hive:
    """Return an agent that reads a directory and has no sockets of its own."""
    flags = {
        "--manifests": [str(tmp_path)],
        "--node-name": NODE,
        "--ready-timeout-seconds": "0",
        "disable_cell": ["logging", "api"],
    }
    return Hive(CELLS, load(CELLS, flags=flags))


def test_f35_intent_that_failed_starts_from_nothing_and_leaves_no_stale_route(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for item in (*configuration([1]), service("web", "198.51.100.10")):
        (tmp_path / f"{item['kind']}-{item['metadata']['name']}.json").write_text(json.dumps(item))
    hive = without_outside(tmp_path)
    tables = hive.get(IntentTables)
    database = hive.get(Database)
    original = IntentLoop._report
    failures = [RuntimeError("a bug of ours")]

    def report(self: IntentLoop) -> None:
        if failures:
            raise failures.pop()
        original(self)

    monkeypatch.setattr(IntentLoop, "_report", report)

    def routes() -> list[Route]:
        return list(tables.routes.all(database.snapshot()))

    async def scenario() -> None:
        task = asyncio.create_task(hive.run())
        await until(lambda: len(routes()) == 1)
        # A row that no object accounts for, as a failed round might have left it.
        stale = msgspec.structs.replace(routes()[0], nlri=b"\x08\x0a", contributions=())
        with database.write(tables.routes) as txn:
            tables.routes.upsert(txn, stale)
        await until(lambda: hive.supervisor.restarts.get("intent.rounds") == 1)
        await until(lambda: [row.nlri for row in routes()] == [b"\x20\xc6\x33\x64\x0a"])
        await until(lambda: hive.readiness.ready)
        hive.shutdown()
        await task

    asyncio.run(scenario())
    assert "a bug of ours" in capsys.readouterr().out


def test_every_cell_runs_with_a_stand_in_for_the_speaker(tmp_path: Path) -> None:
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    for item in (*configuration([1179]), service("web", "198.51.100.10")):
        path = manifests / f"{item['kind']}-{item['metadata']['name']}.json"
        path.write_text(json.dumps(item))
    stand_in = rewired(
        SPEAKER,
        provides=(SpeakerEvents, Sessions, provide(StandInSpeaker, as_=SpeakerPort)),
        invokes=(Sessions,),
    )
    cells = tuple(stand_in if cell is SPEAKER else cell for cell in CELLS)
    socket = tmp_path / "agent.sock"
    flags = {
        "--manifests": [str(manifests)],
        "--node-name": NODE,
        "--api-socket": str(socket),
        "--http-address": "0",
        "disable_cell": ["logging"],
    }
    hive = Hive(cells, load(cells, flags=flags))
    answers: list[dict[str, Any]] = []

    async def scenario() -> None:
        task = asyncio.create_task(hive.run())
        await until(lambda: hive.readiness.ready)
        for path in ("/v1/peers", "/v1/routes", "/v1/explain", "/v1/status"):
            answers.append(await asyncio.to_thread(at_socket(socket).get, path, {}))  # noqa: PERF401
        # Antrea's paths while its dialect is off, as its agent answers them.
        for path in ("/bgppolicy", "/bgppeers", "/bgproutes"):
            off = await asyncio.to_thread(at_socket(socket).get_plain, path, {})
            assert off == (503, "bgp is not enabled\n")
        scraped = scrape(hive)
        assert 'waggle_bgp_session_up{instance="main",peer=' in scraped
        hive.shutdown()
        await task

    asyncio.run(scenario())
    peers, routes, explained, status = (answer["items"] for answer in answers)
    assert [(peer["name"], peer["state"]) for peer in peers] == [("tor-1", "Established")]
    assert [(route["peer"], route["prefix"]) for route in routes] == [("tor-1", "198.51.100.10/32")]
    assert [item["reason"] for item in explained if item["advertised"]] == ["Advertised"]
    assert status[0]["ready"]
