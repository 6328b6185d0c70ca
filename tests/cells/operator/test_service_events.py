"""The leader's Events on Services that MetalLB's objects select, by the ServiceBGPStatuses of nodes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cells.hive import Group, Health
from cells.hive.health import Level
from cells.hive.hive import Hive
from cells.operator import service_events
from cells.operator.service_events import ServiceEventsCheck
from cells.options import OperatorOptions
from cells.sources.kubernetes import UNREAD_SECONDS
from reconcilers.dialect import Dialect, Unread
from reconcilers.report import service_events as rules
from reconcilers.target import fleet
from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.metallb.kinds import CONFIGURATION, SERVICE_BGP_STATUS
from statedb import Database
from tests.cells.operator.test_rivals import run
from tests.support.apiserver import ApiServer
from tests.support.kinds import KINDS
from tests.support.wait import until

ON = {"enable_cell": ["frrk8s", "metallb"], "disable_cell": ["logging", "cilium"]}
GROUP = "metallb.io"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes within the time of a test, no grace, and counts at once."""
    monkeypatch.setattr(service_events, "POLL_INTERVAL_SECONDS", 0.03)
    monkeypatch.setattr(rules, "GRACE_SECONDS", 0.0)
    monkeypatch.setattr(fleet, "COUNT_INTERVAL_SECONDS", 0.0)


def metallb(kind: str, name: str, version: str, **content: Any) -> dict[str, Any]:  # noqa: ANN401
    metadata = {"name": name, "namespace": "metallb-system"}
    return {"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": metadata, **content}


def service(name: str, address: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "shop", "labels": labels},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
        "status": {"loadBalancer": {"ingress": [{"ip": address}]}},
    }


def cluster() -> ApiServer:
    """Return a server with a pool that is advertised for one Service."""
    server = ApiServer([*KINDS, *CONFIGURATION, SERVICE_BGP_STATUS, FRR_CONFIGURATION])
    pool = {"addresses": ["198.51.100.0/28"]}
    selectors = [{"matchLabels": {"expose": "true"}}]
    server.put(metallb("IPAddressPool", "blue", "v1beta1", spec=pool))
    spec = {"ipAddressPools": ["blue"], "serviceSelectors": selectors}
    server.put(metallb("BGPAdvertisement", "all", "v1beta1", spec=spec))
    server.put(service("web", "198.51.100.7", expose="true"))
    server.put(service("hidden", "198.51.100.8"))
    server.put(service("elsewhere", "203.0.113.1", expose="true"))
    return server


def status(peers: object) -> dict[str, Any]:
    members = {"node": "a", "serviceName": "web", "serviceNamespace": "shop", "peers": peers}
    return metallb("ServiceBGPStatus", "bgp-x", "v1beta1", status=members)


def events(server: ApiServer) -> list[tuple[str, str, str]]:
    return [(e["reason"], e["regarding"]["name"], e["reportingController"]) for e in server.events]


MISSING = ("NotAdvertised", "web", "waggle.dev/operator")
ADVERTISED = ("Advertised", "web", "waggle.dev/operator")


async def passes(server: ApiServer) -> None:
    """Wait for two whole passes."""
    before = len(server.queries("list", "servicebgpstatuses"))
    await until(lambda: len(server.queries("list", "servicebgpstatuses")) > before + 2)


def test_a_service_that_no_node_advertises_has_one_event_and_one_for_each_change(
    tmp_path: Path,
) -> None:
    server = cluster()

    async def scenario(_: Hive) -> None:
        await until(lambda: events(server) == [MISSING])
        await passes(server)
        assert events(server) == [MISSING]  # once
        server.put(status(["tor"]))
        await until(lambda: events(server) == [MISSING, ADVERTISED])
        server.put(status([]))
        # The same Event, with the time of now: what the last one says is what is true.
        await until(lambda: server.events[0].get("series", {}).get("count") == 2)

    run(tmp_path, server, scenario, **ON)
    assert events(server) == [MISSING, ADVERTISED]


def test_a_status_that_cannot_be_read_is_named_and_delays_no_event(tmp_path: Path) -> None:
    server = cluster()
    server.put(status("nonsense"))

    async def scenario(operator: Hive) -> None:
        await until(lambda: events(server) == [MISSING])
        await passes(server)
        (scope,) = (
            scope for scope in operator.health.report() if scope.path[-1] == ServiceEventsCheck.name
        )
        assert scope.message.startswith("ServiceBGPStatus/metallb-system/bgp-x: ")

    run(tmp_path, server, scenario, **ON)


def test_objects_of_another_namespace_ask_for_nothing(tmp_path: Path) -> None:
    server = cluster()
    pool = metallb("IPAddressPool", "red", "v1beta1", spec={"addresses": ["203.0.113.0/28"]})
    advertisement = metallb("BGPAdvertisement", "any", "v1beta1", spec={})
    for value in (pool, advertisement):
        value["metadata"]["namespace"] = "shop"
        server.put(value)

    async def scenario(_: Hive) -> None:
        await until(lambda: events(server) == [MISSING])
        await passes(server)
        assert events(server) == [MISSING]

    run(tmp_path, server, scenario, **ON)


@pytest.mark.parametrize(
    ("flags", "served"),
    [
        pytest.param({"--status-report": False}, True, id="statuses are switched off"),
        pytest.param({}, False, id="definitions without ServiceBGPStatus"),
    ],
)
def test_without_statuses_nothing_is_said_of_services(
    tmp_path: Path, flags: dict[str, Any], served: bool
) -> None:
    server = cluster()
    if not served:
        server.served[SERVICE_BGP_STATUS.plural] = ()

    async def scenario(operator: Hive) -> None:
        before = len(server.queries("list", "daemonsets"))
        await until(lambda: len(server.queries("list", "daemonsets")) > before + 2)
        assert events(server) == []
        bad = [s for s in operator.health.report() if s.level is Level.DEGRADED]
        assert [s for s in bad if s.path[-1] == ServiceEventsCheck.name] == []

    run(tmp_path, server, scenario, **ON, **flags)


def test_a_new_leader_waits_until_every_kind_was_read() -> None:
    kubernetes: Any = SimpleNamespace(unread=Unread(waits_for="IPAddressPool"))
    database, dialects, nothing = Database(), Group[Dialect](), cast("Any", None)
    options = OperatorOptions()
    check = ServiceEventsCheck(database, nothing, dialects, kubernetes, options, Health())
    assert asyncio.run(check.run(nothing)) == UNREAD_SECONDS
