"""The cells of a row of each table: of an item with all members, and of one with few."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from waggle import output, route_columns, sessions
from waggle.commands import explain, reconcilers, render, status, verify
from waggle.tables import Column

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def ago(**units: float) -> str:
    return (NOW - timedelta(**units)).isoformat()


def cells(columns: Sequence[Column], item: object) -> dict[str, str]:
    row = output.row(columns, item)
    return {column.title: cell for column, cell in zip(columns, row, strict=True)}


PEERS, RECONCILERS = sessions.columns(NOW), reconcilers.columns(NOW)


PEER = {
    "node": "worker-1",
    "instance": "rack0",
    "name": "tor-1",
    "address": "192.0.2.1",
    "localASN": 65001,
    "peerASN": 65010,
    "state": "Established",
    "sinceTime": ago(minutes=5, seconds=30),
    "families": ["ipv4-unicast", "ipv6-unicast", "ipv4-multicast"],
    "received": [{"family": "ipv4-unicast", "routes": 3}, {"family": "ipv6-unicast", "routes": 0}],
    "advertised": [{"family": "ipv4-unicast", "routes": 12}],
    "peerRouterID": "10.0.0.1",
    "holdSeconds": 90.0,
    "keepaliveSeconds": 30.0,
    "messagesReceived": 7,
    "messagesSent": 9,
    "flaps": 2,
    "authentication": "TCP MD5",
    "gracefulRestartSeconds": 120,
    "lastError": "hold timer expired",
    "bfd": "Up",
    "capabilities": ["multiprotocol ipv4-unicast", "route-refresh"],
}


def test_a_session_with_all_members() -> None:
    assert cells(PEERS, PEER) == {
        "NODE": "worker-1",
        "PEER": "tor-1",
        "ADDRESS": "192.0.2.1",
        "LOCAL-AS": "65001",
        "PEER-AS": "65010",
        "STATE": "Established",
        "BFD": "Up",
        "SINCE": "5m30s",
        "FAMILIES": "v4,v6,ipv4-multicast",
        "RECV": "3,0",
        "SENT": "12",
        "INSTANCE": "rack0",
        "ROUTER-ID": "10.0.0.1",
        "HOLD/KA": "90/30",
        "MSG-IN/OUT": "7/9",
        "FLAPS": "2",
        "AUTH": "TCP MD5",
        "GR": "120s",
        "CAPABILITIES": "multiprotocol ipv4-unicast,route-refresh",
        "NEXT-RETRY": "-",
        "LAST-ERROR": "hold timer expired",
        "REASON": "-",
        "LIKELY-CAUSE": "-",
    }


def test_a_session_that_is_down() -> None:
    item = {
        "node": "worker-1",
        "instance": "rack0",
        "name": "tor-1",
        "interface": "eth1",
        "peerType": "external",
        "state": "Active",
        "families": [],
        "reason": "connection refused",
        "retrySeconds": 3.2,
        "likelyCause": "the port is filtered",
    }
    found = cells(PEERS, item)
    assert found["ADDRESS"] == "eth1"
    assert found["PEER-AS"] == "external"
    assert found["REASON"] == "connection refused (retry in 4s)"
    assert found["NEXT-RETRY"] == "4s"
    assert found["LIKELY-CAUSE"] == "the port is filtered"
    assert found["AUTH"] == "none"
    assert {title for title, cell in found.items() if cell == "-"} == {
        *("LOCAL-AS", "SINCE", "FAMILIES", "RECV", "SENT", "ROUTER-ID", "HOLD/KA", "MSG-IN/OUT"),
        *("FLAPS", "GR", "CAPABILITIES", "LAST-ERROR", "BFD"),
    }
    nameless = {**item, "interface": None, "peerType": "any"}
    assert cells(PEERS, nameless)["ADDRESS"] == "-"
    del item["peerType"], item["reason"]
    unknown = cells(PEERS, {**item, "holdSeconds": 0, "retrySeconds": 0})
    assert (unknown["PEER-AS"], unknown["HOLD/KA"]) == ("any", "0/0")
    assert (unknown["REASON"], unknown["NEXT-RETRY"]) == ("unknown (retry now)", "now")


ROUTE = {
    "node": "worker-1",
    "instance": "rack0",
    "peer": "tor-1",
    "prefix": "203.0.113.7/32",
    "nextHop": "192.0.2.10",
    "asPath": "65000 65001",
    "communities": ["65000:99", "65000:100"],
    "largeCommunities": ["65000:1:2", "65000:1:3"],
    "localPreference": 150,
    "med": 7,
    "origins": [
        {"kind": "Service", "namespace": "shop", "name": "web"},
        {"kind": "Node", "name": "worker-1"},
    ],
    "status": "longer AS path",
    "best": True,
    "accepted": True,
    "filter": "10.0.0.0/8 le 24",
    "object": {"kind": "FRRConfiguration", "namespace": "ns", "name": "a"},
}
DETAILS = {
    "INSTANCE": "rack0",
    "COMMUNITIES": "65000:99,65000:100",
    "LARGE": "65000:1:2,65000:1:3",
    "LP/MED": "150/7",
    "NODE": "worker-1",
    "PREFIX": "203.0.113.7/32",
    "NEXT-HOP": "192.0.2.10",
    "AS-PATH": "65000 65001",
}
BARE = {"node": "worker-1", "instance": "rack0", "prefix": "203.0.113.7/32"}
BARE_DETAILS = {
    "INSTANCE": "rack0",
    "COMMUNITIES": "-",
    "LARGE": "-",
    "LP/MED": "-",
    "NODE": "worker-1",
    "PREFIX": "203.0.113.7/32",
    "AS-PATH": "-",
}


@pytest.mark.parametrize(
    ("table", "full", "bare"),
    [
        (
            "advertised",
            {"PEER": "tor-1", "ORIGIN-OBJECT": "Service/shop/web +1", "AGE": "-"},
            {"PEER": "-", "ORIGIN-OBJECT": "-", "AGE": "-", "NEXT-HOP": "self"},
        ),
        (
            "received",
            {
                "PEER": "tor-1",
                "STATUS": "longer AS path",
                "FILTER": "10.0.0.0/8 le 24",
                "OBJECT": "FRRConfiguration/ns/a",
            },
            {"PEER": "-", "STATUS": "-", "FILTER": "-", "OBJECT": "-", "NEXT-HOP": "-"},
        ),
        (
            "available",
            {"FROM": "tor-1", "BEST": "yes", "STATUS": "longer AS path"},
            {"FROM": "-", "BEST": "no", "STATUS": "-", "NEXT-HOP": "self"},
        ),
    ],
)
def test_a_route(table: str, full: dict[str, str], bare: dict[str, str]) -> None:
    columns = route_columns.COLUMNS[table]
    assert cells(columns, ROUTE) == DETAILS | full
    assert cells(columns, BARE) == BARE_DETAILS | bare


def test_a_route_has_the_preference_or_the_metric() -> None:
    columns = route_columns.COLUMNS["available"]
    assert cells(columns, {**BARE, "localPreference": 150})["LP/MED"] == "150/-"
    assert cells(columns, {**BARE, "med": 0})["LP/MED"] == "-/0"


def test_an_available_route_is_from_a_peer_or_an_instance_or_an_object() -> None:
    columns = route_columns.COLUMNS["available"]
    origin = {"kind": "Service", "namespace": "shop", "name": "web"}
    assert cells(columns, {**BARE, "importedFrom": "blue"})["FROM"] == "blue"
    assert cells(columns, {**BARE, "origins": [origin]})["FROM"] == "Service/shop/web"


EXPLAINED = {
    "instance": "rack0",
    "peer": "tor-1",
    "prefix": "198.51.100.10/32",
    "object": {"kind": "Service", "namespace": "shop", "name": "web"},
    "addressType": "LoadBalancerIP",
    "advertised": True,
    "advertisedPrefixes": ["198.51.100.0/24", "198.51.100.10/32", "198.51.0.0/16"],
    "reason": "Advertised",
    "rule": {"kind": "CiliumBGPAdvertisement", "name": "services"},
    "message": "selected",
}


def test_an_explanation() -> None:
    assert cells(explain.COLUMNS, EXPLAINED) == {
        "INSTANCE": "rack0",
        "PEER": "tor-1",
        "PREFIX": "198.51.100.10/32",
        "OBJECT": "Service/shop/web",
        "TYPE": "LoadBalancerIP",
        "ADVERTISED": "as 198.51.100.0/24, 198.51.0.0/16",
        "REASON": "Advertised",
        "RULE": "CiliumBGPAdvertisement/services",
        "WHY": "selected",
    }
    same = {**EXPLAINED, "advertisedPrefixes": ["198.51.100.10/32"]}
    assert cells(explain.COLUMNS, same)["ADVERTISED"] == "yes"
    assert cells(explain.COLUMNS, {"advertised": False, "reason": "NoPeer"}) == {
        **dict.fromkeys(("INSTANCE", "PEER", "PREFIX", "OBJECT", "TYPE", "RULE", "WHY"), "-"),
        "ADVERTISED": "no",
        "REASON": "NoPeer",
    }


@pytest.mark.parametrize(("received", "cell"), [(True, "yes"), (False, "no"), (None, "-")])
def test_an_explanation_of_a_received_route(received: bool | None, cell: str) -> None:
    item = {
        "instance": "rack0",
        "peer": "tor-1",
        "prefix": "10.0.0.0/24",
        "received": received,
        "accepted": not received,
        "reason": "AlwaysBlock",
        "filter": "AlwaysBlock 10.0.0.0/8",
        "object": {"kind": "FRRConfiguration", "namespace": "ns", "name": "a"},
        "message": "never accepted",
    }
    assert cells(explain.RECEIVED, item) == {
        "INSTANCE": "rack0",
        "PEER": "tor-1",
        "PREFIX": "10.0.0.0/24",
        "RECEIVED": cell,
        "ACCEPTED": "no" if received else "yes",
        "REASON": "AlwaysBlock",
        "FILTER": "AlwaysBlock 10.0.0.0/8",
        "OBJECT": "FRRConfiguration/ns/a",
        "WHY": "never accepted",
    }


def test_a_reconciler() -> None:
    item = {
        "order": 20,
        "name": "route-set",
        "target": "speaker",
        "tables": ["route sets", "routes"],
        "objects": 7,
        "errors": 1,
        "waiting": 2,
        "drifted": 3,
        "lastRunTime": ago(seconds=12),
        "durationSeconds": 0.00123,
        "summary": "1 of 7 failed",
    }
    assert cells(RECONCILERS, item) == {
        "ORDER": "20",
        "RECONCILER": "route-set",
        "TARGET": "speaker",
        "NEEDS": "route sets,routes",
        "OBJECTS": "7",
        "ERRORS": "1",
        "WAITING": "2",
        "DRIFTED": "3",
        "LAST-RUN": "12s",
        "DURATION": "1.2ms",
        "SUMMARY": "1 of 7 failed",
    }
    few = {key: item[key] for key in ("order", "name", "target", "tables", "summary")}
    assert output.row(RECONCILERS, few)[4:10] == ["-"] * 6


def test_drift() -> None:
    item = {
        "reconciler": "route-set",
        "object": "rack0/a",
        "missing": 4,
        "unexpected": 2,
        "different": 1,
        "repaired": False,
        "error": "no answer",
        "details": ["10.0.0.0/24 is missing", "10.0.1.0/24 is missing"],
    }
    assert cells(verify.COLUMNS, item) == {
        "RECONCILER": "route-set",
        "OBJECT": "rack0/a",
        "MISSING": "4",
        "UNEXPECTED": "2",
        "DIFFERENT": "1",
        "REPAIRED": "no: no answer",
        "DETAILS": "10.0.0.0/24 is missing, 10.0.1.0/24 is missing (and 5 more)",
    }
    few = {"reconciler": "peer", "object": "rack0/tor-1", "repaired": True}
    assert output.row(verify.COLUMNS, few) == ["peer", "rack0/tor-1", "0", "0", "0", "yes", "-"]
    assert output.row(verify.COLUMNS, {**few, "repaired": False})[5] == "no: unknown"
    whole = {**few, "missing": 1, "details": ["10.0.0.0/24 is missing"]}
    assert output.row(verify.COLUMNS, whole)[6] == "10.0.0.0/24 is missing"


INSTANCE = {"name": "rack0", "localASN": 65001, "routerID": "10.0.0.1"}
RENDERED: dict[str, object] = {
    "name": "tor-1",
    "address": "2001:db8::1",
    "interface": None,
    "peerPort": 1179,
    "peerASN": 65010,
    "peerType": None,
    "families": ["ipv4-unicast", "ipv6-unicast"],
    "advertise": [{}, {}],
    "localAddress": "2001:db8::2",
    "holdTime": 90.0,
    "keepaliveTime": 30.0,
    "connectRetryTime": None,
    "password": True,
    "gracefulRestart": {"restartTime": 120.0},
    "accept": ["a", "b"],
}


def test_a_peer_of_manifests() -> None:
    assert cells(render.PEERS, render.PeerRow(INSTANCE, RENDERED)) == {
        "PEER": "rack0/tor-1",
        "ADDRESS": "[2001:db8::1]:1179",
        "LOCAL-AS": "65001",
        "PEER-AS": "65010",
        "ROUTER-ID": "10.0.0.1",
        "FAMILIES": "v4,v6",
        "ROUTES": "2",
        "LOCAL-ADDRESS": "2001:db8::2",
        "HOLD/KA/RETRY": "90/30/-",
        "AUTH": "TCP MD5",
        "GR": "120s",
        "ACCEPT": "2 rules",
    }
    other = {
        **RENDERED,
        "address": None,
        "peerASN": None,
        "localAddress": None,
        "password": None,
        "gracefulRestart": None,
        "accept": [],
        "interface": "eth1",
        "peerType": "external",
    }
    found = cells(render.PEERS, render.PeerRow(INSTANCE, other))
    assert (found["ADDRESS"], found["PEER-AS"]) == ("eth1:1179", "external")
    assert (found["LOCAL-ADDRESS"], found["AUTH"], found["GR"]) == ("-", "-", "-")
    assert found["ACCEPT"] == "none"
    last = {**other, "interface": None, "peerType": None, "accept": "all"}
    found = cells(render.PEERS, render.PeerRow(INSTANCE, last))
    assert (found["ADDRESS"], found["PEER-AS"], found["ACCEPT"]) == ("-:1179", "any", "all")


def test_a_route_of_manifests() -> None:
    route = {
        "prefix": "203.0.113.7/32",
        "nextHop": "192.0.2.10",
        "communities": ["65000:99"],
        "largeCommunities": ["65000:1:2"],
        "localPreference": 150,
        "origins": [
            {"kind": "Service", "namespace": "shop", "name": "web"},
            {"kind": "Node", "namespace": None, "name": "worker-1"},
        ],
        "origin": "igp",
    }
    assert cells(render.ROUTES, {**route, "peer": "rack0/tor-1"}) == {
        "PEER": "rack0/tor-1",
        "PREFIX": "203.0.113.7/32",
        "NEXT-HOP": "192.0.2.10",
        "COMMUNITIES": "65000:99 65000:1:2",
        "LP": "150",
        "ORIGIN-OBJECT": "Service/shop/web Node/worker-1",
        "ORIGIN": "igp",
    }
    bare = cells(render.ROUTES, {**route, "nextHop": None, "localPreference": None})
    assert (bare["NEXT-HOP"], bare["LP"]) == ("self", "-")


def test_conditions_of_the_agent_come_first() -> None:
    item = {
        "objects": [
            {
                "kind": "BGPSessionState",
                "namespace": "frr-k8s-system",
                "name": "a",
                "status": {
                    "conditions": [{"type": "Ready", "status": "False", "message": "one\ntwo"}]
                },
            },
            {"kind": "CiliumBGPNodeConfig", "name": "worker-1", "status": {}},
        ],
        "conditions": [{"kind": "Node", "name": "worker-1", "type": "Drained", "status": "True"}],
    }
    found = status.conditions(item)
    assert [output.row(status.CONDITIONS, condition) for condition in found] == [
        ["BGPSessionState/frr-k8s-system/a", "Ready", "False", "one; two"],
        ["Node/worker-1", "Drained", "True", "-"],
    ]


def test_the_lines_of_the_state() -> None:
    down = {
        "name": "tor-2",
        "instance": "rack0",
        "interface": "eth1",
        "state": "Idle",
        "sinceTime": ago(seconds=12),
        "reason": "connection refused",
        "retrySeconds": 4,
        "likelyCause": "the port is filtered",
    }
    bare = {"name": "tor-3", "instance": "rack1", "state": "Disabled"}
    item = {
        "node": "worker-1",
        "ready": False,
        "waiting": ["the first complete apply round", "the initial table of every peer"],
        "health": "degraded",
        "degraded": [
            {"path": "kubernetes", "message": "no answer; retry", "sinceTime": ago(hours=2)},
            {"path": "kubernetes/Service", "message": "no answer; 3", "sinceTime": ago(hours=2)},
            {"path": "kubernetes/Node", "message": "forbidden", "sinceTime": ago(minutes=1)},
        ],
        "reporting": "written 3 times",
        "unusedObjects": [{"message": "3 BGPPeers"}],
        "unrestricted": ["any address may be advertised"],
        "peers": [
            bare,
            down,
            {**PEER, "malformedUpdates": 2, "malformed": "ORIGIN 3"},
        ],
    }
    assert status.lines(item, NOW) == [
        "node       worker-1",
        "ready      no: waits for the first complete apply round; the initial table of every peer",
        "health     degraded",
        "  - kubernetes: no answer; retry (for 2h)",
        "  - kubernetes/Node: forbidden (for 1m)",
        "status     written 3 times",
        "unused     3 BGPPeers",
        "addresses  any address may be advertised",
        "instance   rack0, AS 65001",
        (
            "  - tor-1 (192.0.2.1, AS 65010): Established for 5m30s; "
            "ipv4-unicast 3 received, 12 advertised; ipv6-unicast 0 received, 0 advertised; "
            "2 malformed UPDATEs: ORIGIN 3"
        ),
        (
            "  - tor-2 (eth1): Idle, down for 12s: connection refused (retry in 4s); "
            "likely the port is filtered"
        ),
        "instance   rack1, AS -",
        "  - tor-3 (no address): Disabled",
    ]
