"""Operators against an API server: one leads and writes, and what goes wrong stops nothing else."""

from __future__ import annotations

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import kubernetes_asyncio  # noqa: F401  imported here, as it takes seconds
import pytest
import structlog
from structlog.testing import LogCapture

from cells.hive import Level, SettingError, load
from cells.hive.hive import Hive
from cells.operator import cell
from cells.operator.election import Leadership, LostLeadershipError
from reconcilers.operator import writes
from resources.kubernetes import migration
from tests.cells.hurry import hurry
from tests.reconcilers.build import cluster_config, node, peer_config
from tests.reconcilers.cilium.v1.build import policy_object
from tests.resources.kubernetes.objects import advertisement
from tests.resources.kubernetes.test_migration import definition
from tests.support.apiserver import ApiServer, cut, status
from tests.support.metrics import scrape
from tests.support.wait import until
from waggle_operator.__main__ import CELLS, main

CONFIGS = "ciliumbgpnodeconfigs"
CLUSTERS = "ciliumbgpclusterconfigs"
DEFINITION = "ciliumbgpadvertisements.cilium.io"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elections and second attempts within the time of a test."""
    monkeypatch.setattr(writes, "FIRST_RETRY_SECONDS", 0.05)
    monkeypatch.setattr(writes, "WRITE_INTERVAL_SECONDS", 0.02)
    monkeypatch.setattr(migration, "FIRST_RETRY_SECONDS", 0.05)


def fill(server: ApiServer, *names: str) -> None:
    """Put in nodes and a ClusterConfig that selects all of them."""
    for name in names or ("n1", "n2"):
        server.put({"kind": "Node", "apiVersion": "v1", **node(name)})
    config = cluster_config()
    config["metadata"].update(uid="uid-c", generation=1)
    server.put({"kind": "CiliumBGPClusterConfig", **config})
    server.put({"kind": "CiliumBGPPeerConfig", **peer_config()})


@asynccontextmanager
async def operator(
    server: ApiServer, directory: Path, identity: str = "a", **flags: object
) -> AsyncIterator[tuple[Hive, asyncio.Task[None]]]:
    """Run one operator."""
    given = {
        "--kubeconfig": str(server.kubeconfig(directory / "kubeconfig")),
        "--operator-identity": identity,
        "--lease-retry-seconds": "0.05",
        # A process that a busy machine keeps from running goes on leading; no Lease expires.
        "--renew-deadline-seconds": "900",
        "--lease-duration-seconds": "1000",
        **{f"--{name.replace('_', '-')}": value for name, value in flags.items()},
    }
    hive = Hive(CELLS, load(CELLS, flags=given))
    started = asyncio.Event()
    task = asyncio.create_task(hive.run(started.set))
    await started.wait()
    try:
        yield hive, task
    finally:
        hive.shutdown()
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()


def run(scenario: Callable[[ApiServer], Awaitable[None]]) -> None:
    """Run a scenario with a server."""

    async def whole() -> None:
        async with ApiServer() as server, asyncio.timeout(120):
            await scenario(server)

    asyncio.run(whole())


def names(server: ApiServer) -> set[str]:
    return {name for _, name in server.objects[CONFIGS]}


def written(server: ApiServer) -> list[dict[str, str]]:
    """Return the queries of the writes, but for the addresses of the cluster."""
    return [q for verb, plural, q in server.requests if verb == "patch" and plural != "configmaps"]


def patches(server: ApiServer, name: str) -> int:
    """Return how often the NodeConfig of a node was written."""
    return sum(verb == "patch" and path.endswith(f"/{name}") for verb, path in server.paths)


def deleted(server: ApiServer) -> list[dict[str, str]]:
    return [query for verb, _, query in server.requests if verb == "delete"]


def conditions(server: ApiServer, plural: str = CLUSTERS, name: str = "c") -> dict[str, str]:
    found = server.objects[plural]["", name].get("status", {}).get("conditions", [])
    return {c["type"].partition("/")[2]: c["status"] for c in found}


def levels(hive: Hive) -> dict[str, tuple[Level, str]]:
    """Return level and message of each scope; a scope without a report is ok."""
    found = {"/".join(s.path): (s.level, s.message) for s in hive.health.report()}
    return defaultdict(lambda: (Level.OK, ""), found)


def holder(server: ApiServer) -> str:
    lease = server.leases.get("waggle-operator", {"spec": {}})
    return str(lease["spec"].get("holderIdentity", ""))


def test_node_configs_and_conditions_are_written_once(tmp_path: Path) -> None:
    async def scenario(server: ApiServer) -> None:
        fill(server)
        async with operator(server, tmp_path) as (hive, _):
            await until(lambda: names(server) == {"n1", "n2"} and len(conditions(server)) == 3)
            await until(lambda: bool(conditions(server, "ciliumbgppeerconfigs", "pc")))
            assert conditions(server) == {
                "ConflictingClusterConfig": "False",
                "MissingPeerConfigs": "False",
                "NoMatchingNode": "False",
            }
            patches = written(server)
            assert len(patches) == 4
            assert {(q["fieldManager"], q["force"]) for q in patches} == {
                ("waggle-operator", "true")
            }
            # It sees what it wrote, and has nothing to do.
            await until(
                lambda: levels(hive)["operator/objects"][1] == "all objects are written (4 writes)"
            )
            await until(lambda: hive.readiness.ready)
            # Another node is one write more, of a later round.
            server.put({"kind": "Node", "apiVersion": "v1", **node("n3")})
            await until(lambda: names(server) == {"n1", "n2", "n3"})
            await until(
                lambda: levels(hive)["operator/objects"][1] == "all objects are written (5 writes)"
            )
            assert len(written(server)) == 5
            scraped = scrape(hive)
            assert "waggle_operator_leader 1.0" in scraped
            assert "waggle_operator_writes_total 5.0" in scraped

    run(scenario)


def test_a_new_operator_writes_nothing_that_is_there(tmp_path: Path) -> None:
    async def scenario(server: ApiServer) -> None:
        fill(server)
        async with operator(server, tmp_path):
            await until(lambda: names(server) == {"n1", "n2"} and len(conditions(server)) == 3)
            await until(lambda: bool(conditions(server, "ciliumbgppeerconfigs", "pc")))
        before = server.queries("patch", CLUSTERS)
        async with operator(server, tmp_path, "b") as (hive, _):
            wanted = (Level.OK, "all objects are written (0 writes)")
            await until(lambda: levels(hive).get("operator/objects") == wanted)
        assert server.queries("patch", CLUSTERS) == before

    run(scenario)


def test_the_lease_goes_with_the_deployment(tmp_path: Path) -> None:
    async def scenario(server: ApiServer) -> None:
        server.deployments["waggle-operator"] = {"metadata": {"uid": "uid-d"}}
        async with operator(server, tmp_path, operator_deployment="waggle-operator"):
            await until(lambda: holder(server) == "a")
            (owner,) = server.leases["waggle-operator"]["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["name"], owner["uid"]) == (
                *("Deployment", "waggle-operator", "uid-d"),
            )
        # Released, and still owned.
        assert holder(server) == ""
        assert server.leases["waggle-operator"]["metadata"]["ownerReferences"] == [owner]

    run(scenario)


def test_a_deployment_that_may_not_be_read_stops_no_election(tmp_path: Path) -> None:
    async def scenario(server: ApiServer) -> None:
        server.always("get", "deployments", status(403, "Forbidden", "no"))
        async with operator(server, tmp_path, operator_deployment="waggle-operator"):
            await until(lambda: holder(server) == "a")

    run(scenario)


def test_of_two_one_leads_and_the_other_takes_over_at_once_when_it_leaves(tmp_path: Path) -> None:
    async def scenario(server: ApiServer) -> None:
        fill(server)
        async with operator(server, tmp_path, "b") as (second, _):
            await until(lambda: holder(server) == "b")
            async with operator(server, tmp_path, "c") as (third, _):
                waits = (Level.OK, "waits; b leads")
                await until(lambda: levels(third).get("operator/leader") == waits)
                await until(lambda: names(server) == {"n1", "n2"})
                second.shutdown()
                await until(lambda: holder(server) == "c")
                server.put({"kind": "Node", "apiVersion": "v1", **node("n3")})
                await until(lambda: names(server) == {"n1", "n2", "n3"})
        # Released for the next candidate.
        assert holder(server) == ""

    run(scenario)


def test_a_leader_that_dies_is_followed_and_nothing_is_written_twice(tmp_path: Path) -> None:
    async def scenario(server: ApiServer) -> None:
        fill(server)
        lease = {"holderIdentity": "dead", "leaseDurationSeconds": 1}
        server.leases["waggle-operator"] = {
            "metadata": {"name": "waggle-operator", "resourceVersion": "1"},
            "spec": lease,
        }
        async with operator(server, tmp_path):
            await until(lambda: bool(server.queries("list", CONFIGS)))
            assert not names(server)
            await until(lambda: holder(server) == "a")
            await until(lambda: names(server) == {"n1", "n2"})
        assert len(server.queries("patch", CONFIGS)) == 2

    run(scenario)


def test_a_leader_that_loses_the_lease_ends_and_writes_no_more(tmp_path: Path) -> None:
    async def scenario(server: ApiServer) -> None:
        fill(server)
        async with operator(server, tmp_path) as (_, task):
            await until(lambda: names(server) == {"n1", "n2"})
            lease = server.leases["waggle-operator"]
            lease["spec"] = {**lease["spec"], "holderIdentity": "thief"}
            lease["metadata"] = {**lease["metadata"], "resourceVersion": "x"}
            with pytest.raises(LostLeadershipError, match="lost the leadership: thief leads"):
                await asyncio.shield(task)
        assert holder(server) == "thief"

    run(scenario)


def test_an_api_server_that_is_away_for_too_long_ends_the_leader(tmp_path: Path) -> None:
    brief = {"lease_duration_seconds": "2", "renew_deadline_seconds": "1"}

    async def scenario(server: ApiServer) -> None:
        fill(server)
        async with operator(server, tmp_path, **brief) as (_, task):
            await until(lambda: holder(server) == "a")
            await server.stop()
            with pytest.raises(
                LostLeadershipError, match=r"lost the leadership: (cannot reach|no answer)"
            ):
                await asyncio.shield(task)

    run(scenario)


@pytest.mark.parametrize(
    ("flag", "value", "message"),
    [
        ("--renew-deadline-seconds", "15", "is not less than --lease-duration-seconds (15): 15"),
        ("--lease-retry-seconds", "10", "is not less than --renew-deadline-seconds (10): 10"),
    ],
)
def test_election_timings_that_allow_two_leaders_are_rejected(
    flag: str, value: str, message: str
) -> None:
    settings = load(CELLS, flags={"--kubeconfig": "none", flag: value})
    with pytest.raises(SettingError) as refused:
        asyncio.run(Hive(CELLS, settings).run())
    assert flag in str(refused.value)
    assert message in str(refused.value)


def test_f09_a_failed_write_is_retried_and_delays_no_other(tmp_path: Path) -> None:
    async def scenario(server: ApiServer) -> None:
        fill(server)
        conflict = status(409, "Conflict", "another writer")
        server.once("patch", CONFIGS, conflict, status(500, "InternalError", "etcd"), cut)
        # The same of a status that is too large for etcd.
        too_large = status(413, "RequestEntityTooLarge", "etcdserver: request is too large")
        server.once("patch", CLUSTERS, conflict, too_large)
        async with operator(server, tmp_path) as (hive, _):
            await until(lambda: names(server) == {"n1", "n2"} and len(conditions(server)) == 3)
            await until(lambda: levels(hive)["operator/objects"][0] is Level.OK)
            scraped = scrape(hive)
            assert 'waggle_reconcile_errors_total{controller="operator"} 5.0' in scraped

    run(scenario)


def test_f09_a_terminating_lease_namespace_leaves_no_leader_and_no_write(
    tmp_path: Path,
) -> None:
    async def scenario(server: ApiServer) -> None:
        fill(server)
        text = "unable to create new content in namespace kube-system: it is being terminated"
        server.always("create", "leases", status(403, "Forbidden", text))
        async with operator(server, tmp_path) as (hive, _):
            scope = "operator/leader"
            await until(lambda: "being terminated" in levels(hive).get(scope, (Level.OK, ""))[1])
            assert levels(hive)[scope][0] is Level.DEGRADED
            assert not names(server)
            server.always("create", "leases", None)
            await until(lambda: names(server) == {"n1", "n2"})

    run(scenario)


def test_f09_changes_in_quick_succession_are_one_write_of_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interval = 0.3
    monkeypatch.setattr(writes, "WRITE_INTERVAL_SECONDS", interval)

    async def scenario(server: ApiServer) -> None:
        fill(server)
        async with operator(server, tmp_path):
            await until(lambda: names(server) == {"n1", "n2"} and len(conditions(server)) == 3)
            before = len(server.queries("patch", CONFIGS))
            began = time.monotonic()
            (config,) = server.objects[CLUSTERS].values()
            for number in range(20):
                (instance,) = config["spec"]["bgpInstances"]
                changed = {
                    **config["spec"],
                    "bgpInstances": [{**instance, "localASN": 65100 + number}],
                }
                server.put({**config, "kind": "CiliumBGPClusterConfig", "spec": changed})
                await asyncio.sleep(0.005)
            await until(lambda: asns(server) == {65119})
            # Of each node one at once perhaps, and one for all that came within an interval after it.
            intervals = math.ceil((time.monotonic() - began) / interval)
            assert len(server.queries("patch", CONFIGS)) - before <= 2 * (1 + intervals)

    run(scenario)


def asns(server: ApiServer) -> set[int]:
    return {obj["spec"]["bgpInstances"][0]["localASN"] for obj in server.objects[CONFIGS].values()}


def test_f10_two_leaders_at_once_write_the_same_and_then_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fifteen seconds in which a former leader has not noticed; here for as long as it takes."""
    monkeypatch.setattr(Leadership, "leads", property(lambda _: True))

    async def scenario(server: ApiServer) -> None:
        fill(server)
        async with operator(server, tmp_path), operator(server, tmp_path, "b") as (second, _):
            await until(lambda: names(server) == {"n1", "n2"} and len(conditions(server)) == 3)
            second.get(cell.Operator)._leadership.gained.set()
            server.put({"kind": "Node", "apiVersion": "v1", **node("n3")})
            await until(lambda: names(server) == {"n1", "n2", "n3"})
            # In later rounds of either nothing is written but the NodeConfigs of other nodes.
            before = {name: patches(server, name) for name in ("n1", "n2")}
            for name in ("n4", "n5", "n6"):
                server.put({"kind": "Node", "apiVersion": "v1", **node(name)})
                await until(lambda name=name: name in names(server))  # type: ignore[misc]
            assert {name: patches(server, name) for name in before} == before
            assert not server.queries("delete", CONFIGS)
            owners = {
                obj["metadata"]["ownerReferences"][0]["uid"]
                for obj in server.objects[CONFIGS].values()
            }
            assert owners == {"uid-c"}

    run(scenario)


