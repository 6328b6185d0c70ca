"""Neighbors and virtual routers of a policy that cannot be: not configured, and no others with them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.reconcilers.build import Cluster
from tests.reconcilers.build import node as cluster_node
from tests.reconcilers.cilium.v1.build import neighbor, policy_object, router
from tests.support import kinds

GOOD = neighbor()


def compiled(*routers: dict[str, Any]) -> tuple[dict[str, list[str]], list[tuple[str, str]]]:
    """Return the peers by instance, and the problems as field and message."""
    cluster = Cluster()
    cluster.put(kinds.NODE, cluster_node())
    cluster.put(kinds.PEERING_POLICY, policy_object("p", *routers))
    cluster.run()
    document = cluster.render()
    return (
        {i["name"]: [peer["name"] for peer in i["peers"]] for i in document["instances"]},
        [(problem["field"], problem["message"]) for problem in document["problems"]],
    )


@pytest.mark.parametrize(
    ("bad", "field", "text"),
    [
        (neighbor("0.0.0.0/32"), "peerAddress", "is not the address of a host"),
        (neighbor("224.0.0.5/32"), "peerAddress", "is not the address of a host"),
        (neighbor("::/128"), "peerAddress", "is not the address of a host"),
        (neighbor("ff02::1/128"), "peerAddress", "is not the address of a host"),
        (
            neighbor("fe80::1/128"),
            "peerAddress",
            "it is link-local, and a neighbor has no interface",
        ),
        (neighbor("192.0.2.7/32", asn=23456), "peerASN", "is AS_TRANS"),
        (GOOD, "peerAddress", "is listed twice"),
    ],
)
def test_a_neighbor_that_cannot_be_is_left_out_with_the_field(
    bad: dict[str, Any], field: str, text: str
) -> None:
    peers, problems = compiled(router(65001, GOOD, bad))
    assert peers == {"65001": ["192.0.2.9"]}
    ((where, message),) = problems
    assert where == f"spec.virtualRouters[0].neighbors[1].{field}"
    assert text in message


@pytest.mark.parametrize(("asn", "text"), [(0, "0 is no AS number"), (23456, "is AS_TRANS")])
def test_a_virtual_router_without_an_as_number_is_left_out(asn: int, text: str) -> None:
    peers, problems = compiled(router(asn), router(65001))
    assert peers == {"65001": ["192.0.2.9"]}
    ((where, message),) = problems
    assert where == "spec.virtualRouters[0].localASN"
    assert text in message
