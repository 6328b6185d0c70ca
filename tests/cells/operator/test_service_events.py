"""The leader's Events on Services that MetalLB's objects select, by the ServiceBGPStatuses of nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cells.hive.hive import Hive
from cells.operator import service_events
from reconcilers.report import service_events as rules
from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.metallb.kinds import CONFIGURATION, SERVICE_BGP_STATUS
from tests.cells.operator.test_rivals import run
from tests.support.apiserver import ApiServer
from tests.support.kinds import KINDS
from tests.support.wait import until

ON = {"enable_cell": ["frrk8s", "metallb"], "disable_cell": ["logging", "cilium"]}
GROUP = "metallb.io"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes within the time of a test, and no grace."""
    monkeypatch.setattr(service_events, "POLL_INTERVAL_SECONDS", 0.03)
    monkeypatch.setattr(rules, "GRACE_SECONDS", 0.0)


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


def test_a_service_that_no_node_advertises_has_one_event_and_one_when_it_is(
    tmp_path: Path,
) -> None:
    server = ApiServer([*KINDS, *CONFIGURATION, SERVICE_BGP_STATUS, FRR_CONFIGURATION])
    pool = {"addresses": ["198.51.100.0/28"]}
    selectors = [{"matchLabels": {"expose": "true"}}]
    server.put(metallb("IPAddressPool", "blue", "v1beta1", spec=pool))
    spec = {"ipAddressPools": ["blue"], "serviceSelectors": selectors}
    server.put(metallb("BGPAdvertisement", "all", "v1beta1", spec=spec))
    server.put(service("web", "198.51.100.7", expose="true"))
    server.put(service("hidden", "198.51.100.8"))
    server.put(service("elsewhere", "203.0.113.1", expose="true"))

    def events() -> list[tuple[str, str, str]]:
        return [
            (e["reason"], e["regarding"]["name"], e["reportingController"]) for e in server.events
        ]

    missing = ("NotAdvertised", "web", "waggle.dev/operator")

    async def scenario(_: Hive) -> None:
        await until(lambda: events() == [missing])
        passes = len(server.queries("list", "servicebgpstatuses"))
        await until(lambda: len(server.queries("list", "servicebgpstatuses")) > passes + 2)
        assert events() == [missing]  # once
        status = {"node": "a", "serviceName": "web", "serviceNamespace": "shop", "peers": ["tor"]}
        server.put(metallb("ServiceBGPStatus", "bgp-x", "v1beta1", status=status))
        await until(lambda: len(events()) == 2)

    run(tmp_path, server, scenario, **ON)
    assert events() == [missing, ("Advertised", "web", "waggle.dev/operator")]
