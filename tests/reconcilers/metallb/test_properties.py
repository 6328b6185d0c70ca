"""Properties of the dialect on random objects: a simple model, the order of changes, round trips."""

from __future__ import annotations

import ipaddress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.reconcilers.metallb.build import MetalLBNode
from tests.reconcilers.metallb.objects import advertisement, community, peer, pool
from tests.reconcilers.metallb.test_node import endpoints, node, service

PEERS = {"a": "203.0.113.1", "b": "203.0.113.2"}
POOLS = {"p": "198.18.30.0/24", "q": "198.18.40.0/24"}
TIER = [{"matchLabels": {"tier": "x"}}]

peers = st.builds(
    lambda name, mine, chosen: peer(name, PEERS[name], myASN=mine, nodeSelectors=chosen),
    st.sampled_from(sorted(PEERS)),
    st.sampled_from([64900, 64900, 64900, 64901]),
    st.sampled_from([[], [{"matchLabels": {"rack": "1"}}]]),
)
pools = st.builds(
    lambda name, prefix: pool(name, prefix),
    st.sampled_from(sorted(POOLS)),
    st.sampled_from([*POOLS.values(), *POOLS.values(), "198.18.0.0/16"]),
)
advertisements = st.builds(
    lambda name, **spec: advertisement(name, **{k: v for k, v in spec.items() if v is not None}),
    st.sampled_from("xyz"),
    aggregationLength=st.sampled_from([None, None, 24, 23]),
    localPref=st.sampled_from([None, None, 100, 200]),
    ipAddressPools=st.sampled_from([None, ["p"], ["q"], ["gone"]]),
    peers=st.sampled_from([None, None, ["a"], ["b"]]),
    communities=st.sampled_from([None, ["1:1"], ["vip"]]),
    serviceSelectors=st.sampled_from([None, None, TIER]),
)
services = st.builds(
    lambda name, address, labels: service(name, address, **labels),
    st.sampled_from("st"),
    st.sampled_from(["198.18.30.5", "198.18.30.6", "198.18.40.5", "198.18.99.5"]),
    st.sampled_from([{}, {"tier": "x"}]),
)
slices = st.builds(lambda n, r: endpoints(n, ready=r), st.sampled_from("st"), st.booleans())
nodes = st.sampled_from([node(), node(rack="1")])
communities = st.just(community("c", vip="1:2"))
objects = st.one_of(
    peers, pools, advertisements, advertisements, services, services, slices, nodes, communities
)
changes = st.lists(st.tuples(st.booleans(), objects), max_size=14)


def key(value: dict[str, Any]) -> tuple[str, str]:
    return value["kind"], value["metadata"]["name"]


def state_after(steps: list[tuple[bool, dict[str, Any]]]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the objects that exist after changes: each adds (or replaces) an object, or deletes it."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for is_added, value in steps:
        if is_added:
            found[key(value)] = value
        else:
            found.pop(key(value), None)
    return found


@given(changes)
def test_the_way_to_a_state_does_not_matter(steps: list[tuple[bool, dict[str, Any]]]) -> None:
    walked = MetalLBNode("isolate")
    for is_added, value in steps:
        if is_added:
            walked.put(value)
        else:
            walked.delete(value)
    at_once = MetalLBNode("isolate")
    at_once.put(*state_after(steps).values())
    assert walked.render() == at_once.render()
    backwards = MetalLBNode("isolate")
    backwards.put(*reversed(state_after(steps).values()))
    assert backwards.render() == at_once.render()


@given(changes)
def test_what_is_rendered_gives_the_same_again(steps: list[tuple[bool, dict[str, Any]]]) -> None:
    first = MetalLBNode("isolate")
    state = state_after([(True, node()), *steps])
    first.put(*state.values())
    made = [one for one in first.rendered() if one["kind"] == "FRRConfiguration"]
    labels = {"kubernetes.io/hostname": "n1"}
    for one in made:
        assert one["spec"]["nodeSelector"] == {"matchLabels": labels}
    again = MetalLBNode()
    again.put(node(**labels), *made)
    assert _told(again) == _told(first)


def _told(found: MetalLBNode) -> list[dict[str, Any]]:
    """Return the sessions and routes, without the objects that they come from."""
    return [
        {**one, "advertise": [{**r, "origins": [], "origin": ""} for r in one["advertise"]]}
        for instance in found.render()["instances"]
        for one in instance["peers"]
    ]


@given(changes)
def test_a_simple_model_agrees(steps: list[tuple[bool, dict[str, Any]]]) -> None:
    state = state_after([(True, node()), *steps])
    found = MetalLBNode("clear")
    found.put(*state.values())
    problems = found.render()["problems"]
    if any("Service" not in str(one["objects"]) for one in problems):
        return  # The objects are wrong; the routes of what is right are looked at.
    assert {name: sorted(routes) for name, routes in found.routes().items()} == _model(state)


def _model(state: dict[tuple[str, str], dict[str, Any]]) -> dict[str, list[str]]:
    """Return the prefixes of each peer, as section 2.3 of the reference words it."""

    def of(kind: str) -> list[dict[str, Any]]:
        return [value for (k, _), value in state.items() if k == kind]

    labels = state.get(("Node", "n1"), node())["metadata"]["labels"]
    advertised: dict[str, list[str]] = {}
    preferences: dict[tuple[str, str], set[int]] = {}
    for one in of("BGPPeer"):
        selectors = one["spec"]["nodeSelectors"]
        if not selectors or labels.get("rack") == "1":
            advertised[one["spec"]["peerAddress"]] = []
    for one in of("Service"):
        name = one["metadata"]["name"]
        slice_ = state.get(("EndpointSlice", f"{name}-1"))
        if slice_ is None or not slice_["endpoints"][0]["conditions"]["ready"]:
            continue
        address = ipaddress.ip_address(one["status"]["loadBalancer"]["ingress"][0]["ip"])
        pool_names = [
            p["metadata"]["name"]
            for p in of("IPAddressPool")
            if address in ipaddress.ip_network(p["spec"]["addresses"][0])
        ]
        matching = [
            a["spec"]
            for a in of("BGPAdvertisement")
            if pool_names
            and pool_names[0] in a["spec"].get("ipAddressPools", pool_names)
            and (
                "serviceSelectors" not in a["spec"] or one["metadata"]["labels"].get("tier") == "x"
            )
        ]
        if _contradicting(matching):
            continue
        for spec in matching:
            length = spec.get("aggregationLength", 32)
            prefix = str(ipaddress.ip_network((address, length), strict=False))
            for peer_name, peer_address in PEERS.items():
                if peer_address in advertised and peer_name in spec.get("peers", PEERS):
                    if prefix not in advertised[peer_address]:
                        advertised[peer_address].append(prefix)
                    at = (peer_address, prefix)
                    if "localPref" in spec:
                        preferences.setdefault(at, set()).add(spec["localPref"])
    for (address_, prefix), values in preferences.items():
        if len(values) > 1:
            advertised[address_].remove(prefix)
    return {name: sorted(routes) for name, routes in advertised.items()}


def _contradicting(specs: list[dict[str, Any]]) -> bool:
    return any(
        one.get("localPref", 0) != other.get("localPref", 0)
        and one.get("aggregationLength", 32) == other.get("aggregationLength", 32)
        and set(one.get("peers", PEERS)) & set(other.get("peers", PEERS))
        for one in specs
        for other in specs
    )
