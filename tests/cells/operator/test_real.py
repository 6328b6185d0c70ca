"""Operators as programs against a real API server: its validation, its apply, its roles."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cells.dialects import cilium
from reconcilers.cilium.dialect import CiliumDialect
from reconcilers.cilium.options import CiliumOperatorOptions
from reconcilers.operator.rivals import RunningRival, running_rivals
from resources.kubernetes import Access, Connection, Writer, count_objects
from resources.tables import Tables
from statedb import Database
from tests.reconcilers.build import cluster_config, node, peer_config
from tests.support.daemon import Daemon
from tests.support.kinds import CILIUM_KINDS
from tests.support.kubernetes.accounts import CRDS, access, define, grant, put, rules, undefine
from tests.support.kubernetes.cilium import delete_cilium, put_cilium
from tests.support.kubernetes.server import KubeApiServer
from tests.support.wait import eventually

pytestmark = [pytest.mark.apiserver, pytest.mark.program, pytest.mark.timeout(300)]

CILIUM = "/apis/cilium.io/v2"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/waggle-operator"
ACCOUNT = "operator-of-the-test"
PATIENT = ("--lease-duration-seconds", "300", "--renew-deadline-seconds", "290")
"""No operator loses its Lease on a busy machine; election times are tested in virtual time."""


@pytest.fixture
def server(apiserver: KubeApiServer) -> Iterator[KubeApiServer]:
    """A server with our definitions, two nodes, and roles with nothing but what is needed."""
    made = define(apiserver)
    for name in ("n1", "n2"):
        _put_node(apiserver, name)
    for scope in ("Cluster", ""):
        grant(apiserver, ACCOUNT, scope, rules("operator", scope))
    yield apiserver
    undefine(apiserver, made)
    for path in ("/api/v1/nodes/n1", "/api/v1/nodes/n2", "/api/v1/nodes/n3", LEASE):
        apiserver.request("DELETE", path)


def _put_node(server: KubeApiServer, name: str, **labels: str) -> None:
    value = node(name, **labels)
    put(
        server,
        "/api/v1/nodes",
        {"apiVersion": "v1", "kind": "Node", "metadata": value["metadata"]},
    )


@pytest.fixture
def operator(server: KubeApiServer, tmp_path: Path) -> Iterator[Callable[..., Daemon]]:
    """Start an operator of a name, as an account that has its roles' permissions only."""
    kubeconfig = access(server, ACCOUNT, tmp_path / "kubeconfig")
    started: list[Daemon] = []

    def start(name: str, *arguments: str) -> Daemon:
        daemon = Daemon(
            name,
            [
                sys.executable,
                "-m",
                "waggle_operator",
                "--kubeconfig",
                kubeconfig,
                "--operator-identity",
                name,
                *PATIENT,
                *arguments,
            ],
            log=tmp_path / f"{name}.log",
        )
        daemon.start()
        started.append(daemon)
        return daemon

    yield start
    for daemon in started:
        daemon.stop()


