"""Nodes that are not the agent's own: with ``--always-block=auto`` their pod CIDRs are stored."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import kubernetes_asyncio  # noqa: F401  imported here, as it takes seconds
import pytest

from cells import declarations
from cells.dialects import frrk8s
from cells.dialects.cell import agent_cell
from cells.hive import Level, load
from cells.hive.hive import Hive
from resources.core.kinds import NAMESPACE, NODE, SECRET, SERVICE_CIDR
from resources.frrk8s.kinds import FRR_CONFIGURATION, FRRK8S_CONFIGURATION
from resources.kind import Kinds
from resources.kubernetes.feed import Feed
from resources.tables import Tables
from statedb import Database
from tests.cells.hurry import hurry
from tests.cells.sources.test_api_server import levels
from tests.support.apiserver import ApiServer
from tests.support.wait import until

KINDS = Kinds((NODE, NAMESPACE, SECRET, SERVICE_CIDR, FRR_CONFIGURATION, FRRK8S_CONFIGURATION))
CELLS = (
    declarations.METRICS,
    declarations.NODE,
    declarations.DATABASE,
    declarations.RESOURCES,
    agent_cell(frrk8s.DIALECT),
    declarations.KUBERNETES,
)
FEED = "kubernetes/ServiceCIDR"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sources try again within the time of a test."""
    hurry(monkeypatch)


def node(name: str, cidr: str, **labels: str) -> dict[str, Any]:
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"podCIDR": cidr}}


def service_cidr(*cidrs: str) -> dict[str, Any]:
    return {"kind": "ServiceCIDR", "metadata": {"name": "kubernetes"}, "spec": {"cidrs": cidrs}}


def run(
    directory: Path,
    always_block: str,
    scenario: Callable[[Hive, ApiServer], Awaitable[None]],
    versions: tuple[str, ...] = ("v1",),
) -> None:
    async def whole() -> None:
        server = ApiServer(KINDS)
        server.served[SERVICE_CIDR.plural] = versions
        server.put(node("n1", "10.244.0.0/24", rack="1"))
        server.put(node("n2", "10.244.1.0/24", rack="2"))
        async with server:
            flags = {
                "--kubeconfig": str(server.kubeconfig(directory / "kubeconfig")),
                "--node-name": "n1",
                "enable_cell": ["frrk8s"],
                "--always-block": [always_block],
            }
            hive = Hive(CELLS, load(CELLS, flags=flags))
            started = asyncio.Event()
            task = asyncio.create_task(hive.run(started.set))
            await started.wait()
            try:
                async with asyncio.timeout(120):
                    await until(lambda: bool(server.queries("watch", "frrconfigurations")))
                    await scenario(hive, server)
            finally:
                hive.shutdown()
                await task

    asyncio.run(whole())


def networks(hive: Hive) -> dict[str, tuple[tuple[str, ...], int]]:
    """The pod CIDRs of each stored Node, and how many labels it has."""
    tables, snapshot = hive.get(Tables), hive.get(Database).snapshot()
    nodes = tables.nodes.all(snapshot)
    return {n.metadata.name: (n.pod_networks, len(n.metadata.labels)) for n in nodes}


def ranges(hive: Hive) -> list[str]:
    tables, snapshot = hive.get(Tables), hive.get(Database).snapshot()
    return [cidr for row in tables.of(SERVICE_CIDR).all(snapshot) for cidr in row.spec.cidrs]


def test_with_auto_the_networks_of_all_nodes_are_stored_and_followed(tmp_path: Path) -> None:
    async def scenario(hive: Hive, server: ApiServer) -> None:
        here = ("10.244.0.0/24",), 1
        assert networks(hive) == {"n1": here, "n2": (("10.244.1.0/24",), 0)}
        assert all("fieldSelector" not in query for query in server.queries("list", "nodes"))
        nodes = hive.get(Tables).nodes
        before = nodes.revision(hive.get(Database).snapshot())
        server.put(node("n2", "10.244.1.0/24", rack="3"))
        server.put(node("n3", "10.244.3.0/24"))
        await until(lambda: networks(hive).get("n3") == (("10.244.3.0/24",), 0))
        # A change of a label elsewhere is no change of a row.
        assert nodes.revision(hive.get(Database).snapshot()) == before + 1
        server.delete("Node", "n2")
        await until(lambda: sorted(networks(hive)) == ["n1", "n3"])

    run(tmp_path, "auto", scenario)


@pytest.mark.parametrize("versions", [("v1",), ("v1beta1",)])
def test_with_auto_service_cidrs_are_followed(tmp_path: Path, versions: tuple[str, ...]) -> None:
    async def scenario(hive: Hive, server: ApiServer) -> None:
        server.put(service_cidr("10.96.0.0/12"))
        await until(lambda: ranges(hive) == ["10.96.0.0/12"])
        server.put(service_cidr("10.96.0.0/12", "fd00:96::/112"))
        await until(lambda: ranges(hive) == ["10.96.0.0/12", "fd00:96::/112"])
        server.delete("ServiceCIDR", "kubernetes")
        await until(lambda: ranges(hive) == [])

    run(tmp_path, "auto,10.0.0.0/8", scenario, versions)


def test_an_api_server_without_service_cidrs_is_no_failure(tmp_path: Path) -> None:
    async def scenario(hive: Hive, server: ApiServer) -> None:
        await until(lambda: FEED in levels(hive) and levels(hive)[FEED][0] is Level.STOPPED)
        message = "the API server has no servicecidrs.networking.k8s.io"
        assert levels(hive)[FEED] == (Level.STOPPED, message)
        assert hive.health.level() is Level.OK
        assert not server.queries("list", "servicecidrs")
        assert sorted(networks(hive)) == ["n1", "n2"]

    run(tmp_path, "auto", scenario, ())


def test_without_auto_nothing_more_is_read(tmp_path: Path) -> None:
    async def scenario(hive: Hive, server: ApiServer) -> None:
        assert list(networks(hive)) == ["n1"]
        assert [q["fieldSelector"] for q in server.queries("list", "nodes")] == ["metadata.name=n1"]
        assert not server.queries("list", "servicecidrs")

    run(tmp_path, "10.0.0.0/8", scenario)


def test_stored_rows_of_other_nodes_count_only_where_they_are_read() -> None:
    rows = [NODE.decode(node("n1", "10.244.0.0/24")), NODE.decode(node("n2", "10.244.1.0/24"))]
    for others, wanted in ((False, ["n1"]), (True, ["n1", "n2"])):
        feed = Feed(NODE, node="n1", other_nodes=others)
        feed.restore(rows)
        assert [row.metadata.name for row in feed.rows.values()] == wanted
