"""F01 to F15, as far as a router can see them: outages, bursts, other writers, nodes that change."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import kubernetes_asyncio  # noqa: F401  imported here, as it takes seconds
import pytest

from cells.hive import Level
from resources.cilium.kinds import CLUSTER_CONFIG
from resources.tables import Tables
from statedb import Database
from tests.cells.faults.stand import NODE, PODS, Stand, quick, run, stand
from tests.reconcilers.build import cluster_config, node, peer
from tests.support.apiserver import status
from tests.support.ports import free_port
from tests.support.wait import until

__all__ = ["quick"]

pytestmark = pytest.mark.usefixtures("quick")
WEB = "198.51.100.10/32"


def node_config(it: Stand, **metadata: object) -> dict[str, object]:
    """Build what an operator writes of the ClusterConfig for the node."""
    (config,) = it.server.objects["ciliumbgpclusterconfigs"].values()
    owner = {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumBGPClusterConfig",
        "name": config["metadata"]["name"],
        "uid": "uid-c",
        "controller": True,
    }
    return {
        "metadata": {"name": NODE, "ownerReferences": [owner], **metadata},
        "spec": {"bgpInstances": config["spec"]["bgpInstances"]},
    }


def test_f01_an_outage_changes_nothing_at_a_peer_nor_in_liveness(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asyncio.timeout(120), stand(tmp_path) as it:
            port = free_port("127.0.0.1")
            it.service("web", "198.51.100.10")
            await it.start_agent(http_address=str(port))
            await it.has(PODS, WEB)
            received = it.session.updates_received
            await it.server.stop()
            await until(lambda: it.levels()["kubernetes/Service"][0] is Level.DEGRADED)
            it.server.delete("Service", "web", "shop")
            it.service("new", "198.51.100.11")
            await ready(port)
            assert it.routes() == {PODS, WEB}
            assert it.session.updates_received == received
            await it.server.start()
            await it.has(PODS, "198.51.100.11/32")
            assert it.session.flaps == 0

    asyncio.run(scenario())


async def probes(port: int) -> dict[str, int]:
    """Send a probe as a kubelet does."""
    found: dict[str, int] = {}
    async with aiohttp.ClientSession() as client:
        for path in ("livez", "readyz"):
            async with client.get(f"http://127.0.0.1:{port}/{path}") as answer:
                found[path] = answer.status
    return found


async def ready(port: int) -> None:
    """Wait until an agent is ready: it looks at its sessions now and then."""
    found: dict[str, int] = {}
    for _ in range(1200):
        found = await probes(port)
        if found["readyz"] == 200:
            break
        await asyncio.sleep(0.05)
    assert found == {"livez": 200, "readyz": 200}


def test_f02_without_an_api_server_an_agent_is_alive_not_ready_and_names_the_server(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with asyncio.timeout(120), stand(tmp_path) as it:
            port = free_port("127.0.0.1")
            await it.server.stop()
            await it.start_agent(http_address=str(port))
            await until(lambda: f"cannot reach {it.server.url}" in it.message("kubernetes/Service"))
            text = "; nothing has been read yet: cannot reach "
            await until(lambda: text in it.message("kubernetes"))
            assert await probes(port) == {"livez": 200, "readyz": 503}
            await it.server.start()
            await it.has(PODS)
            await ready(port)

    asyncio.run(scenario())


def test_f10_an_object_rewritten_by_two_leaders_without_a_difference_is_no_change(
    tmp_path: Path,
) -> None:
    async def scenario(it: Stand) -> None:
        it.service("web", "198.51.100.10")
        await it.has(PODS, WEB)
        received = it.session.updates_received
        for number in range(20):
            writer = {"manager": f"operator-{number % 2}", "time": f"2026-01-01T00:00:{number}Z"}
            it.put("CiliumBGPNodeConfig", node_config(it, managedFields=[writer]))
            await asyncio.sleep(0.005)
        # A former leader that had not seen it deletes what the new one has just written.
        it.server.delete("CiliumBGPNodeConfig", NODE)
        await asyncio.sleep(0.02)
        it.put("CiliumBGPNodeConfig", node_config(it))
        it.service("late", "198.51.100.11")
        await it.has(PODS, WEB, "198.51.100.11/32")
        assert it.session.updates_received == received + 1
        assert it.session.flaps == 0

    run(tmp_path, scenario)


def test_f11_without_an_operator_an_agent_keeps_the_written_node_config(tmp_path: Path) -> None:
    async def scenario(it: Stand) -> None:
        it.put("CiliumBGPNodeConfig", node_config(it))
        await it.has(PODS)
        # No object of the node changes, and the agent gets no event.
        other = peer("other", peerAddress="127.0.0.3")
        it.put("CiliumBGPClusterConfig", cluster_config(peers=[other]))
        it.service("web", "198.51.100.10")
        await it.has(PODS, WEB)
        assert it.session.flaps == 0

    run(tmp_path, scenario)


def test_f12_a_recreated_node_has_its_routes_again(tmp_path: Path) -> None:
    async def scenario(it: Stand) -> None:
        it.server.delete("Node", NODE)
        await until(lambda: not it.session.established)
        it.put("Node", node(NODE), uid="another")
        await it.has(PODS)

    run(tmp_path, scenario)


def test_f12_pod_networks_may_be_assigned_later(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asyncio.timeout(120), stand(tmp_path) as it:
            bare = node(NODE) | {"spec": {}}
            it.put("Node", bare)
            await it.start_agent()
            await it.has()
            it.put("Node", node(NODE))
            await it.has(PODS)
            assert it.session.flaps == 0

    asyncio.run(scenario())


def test_f12_another_address_of_the_node_is_another_router_id(tmp_path: Path) -> None:
    async def scenario(it: Stand) -> None:
        assert it.session.peer_router_id == "192.0.2.1"
        moved = node(NODE)
        moved["status"]["addresses"][0]["address"] = "192.0.2.77"
        it.put("Node", moved)
        await until(lambda: it.session.peer_router_id == "192.0.2.77")
        await it.has(PODS)

    run(tmp_path, scenario)


def test_f12_an_excluded_node_ends_its_sessions_and_may_return(tmp_path: Path) -> None:
    async def scenario(it: Stand) -> None:
        (config,) = it.server.objects["ciliumbgpclusterconfigs"].values()
        selector = {"nodeSelector": {"matchLabels": {"bgp": "yes"}}}
        it.put("CiliumBGPClusterConfig", {**config, "spec": {**config["spec"], **selector}})
        assert it.hive is not None
        tables, db = it.hive.get(Tables), it.hive.get(Database)
        configs = tables.of(CLUSTER_CONFIG)
        await until(
            lambda: (
                (row := configs.get(db.snapshot(), ("", config["metadata"]["name"])))
                and row.spec.node_selector is not None
            )
        )
        it.service("web", "198.51.100.10")
        await it.has(PODS, WEB)
        assert it.session.flaps == 0
        it.put("Node", node(NODE, bgp="no"))
        await until(lambda: not it.session.established and "Cease" in str(it.session.last_error))
        it.put("Node", node(NODE))
        await it.has(PODS, WEB)

    run(tmp_path, scenario)


def test_f12_a_node_that_is_tainted_is_drained_and_its_session_stays(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asyncio.timeout(120), stand(tmp_path) as it:
            it.service("web", "198.51.100.10")
            await it.start_agent(drain="withdraw")
            await it.has(PODS, WEB)
            taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
            calm = node(NODE)
            it.put("Node", {**calm, "spec": {**calm["spec"], "taints": [taint]}})
            await it.has()
            it.put("Node", calm)
            await it.has(PODS, WEB)
            assert it.session.flaps == 0

    asyncio.run(scenario())


def test_f13_fields_of_a_newer_release_are_reported_and_change_nothing(tmp_path: Path) -> None:
    async def scenario(it: Stand) -> None:
        (config,) = it.server.objects["ciliumbgppeerconfigs"].values()
        newer = {**config, "spec": {**config["spec"], "wormholes": 2}}
        it.put("CiliumBGPPeerConfig", newer)
        await until(lambda: "wormholes" in it.message("kubernetes/objects"))
        it.service("web", "198.51.100.10")
        await it.has(PODS, WEB)
        assert it.session.flaps == 0

    run(tmp_path, scenario)


def test_f14_hundreds_of_services_changed_at_once_are_a_few_messages(tmp_path: Path) -> None:
    count = 400

    def wanted(third: int) -> set[str]:
        return {PODS, *(f"10.{third}.{i >> 8}.{i & 255}/32" for i in range(count))}

    def change(it: Stand, third: int) -> None:
        for i in range(count):
            it.service(f"s{i}", f"10.{third}.{i >> 8}.{i & 255}")

    async def scenario(it: Stand) -> None:
        change(it, 1)
        await it.has(*wanted(1))
        received = it.session.updates_received
        change(it, 2)
        await it.has(*wanted(2))
        # A message has room for some 800 prefixes; the burst comes in some pieces off the wire.
        assert it.session.updates_received - received < 20
        assert it.session.flaps == 0

    run(tmp_path, scenario)


def test_f56_an_object_that_slips_past_validation_has_an_event_and_stops_nothing(
    tmp_path: Path,
) -> None:
    """As with an API server whose definitions are older, or none of ours."""

    async def scenario(it: Stand) -> None:
        it.service("web", "198.51.100.10")
        await it.has(PODS, WEB)
        (config,) = it.server.objects["ciliumbgppeerconfigs"].values()
        worse = {**config["spec"], "timers": {"holdTimeSeconds": 1}}
        it.put("CiliumBGPPeerConfig", {**config, "spec": worse}, uid="uid-pc")

        def reported() -> bool:
            return any(
                event["reason"] == "InvalidConfiguration"
                and event["regarding"]["name"] == "pc"
                and event["regarding"]["kind"] == "CiliumBGPPeerConfig"
                and "spec.timers.holdTimeSeconds" in event["note"]
                for event in it.server.events
            )

        await until(reported)
        field = "CiliumBGPPeerConfig/pc: spec.timers.holdTimeSeconds"
        await until(lambda: field in it.message("kubernetes/objects"))
        # Its last good version is in effect, and so is everything else.
        it.service("new", "198.51.100.11")
        await it.has(PODS, WEB, "198.51.100.11/32")
        assert it.session.flaps == 0

    run(tmp_path, scenario)


def test_events_that_are_forbidden_degrade_health_and_stop_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with asyncio.timeout(120), stand(tmp_path) as it:
            it.server.always("create", "events", status(403, "Forbidden", "User cannot"))
            await it.start_agent()
            await it.has(PODS)
            await until(lambda: "may not create events: " in it.message("report/events"))
            assert it.levels()["report/events"][0] is Level.DEGRADED
            it.service("web", "198.51.100.10")
            await it.has(PODS, WEB)

    asyncio.run(scenario())
