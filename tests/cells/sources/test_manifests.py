"""A directory of manifests fills the tables; what is wrong with it shows and stops nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from cells import declarations
from cells.dialects import cilium
from cells.dialects.cell import agent_cell
from cells.hive import Level, load
from cells.hive.hive import Hive
from resources.ingest import Ingest
from resources.kind import Kind
from resources.source import Event, Upsert
from resources.tables import Tables
from statedb import Database
from tests.support.wait import until

CELLS = (
    declarations.DATABASE,
    declarations.RESOURCES,
    agent_cell(cilium.DIALECT),
    declarations.MANIFESTS,
)
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {type: LoadBalancer, ports: [{port: 80}]}
"""


def run(directory: Path, scenario: Callable[[Hive], Awaitable[None]]) -> None:
    """Run the cells over a directory while the scenario lasts."""
    hive = Hive(CELLS, load(CELLS, flags={"--manifests": [str(directory)]}))

    async def main() -> None:
        started = asyncio.Event()
        task = asyncio.create_task(hive.run(started.set))
        await started.wait()
        try:
            async with asyncio.timeout(120):
                await scenario(hive)
        finally:
            hive.shutdown()
            await task

    asyncio.run(main())


def names(hive: Hive) -> list[str]:
    tables = hive.get(Tables)
    snapshot = hive.get(Database).snapshot()
    return sorted(row.metadata.name for row in tables.services.all(snapshot))


def test_files_become_rows_and_the_tables_are_initialized(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(SERVICE)

    async def scenario(hive: Hive) -> None:
        tables = hive.get(Tables)
        db = hive.get(Database)
        await until(lambda: all(t.initialized(db.snapshot()) for t in tables.resources))
        assert names(hive) == ["web"]
        (tmp_path / "api.yaml").write_text(SERVICE.replace("web", "api"))
        await until(lambda: names(hive) == ["api", "web"])
        (tmp_path / "web.yaml").unlink()
        await until(lambda: names(hive) == ["api"])

    run(tmp_path, scenario)


def test_a_broken_file_shows_in_health_until_it_is_right(tmp_path: Path) -> None:
    async def scenario(hive: Hive) -> None:
        health = hive.health.scope("manifests")
        await until(lambda: health.status is not None)
        (tmp_path / "web.yaml").write_text("kind: [")
        await until(lambda: health.level() is Level.DEGRADED)
        assert health.status is not None
        assert str(tmp_path / "web.yaml") in health.status.message
        (tmp_path / "web.yaml").write_text(SERVICE)
        await until(lambda: health.level() is Level.OK)
        assert names(hive) == ["web"]

    run(tmp_path, scenario)


def test_a_file_is_valid_again_once_it_has_no_problem(tmp_path: Path) -> None:
    async def scenario(hive: Hive) -> None:
        health = hive.health.scope("manifests")
        await until(lambda: health.status is not None)

        async def shows(text: str) -> None:
            await until(lambda: health.status is not None and text in health.status.message)

        (tmp_path / "web.yaml").write_text("kind: [")
        await shows("web.yaml")
        (tmp_path / "web.yaml").write_text(SERVICE.replace("type: LoadBalancer", "externalIPs: 5"))
        await shows("externalIPs")
        (tmp_path / "api.yaml").write_text("kind: [")
        (tmp_path / "web.yaml").write_text(SERVICE)
        await until(lambda: names(hive) == ["web"])
        await shows("api.yaml")

    with capture_logs() as logs:
        run(tmp_path, scenario)
    lines = [
        (line["event_name"], Path(line["file"]).name)
        for line in logs
        if line["event_name"] in ("manifests.problem", "manifests.solved")
    ]
    of_web = [event for event, name in lines if name == "web.yaml"]
    assert of_web == ["manifests.problem", "manifests.problem", "manifests.solved"]


def test_a_lost_event_makes_the_source_read_everything_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Ingest.commit
    failures = [OSError("disk on fire")]

    def commit(self: Ingest, kind: Kind[Any], event: Event) -> None:
        if isinstance(event, Upsert) and failures:
            raise failures.pop()
        original(self, kind, event)

    monkeypatch.setattr("resources.ingest.Ingest.commit", commit)

    async def scenario(hive: Hive) -> None:
        await until(lambda: hive.health.scope("manifests").status is not None)
        await asyncio.sleep(0.3)
        (tmp_path / "web.yaml").write_text(SERVICE)
        await until(lambda: names(hive) == ["web"])
        assert hive.supervisor.restarts == {"manifests.watch": 1}

    run(tmp_path, scenario)
