"""The leader publishes the addresses of the cluster, and agents read them by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cells.hive import Level
from reconcilers.intent.service_addresses import published
from reconcilers.operator import cluster_addresses
from resources.core.kinds import CONFIG_MAP, NAMESPACE, NODE, SERVICE
from resources.kubernetes import of_node
from resources.source import Upsert
from tests.cells.operator.test_operator import fill, levels, operator, run
from tests.reconcilers.build import node
from tests.resources.kubernetes.source.reading import reader
from tests.resources.kubernetes.source.reading import run as run_reader
from tests.support.apiserver import ApiServer, status
from tests.support.wait import until

KEY = ("kube-system", published.NAME)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_addresses, "LEAST_SECONDS", 0.01)


def nodes_of(server: ApiServer) -> str:
    found = server.objects["configmaps"].get(KEY, {})
    data: dict[str, str] = found.get("data", {})
    return data.get("nodes", "")


def put_node(server: ApiServer, name: str, address: str) -> None:
    value = node(name)
    value["status"]["addresses"][0]["address"] = address
    server.put({"kind": "Node", "apiVersion": "v1", **value})


def test_the_object_follows_the_nodes_and_is_written_where_it_differs(tmp_path: Path) -> None:
    async def scenario(server: ApiServer) -> None:
        fill(server, "n1")
        cidr = {"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.96.0.0/16"]}}
        server.put({"kind": "ServiceCIDR", "apiVersion": "networking.k8s.io/v1", **cidr})
        async with operator(server, tmp_path) as (hive, _):
            await until(lambda: nodes_of(server) == "192.0.2.1\n")
            stored = server.objects["configmaps"][KEY]["data"]
            assert stored["pods"] == "10.244.0.0/24\n"
            assert stored["peers"] == "192.0.2.9\n"
            assert stored["services"] == "10.96.0.0/16\n"
            text = f"published, {published.octets(stored)} octets"
            await until(lambda: levels(hive)["operator/cluster-addresses"] == (Level.OK, text))
            put_node(server, "n2", "192.0.2.77")
            await until(lambda: nodes_of(server) == "192.0.2.1\n192.0.2.77\n")
            server.delete("Node", "n2")
            await until(lambda: nodes_of(server) == "192.0.2.1\n")
        writes = len(server.queries("patch", "configmaps"))
        async with operator(server, tmp_path, identity="b") as (hive, _):
            # It has compared the object that it found with what it would write.
            await until(lambda: levels(hive).get("operator/cluster-addresses") == (Level.OK, text))
        assert len(server.queries("patch", "configmaps")) == writes

    run(scenario)


def test_the_object_goes_with_the_deployment_of_the_operator(tmp_path: Path) -> None:
    async def scenario(server: ApiServer) -> None:
        fill(server, "n1")
        async with operator(server, tmp_path):
            await until(lambda: bool(nodes_of(server)))
        # That of an earlier release as well.
        server.deployments["waggle-operator"] = {"metadata": {"uid": "uid-d"}}
        stored = server.objects["configmaps"]
        async with operator(server, tmp_path, operator_deployment="waggle-operator"):
            await until(lambda: "ownerReferences" in stored[KEY]["metadata"])
        assert [o["uid"] for o in stored[KEY]["metadata"]["ownerReferences"]] == ["uid-d"]

    run(scenario)


def test_without_a_node_nothing_is_published(tmp_path: Path) -> None:
    async def scenario(server: ApiServer) -> None:
        async with operator(server, tmp_path) as (hive, _):
            text = "waits for the Nodes"
            await until(lambda: levels(hive)["operator/cluster-addresses"] == (Level.OK, text))
            assert KEY not in server.objects["configmaps"]
            fill(server, "n1")
            await until(lambda: nodes_of(server) == "192.0.2.1\n")

    run(scenario)


def test_addresses_do_not_wait_for_the_kinds_of_a_dialect(tmp_path: Path) -> None:
    async def scenario(server: ApiServer) -> None:
        fill(server, "n1")
        server.always("list", "ciliumbgppeerconfigs", status(403, "Forbidden", "no"))
        async with operator(server, tmp_path) as (hive, _):
            await until(lambda: nodes_of(server) == "192.0.2.1\n")
            missing = "CiliumBGPPeerConfig cannot be read"
            await until(lambda: levels(hive)["operator/cluster-addresses"][1].endswith(missing))

    run(scenario)


def test_addresses_of_a_kind_that_cannot_be_read_stay_published(tmp_path: Path) -> None:
    async def scenario(server: ApiServer) -> None:
        fill(server, "n1")
        async with operator(server, tmp_path):
            await until(lambda: bool(nodes_of(server)))
        stored = server.objects["configmaps"]
        assert stored[KEY]["data"]["peers"] == "192.0.2.9\n"
        server.always("list", "ciliumbgpclusterconfigs", status(403, "Forbidden", "no"))
        put_node(server, "n2", "192.0.2.77")
        async with operator(server, tmp_path, identity="b") as (hive, _):
            await until(lambda: nodes_of(server) == "192.0.2.1\n192.0.2.77\n")
            assert stored[KEY]["data"]["peers"] == "192.0.2.9\n"
            text = (
                f"ConfigMap kube-system/{published.NAME}: new addresses are missing, and former ones"
                " stay: CiliumBGPClusterConfig cannot be read"
            )
            await until(
                lambda: levels(hive)["operator/cluster-addresses"] == (Level.DEGRADED, text)
            )

    run(scenario)


def test_addresses_of_an_object_that_became_invalid_stay_published(tmp_path: Path) -> None:
    async def scenario(server: ApiServer) -> None:
        fill(server, "n1")
        cilium_node: dict[str, Any] = {
            "kind": "CiliumNode",
            "apiVersion": "cilium.io/v2",
            "metadata": {"name": "n1"},
            "spec": {"addresses": [{"type": "InternalIP", "ip": "198.51.100.7"}]},
        }
        server.put(cilium_node)
        async with operator(server, tmp_path):
            await until(lambda: nodes_of(server) == "192.0.2.1\n198.51.100.7\n")
        cilium_node["spec"]["ipam"] = {"podCIDRs": "no list"}
        server.put(cilium_node)
        put_node(server, "n2", "192.0.2.77")
        # This operator knows no valid version of it.
        async with operator(server, tmp_path, identity="b") as (hive, _):
            await until(lambda: nodes_of(server) == "192.0.2.1\n192.0.2.77\n198.51.100.7\n")
            text = (
                f"ConfigMap kube-system/{published.NAME}: new addresses are missing, and former ones"
                " stay: CiliumNode/n1 is invalid"
            )
            await until(
                lambda: levels(hive)["operator/cluster-addresses"] == (Level.DEGRADED, text)
            )
            cilium_node["spec"].pop("ipam")
            cilium_node["spec"]["addresses"][0]["ip"] = "198.51.100.8"
            server.put(cilium_node)
            await until(lambda: nodes_of(server) == "192.0.2.1\n192.0.2.77\n198.51.100.8\n")

    run(scenario)


def test_an_agent_reads_one_config_map_and_the_metadata_of_namespaces(tmp_path: Path) -> None:
    async def scenario() -> None:
        kinds = (NODE, NAMESPACE, SERVICE)
        wanted = of_node(kinds, "n1", single={CONFIG_MAP: KEY})
        assert CONFIG_MAP in wanted.kinds
        async with ApiServer() as server:
            for name in (published.NAME, "other"):
                metadata = {"name": name, "namespace": "kube-system"}
                server.put({"kind": "ConfigMap", "metadata": metadata, "data": {"nodes": "x"}})
            server.put(namespace("198.51.100.0/24"))
            async with reader(
                server,
                tmp_path,
                kinds=wanted.kinds,
                selections=dict(wanted.selections),
                node="n1",
            ) as observed:
                await until(lambda: observed.events["ConfigMap"] and observed.events["Namespace"])
                assert observed.names("ConfigMap") == {published.NAME}
                assert observed.names("Namespace") == {"shop"}
                await until(lambda: server.queries("watch", "namespaces"))
                server.put(namespace("203.0.113.0/24"))
                await until(lambda: len(observed.events["Namespace"]) == 2)
                event = observed.events["Namespace"][-1]
                assert isinstance(event, Upsert)
                assert event.object.metadata.annotations == {
                    "waggle.dev/service-addresses": "203.0.113.0/24"
                }

    run_reader(scenario)


def namespace(granted: str) -> dict[str, object]:
    annotations = {"waggle.dev/service-addresses": granted, "example.org/other": "x"}
    return {"kind": "Namespace", "metadata": {"name": "shop", "annotations": annotations}}
