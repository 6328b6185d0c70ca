"""RouteAdvertisements on a real API server: definitions, and the operator with ``generate``."""

from __future__ import annotations

import copy
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.ovnk.kinds import CLUSTER_NETWORK, ROUTE_ADVERTISEMENTS, USER_NETWORK, VTEP
from tests.reconcilers.ovnk.cluster import (
    CLUSTER_NETWORKS,
    DEFAULT_NETWORK,
    FRR,
    advertisements,
    attachment,
    node,
    source,
)
from tests.resources.ovnk import test_kinds as rules
from tests.support.daemon import Daemon
from tests.support.kubernetes.accounts import CRDS, define, put, undefine
from tests.support.kubernetes.server import ApiServer
from tests.support.wait import eventually

pytestmark = [pytest.mark.apiserver, pytest.mark.program, pytest.mark.timeout(300)]

KEY: Final = "k8s.ovn.org/route-advertisements"
ROWS: Final = "/apis/k8s.ovn.org/v1/routeadvertisements"
CONFIGURATIONS: Final = f"/apis/frrk8s.metallb.io/v1beta1/namespaces/{FRR}/frrconfigurations"
ATTACHMENTS: Final = "network-attachment-definitions"
OVNK: Final = "clustermanager-routeadvertisements-controller"
KINDS: Final = (ROUTE_ADVERTISEMENTS, CLUSTER_NETWORK, USER_NETWORK, VTEP, FRR_CONFIGURATION)
PLACES: Final = {
    kind.name: f"/apis/k8s.ovn.org/v1/{kind.plural}" for kind in KINDS if not kind.namespaced
}
QUIET: Final = 5.0
"""Seconds in which a write would have come."""
DEFINITION: Final = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{ATTACHMENTS}.k8s.cni.cncf.io"},
    "spec": {
        "group": "k8s.cni.cncf.io",
        "scope": "Namespaced",
        "names": {"plural": ATTACHMENTS, "kind": "NetworkAttachmentDefinition"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"config": {"type": "string"}}}
                        },
                    }
                },
            }
        ],
    },
}
"""NetworkAttachmentDefinition; EgressIP and UplinkState are not served here."""


def attachments(namespace: str) -> str:
    return f"/apis/k8s.cni.cncf.io/v1/namespaces/{namespace}/{ATTACHMENTS}"


@pytest.fixture
def server(apiserver: ApiServer) -> Iterator[ApiServer]:
    names = define(apiserver, KINDS)
    put(apiserver, CRDS, DEFINITION)
    for namespace in (FRR, "ovn-kubernetes", "red-ns"):
        value = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        put(apiserver, "/api/v1/namespaces", value)
    eventually(lambda: _serves(apiserver, attachments("red-ns")), within=60)
    yield apiserver
    undefine(apiserver, [*names, DEFINITION["metadata"]["name"]])  # type: ignore[index]
    for name in ("w1", "w2"):
        apiserver.request("DELETE", f"/api/v1/nodes/{name}")


def _serves(server: ApiServer, path: str) -> None:
    assert server.request("GET", path).ok


def _found(server: ApiServer) -> dict[str, Any]:
    """Return the generated objects by annotation."""
    items = server.request("GET", CONFIGURATIONS).body["items"]
    named = ((one["metadata"].get("annotations", {}).get(KEY), one) for one in items)
    return {name: one for name, one in named if name is not None}


def _check_prefixes(server: ApiServer, expected: dict[str, list[str]]) -> None:
    found = _found(server)
    assert {
        name: one["spec"]["bgp"]["routers"][0]["prefixes"] for name, one in found.items()
    } == expected


def _check_status(server: ApiServer, name: str, status: str, reason: str) -> None:
    found = server.request("GET", f"{ROWS}/{name}").body.get("status", {})
    assert found.get("status", "").startswith(status), found
    (condition,) = found["conditions"]
    assert (condition["type"], condition["reason"]) == ("Accepted", reason)


def _check_annotation(server: ApiServer, path: str, expected: str) -> None:
    metadata = server.request("GET", path).body["metadata"]
    assert metadata.get("annotations", {}).get(KEY) == expected


def of_server(value: dict[str, Any]) -> dict[str, Any]:
    """Return an object without what the API server sets."""
    found = copy.deepcopy(value)
    for key in ("uid", "generation"):
        found["metadata"].pop(key, None)
    return found


