"""A real API server takes the definition of FRRConfiguration, and its limits are the agent's."""

from collections.abc import Iterator
from typing import Any

import pytest

from reconcilers.frrk8s.one_object import compile_unit
from reconcilers.frrk8s.unit_parts import Unit
from reconcilers.model import ref_to
from reconcilers.sliced_work import Pieces, finish
from resources.crds.generate import custom_resource_definition
from resources.frrk8s.kinds import FRR_CONFIGURATION
from tests.reconcilers.frrk8s.build import configuration, neighbor, router
from tests.support.kubernetes.server import Answer, KubeApiServer
from tests.support.wait import NotReadyError, eventually

pytestmark = pytest.mark.apiserver

PATH = "/apis/frrk8s.metallb.io/v1beta1/namespaces/default/frrconfigurations"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAME = "frrconfigurations.frrk8s.metallb.io"


@pytest.fixture(scope="module")
def server(apiserver: KubeApiServer) -> Iterator[KubeApiServer]:
    """A server with the definition."""
    answer = apiserver.request("POST", DEFINITIONS, custom_resource_definition(FRR_CONFIGURATION))
    assert answer.ok or answer.status == 409, answer.body
    yield apiserver
    if answer.ok:
        apiserver.request("DELETE", f"{DEFINITIONS}/{NAME}")


def create(server: KubeApiServer, spec: object) -> Answer:
    value = configuration("x", spec)
    value["metadata"] = {"name": "x", "namespace": "default"}

    def created() -> Answer:
        answer = server.request("POST", f"{PATH}?dryRun=All&fieldValidation=Strict", value)
        if answer.status == 404:
            raise NotReadyError("the kind is not served yet")
        return answer

    return eventually(created)


def of_neighbor(**fields: object) -> dict[str, Any]:
    return {"bgp": {"routers": [router(neighbor(**fields))]}}


def of_evpn(**fields: object) -> dict[str, Any]:
    return {"bgp": {"routers": [router(evpn=fields)]}}


GOOD = [
    {},
    {
        "raw": {"rawConfig": "router bgp 1", "priority": 5},
        "nodeSelector": {"matchLabels": {"a": "b"}},
    },
    of_neighbor(connectTime="65535s"),
    of_neighbor(connectTime="1m30s", holdTime="90s", keepaliveTime="30s"),
    of_neighbor(password="p", port=0, asn=0, localASN=4294967295, disableMP=True),
    of_neighbor(
        toReceive={"allowed": {"prefixes": [{"prefix": "10.0.0.0/8", "ge": 1, "le": 128}]}}
    ),
    of_neighbor(addressFamilies=["unicast", "evpn"]),
    {"bgp": {"routers": [], "bfdProfiles": [{"name": "f", "minimumTtl": 254, "echoInterval": 10}]}},
    of_evpn(advertiseVNIs="All", l2vnis=[{"vni": 16777215, "rd": "192.0.2.1:5"}]),
    of_evpn(l3vni={"vni": 1, "importRTs": ["*:4294967295"], "advertisePrefixes": ["unicast"]}),
    of_evpn(l2vnis=[{"vni": 1, "rd": "4294967295:65535", "exportRTs": ["65535:4294967295"]}]),
    of_evpn(l2vnis=[{"vni": 1, "importRTs": ["65536:65535", "192.0.2.1:1"]}]),
]
BAD = [
    ("routers[0].asn", {"bgp": {"routers": [{"asn": 4294967296}]}}),
    ("routers[0].asn", {"bgp": {"routers": [{}]}}),
    ("routers", {"bgp": {"routers": [router()] * 51}}),
    ("connectTime", of_neighbor(connectTime="0s")),
    ("connectTime", of_neighbor(connectTime="1500ms")),
    ("connectTime", of_neighbor(connectTime="65536s")),
    ("port", of_neighbor(port=16385)),
    ("localASN", of_neighbor(localASN=0)),
    ("dynamicASN", of_neighbor(asn=None, dynamicASN="auto")),
    ("mode", of_neighbor(toAdvertise={"allowed": {"mode": "some"}})),
    ("prefixes[0].le", of_neighbor(toReceive={"allowed": {"prefixes": [{"le": 129}]}})),
    ("prefixes[0].ge", of_neighbor(toReceive={"allowed": {"prefixes": [{"ge": 0}]}})),
    (
        "withLocalPref[0].prefixes",
        of_neighbor(toAdvertise={"withLocalPref": [{"localPref": 1, "prefixes": []}]}),
    ),
    ("receiveInterval", {"bgp": {"bfdProfiles": [{"name": "f", "receiveInterval": 9}]}}),
    ("detectMultiplier", {"bgp": {"bfdProfiles": [{"name": "f", "detectMultiplier": 256}]}}),
    ("nextHop.ipv4", of_neighbor(toAdvertise={"nextHop": {"ipv4": "2001:db8::1"}})),
    ("nextHop.ipv4", of_neighbor(toAdvertise={"nextHop": {"ipv4": ""}})),
    ("nextHop.ipv6", of_neighbor(toAdvertise={"nextHop": {"ipv6": "192.0.2.1"}})),
    ("addressFamilies", of_neighbor(addressFamilies=["unicast", "evpn", "unicast"])),
    ("addressFamilies", of_neighbor(addressFamilies=["l2vpn"])),
    ("vni", of_evpn(l2vnis=[{"vni": 0}])),
    ("rd", of_evpn(l2vnis=[{"vni": 1, "rd": "6a:1"}])),
    ("rd", of_evpn(l2vnis=[{"vni": 1, "rd": "65536:65536"}])),
    *[
        ("rd", of_evpn(l2vnis=[{"vni": 1, "rd": rd}]))
        for rd in ("none", "65000:", "1:a", "192.0.2.1:65536", "256.0.2.1:1")
    ],
    *[
        ("importRTs", of_evpn(l2vnis=[{"vni": 1, "importRTs": [target]}]))
        for target in ("*:a", "65536:65536", "none")
    ],
    ("exportRTs", of_evpn(l2vnis=[{"vni": 1, "exportRTs": ["192.0.2.1:65536"]}])),
    ("importRTs", of_evpn(l2vnis=[{"vni": 1, "importRTs": ["*:4294967296"]}])),
    ("importRTs", of_evpn(l2vnis=[{"vni": 1, "importRTs": ["1:1"] * 101}])),
    ("exportRTs", of_evpn(l2vnis=[{"vni": 1, "exportRTs": ["*:1"]}])),
    ("l2vnis", of_evpn(l2vnis=[{"vni": vni} for vni in range(1, 12)])),
    ("advertiseVNIs", of_evpn(advertiseVNIs="Some")),
    ("advertisePrefixes", of_evpn(l3vni={"vni": 1, "advertisePrefixes": []})),
    ("advertisePrefixes", of_evpn(l3vni={"vni": 1})),
]


