"""Other implementations of an enabled dialect that run in the cluster are named by the leader."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import kubernetes_asyncio  # noqa: F401  imported here, as it takes seconds
import pytest

from cells.hive import Level, load
from cells.hive.hive import Hive
from cells.operator import leader_check, rivals
from tests.support.apiserver import ApiServer, status
from tests.support.wait import until
from waggle_operator.__main__ import CELLS

CONFIG = ("kube-system", "cilium-config")
MESSAGE = (
    "Cilium's BGP control plane runs beside this dialect (DaemonSet kube-system/cilium): both open a "
    "session to each router; unset enable-bgp-control-plane=true in ConfigMap "
    "kube-system/cilium-config and restart it, or switch this dialect off (--disable-cell cilium)"
)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches within the time of a test."""
    monkeypatch.setattr(rivals, "POLL_INTERVAL_SECONDS", 0.03)
    monkeypatch.setattr(leader_check, "RETRY_SECONDS", 0.03)


def daemon_set(ready: int = 3, **labels: str) -> dict[str, Any]:
    """Make a DaemonSet of Cilium."""
    metadata = {"namespace": "kube-system", "name": "cilium", "labels": labels or CILIUM}
    return {"metadata": metadata, "status": {"numberReady": ready}}


CILIUM = {"k8s-app": "cilium"}


def run(
    tmp_path: Path,
    server: ApiServer,
    scenario: Callable[[Hive], Awaitable[None]],
    **flags: Any,  # noqa: ANN401
) -> None:
    """Run an operator that reads a server for as long as a scenario takes."""

    async def whole() -> None:
        async with server:
            given = {
                "--kubeconfig": str(server.kubeconfig(tmp_path / "kubeconfig")),
                "--lease-retry-seconds": "0.05",
                "disable_cell": ["logging"],
                **flags,
            }
            it = Hive(CELLS, load(CELLS, flags=given))
            started = asyncio.Event()
            task = asyncio.create_task(it.run(started.set))
            await started.wait()
            try:
                await scenario(it)
            finally:
                it.shutdown()
                await task

    asyncio.run(whole())


def named(operator: Hive) -> dict[str, str]:
    """Return the degraded scopes below ``operator/rivals``."""
    report = operator.health.scope("operator").scope("rivals").report()
    return {"/".join(s.path): s.message for s in report if s.level is Level.DEGRADED}


def searches(server: ApiServer) -> int:
    """Return the number of searches so far."""
    return len(server.queries("list", "daemonsets"))


def running(server: ApiServer) -> ApiServer:
    """Let Cilium speak BGP."""
    server.daemon_sets = [daemon_set(1, **{"k8s-app": "other"}), daemon_set()]
    server.config_maps[CONFIG] = {"enable-bgp-control-plane": "true", "debug": "false"}
    return server


def test_a_rival_that_runs_degrades_health_and_is_logged_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = running(ApiServer())

    async def scenario(operator: Hive) -> None:
        await until(lambda: named(operator) == {"operator/rivals/cilium": MESSAGE})
        seen = searches(server)
        await until(lambda: searches(server) > seen + 2)
        server.daemon_sets = []
        await until(lambda: named(operator) == {})

    run(tmp_path, server, scenario)
    # One object is listed, selected by the labels of the rival.
    assert server.queries("list", "daemonsets")[0] == {
        "labelSelector": "k8s-app=cilium",
        "limit": "1",
    }
    lines = [line for line in capsys.readouterr().out.splitlines() if "operator.rival" in line]
    assert ["operator.rival_gone" in line for line in lines] == [False, True]
    assert "dialect=cilium" in lines[0]
    assert MESSAGE in lines[0]


@pytest.mark.parametrize(
    ("sets", "config"),
    [
        ([], {"enable-bgp-control-plane": "true"}),
        ([daemon_set(0)], {"enable-bgp-control-plane": "true"}),
        ([daemon_set()], {"enable-bgp-control-plane": "false"}),
        ([daemon_set()], {}),
        ([daemon_set()], None),
    ],
)
def test_without_ready_pods_or_its_setting_there_is_no_rival(
    tmp_path: Path, sets: list[dict[str, Any]], config: dict[str, str] | None
) -> None:
    server = ApiServer()
    server.daemon_sets = sets
    if config is not None:
        server.config_maps[CONFIG] = config

    async def scenario(operator: Hive) -> None:
        await until(lambda: searches(server) > 2)
        assert named(operator) == {}

    run(tmp_path, server, scenario)


