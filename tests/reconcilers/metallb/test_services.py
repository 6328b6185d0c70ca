"""Whether a node advertises a Service: each step, in MetalLB's order, with its reason."""

from __future__ import annotations

from typing import Any

import pytest

from reconcilers.dialect import Contributed, Rejected
from reconcilers.metallb.node_facts import EXCLUDE_LABEL, excluded_node
from reconcilers.metallb.route_sets import Withheld, node_rules, peer_rules
from reconcilers.metallb.services import ServiceState, contributions, decide, service_state
from resources.core.kinds import ENDPOINT_SLICE, NODE, SERVICE
from speaker.nlri import prefix_to_text
from tests.reconcilers.metallb.objects import advertisement, peer, pool, rows

FRONT = pool("front", "198.18.30.0/24", "2001:db8:30::/120")
READY = {"addresses": ["10.1.0.4"], "nodeName": "n1", "conditions": {"ready": True}}


def service(*addresses: str, name: str = "web", **parts: Any) -> dict[str, Any]:  # noqa: ANN401
    """Make a Service; ``spec``, ``labels`` and ``ingress`` add to it, or replace it."""
    ingress = parts.get("ingress", [{"ip": address} for address in addresses])
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "shop", "labels": parts.get("labels", {})},
        "spec": {"type": "LoadBalancer", **parts.get("spec", {})},
        "status": {"loadBalancer": {"ingress": ingress}},
    }


def state(
    value: dict[str, Any], *endpoints: dict[str, Any], load_balancer_class: str = ""
) -> ServiceState:
    slices = [
        ENDPOINT_SLICE.decode(
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {"name": "web-1", "namespace": "shop"},
                "endpoints": list(endpoints),
            }
        )
    ]
    return service_state(SERVICE.decode(value), slices, "n1", load_balancer_class)


def reason(found: ServiceState, *objects: dict[str, Any], node: Withheld | None = None) -> str:
    """Return why a Service is not advertised, or Advertised."""
    decision = decide(found, node_rules(rows(*objects), node))
    return "Advertised" if decision.withheld is None else decision.withheld[0]


PLAIN = (FRONT, advertisement("plain"))
LOCAL = {"externalTrafficPolicy": "Local"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (service("198.18.30.5"), "Advertised"),
        (service("198.18.30.5", "2001:db8:30::5"), "Advertised"),
        (service("198.18.30.5", spec={"type": "ClusterIP"}), "NotLoadBalancer"),
        (service("198.18.30.5", spec={"loadBalancerClass": "x"}), "LoadBalancerClass"),
        (service(), "NoAddress"),
        (service(ingress=[{"hostname": "lb"}]), "NoAddress"),
        (service(ingress=[{"ip": "198.18.30.5"}, {"hostname": "lb"}]), "NoAddress"),
        (service("198.18.99.5"), "NoPool"),
        (service("198.18.30.5", "198.18.99.5"), "NoPool"),
        (service("198.18.30.5", "198.18.40.5"), "NoPool"),
    ],
    ids=str,
)
def test_which_services_are_advertised(value: dict[str, Any], expected: str) -> None:
    other = pool("other", "198.18.40.0/24")
    assert reason(state(value, READY), *PLAIN, other) == expected


def test_a_class_selects_the_services_with_it() -> None:
    other = service("198.18.30.5", spec={"loadBalancerClass": "x"})
    assert reason(state(other, READY, load_balancer_class="x"), *PLAIN) == "Advertised"
    without = state(service("198.18.30.5"), READY, load_balancer_class="x")
    assert reason(without, *PLAIN) == "LoadBalancerClass"


@pytest.mark.parametrize(
    ("conditions", "usable"),
    [
        ({}, True),
        ({"ready": True}, True),
        ({"ready": True, "serving": False}, True),
        ({"ready": False}, False),
        ({"ready": False, "serving": True, "terminating": True}, True),
        ({"ready": False, "serving": False, "terminating": True}, False),
    ],
)
def test_an_endpoint_is_usable_if_it_is_ready_or_serving(
    conditions: dict[str, bool], usable: bool
) -> None:
    endpoint = {**READY, "conditions": conditions}
    expected = "Advertised" if usable else "NoEndpoint"
    assert reason(state(service("198.18.30.5"), endpoint), *PLAIN) == expected


def test_an_endpoint_without_an_address_is_none() -> None:
    assert reason(state(service("198.18.30.5"), {**READY, "addresses": []}), *PLAIN) == "NoEndpoint"


@pytest.mark.parametrize(
    ("node", "expected"),
    [("n1", "Advertised"), ("n2", "NoLocalEndpoint"), (None, "NoLocalEndpoint")],
)
def test_policy_local_needs_an_endpoint_here(node: str | None, expected: str) -> None:
    endpoint = {**READY, "nodeName": node}
    assert reason(state(service("198.18.30.5", spec=LOCAL), endpoint), *PLAIN) == expected
    assert reason(state(service("198.18.30.5"), endpoint), *PLAIN) == "Advertised"


