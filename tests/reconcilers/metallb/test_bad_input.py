"""Every field of every kind with values that it cannot have: beside good objects, on a node."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from resources.errors import InvalidObject
from resources.metallb.kinds import BGP_PEER
from tests.reconcilers.metallb.build import MetalLBNode
from tests.reconcilers.metallb.objects import (
    advertisement,
    community,
    made,
    peer,
    pool,
    profile,
)
from tests.reconcilers.metallb.test_node import endpoints, node, service

SELECTOR = {
    "matchLabels": {"a": "b"},
    "matchExpressions": [{"key": "c", "operator": "In", "values": ["d"]}],
}
SPECIMENS: dict[str, dict[str, Any]] = {
    "peer": peer(
        "specimen",
        "203.0.113.200",
        localASN=64800,
        sourceAddress="192.0.2.10",
        peerPort=1179,
        holdTime="90s",
        keepaliveTime="30s",
        connectTime="5s",
        vrf="red",
        nodeSelectors=[SELECTOR, {}],
        password="x",
        bfdProfile="f",
        enableGracefulRestart=True,
        ebgpMultiHop=True,
        disableMP=True,
        dualStackAddressFamily=True,
    ),
    "advertisement": advertisement(
        "specimen",
        aggregationLength=32,
        aggregationLengthV6=128,
        localPref=5,
        communities=["1:1"],
        ipAddressPools=["specimen"],
        ipAddressPoolSelectors=[SELECTOR],
        nodeSelectors=[SELECTOR, {}],
        peers=["specimen"],
        serviceSelectors=[SELECTOR],
    ),
    "pool": {
        **pool("specimen", "198.18.99.0/24", "198.18.98.1-198.18.98.7"),
        "spec": {
            "addresses": ["198.18.99.0/24", "198.18.98.1-198.18.98.7"],
            "autoAssign": True,
            "avoidBuggyIPs": True,
            "serviceAllocation": {
                "priority": 1,
                "namespaces": ["x"],
                "namespaceSelectors": [SELECTOR],
                "serviceSelectors": [SELECTOR],
            },
        },
    },
    "community": community("specimen", vip="1:2"),
    "profile": profile(
        "specimen",
        receiveInterval=100,
        transmitInterval=100,
        detectMultiplier=3,
        echoInterval=50,
        echoMode=False,
        passiveMode=True,
        minimumTtl=254,
    ),
}
LONG = "x" * (1 << 20)
VALUES: list[Any] = [
    None,
    [],
    [None],
    {},
    5,
    -1,
    1 << 32,
    1e3,
    1.5,
    "1",
    "",
    LONG,
    "a\n\"'\x00\u202eb",
]


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401
    """Yield the path of every part of an object."""
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list | tuple):
        items = list(enumerate(value))
    else:
        return
    for key, part in items:
        yield (*path, key)
        yield from paths(part, (*path, key))


def changed(specimen: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return a specimen with one part exchanged."""
    found: dict[str, Any] = json.loads(json.dumps(specimen))
    at: Any = found
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return found


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


@pytest.mark.parametrize("kind", SPECIMENS)
def test_a_field_that_cannot_be_concerns_its_object_alone(kind: str) -> None:
    specimen = SPECIMENS[kind]
    found = MetalLBNode("isolate")
    found.put(*GOOD)
    assert found.routes() == ROUTES
    for path in paths(specimen["spec"], ("spec",)):
        for value in VALUES:
            found.put(changed(specimen, path, value))
            problems = found.render()["problems"]
            at = (path, str(value)[:20])
            routes = found.routes()
            assert {address: routes[address] for address in ROUTES} == ROUTES, at
            assert all(any("/specimen" in name for name in p["objects"]) for p in problems), at
            assert all(len(p["message"]) < 1000 and len(p["field"]) < 1000 for p in problems), at
    found.delete(specimen)
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
