"""Problems of tenants' Services are apart from administrators' problems, and not in the health."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cells.intent.cell import IntentLoop
from tests.cells.test_apply import agent, running
from tests.cmd.lab import service
from tests.support.wait import until


def test_refused_addresses_of_services_are_problems_and_leave_the_agent_healthy(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    hive = agent(tmp_path)
    manifests = tmp_path / "manifests"
    many = service("many", "198.51.100.20")
    refused = [{"ip": f"127.0.{n >> 8}.{n & 255}"} for n in range(20_000)]
    many["status"]["loadBalancer"]["ingress"] = refused
    peer = json.loads((manifests / "CiliumBGPClusterConfig-rack.json").read_text())
    health, loop = hive.health, hive.get(IntentLoop)

    def metrics() -> dict[str, float]:
        found = {metric.name: metric.samples for metric in loop.collect()}
        return {name: samples[0].value for name, samples in found.items() if "problems" in name}

    async def scenario() -> None:
        (manifests / "many.json").write_text(json.dumps(many))
        await until(lambda: metrics()["waggle_tenant_problems"] == 1)
        assert metrics()["waggle_problems"] == 0
        assert str(health.scope("intent").level()) == "ok"
        instance = peer["spec"]["bgpInstances"][0]
        instance["peers"].append({"name": "other", "peerASN": 1})
        (manifests / "CiliumBGPClusterConfig-rack.json").write_text(json.dumps(peer))
        await until(lambda: metrics()["waggle_problems"] >= 1)
        await until(lambda: str(health.scope("intent").level()) == "degraded")
        message = next(part.message for part in health.report() if part.path[:1] == ("intent",))
        assert "Service" not in message

    running(hive, scenario)
    lines = capfd.readouterr().err.splitlines()
    (line,) = [one for one in lines if "event=intent.problem" in one and "Service/shop/many" in one]
    assert "count=20000" in line
    assert "of_tenant=true" in line
    assert len(line) < 1024