def test_a_rejected_write_is_named_in_health(tmp_path: Path) -> None:
    async def scenario(server: ApiServer) -> None:
        fill(server)
        server.always("patch", CONFIGS, status(403, "Forbidden", "may not patch"))
        async with operator(server, tmp_path) as (hive, _):
            await until(lambda: len(conditions(server)) == 3)
            # Each write that is rejected changes it.
            rejected = "CiliumBGPNodeConfig/n1: apply: 403: may not patch (and 1 more)"
            wanted = (Level.DEGRADED, rejected)
            await until(lambda: levels(hive).get("operator/objects") == wanted)
            # The conditions are written: each reconciler has numbers of its own.
            numbers = {
                f'waggle_reconcile_{what}objects{{reconciler="{name}"}} {number}'
                for name, failed in (("object", 2.0), ("condition", 0.0))
                for what, number in (("", 2.0), ("waiting_", failed), ("failed_", failed))
            }
            assert numbers <= {*scrape(hive).splitlines()}

    run(scenario)


def test_a_deleted_node_loses_its_node_config(tmp_path: Path) -> None:
    async def scenario(server: ApiServer) -> None:
        fill(server)
        async with operator(server, tmp_path):
            await until(lambda: names(server) == {"n1", "n2"})
            server.delete("Node", "n2")
            await until(lambda: names(server) == {"n1"})

    run(scenario)


