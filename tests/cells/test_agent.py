"""The real composition is complete, switchable cell by cell, and cheap to build."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import msgspec
import pytest
from dependency_injector import providers

from cells.agent import CELLS
from cells.hive import Cell, DisabledCellError, Hive, HiveError, load
from cells.hive.cell import GIVEN, INVOKES
from cells.hive.show import dot, views
from cells.intent import IntentLoop
from reconcilers.model import Route
from reconcilers.tables import IntentTables
from statedb import Database
from tests.cmd.lab import NODE, configuration, service
from tests.support.wait import until

EVERYTHING = {
    "--http-address": "0",
    "--otlp-endpoint": "http://127.0.0.1:4318",
    "--manifests": ["/nonexistent"],
    "--kubeconfig": "/nonexistent/kubeconfig",
    "--api-socket": "/nonexistent/agent.sock",
    "--snapshot-file": "/nonexistent/snapshot",
}


def test_the_graph_is_complete_and_nothing_runs_before_start() -> None:
    hive = Hive(CELLS, load(CELLS, flags=EVERYTHING))
    hive.check()
    assert {cell.name for cell in hive.order} == {cell.name for cell in CELLS}
    assert threading.active_count() == 1
    assert hive.readiness.waiting().keys() == {"sources", "first-pass", "peers"}


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_every_input_of_a_cell_has_a_type_and_no_cell_is_wired(cell: Cell) -> None:
    for name, provider in cell.container.providers.items():
        if isinstance(provider, providers.Dependency):
            assert provider.instance_of is not object, f"{cell.name}.{name}"
            assert name in GIVEN or name in {out for other in CELLS for out in other.outputs}
        elif name != INVOKES:
            assert isinstance(provider, providers.Singleton), f"{cell.name}.{name}"


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_without_a_cell_the_rest_is_built_or_the_one_that_needs_it_is_named(cell: Cell) -> None:
    settings = load(CELLS, flags=EVERYTHING | {"disable_cell": [cell.name]})
    needed = any(set(cell.outputs) & other.inputs.keys() for other in CELLS if other is not cell)
    if not needed:
        assert cell not in Hive(CELLS, settings).order
        return
    with pytest.raises(DisabledCellError, match=f"of cell {cell.name}, which is disabled"):
        Hive(CELLS, settings)


def test_the_graph_for_graphviz_has_an_arrow_for_every_need() -> None:
    found = views(CELLS, load(CELLS))
    graph = dot(found)
    for view in found:
        for need in view.needs:
            assert f'"{view.name}" -> "{need}";' in graph


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
    tables = hive.get("intent_tables", IntentTables)
    database = hive.get("database", Database)
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
        assert hive.readiness.ready
        hive.shutdown()
        await task

    asyncio.run(scenario())
    assert "a bug of ours" in capsys.readouterr().out