def test_antreas_own_bgp_is_a_feature_gate_in_a_file_of_its_config_map(tmp_path: Path) -> None:
    server = ApiServer()
    antrea = daemon_set(app="antrea", component="antrea-agent")
    antrea["metadata"]["name"] = "antrea-agent"
    server.daemon_sets = [antrea]
    message = (
        "Antrea's own BGP runs beside this dialect (DaemonSet kube-system/antrea-agent): both open a "
        "session to each router; unset featureGates.BGPPolicy=true in antrea-agent.conf of ConfigMap "
        "kube-system/antrea-config and restart it, or switch this dialect off (--disable-cell antrea)"
    )

    def gates(text: str) -> None:
        server.config_maps["kube-system", "antrea-config"] = {"antrea-agent.conf": text}

    async def settled(operator: Hive, expected: dict[str, str]) -> None:
        seen = searches(server)
        await until(lambda: searches(server) > seen + 2 and named(operator) == expected)

    async def scenario(operator: Hive) -> None:
        for on in (
            "# Gates.\nfeatureGates:\n  Egress: true\n  BGPPolicy: true\nmtu: 0\n",
            'featureGates: {BGPPolicy: "true"}',
            "featureGates: {AllAlpha: true}",
        ):
            gates(on)
            await settled(operator, {"operator/rivals/antrea": message})
            gates("featureGates:\n#  BGPPolicy: true\n")
            await settled(operator, {})
        for off in (
            "featureGates: {BGPPolicy: false, AllAlpha: true}",
            "featureGates: [BGPPolicy]",
            "not: [yaml",
            "",
        ):
            gates(off)
            await settled(operator, {})

    run(tmp_path, server, scenario, enable_cell=["antrea"], disable_cell=["logging", "cilium"])


@pytest.mark.parametrize("plural", ["daemonsets", "configmaps"])
@pytest.mark.parametrize("code", [403, 404])
def test_what_may_not_be_read_proves_nothing(tmp_path: Path, plural: str, code: int) -> None:
    server = running(ApiServer())
    server.always("list" if plural == "daemonsets" else "get", plural, status(code, "No", "no"))

    async def scenario(operator: Hive) -> None:
        await until(lambda: searches(server) > 2)
        assert named(operator) == {}
        assert operator.supervisor.restarts["operator.rivals"] == 0

    run(tmp_path, server, scenario)


def test_a_search_that_fails_changes_nothing(tmp_path: Path) -> None:
    server = running(ApiServer())

    async def scenario(operator: Hive) -> None:
        await until(lambda: bool(named(operator)))
        server.always("list", "daemonsets", status(500, "InternalError", "no"))
        seen = searches(server)
        await until(lambda: searches(server) > seen + 2)
        assert named(operator) == {"operator/rivals/cilium": MESSAGE}
        server.daemon_sets = []
        server.always("list", "daemonsets", None)
        await until(lambda: named(operator) == {})

    run(tmp_path, server, scenario)


def test_a_candidate_that_does_not_lead_searches_nothing(tmp_path: Path) -> None:
    server = running(ApiServer())
    server.always("create", "leases", status(409, "AlreadyExists", "another operator leads"))

    async def scenario(operator: Hive) -> None:
        await until(lambda: len(server.queries("create", "leases")) > 3)
        assert named(operator) == {}
        assert searches(server) == 0

    run(tmp_path, server, scenario)


def test_a_dialect_that_is_off_has_no_rivals(tmp_path: Path) -> None:
    server = running(ApiServer())

    async def scenario(operator: Hive) -> None:
        await until(lambda: bool(server.leases))
        assert "operator.rivals" not in operator.supervisor.restarts
        assert searches(server) == 0

    run(tmp_path, server, scenario, disable_cell=["logging", "cilium"])