def test_nothing_is_written_while_a_kind_may_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(server: ApiServer) -> None:
        fill(server)
        async with operator(server, tmp_path):
            await until(lambda: names(server) == {"n1", "n2"})
        server.objects[CLUSTERS]["", "c"].pop("status", None)
        server.always("list", "nodes", status(403, "Forbidden", "no"))
        async with operator(server, tmp_path, "b") as (hive, _):
            await until(lambda: hive.readiness.ready and holder(server) == "b")
            await until(lambda: levels(hive)["operator"][0] is Level.DEGRADED)
            assert levels(hive)["operator"][1] == (
                "nothing is written for cilium: Node cannot be read"
            )
            server.always("list", "nodes", None)
            await until(lambda: levels(hive)["operator"][0] is Level.OK)
            await until(lambda: len(conditions(server)) == 3)
            assert conditions(server)["NoMatchingNode"] == "False"
        assert names(server) == {"n1", "n2"}
        assert server.queries("delete", CONFIGS) == []

    hurry(monkeypatch)
    run(scenario)


def test_c51_conditions_are_removed_where_the_status_report_is_off(tmp_path: Path) -> None:
    async def scenario(server: ApiServer) -> None:
        fill(server)
        async with operator(server, tmp_path):
            await until(lambda: len(conditions(server)) == 3)
            await until(lambda: bool(conditions(server, "ciliumbgppeerconfigs", "pc")))
        async with operator(server, tmp_path, "b", status_report="false"):
            await until(lambda: not conditions(server))
            await until(lambda: not conditions(server, "ciliumbgppeerconfigs", "pc"))
            count = len(server.queries("patch", CLUSTERS))
            server.put({"kind": "Node", "apiVersion": "v1", **node("n3")})
            await until(lambda: "n3" in names(server))
            assert len(server.queries("patch", CLUSTERS)) == count

    run(scenario)