def test_an_advertisement_has_to_select_pool_and_service() -> None:
    web = state(service("198.18.30.5", labels={"tier": "dev"}), READY)
    assert reason(web, FRONT) == "NotOwner"
    assert reason(web, FRONT, advertisement("x", ipAddressPools=["other"])) == "NotOwner"
    selectors = [{"matchLabels": {"tier": "prod"}}, {"matchLabels": {"tier": "canary"}}]
    selecting = advertisement("x", serviceSelectors=selectors)
    assert reason(web, FRONT, selecting) == "NoMatchingAdvertisement"
    canary = state(service("198.18.30.5", labels={"tier": "canary"}), READY)
    assert reason(canary, FRONT, selecting) == "Advertised"


@pytest.mark.parametrize(
    ("labels", "conditions", "ignore", "expected"),
    [
        ({}, [], False, None),
        ({}, [{"type": "NetworkUnavailable", "status": "True"}], True, "NetworkUnavailable"),
        ({}, [{"type": "NetworkUnavailable", "status": "False"}], False, None),
        ({}, [{"type": "Ready", "status": "False"}], False, None),
        ({EXCLUDE_LABEL: ""}, [], False, "NodeExcluded"),
        ({EXCLUDE_LABEL: "false"}, [], False, "NodeExcluded"),
        ({EXCLUDE_LABEL: "false"}, [], True, None),
    ],
)
def test_a_node_that_advertises_nothing(
    labels: dict[str, str], conditions: list[dict[str, str]], ignore: bool, expected: str | None
) -> None:
    node = NODE.decode(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "n1", "labels": labels},
            "status": {"conditions": conditions},
        }
    )
    found = excluded_node(node, ignore)
    assert (found and found[0]) == expected
    web = state(service("198.18.30.5"), READY)
    assert reason(web, *PLAIN, node=found) == (expected or "Advertised")


def prefixes(found: ServiceState, *objects: dict[str, Any]) -> dict[str, list[str]]:
    """Return the prefixes of each peer."""
    given = rows(*objects)
    rules = peer_rules(given, node_rules(given, None))
    routes: dict[str, list[str]] = {name: [] for name in rules}
    for one in contributions(found, rules.items()):
        assert isinstance(one, Contributed)
        routes[one.route_set].append(prefix_to_text(one.family, one.nlri))
    return routes


def test_each_advertisement_gives_its_aggregate_of_the_families_of_the_session() -> None:
    objects = (
        FRONT,
        advertisement("host"),
        advertisement(
            "roll", aggregationLength=24, aggregationLengthV6=120, peers=["four", "both"]
        ),
        peer("four"),
        peer("six", "2001:db8::9"),
        peer("both", "203.0.113.10", dualStackAddressFamily=True),
    )
    web = state(service("198.18.30.5", "2001:db8:30::5"), READY)
    assert prefixes(web, *objects) == {
        "four": ["198.18.30.5/32", "198.18.30.0/24"],
        "six": ["2001:db8:30::5/128"],
        "both": [
            "198.18.30.5/32",
            "2001:db8:30::5/128",
            "198.18.30.0/24",
            "2001:db8:30::/120",
        ],
    }


def test_peers_with_the_same_advertisements_and_families_share_their_rules() -> None:
    objects = [FRONT, advertisement("x", peers=["a", "b"]), advertisement("y", peers=["c"])]
    objects += [peer(name, f"203.0.113.{i}") for i, name in enumerate("abc", start=1)]
    given = rows(*objects)
    rules = peer_rules(given, node_rules(given, None))
    assert rules["a"] == rules["b"]
    assert rules["a"].name != rules["c"].name


@pytest.mark.parametrize("change", ["pool", "labels", "preference", "community", "node"])
def test_other_rules_have_another_name(change: str) -> None:
    def name(changed: bool) -> str:
        pick = change if changed else ""
        objects = rows(
            pool("front", "198.18.30.0/25" if pick == "pool" else "198.18.30.0/24"),
            advertisement(
                "x",
                localPref=2 if pick == "preference" else 1,
                communities=["1:2" if pick == "community" else "1:1"],
                serviceSelectors=[{"matchLabels": {"a": "2" if pick == "labels" else "1"}}],
            ),
            peer("a"),
        )
        node = ("NodeExcluded", "label") if pick == "node" else None
        return peer_rules(objects, node_rules(objects, node))["a"].name

    assert name(changed=True) != name(changed=False)


def test_a_service_with_two_preferences_is_not_advertised_and_reported() -> None:
    given = rows(
        FRONT,
        advertisement("lo", localPref=100, serviceSelectors=[{"matchLabels": {"a": "1"}}]),
        advertisement("hi", localPref=200, serviceSelectors=[{}], peers=["a"]),
        peer("a"),
        peer("b", "203.0.113.10"),
    )
    rules = peer_rules(given, node_rules(given, None))
    web = state(service("198.18.30.5", labels={"a": "1"}), READY)
    found = list(contributions(web, rules.items()))
    assert [type(one) for one in found] == [Rejected, Rejected]
    [problem] = {one.problem for one in found if isinstance(one, Rejected)}
    names = ["hi", "lo", "web"]
    assert [ref.name for ref in problem.objects] == names
    assert (problem.category, problem.field) == ("conflict", "spec.localPref")
    assert all(text in problem.message for text in ("100", "200"))
