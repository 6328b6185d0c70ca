"""An agent is ready once every peer has received its initial table, or after a timeout."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cells.apply.readiness import GATE, NAMED_PEERS, SOURCE_GATE, _names, without_initial_table
from cells.hive import Level, load
from cells.hive.hive import Hive
from reconcilers.intent_tables import IntentTables
from reconcilers.model import Peer
from resources.tables import Tables
from speaker.api import InstanceConfig, PeerConfig, PeerStatus
from speaker.server import Speaker
from statedb import Database
from tests.cmd.lab import NODE, configuration, service
from tests.reconcilers.build import usual
from tests.reconcilers.cilium.test_report import session
from tests.support.ports import free_port
from tests.support.wait import until
from waggle_agent.__main__ import CELLS


def wanted() -> Peer:
    cluster = usual()
    cluster.run()
    (peer,) = cluster.intent.peers.all(cluster.db.snapshot())
    return peer


UP = session(initial_table_sent=True)


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (UP, None),
        (replace(UP, initial_table_sent=False), "the initial table has not been sent"),
        (replace(UP, queued_octets=17), "the initial table has not been sent"),
        (session(state="Active"), "no route"),
        (session(name="other"), "there is no session"),
    ],
    ids=["received", "not sent", "not acknowledged", "down", "missing"],
)
def test_a_peer_counts_when_it_is_established_and_has_received_the_initial_table(
    status: PeerStatus, why: str | None
) -> None:
    sessions = {(status.instance, status.name): status}
    expected = {} if why is None else {"i/p": why}
    assert without_initial_table([wanted()], sessions) == expected


def test_readiness_does_not_wait_for_a_peer_that_is_kept_down() -> None:
    down = replace(wanted(), down_reason="no Secret")
    assert without_initial_table([down], {}) == {}
    other = replace(wanted(), name="other")
    assert without_initial_table([down, other], {}) == {"i/other": "there is no session"}


def test_a_message_names_five_peers_and_the_number_of_the_others() -> None:
    missing = {f"i/p{number}": "down" for number in range(NAMED_PEERS + 2)}
    assert _names(missing) == "peers i/p0, i/p1, i/p2, i/p3, i/p4 and 2 more"
    assert _names({"i/p": "down"}) == "peer i/p"


def as_it_is(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return items


def run(
    directory: Path,
    timeout: str,
    scenario: Callable[[Hive, int], Awaitable[None]],
    edited: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = as_it_is,
    peers: int = 1,
) -> None:
    """Run an agent with peers from 127.0.0.2 on, and no router there, on these objects as edited."""
    port = free_port("127.0.0.2")
    for item in edited([*configuration([port] * peers), service("web", "198.51.100.10")]):
        name = f"{item['kind']}-{item['metadata']['name']}.json"
        (directory / name).write_text(json.dumps(item))
    flags = {
        "--manifests": [str(directory)],
        "--node-name": NODE,
        "--ready-timeout-seconds": timeout,
        "disable_cell": ["logging", "api"],
    }
    hive = Hive(CELLS, load(CELLS, flags=flags))

    async def whole() -> None:
        task = asyncio.create_task(hive.run())
        try:
            async with asyncio.timeout(120):
                await scenario(hive, port)
        finally:
            hive.shutdown()
            await task

    asyncio.run(whole())


async def ready_with_a_router(hive: Hive, port: int) -> None:
    """Check that the agent becomes ready once a router has the session and its route."""
    await until(lambda: "main/tor-1" in hive.readiness.waiting().get(GATE, ""))
    async with Speaker() as router:
        router.set_instance(
            InstanceConfig(
                name="r",
                local_asn=65000,
                router_id="192.0.2.1",
                listen=(("127.0.0.2", port),),
            )
        )
        router.set_peer(
            "r",
            PeerConfig(name="agent", address="127.0.0.1", peer_asn=65001, passive=True),
        )
        await until(lambda: hive.readiness.ready)
        # The agent is ready once all is sent, which the router has then to read.
        await until(lambda: router.peers()[0].established)
        await until(lambda: next(f.received for f in router.peers()[0].families) == 1)


def test_an_agent_is_ready_when_the_router_has_its_routes(tmp_path: Path) -> None:
    run(tmp_path, "1000", ready_with_a_router)


def test_an_agent_serves_when_the_first_router_has_its_routes(tmp_path: Path) -> None:
    async def scenario(hive: Hive, port: int) -> None:
        served = asyncio.Event()
        hive.readiness.when_serving(served.set)
        await until(lambda: "main/tor-1, main/tor-2" in hive.readiness.waiting().get(GATE, ""))
        assert not served.is_set()
        async with Speaker() as router:
            listen = InstanceConfig(
                name="r", local_asn=65000, router_id="192.0.2.1", listen=(("127.0.0.2", port),)
            )
            router.set_instance(listen)
            router.set_peer(
                "r", PeerConfig(name="agent", address="127.0.0.1", peer_asn=65001, passive=True)
            )
            await served.wait()
        assert not hive.readiness.ready

    run(tmp_path, "1000", scenario, peers=2)


def later(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add a value that only a later release knows to each object of Cilium's."""
    for item in items:
        match item["kind"]:
            case "CiliumBGPClusterConfig":
                discovered = {"name": "later", "peerASN": 65000, "autoDiscovery": {"mode": "Lldp"}}
                item["spec"]["bgpInstances"][0]["peers"].append(discovered)
            case "CiliumBGPPeerConfig":
                item["spec"]["families"].append({"afi": "ipv4", "safi": "color"})
            case "CiliumBGPAdvertisement":
                item["spec"]["advertisements"].append({"advertisementType": "Egress"})
                item["spec"]["advertisements"][0]["service"]["addresses"].append("NodeIP")
    return items


def test_an_agent_that_starts_with_values_of_a_later_release_has_its_session_and_is_ready(
    tmp_path: Path,
) -> None:
    async def scenario(hive: Hive, port: int) -> None:
        await ready_with_a_router(hive, port)
        intent = hive.get(IntentTables).problems.all(hive.get(Database).snapshot())
        (problem,) = [one for one in intent if one.unconfigured]
        assert problem.unconfigured == ("main", "later")
        # Not only the objects that it had before are in effect: it had none.
        assert not list(hive.get(Tables).source_problems.all(hive.get(Database).snapshot()))

    run(tmp_path, "1000", scenario, later)


def test_an_agent_without_any_source_is_not_ready() -> None:
    flags = {
        "--node-name": NODE,
        "--ready-timeout-seconds": "0",
        "disable_cell": ["logging", "api"],
    }
    hive = Hive(CELLS, load(CELLS, flags=flags))

    async def scenario() -> None:
        started = asyncio.Event()
        task = asyncio.create_task(hive.run(started.set))
        await started.wait()
        await until(lambda: list(hive.readiness.waiting()) == [SOURCE_GATE])
        assert "set --manifests DIR or --kubeconfig FILE" in hive.readiness.waiting()[SOURCE_GATE]
        assert hive.health.scope("readiness").level() is Level.DEGRADED
        hive.shutdown()
        await task

    asyncio.run(scenario())


def test_a_peer_that_is_down_delays_readiness_until_the_timeout(tmp_path: Path) -> None:
    async def scenario(hive: Hive, port: int) -> None:
        await until(lambda: hive.readiness.ready)
        status = hive.health.scope("readiness").status
        assert status is not None
        assert status.message == "ready without peer main/tor-1"

    run(tmp_path, "0.3", scenario)
