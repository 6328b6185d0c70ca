"""The paths of every agent: their kinds and parameters, and which view answers each."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cells.api.resource import ApiResource, BadRequestError
from cells.serve.agent_resources import agent_resources
from cells.serve.routing import TABLES, SpeakerRouting, peers_resource


def answers(name: str) -> Callable[..., Any]:
    """Return a view that answers with its name and what it is given."""
    return lambda *given, **named: (name, *given, named)


VIEWS: Any = {
    "status": SimpleNamespace(
        item=lambda: SimpleNamespace(unused_objects=[SimpleNamespace(message="antrea is off")])
    ),
    "host": SimpleNamespace(host=answers("host")),
    "routing": SimpleNamespace(
        peers=answers("peers"), peer_counts=answers("counts"), routes=answers("routes")
    ),
    "missing": SimpleNamespace(reasons=answers("missing")),
    "bfd": SimpleNamespace(
        bfd_sessions=answers("bfd"), why_no_bfd=lambda: "off", bfd_problems=lambda: ["away"]
    ),
    "explanations": SimpleNamespace(explain=answers("explain")),
    "received": SimpleNamespace(explain_received=answers("received")),
    "intent": SimpleNamespace(intent=answers("intent")),
    "health": SimpleNamespace(report=lambda: iter(("a", "b"))),
    "composition": SimpleNamespace(views=answers("cells")),
}
RESOURCES = {resource.path: resource for resource in agent_resources(**VIEWS)}
QUERY = {
    "peer": "tor-1",
    "instance": "main",
    "target": "web",
    "prefix": "10.0.0.0/8",
    "family": "ipv4-unicast",
    "table": "received",
}
OF_PEER = {"peer": "tor-1", "instance": "main"}


@pytest.mark.parametrize(
    ("path", "kind", "parameters", "answer"),
    [
        ("/v1/host", "HostList", "", [("host", {})]),
        ("/v1/peers", "PeerList", "peer instance", ("peers", OF_PEER)),
        ("/v1/peer-counts", "PeerCountList", "", ("counts", {})),
        ("/v1/bfd", "BfdSessionList", "peer instance", ("bfd", "tor-1", "main", {})),
        (
            "/v1/routes",
            "RouteList",
            "table family peer instance prefix",
            ("routes", "received", {**OF_PEER, "family": "ipv4-unicast", "prefix": "10.0.0.0/8"}),
        ),
        ("/v1/explain", "ExplainList", "target peer instance", ("explain", "web", OF_PEER)),
        (
            "/v1/explain-received",
            "ReceivedExplainList",
            "prefix peer instance",
            ("received", "10.0.0.0/8", OF_PEER),
        ),
        ("/v1/intent", "IntentList", "", ("intent", {})),
        ("/v1/health", "HealthReport", "", ["a", "b"]),
        ("/v1/cells", "CellList", "", ("cells", {})),
    ],
)
def test_each_path(path: str, kind: str, parameters: str, answer: object) -> None:
    resource = RESOURCES[path]
    assert (resource.kind, resource.parameters) == (kind, tuple(parameters.split()))
    assert resource.read({name: QUERY[name] for name in resource.parameters}) == answer
    assert resource.limited is (path == "/v1/routes")


def test_there_is_no_other_path() -> None:
    status = RESOURCES["/v1/status"]
    (item,) = cast("Any", status.read({}))
    assert (status.kind, status.parameters, len(item.unused_objects)) == ("StatusList", (), 1)
    assert len(RESOURCES) == 11


def test_an_answer_without_items_has_what_may_explain_it() -> None:
    peers, bfd = RESOURCES["/v1/peers"], RESOURCES["/v1/bfd"]
    assert peers.notes() == ["antrea is off"]
    assert peers.problems(True) == ("missing", {"empty": True})
    assert peers.problems(False) == ("missing", {"empty": False})
    assert (bfd.notes(), bfd.problems(True)) == (["off"], ["away"])
    other: ApiResource = RESOURCES["/v1/host"]
    assert (other.notes(), other.problems(True)) == ((), ())


def test_the_default_table_of_routes_is_advertised() -> None:
    routes = RESOURCES["/v1/routes"]
    nothing = dict.fromkeys(("family", "peer", "instance", "prefix"))
    assert cast("Any", routes.read({})) == ("routes", "advertised", nothing)
    for table in TABLES:
        assert cast("Any", routes.read({"table": table}))[1] == table
    with pytest.raises(BadRequestError, match=f"table is none of {', '.join(TABLES)}: loc-rib"):
        routes.read({"table": "loc-rib"})


def test_received_routes_are_explained_of_a_prefix() -> None:
    with pytest.raises(BadRequestError, match="prefix: a prefix or an address is required"):
        RESOURCES["/v1/explain-received"].read({})


def test_a_router_has_the_path_of_sessions_without_an_agents_notes() -> None:
    speaker: Any = SimpleNamespace(peers=list, instances=list)
    resource = peers_resource(SpeakerRouting(speaker))
    assert resource.read({}) == []
    assert (resource.notes(), resource.problems(True)) == ((), ())