@pytest.mark.parametrize("spec", GOOD, ids=range(len(GOOD)))
def test_the_server_takes_it(server: KubeApiServer, spec: dict[str, Any]) -> None:
    answer = create(server, spec)
    assert answer.ok, answer.body
    assert FRR_CONFIGURATION.decode(configuration("x", spec)).invalid == ()


@pytest.mark.parametrize(("field", "spec"), BAD, ids=range(len(BAD)))
def test_the_server_refuses_it_and_names_the_field(
    server: KubeApiServer, field: str, spec: dict[str, Any]
) -> None:
    answer = create(server, spec)
    assert answer.status == 422, answer.body
    causes = answer.body["details"]["causes"]
    assert any(field in cause["field"] for cause in causes), causes
    # Manifests pass no API server.
    row = FRR_CONFIGURATION.decode(configuration("x", spec))
    errors = finish(compile_unit(Unit(ref_to(FRR_CONFIGURATION, row), row), {}, Pieces())).errors
    assert any(field in error.path for error in errors), errors


def test_the_families_of_a_session_have_a_default(server: KubeApiServer) -> None:
    answer = create(server, of_neighbor())
    (stored,) = answer.body["spec"]["bgp"]["routers"][0]["neighbors"]
    assert stored["addressFamilies"] == ["unicast"]


def test_an_object_keeps_its_conditions(server: KubeApiServer) -> None:
    value = configuration("kept", {})
    value["metadata"] = {"name": "kept", "namespace": "default"}
    eventually(lambda: _assert(server.request("POST", PATH, value).status in (201, 409)))
    condition = {
        "type": "Accepted",
        "status": "True",
        "reason": "Accepted",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    answer = server.request(
        "PATCH",
        f"{PATH}/kept/status",
        {"status": {"conditions": [condition]}},
        kind="merge-patch+json",
    )
    assert answer.ok, answer.body
    assert answer.body["status"]["conditions"] == [condition]
    server.request("DELETE", f"{PATH}/kept")


def _assert(value: bool) -> None:
    assert value
