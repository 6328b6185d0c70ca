"""MetalLB's objects with values that no field can have: for an offline node and for a running agent."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from resources.metallb.kinds import BGP_PEER
from tests.reconcilers.frrk8s.bad_objects import STRANGE, paths
from tests.reconcilers.metallb.objects import (
    advertisement,
    community,
    made,
    peer,
    pool,
    profile,
)

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
    "peer of any AS": peer(
        "specimen",
        "203.0.113.200",
        peerASN=None,
        dynamicASN="external",
        routerID="192.0.2.9",
        passwordSecret={"name": "s", "namespace": "metallb-system"},
        vrf="red",
    ),
    "peer by interface": made(
        BGP_PEER, "specimen", {"myASN": 64900, "peerASN": 64950, "interface": "eth7", "vrf": "red"}
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
"""One object of each kind; together they have all fields."""
LONG = STRANGE[-1]
VALUES: tuple[Any, ...] = (*STRANGE, "a\n\"'\x00\u202eb")


def changed(kind: str, path: tuple[Any, ...], value: Any, name: str = "") -> dict[str, Any]:  # noqa: ANN401
    """Return a specimen with one part of its specification exchanged."""
    found = copy.deepcopy(SPECIMENS[kind])
    if name:
        found["metadata"]["name"] = name
    at: Any = found["spec"]
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return found


def fields(kind: str) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each part of a specimen's specification."""
    return paths(SPECIMENS[kind]["spec"])
