"""Every field of every kind with values that it cannot have: beside good objects, on a node."""

from __future__ import annotations

from typing import Any

import pytest

from resources.crds.generate import custom_resource_definition
from resources.errors import InvalidObject
from resources.metallb.kinds import BGP_PEER, CONFIGURATION
from tests.reconcilers.frrk8s.bad_objects import all_fields, names, paths
from tests.reconcilers.metallb.bad_objects import LONG, SPECIMENS, VALUES, changed, fields
from tests.reconcilers.metallb.build import MetalLBNode
from tests.reconcilers.metallb.objects import advertisement, made, peer, pool, profile
from tests.reconcilers.metallb.test_node import endpoints, node, service

GOOD = [
    node(),
    pool("front", "198.18.30.0/24"),
    advertisement("x"),
    profile("f"),
    *(peer(f"good-{i}", f"203.0.113.{i}") for i in range(1, 11)),
    service("s", "198.18.30.5"),
    endpoints("s"),
]
ROUTES = {f"203.0.113.{i}": ["198.18.30.5/32"] for i in range(1, 11)}


def test_the_specimens_have_all_fields() -> None:
    for kind in CONFIGURATION:
        specimens = (one["spec"] for one in SPECIMENS.values() if one["kind"] == kind.name)
        given = {names(path) for spec in specimens for path in paths(spec)}
        newest = custom_resource_definition(kind)["spec"]["versions"][0]
        schema = newest["schema"]["openAPIV3Schema"]["properties"]["spec"]
        assert {*all_fields(schema)} - given == set()


@pytest.mark.parametrize("kind", SPECIMENS)
def test_a_field_that_cannot_be_concerns_its_object_alone(kind: str) -> None:
    found = MetalLBNode("isolate")
    found.put(*GOOD)
    assert found.routes() == ROUTES
    for path in fields(kind):
        for value in VALUES:
            found.put(changed(kind, path, value))
            problems = found.render()["problems"]
            at = (path, str(value)[:20])
            routes = found.routes()
            assert {address: routes[address] for address in ROUTES} == ROUTES, at
            assert all(any("/specimen" in name for name in p["objects"]) for p in problems), at
            assert all(len(p["message"]) < 1000 and len(p["field"]) < 1000 for p in problems), at
    found.delete(SPECIMENS[kind])
    assert found.problems() == []


@pytest.mark.parametrize("kind", SPECIMENS)
@pytest.mark.parametrize("value", [[], 5, "text", LONG], ids=lambda value: str(value)[:5])
def test_a_spec_that_cannot_be_is_named(kind: str, value: Any) -> None:  # noqa: ANN401
    found = MetalLBNode()
    found.put({**SPECIMENS[kind], "spec": value})
    assert [names for _, names in found.problems()] == [["specimen"]]


@pytest.mark.parametrize("metadata", [None, [], "x", {}, {"name": 5}, {"name": "x\n"}])
def test_impossible_metadata_is_refused_with_its_field(metadata: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidObject, match="metadata"):
        BGP_PEER.decode({**SPECIMENS["peer"], "metadata": metadata})


@pytest.mark.parametrize("address", ["203.0.113.9", "192.0.2.10"])
def test_the_address_of_the_node_itself_stops_nothing_else(address: str) -> None:
    found = MetalLBNode()
    found.put(*GOOD, peer("self", address, vrf="blue"))
    assert found.routes()["203.0.113.5"] == ["198.18.30.5/32"]


def test_thousands_of_objects_that_disagree_are_compared_in_time() -> None:
    found = MetalLBNode("isolate")
    pools = [pool(f"p{i}", f"10.{i // 250}.{i % 250}.0/24") for i in range(2000)]
    found.put(node(), *pools, made(BGP_PEER, "a", {"myASN": 1, "peerASN": 2, "interface": "eth0"}))
    assert found.problems() == []
