"""The manifest of MetalLB's controller and Waggle, on a real API server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from deploy.generate import CHART, WITH_METALLB
from reconcilers.dialect import Companion
from reconcilers.metallb.dialect import MetalLBDialect
from reconcilers.operator.tested_versions import image_doubt
from tests.support import plain_yaml
from tests.support.kubernetes.accounts import put
from tests.support.kubernetes.server import KubeApiServer
from tests.support.wait import eventually

OBJECTS: list[dict[str, Any]] = [
    one for one in plain_yaml.load_all(WITH_METALLB.read_text()) if one is not None
]
DEFINITIONS = ("frrk8s.yaml", "metallb.yaml")
POOLS = "/apis/metallb.io/v1beta1/namespaces/metallb-system/ipaddresspools"


def named(kind: str, name: str) -> dict[str, Any]:
    (found,) = [o for o in OBJECTS if (o["kind"], o["metadata"]["name"]) == (kind, name)]
    return found


def test_it_has_the_controller_and_no_speaker() -> None:
    assert [o["metadata"]["name"] for o in OBJECTS if o["kind"] == "DaemonSet"] == ["waggle-agent"]
    deployment = named("Deployment", "controller")
    (companion,) = MetalLBDialect.each(Companion)
    labels = ",".join(f"{k}={v}" for k, v in deployment["metadata"]["labels"].items())
    assert labels in companion.labels
    assert image_doubt(companion, deployment) == ""
    # An object comes after its namespace.
    known = set()
    for one in OBJECTS:
        if one["kind"] == "Namespace":
            known.add(one["metadata"]["name"])
        assert one["metadata"].get("namespace", "metallb-system") in known
    settings = plain_yaml.load(named("ConfigMap", "waggle-agent")["data"]["config.yaml"])
    enabled = {name: settings["cells"][name]["enabled"] for name in ("cilium", "frrk8s", "metallb")}
    assert enabled == {"cilium": False, "frrk8s": True, "metallb": True}


@pytest.fixture
def installed(apiserver: KubeApiServer) -> Iterator[KubeApiServer]:
    """Apply definitions and manifest with kubectl, as in docs/metallb.md."""
    for name in DEFINITIONS:
        apiserver.kubectl("apply", "--server-side", "-f", str(CHART / "crds" / name))
    apiserver.kubectl("apply", "-f", str(WITH_METALLB))
    yield apiserver
    # The definitions stay, as in other tests of the chart.
    names = [
        f"{one['kind']}/{one['metadata']['name']}"
        for one in OBJECTS
        if "namespace" not in one["metadata"] and one["kind"] != "Namespace"
    ]
    apiserver.kubectl("delete", "--wait=false", *names)


@pytest.mark.apiserver
@pytest.mark.timeout(200)
def test_the_api_server_takes_it_and_the_controller_may_assign_addresses(
    installed: KubeApiServer,
) -> None:
    pool = {
        "apiVersion": "metallb.io/v1beta1",
        "kind": "IPAddressPool",
        "metadata": {"name": "front"},
        "spec": {"addresses": ["198.18.30.0/24"]},
    }
    eventually(lambda: put(installed, POOLS, pool))
    token = installed.token("controller", "metallb-system")

    def status(method: str, path: str, body: object = None, kind: str = "json") -> int:
        return installed.request(method, path, body, kind, token=token).status

    assert status("GET", "/api/v1/services") == status("GET", POOLS) == 200
    assert status("GET", "/api/v1/secrets") == status("GET", "/api/v1/pods") == 403
    web = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "of-metallb"}}
    services = "/api/v1/namespaces/default/services"
    made = put(
        installed, services, {**web, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}}
    )
    try:
        made["status"] = {"loadBalancer": {"ingress": [{"ip": "198.18.30.1"}]}}
        assert status("PUT", f"{services}/of-metallb/status", made) == 200
    finally:
        installed.request("DELETE", f"{services}/of-metallb")
