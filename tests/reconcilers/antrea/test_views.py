"""The views of Antrea's agent: their form, their order, their refusals."""

from __future__ import annotations

import contextlib
import ipaddress
import itertools
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from reconcilers.antrea import views
from reconcilers.antrea.command import VIEWS, table
from reconcilers.dialect import RefusedError, ViewContext
from resources.errors import InvalidObject
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
from tests.reconcilers.antrea.cases import CASES

NAMES = {path.path: path.read for path in views.PATHS}


def read(it: Cluster, path: str, **query: str) -> Any:  # noqa: ANN401  JSON
    """Return what a path answers, as JSON."""
    it.run()
    context = ViewContext(it.resources, it.db.snapshot(), it.intent, "antrea", ())
    found = NAMES[path](context, {name.replace("_", "-"): value for name, value in query.items()})
    if path == views.ROUTES:
        found = list(itertools.chain.from_iterable(found)) or None
    return msgspec.json.decode(msgspec.json.encode(found))


def refused(it: Cluster, path: str, **query: str) -> tuple[int, str]:
    with pytest.raises(RefusedError) as caught:
        read(it, path, **query)
    return caught.value.status, str(caught.value)


def test_the_policy_has_no_zero_values() -> None:
    it = Cluster(node(), policy("edge"))
    expected = {"name": "edge", "routerID": "10.30.4.17", "localASN": 64620, "listenPort": 179}
    assert read(it, views.POLICY) == expected
    it.put(policy("edge", confederation={"identifier": 65010, "memberASNs": [64622, 64621]}))
    more = {"confederationIdentifier": 65010, "memberASNs": [64621, 64622]}
    assert read(it, views.POLICY) == expected | more


@pytest.mark.parametrize("path", NAMES)
def test_without_an_effective_policy(path: str) -> None:
    text = "there is no effective bgp policy applied to the Node"
    assert refused(Cluster(node()), path) == (404, text)


@pytest.mark.parametrize("path", [views.PEERS, views.ROUTES])
@pytest.mark.parametrize(
    "query",
    [{"ipv4_only": "true"}, {"ipv6_only": "1"}, {"ipv4_only": "", "ipv6_only": ""}],
)
def test_flags_have_no_value_and_exclude_each_other(path: str, query: dict[str, str]) -> None:
    assert refused(Cluster(node(), policy()), path, **query) == (400, "invalid query")


def test_peers_are_ordered_by_family_address_and_port() -> None:
    peers = [
        PEER6,
        {"address": "10.30.4.10", "asn": 1},
        {"address": "10.30.4.9", "asn": 2, "port": 1},
    ]
    it = Cluster(dual(), policy(peers=peers))
    four = [
        {"peer": "10.30.4.9:1", "asn": 2, "state": "Unknown"},
        {"peer": "10.30.4.10:179", "asn": 1, "state": "Unknown"},
    ]
    six = [{"peer": "[2001:db8:30::1]:179", "asn": 64600, "state": "Unknown"}]
    assert read(it, views.PEERS) == [*four, *six]
    assert read(it, views.PEERS, ipv4_only="") == four
    assert read(it, views.PEERS, ipv6_only="") == six


def test_an_empty_list_is_null() -> None:
    it = Cluster(node(), policy(peers=[]))
    assert read(it, views.PEERS) is None
    assert read(it, views.ROUTES) is None


def everything(**fields: Any) -> Cluster:  # noqa: ANN401
    """Return a cluster with a route of each type."""
    types = ("ClusterIP", "ExternalIP", "LoadBalancerIP")
    return Cluster(
        dual(),
        policy("p", *types, pod=True, egress=True, **fields),
        service(
            "web",
            type="LoadBalancer",
            clusterIPs=["10.98.0.9", "2001:db8:98::9"],
            ingress=["192.0.2.9"],
        ),
        service("two", clusterIPs=["10.98.0.10"], externalIPs=["192.0.2.9"]),
        egress("billing", "10.30.4.200", NODE),
    )


ROUTES = [
    ("10.30.4.200/32", "EgressIP", "billing"),
    ("10.201.7.0/24", "NodeIPAMPodCIDR", None),
    ("10.98.0.9/32", "ServiceClusterIP", "retail/web"),
    ("10.98.0.10/32", "ServiceClusterIP", "retail/two"),
    ("192.0.2.9/32", "ServiceExternalIP", "retail/two"),
    ("192.0.2.9/32", "ServiceLoadBalancerIP", "retail/web"),
    ("2001:db8:c9:7::/64", "NodeIPAMPodCIDR", None),
    ("2001:db8:98::9/128", "ServiceClusterIP", "retail/web"),
]


def listed(it: Cluster, **query: str) -> list[tuple[str, str, str | None]]:
    found = read(it, views.ROUTES, **query) or []
    return [(item["route"], item["type"], item.get("k8sObjRef")) for item in found]


@pytest.mark.parametrize("peers", [[PEER, PEER6], []])
def test_routes_are_ordered_by_family_type_length_and_address(peers: list[dict[str, Any]]) -> None:
    it = everything(peers=peers)
    assert listed(it) == ROUTES
    assert listed(it, ipv6_only="") == ROUTES[-2:]
    assert listed(it, type="ServiceClusterIP") == [r for r in ROUTES if r[1] == "ServiceClusterIP"]
    assert listed(it, type="Other") == []