def test_an_operator_without_a_cluster_does_not_start(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([], {}) == 2
    assert capsys.readouterr().err == (
        "waggle-operator: no cluster: set --kubeconfig FILE, or --kubeconfig in-cluster\n"
    )


def test_policies_of_v1_are_translated_where_that_is_enabled(tmp_path: Path) -> None:
    async def scenario(server: ApiServer) -> None:
        server.put({"kind": "Node", "apiVersion": "v1", **node("n1")})
        policy = policy_object("p")
        policy["metadata"]["uid"] = "uid-p"
        server.put({"kind": "CiliumBGPPeeringPolicy", **policy})
        async with operator(server, tmp_path, translate_peering_policies="true") as (hive, _):
            await until(lambda: names(server) == {"n1"} and bool(conditions(server, name="bgpp-p")))
            await until(
                lambda: levels(hive)["operator/objects"][1].startswith("all objects are written")
            )
            made = {("", "bgpp-p-65001-192.0.2.9")}
            await until(lambda: set(server.objects["ciliumbgppeerconfigs"]) == made)

    run(scenario)


def old_advertisement(server: ApiServer) -> None:
    """Add an object that is stored in an old version, and its CRD with that stored version."""
    server.put(advertisement("a") | {"apiVersion": "cilium.io/v2alpha1"})
    server.definitions[DEFINITION] = definition("v2alpha1", "v2")


def test_c55_the_leader_brings_stored_objects_to_the_present_version(tmp_path: Path) -> None:
    async def scenario(server: ApiServer) -> None:
        old_advertisement(server)
        server.once("patch", "ciliumbgpadvertisements", status(500, "InternalError", "etcd"))
        async with operator(server, tmp_path) as (hive, _):
            scope = "operator/storage-versions"
            await until(lambda: levels(hive).get(scope, (Level.OK, ""))[0] is Level.DEGRADED)
            assert levels(hive)[scope][1] == ("objects of old versions stay as they are: 500: etcd")
            await until(lambda: levels(hive)[scope][0] is Level.OK)
        assert server.definitions[DEFINITION]["status"] == {"storedVersions": ["v2"]}
        (stored,) = server.objects["ciliumbgpadvertisements"].values()
        assert stored["apiVersion"] == "cilium.io/v2"

    run(scenario)


def test_c55_storage_versions_stay_where_migration_is_off(tmp_path: Path) -> None:
    async def scenario(server: ApiServer) -> None:
        fill(server)
        old_advertisement(server)
        async with operator(server, tmp_path, migrate_storage_versions="false"):
            await until(lambda: names(server) == {"n1", "n2"})
        assert not server.queries("get", "customresourcedefinitions")

    run(scenario)


def test_problems_are_in_health_and_in_the_log_until_they_are_solved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = {"bgpInstances": [{"name": "mine"}]}
    foreign = {"metadata": {"name": "n1", "uid": "x"}, "spec": spec}
    text = "the NodeConfig of node n1 is there already and is left as it is"
    capture = LogCapture()

    async def scenario(server: ApiServer) -> None:
        fill(server)
        server.put({"kind": "CiliumBGPNodeConfig", **foreign})
        monkeypatch.setattr(
            cell.PROBLEMS, "_log", structlog.wrap_logger(None, processors=[capture])
        )
        async with operator(server, tmp_path) as (hive, _):
            await until(lambda: levels(hive)["operator/problems"][0] is Level.DEGRADED)
            assert levels(hive)["operator/problems"][1].endswith(text)
            server.delete("CiliumBGPNodeConfig", "n1")
            await until(lambda: levels(hive)["operator/problems"][0] is Level.OK)
        found = [entry["event_name"] for entry in capture.entries]
        assert [name for name in found if name in ("operator.problem", "operator.solved")] == [
            "operator.problem",
            "operator.solved",
        ]

    run(scenario)
