"""A real API server takes the definitions, and refuses only what the agent refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from reconcilers.operator.planned_conditions import UNDECLARED
from resources.crds.generate import custom_resource_definition
from resources.kind import Kind
from resources.metallb.kinds import (
    BFD_PROFILE,
    BGP_ADVERTISEMENT,
    BGP_PEER,
    COMMUNITY,
    IP_ADDRESS_POOL,
    KINDS,
)
from tests.resources.metallb.test_kinds import ADVERTISEMENTS, BAD_PEERS, GOOD_PEERS, broken, peer
from tests.support.kubernetes.accounts import CRDS, define, put, undefine
from tests.support.kubernetes.server import Answer, KubeApiServer
from tests.support.wait import eventually

pytestmark = pytest.mark.apiserver


@pytest.fixture(scope="module")
def server(apiserver: KubeApiServer) -> Iterator[KubeApiServer]:
    """A server with the definitions."""
    names = define(apiserver, KINDS)
    yield apiserver
    undefine(apiserver, names)


def create(server: KubeApiServer, kind: Kind[Any], spec: Any, query: str = "?dryRun=All") -> Answer:  # noqa: ANN401
    """Create an object, strictly."""

    def created() -> Answer:
        path = f"{kind.path(kind.versions[0], 'default')}{query}&fieldValidation=Strict"
        value = {
            "apiVersion": kind.api_versions[0],
            "kind": kind.name,
            "metadata": {"name": "x", "namespace": "default"},
            "spec": spec,
        }
        answer = server.request("POST", path, value)
        assert answer.status != 404
        return answer

    return eventually(created)


@pytest.mark.parametrize("spec", GOOD_PEERS, ids=str)
def test_the_server_takes_a_peer_that_is_valid(server: KubeApiServer, spec: dict[str, Any]) -> None:
    answer = create(server, BGP_PEER, peer(**spec))
    assert answer.ok, answer.body


@pytest.mark.parametrize(("kind", "specs"), [
    (BGP_PEER, [peer(**spec) for spec, _ in BAD_PEERS]),
    (BGP_ADVERTISEMENT, [spec for spec, _ in ADVERTISEMENTS if spec is not None]),
    (BFD_PROFILE, [{"receiveInterval": 9}, {"minimumTtl": 255}, {"echoMode": True}, {}]),
    (IP_ADDRESS_POOL, [{"addresses": ["198.18.30.0/24"]}, {}, {"addresses": "x"}]),
    (COMMUNITY, [{"communities": [{"name": "a", "value": "1:1"}]}, {"communities": "x"}]),
], ids=["peer", "advertisement", "profile", "pool", "community"])  # fmt: skip
def test_what_the_server_refuses_the_agent_refuses(
    server: KubeApiServer, kind: Kind[Any], specs: list[Any]
) -> None:
    for spec in specs:
        answer = create(server, kind, spec)
        assert answer.ok or answer.status in (400, 422), answer.body
        assert answer.ok or broken(kind, spec), (spec, answer.body)


def test_graceful_restart_cannot_be_changed(server: KubeApiServer) -> None:
    answer = create(server, BGP_PEER, peer(), query="?")
    assert answer.ok, answer.body
    path = BGP_PEER.object_path("x", "default")
    changed = {**answer.body, "spec": {**answer.body["spec"], "enableGracefulRestart": True}}
    refused = server.request("PUT", path, changed)
    assert refused.status == 422
    assert "cannot be changed" in str(refused.body)
    server.request("DELETE", path)


CONDITION = {
    "type": "Accepted",
    "status": "False",
    "reason": "Invalid",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def write_condition(server: KubeApiServer, kind: Kind[Any]) -> Answer:
    """Write a condition of the object x, as the operator does."""
    value = {
        "apiVersion": kind.api_versions[0],
        "kind": kind.name,
        "metadata": {"name": "x", "namespace": "default"},
        "status": {"conditions": [CONDITION]},
    }
    path = f"{kind.object_path('x', 'default')}/status?fieldManager=waggle-operator&force=true"
    return server.request("PATCH", path, value, kind="apply-patch+yaml")


def test_a_pool_without_the_numbers_of_the_controller_has_conditions(server: KubeApiServer) -> None:
    created = create(server, IP_ADDRESS_POOL, {"addresses": ["x"]}, query="?")
    assert created.ok, created.body
    answer = write_condition(server, IP_ADDRESS_POOL)
    server.request("DELETE", IP_ADDRESS_POOL.object_path("x", "default"))
    assert answer.ok, answer.body
    assert answer.body["status"]["conditions"] == [CONDITION]


NUMBERS = {"type": "object", "required": ["free"], "properties": {"free": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("kind", "spec", "status"),
    [
        (BGP_PEER, peer(), {"type": "object"}),
        (IP_ADDRESS_POOL, {"addresses": ["198.18.30.0/24"]}, NUMBERS),
    ],
    ids=["a status of no fields", "a status of other fields"],
)
def test_definitions_like_metallbs_own_have_no_conditions(
    server: KubeApiServer, kind: Kind[Any], spec: dict[str, Any], status: dict[str, Any]
) -> None:
    """What the operator takes for a kind without conditions (`UNDECLARED`)."""
    definition = custom_resource_definition(kind)
    for version in definition["spec"]["versions"]:
        version["schema"]["openAPIV3Schema"]["properties"]["status"] = status
    put(server, CRDS, definition)

    def dropped() -> None:
        answer = write_condition(server, kind)
        if answer.ok:
            assert "conditions" not in answer.body.get("status", {})
        else:
            assert UNDECLARED in answer.body["message"]

    assert create(server, kind, spec, query="?").ok
    eventually(dropped)
    server.request("DELETE", kind.object_path("x", "default"))
    put(server, CRDS, custom_resource_definition(kind))
