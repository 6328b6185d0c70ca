"""Random clusters and random orders of events: the result is that of a fresh start."""

from __future__ import annotations

import ipaddress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reconcilers.antrea.build import (
    NODE,
    Cluster,
    dual,
    egress,
    endpoints,
    node,
    policy,
    secret,
    service,
)
from tests.support.examples import examples

NODES = (NODE, "edge-9")
PEERS = [
    {"address": "10.30.4.1", "asn": 64600},
    {"address": "10.30.4.1", "asn": 64601},
    {"address": "10.30.4.2", "asn": 64600, "port": 1790},
    {"address": "2001:db8:30::1", "asn": 64600},
    {"address": "2001:DB8:30:0::1", "asn": 64600, "multihopTTL": 2},
]
TYPES = ("ClusterIP", "ExternalIP", "LoadBalancerIP")
EGRESS_IPS = st.sampled_from(["", "10.30.4.200"])
TRAFFIC = st.sampled_from(["Cluster", "Local"])


def some(values: Any, size: int = 3) -> st.SearchStrategy[list[Any]]:  # noqa: ANN401
    return st.lists(st.sampled_from(list(values)), max_size=size, unique_by=str)


@st.composite
def a_policy(draw: st.DrawFn) -> dict[str, Any]:
    return policy(
        draw(st.sampled_from("abc")),
        *draw(some(TYPES)),
        created=f"2026-03-0{draw(st.integers(1, 2))}T08:00:00Z",
        selector=draw(st.sampled_from([{}, {"matchLabels": {"pool": "edge"}}])),
        peers=draw(some(PEERS, 5)),
        pod=draw(st.booleans()),
        egress=draw(st.booleans()),
        localASN=draw(st.sampled_from([64620, 64621])),
    )


@st.composite
def a_service(draw: st.DrawFn) -> dict[str, Any]:
    addresses = [f"192.0.2.{i}" for i in range(1, 4)] + ["2001:db8::1", "2001:DB8:0::1"]
    return service(
        draw(st.sampled_from(["s0", "s1"])),
        type=draw(st.sampled_from(["ClusterIP", "NodePort", "LoadBalancer"])),
        clusterIPs=draw(some(["10.98.0.1", "2001:db8:98::1"])),
        externalIPs=draw(some(addresses)),
        ingress=draw(some(addresses)),
        internalTrafficPolicy=draw(TRAFFIC),
        externalTrafficPolicy=draw(TRAFFIC),
    )


@st.composite
def a_node(draw: st.DrawFn) -> dict[str, Any]:
    make = draw(st.sampled_from([node, dual]))
    labels = draw(st.sampled_from([{}, {"pool": "edge"}]))
    found: dict[str, Any] = make(
        draw(st.sampled_from(NODES)),
        labels=labels,
        router_id=draw(st.sampled_from([None, "10.255.0.7", "router-7"])),
    )
    return found


OBJECTS = st.one_of(
    a_policy(),
    a_service(),
    a_node(),
    st.builds(
        lambda nodes, of, number: endpoints(*nodes, service=of, name=f"slice-{number}"),
        some(NODES),
        st.sampled_from(["s0", "s1"]),
        st.integers(0, 2),
    ),
    st.builds(
        egress, st.sampled_from("ef"), st.sampled_from(["", "10.30.4.200"]), st.sampled_from(NODES)
    ),
    st.builds(lambda keys: secret(dict.fromkeys(keys, "x")), some(["10.30.4.1-64600", "y"])),
)
EVENTS = st.lists(st.tuples(OBJECTS, st.booleans(), st.booleans()), max_size=25)
"""An object, whether it is deleted, and whether a round follows."""


@settings(deadline=None, max_examples=examples(60), database=None)
@given(events=EVENTS)
def test_any_order_of_events_gives_what_a_fresh_start_gives(
    events: list[tuple[dict[str, Any], bool, bool]],
) -> None:
    it = Cluster(dual())
    for value, deleted, followed in events:
        if deleted:
            metadata = value["metadata"]
            it.delete(value["kind"], metadata["name"], metadata.get("namespace", ""))
        else:
            it.put(value)
        if followed:
            check(it.render())
    document = it.render()
    check(document)
    assert document == it.fresh()


def check(document: dict[str, Any]) -> None:
    """Check what holds at any moment."""
    effective = [c for c in document["conditions"] if c["status"] == "True"]
    assert len(effective) == len(document["instances"]) <= 1
    for instance in document["instances"]:
        addresses = [peer["address"] for peer in instance["peers"]]
        assert len(set(addresses)) == len(addresses)
        for peer in instance["peers"]:
            version = ipaddress.ip_address(peer["address"]).version
            assert peer["families"] == [f"ipv{version}-unicast"]
            prefixes = [ipaddress.ip_network(route["prefix"]) for route in peer["advertise"]]
            assert all(prefix.version == version for prefix in prefixes)
