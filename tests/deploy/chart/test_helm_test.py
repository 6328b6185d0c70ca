"""`helm test`: the command of its Pod, run against the HTTP server of an agent."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys

import pytest

from cells import declarations
from cells.hive import load
from cells.hive.hive import Hive
from cells.observability.http import HttpServer
from tests.deploy.chart.rendered import find
from tests.support.helm import Helm

pytestmark = pytest.mark.helm

CELLS = (declarations.METRICS, declarations.HTTP)


def run(helm: Helm, host: str, port: int) -> subprocess.CompletedProcess[str]:
    """Run the command of the test's Pod where the values have this address of the agent."""
    objects = helm.template({"agent": {"http": {"host": host, "port": port}}})
    (container,) = find(objects, "Pod", "waggle-test")["spec"]["containers"]
    command: list[str] = [*container["command"], *container.get("args", ())]
    assert command[0] == "python"  # of the image
    command[0] = sys.executable
    return subprocess.run(command, env={}, capture_output=True, text=True, check=False, timeout=60)


def test_it_succeeds_once_the_agent_is_ready(helm: Helm) -> None:
    hive = Hive(CELLS, load(CELLS, flags={"--http-address": "127.0.0.1:0"}))
    opened = hive.readiness.gate("sync", "the first pass over the manifests")

    async def scenario() -> None:
        started = asyncio.Event()
        agent = asyncio.create_task(hive.run(started.set))
        await started.wait()
        try:
            address = hive.get(HttpServer).address
            found = await asyncio.to_thread(run, helm, *address)
            assert (found.returncode, found.stderr) == (1, "")
            assert "sync waits for the first pass over the manifests" in found.stdout
            opened()
            found = await asyncio.to_thread(run, helm, *address)
            assert (found.returncode, found.stderr, found.stdout) == (0, "", "ok\n\n")
        finally:
            hive.shutdown()
            await agent

    asyncio.run(scenario())


def test_without_an_agent_it_fails_with_the_address(helm: Helm) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and does not listen
        port = bound.getsockname()[1]
        found = run(helm, "0.0.0.0", port)
    assert found.returncode == 1
    assert found.stderr.startswith(f"http://127.0.0.1:{port}/readyz: ")
    assert "Traceback" not in found.stderr
