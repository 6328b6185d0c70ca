"""Why a peer is advertised an address, or is not, and which policy decides."""

from __future__ import annotations

from typing import Any

import pytest

from reconcilers.dialect import explained_kinds
from reconcilers.intent.explain import parse_target
from tests.reconcilers.antrea.build import (
    NODE,
    PEER,
    PEER6,
    Cluster,
    dual,
    egress,
    node,
    policy,
    service,
)

V4, V6 = "10.30.4.1", "2001:db8:30::1"
WEB = service("web", type="NodePort", clusterIPs=["10.98.0.1", "2001:db8:98::1"])
LOCAL = service(
    "local", externalIPs=["192.0.2.1"], externalTrafficPolicy="Local", clusterIPs=["10.98.0.2"]
)


def explained(it: Cluster, target: str, peer: str = V4) -> dict[str, str]:
    """Return the reason by type of address, and family where it has one."""
    kinds = explained_kinds([it.dialect])
    groups = it.explainer().explain(parse_target(target, kinds), lambda _, name, __: name == peer)
    found = {}
    for one in (one for group in groups for one in group):
        assert one.rule is None or one.rule.kind == "BGPPolicy"
        assert bool(one.advertised) == (one.reason == "Advertised")
        key = one.type if one.family is None else f"{one.type} {one.family}"
        found[key] = one.reason
    return found


def cluster(*objects: dict[str, Any], at: dict[str, Any] | None = None, **options: Any) -> Cluster:  # noqa: ANN401
    types = ("ClusterIP", "LoadBalancerIP")
    chosen = policy("p", *types, peers=[PEER, PEER6], egress=True)
    return Cluster(at or dual(), chosen, *objects, **options)


def test_every_type_of_address_of_a_service_has_a_reason() -> None:
    it = cluster(WEB)
    assert explained(it, "svc/retail/web") == {
        "ServiceClusterIP ipv4-unicast": "Advertised",
        "ServiceClusterIP ipv6-unicast": "Family",
        "ServiceExternalIP": "NotAdvertised",
        "ServiceLoadBalancerIP": "NotLoadBalancer",
    }
    of_six = explained(it, "retail/web", V6)
    assert of_six["ServiceClusterIP ipv6-unicast"] == "Advertised"


def test_a_family_that_the_node_has_not_enabled() -> None:
    it = cluster(WEB, at=node())
    assert explained(it, "retail/web")["ServiceClusterIP ipv6-unicast"] == "FamilyNotEnabled"


def test_the_policy_and_the_traffic_policy() -> None:
    assert explained(cluster(LOCAL), "192.0.2.1") == {
        "ServiceExternalIP ipv4-unicast": "NotAdvertised"
    }
    it = Cluster(node(), policy("p", "ExternalIP"), LOCAL)
    assert explained(it, "192.0.2.1") == {"ServiceExternalIP ipv4-unicast": "NoLocalEndpoint"}
    assert explained(it, "10.98.0.2") == {"ServiceClusterIP ipv4-unicast": "NotAdvertised"}


@pytest.mark.parametrize(
    ("on", "reason"), [(NODE, "Advertised"), ("edge-9", "OtherNode"), ("", "NotAssigned")]
)
def test_the_node_of_an_egress(on: str, reason: str) -> None:
    it = cluster(egress("billing", "10.30.4.200", on))
    assert explained(it, "egress/billing") == {"EgressIP ipv4-unicast": reason}


def test_egress_that_is_switched_off() -> None:
    it = cluster(egress("billing", "10.30.4.200", NODE), egress=False)
    assert explained(it, "10.30.4.200") == {"EgressIP ipv4-unicast": "EgressOff"}


def test_an_address_that_a_service_may_not_have() -> None:
    it = Cluster(node(), policy("p", "ExternalIP"), service(externalIPs=["10.30.4.1"]))
    assert explained(it, "10.30.4.1/32") == {"ServiceExternalIP ipv4-unicast": "PeerAddress"}