def test_the_definitions_take_what_the_rules_take(server: ApiServer) -> None:
    def answer(kind: Any, value: dict[str, Any]) -> Any:  # noqa: ANN401
        body = {"apiVersion": kind.api_versions[0], "kind": kind.name, **value}
        place = PLACES.get(kind.name)
        if kind is USER_NETWORK:
            place = "/apis/k8s.ovn.org/v1/namespaces/red-ns/userdefinednetworks"
        return server.request("POST", f"{place}?dryRun=All", body)

    for kind, value in rules.ACCEPTED:
        if kind in KINDS:
            found = answer(kind, value)
            assert found.ok, (value, found.body)
    # Overlaps, prefixes and families are rules of the programs alone.
    of_row_alone = (
        "cidr", "cidrs[0]", "cidrs[1]", "hostSubnet", "subnets[1]", "subnets", "mtu", "mode",
        "reservedSubnets[0]", "uplinks", "macVRF", "ipVRF", "values",
    )  # fmt: skip
    for kind, value, field in rules.REJECTED:
        found = answer(kind, value)
        assert not found.ok or field.rpartition(".")[2] in of_row_alone, (field, value)
    labels = {"matchLabels": {"advertise": True}}
    selector = {**rules.CLUSTERS, "clusterUserDefinedNetworkSelector": {"networkSelector": labels}}
    assert not answer(ROUTE_ADVERTISEMENTS, rules.advertisements(networkSelectors=[selector])).ok


def test_the_operator_generates_follows_changes_and_steps_back(
    server: ApiServer, tmp_path: Path
) -> None:
    red = of_server(attachment("red", "10.61.0.0/16/24"))
    # OVN-Kubernetes has written the annotation before.
    red["metadata"]["annotations"][KEY] = '["former"]'
    subnets = {"default": ["10.180.4.0/23"], "cluster_udn_red": ["10.61.3.0/24"]}
    others = {"default": ["10.180.6.0/23"], "cluster_udn_red": ["10.61.4.0/24"]}
    put(server, attachments("red-ns"), red)
    put(server, "/api/v1/nodes", node("w1", subnets))
    put(server, "/api/v1/nodes", node("w2", others, "10.88.0.12/24"))
    put(server, CONFIGURATIONS, source())
    row = advertisements(networkSelectors=[DEFAULT_NETWORK, CLUSTER_NETWORKS])
    put(server, ROWS, of_server(row))
    operator = Daemon(
        "waggle-operator",
        [
            *(sys.executable, "-m", "waggle_operator", "--ovnk", "generate"),
            *("--enable-cell", "frrk8s,ovnk", "--disable-cell", "cilium"),
            *("--kubeconfig", server.kubeconfig),
            *("--lease-duration-seconds", "300", "--renew-deadline-seconds", "290"),
        ],
        log=tmp_path / "operator.log",
    )
    operator.start()
    try:
        of_w1, of_w2 = ["10.180.4.0/23", "10.61.3.0/24"], ["10.180.6.0/23", "10.61.4.0/24"]
        both = {"north/spine/w1": of_w1, "north/spine/w2": of_w2}
        eventually(lambda: _check_prefixes(server, both), within=90, context=operator.tail)
        eventually(lambda: _check_status(server, "north", "Accepted", "Accepted"), within=60)
        for path in (f"{attachments('red-ns')}/red", f"{attachments('ovn-kubernetes')}/default"):
            eventually(
                lambda: _check_annotation(server, path, '["north"]'),  # noqa: B023
                within=60,
                context=operator.tail,
            )
        before = {name: one["metadata"] for name, one in _found(server).items()}
        others["default"] = ["10.180.8.0/23"]
        put(server, "/api/v1/nodes", node("w2", others, "10.88.0.12/24"))
        changed = {**both, "north/spine/w2": ["10.180.8.0/23", "10.61.4.0/24"]}
        eventually(lambda: _check_prefixes(server, changed), within=60, context=operator.tail)
        after = {name: one["metadata"] for name, one in _found(server).items()}
        w1, w2 = "north/spine/w1", "north/spine/w2"
        assert after[w1]["resourceVersion"] == before[w1]["resourceVersion"]
        assert after[w2]["name"] == before[w2]["name"]
        put(server, "/api/v1/nodes", node("w2", "{", "10.88.0.12/24"))
        error = "Not Accepted: configuration error: node w2"
        eventually(lambda: _check_status(server, "north", error, "ConfigurationError"), within=60)
        _check_prefixes(server, changed)
        put(server, "/api/v1/nodes", node("w2", others, "10.88.0.12/24"))
        eventually(lambda: _check_status(server, "north", "Accepted", "Accepted"), within=60)
        _steps_back(server, operator)
    finally:
        operator.stop()


def _steps_back(server: ApiServer, operator: Daemon) -> None:
    """Write as OVN-Kubernetes does; the operator does not write any more."""
    status = {
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "RouteAdvertisements",
        "metadata": {"name": "north"},
        "status": {"status": "Accepted"},
    }
    path = f"{ROWS}/north/status?fieldManager={OVNK}&force=true"
    answer = server.request("PATCH", path, status, kind="apply-patch+yaml")
    assert answer.ok, answer.body
    eventually(
        lambda: _says(operator, "writes RouteAdvertisements as well"),
        within=60,
        context=operator.tail,
    )
    before = json.dumps(_found(server), sort_keys=True)
    assert server.request("DELETE", f"{ROWS}/north").ok
    time.sleep(QUIET)
    assert json.dumps(_found(server), sort_keys=True) == before


def _says(operator: Daemon, text: str) -> None:
    assert text in operator.log.read_text()