def config(server: KubeApiServer, name: str = "c", **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    kind = {"apiVersion": "cilium.io/v2", "kind": "CiliumBGPClusterConfig"}
    return put(
        server, f"{CILIUM}/ciliumbgpclusterconfigs", {**kind, **cluster_config(name, **spec)}
    )


def node_configs(server: KubeApiServer) -> dict[str, dict[str, Any]]:
    found = server.request("GET", f"{CILIUM}/ciliumbgpnodeconfigs").body["items"]
    return {item["metadata"]["name"]: item for item in found}


def conditions(server: KubeApiServer, name: str = "c") -> dict[str, dict[str, Any]]:
    found = server.request("GET", f"{CILIUM}/ciliumbgpclusterconfigs/{name}").body
    return {c["type"].partition("/")[2]: c for c in found.get("status", {}).get("conditions", [])}


def holder(server: KubeApiServer) -> str:
    return str(server.request("GET", LEASE).body.get("spec", {}).get("holderIdentity", ""))


def soon(check: Callable[[], object], daemon: Daemon) -> None:
    """Wait until a condition holds; a failure shows the operator's log."""

    def checked() -> None:
        assert check()

    eventually(checked, context=daemon.tail)


def test_planned_objects_are_written_and_stay_unchanged(
    server: KubeApiServer, operator: Callable[[str], Daemon]
) -> None:
    made = config(server)
    peer = {"apiVersion": "cilium.io/v2", "kind": "CiliumBGPPeerConfig", **peer_config()}
    put(server, f"{CILIUM}/ciliumbgppeerconfigs", peer)
    daemon = operator("a")
    soon(lambda: node_configs(server).keys() == {"n1", "n2"}, daemon)
    soon(lambda: len(conditions(server)) == 3, daemon)
    first = node_configs(server)["n1"]
    (owner,) = first["metadata"]["ownerReferences"]
    assert (owner["name"], owner["uid"], owner["controller"]) == (
        "c",
        made["metadata"]["uid"],
        True,
    )
    assert {m["manager"] for m in first["metadata"]["managedFields"]} == {"waggle-operator"}
    written = conditions(server)
    assert {name: c["status"] for name, c in written.items()} == {
        "ConflictingClusterConfig": "False",
        "MissingPeerConfigs": "False",
        "NoMatchingNode": "False",
    }
    assert {c["observedGeneration"] for c in written.values()} == {1}

    # Only what changes is written, and the time of a condition moves with its status.
    config(server, peers=[])
    soon(lambda: "peers" not in node_configs(server)["n1"]["spec"]["bgpInstances"][0], daemon)
    soon(lambda: conditions(server)["NoMatchingNode"]["observedGeneration"] == 2, daemon)
    before = written["NoMatchingNode"]["lastTransitionTime"]
    assert conditions(server)["NoMatchingNode"]["lastTransitionTime"] == before
    config(server, nodeSelector={"matchLabels": {"rack": "b"}})
    soon(lambda: node_configs(server) == {}, daemon)
    soon(lambda: conditions(server)["NoMatchingNode"]["status"] == "True", daemon)
    _put_node(server, "n3", rack="b")
    soon(lambda: node_configs(server).keys() == {"n3"}, daemon)


def test_c43_to_c51_nodes_are_selected_conflicts_are_reported_and_conditions_are_removed(
    server: KubeApiServer, operator: Callable[..., Daemon]
) -> None:
    def status_of(name: str) -> str:
        return str(conditions(server, name).get("ConflictingClusterConfig", {}).get("status"))

    def owners() -> dict[str, str]:
        return {
            name: made["metadata"]["ownerReferences"][0]["name"]
            for name, made in node_configs(server).items()
        }

    # C43: by labels, by expressions; C47: two that select nodes apart from each other.
    _put_node(server, "n1", rack="a")
    _put_node(server, "n2", rack="b")
    config(server, "a", nodeSelector={"matchLabels": {"rack": "a"}})
    expression = {"key": "rack", "operator": "In", "values": ["b"]}
    config(server, "b", nodeSelector={"matchExpressions": [expression]})
    daemon = operator("a")
    soon(lambda: owners() == {"n1": "a", "n2": "b"}, daemon)
    soon(lambda: (status_of("a"), status_of("b")) == ("False", "False"), daemon)
    # C49: one more selects both of the nodes, and gets none of them.
    config(server, "c")
    soon(
        lambda: (status_of("a"), status_of("b"), status_of("c")) == ("False", "False", "True"),
        daemon,
    )
    assert owners() == {"n1": "a", "n2": "b"}
    # C45: a node that comes is its; labels that go leave the node to it, and the others none.
    _put_node(server, "n3", rack="c")
    soon(lambda: owners().get("n3") == "c", daemon)
    _put_node(server, "n1", rack="c")
    soon(lambda: owners() == {"n1": "c", "n2": "b", "n3": "c"}, daemon)
    soon(lambda: conditions(server, "a")["NoMatchingNode"]["status"] == "True", daemon)
    # C51: with the status report off the written conditions are removed.
    # Its Lease is given back, so that the next one leads at once.
    assert daemon.stop(timeout=60) == 0
    quiet = operator("b", "--status-report", "false")
    soon(lambda: not any(conditions(server, name) for name in ("a", "b", "c")), quiet)
    assert owners() == {"n1": "c", "n2": "b", "n3": "c"}


def test_f10_two_operators_one_leads_and_when_it_is_killed_nothing_flaps(
    server: KubeApiServer, operator: Callable[[str], Daemon]
) -> None:
    config(server)
    first = operator("a")
    soon(lambda: holder(server) == "a", first)
    soon(lambda: node_configs(server).keys() == {"n1", "n2"}, first)
    soon(lambda: len(conditions(server)) == 3, first)
    second = operator("b")
    soon(lambda: "leader=a leads=false" in second.tail(), second)
    before = {n: c["metadata"]["resourceVersion"] for n, c in node_configs(server).items()}
    first.kill()
    # What is left of the dead one's time would only be waited for.
    brief = {"spec": {"leaseDurationSeconds": 1}}
    assert server.request("PATCH", LEASE, brief, kind="merge-patch+json").ok
    soon(lambda: holder(server) == "b", second)
    _put_node(server, "n3")
    soon(lambda: node_configs(server).keys() == {"n1", "n2", "n3"}, second)
    after = {n: c["metadata"]["resourceVersion"] for n, c in node_configs(server).items()}
    assert {name: after[name] for name in before} == before


def test_c55_stored_objects_are_brought_to_the_present_version(
    server: KubeApiServer, operator: Callable[[str], Daemon]
) -> None:
    name = "ciliumbgpadvertisements.cilium.io"
    crd = server.request("GET", f"{CRDS}/{name}").body
    _store_in(server, name, "v2alpha1")
    key = "/registry/cilium.io/ciliumbgpadvertisements/"
    tries = itertools.count()

    def put_as_old() -> None:
        # The server serves the old definition for a moment.
        label = {"try": str(next(tries))}
        for number in range(3):
            put(
                server,
                "/apis/cilium.io/v2alpha1/ciliumbgpadvertisements",
                {
                    "apiVersion": "cilium.io/v2alpha1",
                    "kind": "CiliumBGPAdvertisement",
                    "metadata": {"name": f"old-{number}", "labels": label},
                    "spec": {"advertisements": [{"advertisementType": "PodCIDR"}]},
                },
            )
        _check_versions(server, key, "v2alpha1")

    eventually(put_as_old)
    _store_in(server, name, "v2")
    assert _stored(server, name) == {"v2", "v2alpha1"}
    before = {o["metadata"]["name"]: o for o in _advertisements(server)}
    daemon = operator("a")
    soon(lambda: _stored(server, name) == {"v2"}, daemon)
    _check_versions(server, key, "v2")
    after = {o["metadata"]["name"]: o for o in _advertisements(server)}
    assert after.keys() == before.keys()
    for number, obj in before.items():
        # Nothing of it is another, and no field is the operator's now.
        assert after[number]["spec"] == obj["spec"]
        assert after[number]["metadata"]["generation"] == obj["metadata"]["generation"]
        managers = {m["manager"] for m in after[number]["metadata"]["managedFields"]}
        assert managers == {"person"}
    # Now the old version can be taken out of the definition, which the server refused before.
    crd["spec"]["versions"] = [v for v in crd["spec"]["versions"] if v["name"] == "v2"]
    bare = {k: crd[k] for k in ("apiVersion", "kind", "spec")} | {"metadata": {"name": name}}
    put(server, CRDS, bare)


def _store_in(server: KubeApiServer, name: str, version: str) -> None:
    """Make a version the stored version from now on."""
    crd = server.request("GET", f"{CRDS}/{name}").body
    for entry in crd["spec"]["versions"]:
        entry["storage"] = entry["name"] == version
    put(
        server,
        CRDS,
        {k: crd[k] for k in ("apiVersion", "kind", "spec")} | {"metadata": {"name": name}},
    )


def _stored(server: KubeApiServer, name: str) -> set[str]:
    return set(server.request("GET", f"{CRDS}/{name}").body["status"]["storedVersions"])


def _advertisements(server: KubeApiServer) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    def read() -> None:
        # A definition that has just been changed is not served for a moment.
        answer = server.request("GET", f"{CILIUM}/ciliumbgpadvertisements")
        assert answer.ok, answer.body
        found[:] = answer.body["items"]

    eventually(read)
    return found


def _check_versions(server: KubeApiServer, prefix: str, version: str) -> None:
    """Look into etcd itself, as the API server converts what it gives."""
    stored = [json.loads(value)["apiVersion"] for value in server.stored(prefix)]
    assert stored == [f"cilium.io/{version}"] * 3


def test_node_configs_of_another_operator_are_adopted_as_a_whole(
    server: KubeApiServer, operator: Callable[[str], Daemon]
) -> None:
    made = config(server)
    path = f"{CILIUM}/ciliumbgpnodeconfigs"
    old = {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumBGPClusterConfig",
        "name": "c",
        "controller": True,
    }
    mine = {**old, "uid": made["metadata"]["uid"]}
    stray = {"name": "gone", "peerAddress": "192.0.2.99", "peerASN": 65099}
    instance = {"name": "i", "localASN": 65001, "peers": [stray]}
    # n1 was made for this very ClusterConfig, n2 for one of the same name that is no more: two
    # owners of one object, both of them its controller, are refused.
    for name, owner in (
        ("n1", mine),
        ("n2", {**old, "uid": "11111111-2222-3333-4444-555555555555"}),
    ):
        value = {
            "apiVersion": "cilium.io/v2",
            "kind": "CiliumBGPNodeConfig",
            "metadata": {"name": name, "labels": {"kept": "yes"}, "ownerReferences": [owner]},
            "spec": {"bgpInstances": [instance, {"name": "stray", "localASN": 65099}]},
        }
        answer = server.request("POST", f"{path}?fieldManager=cilium-operator", value)
        assert answer.ok, answer.body

    def taken() -> bool:
        found = node_configs(server)
        return found.keys() == {"n1", "n2"} and all(
            [i["name"] for i in one["spec"]["bgpInstances"]] == ["i"]
            and [p["name"] for p in one["spec"]["bgpInstances"][0]["peers"]] == ["p"]
            and [o["uid"] for o in one["metadata"]["ownerReferences"]] == [mine["uid"]]
            for one in found.values()
        )

    daemon = operator("a")
    soon(taken, daemon)
    assert "write_failed" not in daemon.tail()
    versions = {n: c["metadata"]["resourceVersion"] for n, c in node_configs(server).items()}
    assert all(c["metadata"]["labels"] == {"kept": "yes"} for c in node_configs(server).values())
    # From now on no other writer's fields are left.
    config(server, peers=[])
    soon(
        lambda: all(
            "peers" not in c["spec"]["bgpInstances"][0] for c in node_configs(server).values()
        ),
        daemon,
    )
    after = {n: c["metadata"]["resourceVersion"] for n, c in node_configs(server).items()}
    assert after != versions
    assert daemon.tail().count("operator.taken_over") == 2


def test_a_rival_has_ready_pods_and_speaks_bgp(
    server: KubeApiServer, operator: Callable[[str], Daemon], tmp_path: Path
) -> None:
    kubeconfig = access(server, ACCOUNT, tmp_path / "rivals")
    dialect = CiliumDialect(Tables(Database(), CILIUM_KINDS), CiliumOperatorOptions())

    async def search() -> list[RunningRival]:
        connection = Connection(Access(str(kubeconfig)))
        try:
            return await running_rivals(Writer(connection, "test"), [dialect])
        finally:
            await connection.close()

    def found() -> list[str]:
        return [f"{rival.namespace}/{rival.name}" for rival in asyncio.run(search())]

    try:
        assert found() == []
        put_cilium(server)
        assert found() == ["kube-system/cilium"]
        daemon = operator("a")
        soon(lambda: "operator.rival" in daemon.tail(), daemon)
        put_cilium(server, ready=0)
        assert found() == []
        put_cilium(server, bgp="false")
        assert found() == []
    finally:
        delete_cilium(server)


def test_objects_that_are_not_read_are_counted_by_one_object_of_each_list(
    server: KubeApiServer, tmp_path: Path
) -> None:
    kinds = cilium.DIALECT.kinds()

    async def count(kubeconfig: Path) -> Mapping[tuple[str, str], int]:
        connection = Connection(Access(str(kubeconfig)))
        try:
            return await count_objects(Writer(connection, "test"), kinds, {})
        finally:
            await connection.close()

    for name in ("a", "b", "c"):
        config(server, name)
    assert asyncio.run(count(server.kubeconfig)) == {
        ("cilium.io", "CiliumBGPClusterConfig"): 3,
        ("cilium.io", "CiliumBGPPeeringPolicy"): 0,
    }
    # Without permission nothing is known, and nothing fails.
    assert asyncio.run(count(access(server, "no-account", tmp_path / "no-account"))) == {}
