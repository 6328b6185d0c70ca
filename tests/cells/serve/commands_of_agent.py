"""An agent on manifests in this process, for tests of the commands that ask one. Contains no checks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from msgspec import json

from cells.agent import agent_cells
from cells.api.client import at_socket
from cells.dialects import cilium
from cells.hive import load
from cells.hive.hive import Hive
from tests.cmd.lab import NODE
from tests.support.wait import until
from waggle.__main__ import main


def run(tmp_path: Path, *objects: dict[str, Any], commands: list[list[str]]) -> dict[str, Any]:
    """Run an agent on manifests and commands against it; returns the answer of ``/v1/peers``."""
    directory, socket = tmp_path / "manifests", tmp_path / "agent.sock"
    directory.mkdir()
    (directory / "all.json").write_bytes(
        json.encode({"apiVersion": "v1", "kind": "List", "items": objects})
    )
    cells = agent_cells(cilium.DIALECT)
    flags = {
        "--manifests": [str(directory)],
        "--node-name": NODE,
        "--api-socket": str(socket),
        "--ready-timeout-seconds": "0",
    }
    hive = Hive(cells, load(cells, flags=flags))
    answers: list[dict[str, Any]] = []

    async def scenario() -> None:
        started = asyncio.Event()
        task = asyncio.create_task(hive.run(started.set))
        await started.wait()
        # An agent without a usable configuration is not ready.
        gate = "cannot be used"
        await until(
            lambda: (
                hive.readiness.ready or gate in hive.readiness.waiting().get("configuration", "")
            )
        )
        answers.append(await asyncio.to_thread(at_socket(socket).get, "/v1/peers", {}))
        for command in commands:
            await asyncio.to_thread(main, [*command, "--socket", str(socket), "--color", "never"])
        hive.shutdown()
        await task

    asyncio.run(scenario())
    return answers[0]