def test_many_routes_come_in_groups() -> None:
    services = (service(f"s{i}", clusterIPs=[f"10.98.{i >> 8}.{i & 255}"]) for i in range(500))
    it = Cluster(node(), policy("p", "ClusterIP"), *services)
    it.run()
    context = ViewContext(it.resources, it.db.snapshot(), it.intent, "antrea", ())
    groups = [len(group) for group in NAMES[views.ROUTES](context, {})]
    assert (sum(groups), max(groups)) == (500, views.GROUP)


# Tables


def test_a_table_is_sorted_as_text() -> None:
    items = [
        {"peer": "10.30.4.9:179", "asn": 64600, "state": "Established", "bfd": "Up"},
        {"peer": "10.30.4.10:179", "asn": 64600, "state": "Idle"},
    ]
    assert table(VIEWS["peers"], items) == [
        "PEER           ASN   STATE       BFD   ",
        "10.30.4.10:179 64600 Idle        <NONE>",
        "10.30.4.9:179  64600 Established Up    ",
    ]


def test_an_empty_cell_and_an_empty_table() -> None:
    assert table(VIEWS["routes"], [{"route": "10.0.0.0/24", "type": "NodeIPAMPodCIDR"}])[
        1
    ].split() == [
        "10.0.0.0/24",
        "NodeIPAMPodCIDR",
        "<NONE>",
    ]
    assert table(VIEWS["routes"], []) == [""]


def members(*asns: int) -> str:
    """Return the last cell of a policy's row."""
    row = table(VIEWS["policy"], [{"name": "p", "memberASNs": list(asns)}])[1]
    return row.rpartition("<NONE>")[2].strip()


@pytest.mark.parametrize(
    ("asns", "shown"),
    [
        (range(64000, 64008), ",".join(str(asn) for asn in range(64000, 64008))),
        (range(64000, 64009), "64000,64001,64002,64003,64004,64005 + 3 more..."),
        (range(64000, 64012), "64000,64001,64002,64003,64004,64005 + 6 more..."),
        ((9, 10, 64000), "10,64000,9"),
    ],
)
def test_the_members_of_a_confederation_fit_50_characters(asns: Iterable[int], shown: str) -> None:
    assert members(*asns) == shown
    assert len(shown) <= 50


# The acceptance cases, with what is advertised by which object


def settings(case: dict[str, Any]) -> dict[str, Any]:
    """Return the dialect's options of a case."""
    found: dict[str, Any] = {}
    for flag in " ".join(case.get("options", ())).replace("namespace ", "namespace=").split():
        name, _, value = flag.removeprefix("--antrea-").partition("=")
        found[name.replace("-", "_")] = value == "true" if value in ("true", "false") else value
    return found


def expected_routes(case: dict[str, Any]) -> list[dict[str, str]]:
    """Return the routes of a case in the order of the view."""
    found = set()
    for address, peer in case["expect"]["peers"].items():
        version = ipaddress.ip_address(address).version
        for route in peer["routes"]:
            network = ipaddress.ip_network(route["prefix"])
            for kind, namespace, name, type_ in route["origins"]:
                ref = "" if kind == "Node" else f"{namespace}/{name}" if namespace else name
                order = (version, type_, network.prefixlen, int(network.network_address))
                found.add((*order, ref, route["prefix"]))
    return [
        {"route": prefix, "type": type_} | ({"k8sObjRef": ref} if ref else {})
        for _, type_, _, _, ref, prefix in sorted(found)
    ]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_views_of_a_case(case: dict[str, Any]) -> None:
    it = Cluster(node=case["node"], **settings(case))
    for value in case["objects"]:
        if it.kinds.find(value["apiVersion"], value["kind"]) is not None:
            with contextlib.suppress(InvalidObject):
                it.put(value)
    instance = case["expect"]["instance"]
    if instance is None:
        assert {refused(it, path)[0] for path in NAMES} == {404}
        return
    (name,) = (n for n, reason in case["expect"]["policies"].items() if reason == "Effective")
    confederation = instance["confederation"]
    members = confederation and confederation["members"]
    assert read(it, views.POLICY) == {
        "name": name,
        "routerID": instance["routerID"],
        "localASN": instance["localASN"],
        "listenPort": instance["listenPort"],
        **({"confederationIdentifier": confederation["identifier"]} if confederation else {}),
        **({"memberASNs": members} if members else {}),
    }
    ordered = sorted(
        case["expect"]["peers"].items(),
        key=lambda item: (":" in item[0], int(ipaddress.ip_address(item[0]))),
    )
    peers = [
        {
            "peer": f"[{address}]:{peer['peerPort']}"
            if ":" in address
            else f"{address}:{peer['peerPort']}",
            "asn": peer["peerASN"],
            "state": "Unknown",
        }
        for address, peer in ordered
    ]
    assert read(it, views.PEERS) == (peers or None)
    families = {":" in address for address in case["expect"]["peers"]}
    shown = [one for one in read(it, views.ROUTES) or [] if (":" in one["route"]) in families]
    assert shown == expected_routes(case)
    for type_ in {one["type"] for one in shown}:
        of_type = [one for one in shown if one["type"] == type_]
        found = read(it, views.ROUTES, type=type_)
        assert [one for one in found if (":" in one["route"]) in families] == of_type
