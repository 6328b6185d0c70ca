"""A real API server takes the definitions, and judges objects exactly as the agent does.

Each object goes both ways: created on the server as a dry run, with fields that it does not know
rejected, and decoded by its kind. Both have to accept, or both have to reject and name the same field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from resources.errors import InvalidObject
from resources.kind import Kind
from tests.support import kinds
from tests.support.kubernetes.accounts import define, undefine
from tests.support.kubernetes.server import Answer, KubeApiServer
from tests.support.wait import NotReadyError, eventually

pytestmark = pytest.mark.apiserver

Object = dict[str, Any]


@pytest.fixture(scope="module")
def server(apiserver: KubeApiServer) -> Iterator[KubeApiServer]:
    """A server with all definitions."""
    made = define(apiserver)
    yield apiserver
    undefine(apiserver, made)


def _path(kind: Kind[Any], version: str = "", rest: str = "") -> str:
    return f"/apis/{kind.group}/{version or kind.versions[0]}/{kind.plural}{rest}"


def _object(kind: Kind[Any], spec: object, version: str = "", name: str = "x") -> Object:
    return {
        "apiVersion": f"{kind.group}/{version or kind.versions[0]}",
        "kind": kind.name,
        "metadata": {"name": name},
        "spec": spec,
    }


def _try(server: KubeApiServer, kind: Kind[Any], spec: object, version: str = "") -> Answer:
    # The server answers 404 for a moment after a definition is established.
    def created() -> Answer:
        path = _path(kind, version, "?dryRun=All&fieldValidation=Strict")
        answer = server.request("POST", path, _object(kind, spec, version))
        assert answer.status != 404
        return answer

    return eventually(created)


def _peer(**fields: object) -> Object:
    return {"bgpInstances": [{"name": "i", "localASN": 65001, "peers": [{"name": "p", **fields}]}]}


def _local(address: str) -> Object:
    return {"bgpInstances": [{"name": "i", "peers": [{"name": "p", "localAddress": address}]}]}


def _router_id(text: str) -> Object:
    return {"bgpInstances": [{"name": "i", "routerID": text}]}


def _advert(**fields: object) -> Object:
    return {"advertisements": [fields]}


def _service(**fields: object) -> Object:
    return _advert(advertisementType="Service", selector={}, service=fields)


def _community(**fields: object) -> Object:
    return _advert(advertisementType="PodCIDR", attributes={"communities": fields})


def _policy(**fields: object) -> Object:
    neighbor = {"peerAddress": "192.0.2.1/32", "peerASN": 1, **fields}
    return {"virtualRouters": [{"localASN": 1, "neighbors": [neighbor]}]}


_INSTANCE = {"name": "i", "localASN": 1}

C = kinds.CLUSTER_CONFIG
P = kinds.PEER_CONFIG
A = kinds.ADVERTISEMENT
N = kinds.NODE_CONFIG
O = kinds.NODE_CONFIG_OVERRIDE  # noqa: E741  beside C, P, A and N
V1 = kinds.PEERING_POLICY

GOOD: list[tuple[Kind[Any], Object]] = [
    (C, {"bgpInstances": [_INSTANCE]}),
    (C, {"bgpInstances": [{"name": f"i{n}"} for n in range(16)], "nodeSelector": {}}),
    (C, _peer()),
    (C, _peer(peerASN=0)),
    (C, _peer(peerASN=4294967295, peerConfigRef={"name": "c"})),
    (
        C,
        _peer(
            autoDiscovery={"mode": "DefaultGateway", "defaultGateway": {"addressFamily": "ipv6"}}
        ),
    ),
    (
        C,
        {"bgpInstances": [_INSTANCE], "nodeSelector": {"matchLabels": {"a": "", "b/c": "D.e_f-1"}}},
    ),
    (P, {}),
    (P, {"timers": {"holdTimeSeconds": 3, "keepAliveTimeSeconds": 3}}),
    # C57: equal is accepted, also where one is the default.
    (P, {"timers": {"keepAliveTimeSeconds": 90}}),
    (P, {"gracefulRestart": {"enabled": False}, "ebgpMultihop": 255, "authSecretRef": "s"}),
    (P, {"authSecretRef": "", "transport": {"sourceInterface": ""}}),
    (P, {"families": [{"afi": "ipv4", "safi": "unicast", "advertisements": {}}]}),
    (P, {"transport": {"peerPort": 65535, "sourceInterface": "eth0"}}),
    (A, {"advertisements": []}),
    (A, _advert(advertisementType="PodCIDR")),
    (A, _advert(advertisementType="Interface", interface={"name": "lo"})),
    (A, _advert(advertisementType="CiliumPodIPPool")),
    # C61
    (A, _service(addresses=["ClusterIP"], aggregationLengthIPv4=31, aggregationLengthIPv6=127)),
    (A, _service(addresses=["ClusterIP"], aggregationLengthIPv4=0, aggregationLengthIPv6=0)),
    (A, _community(standard=["0", "4294967295", "65535:65535"], large=["0:1:4294967295"])),
    (A, _community(wellKnown=["no-export", "llgr-stale"])),
    (N, _local("fd00::1")),
    (O, {"bgpInstances": [{"name": "i", "peers": [{"name": "p", "localPort": 0}]}]}),
    (O, _router_id("255.255.255.255")),
    (V1, _policy()),
    (V1, _policy(peerAddress="fd00::1/128", eBGPMultihopTTL=255, families=[])),
]

BAD: list[tuple[Kind[Any], Object]] = [
    (C, {}),
    (C, {"bgpInstances": []}),
    (C, {"bgpInstances": [{"name": f"i{n}"} for n in range(17)]}),
    (C, {"bgpInstances": [{"name": ""}]}),
    (C, {"bgpInstances": [{"name": "n" * 256}]}),
    (C, {"bgpInstances": [{"localASN": 1}]}),
    (C, {"bgpInstances": [{"name": "i", "localASN": 0}]}),
    (C, {"bgpInstances": [{"name": "i", "localASN": 4294967296}]}),
    (C, {"bgpInstances": [{"name": "i", "localASN": "65000"}]}),
    (C, {"bgpInstances": [{"name": "i", "localPort": 65536}]}),
    (C, {"bgpInstances": [_INSTANCE, _INSTANCE]}),
    (C, {"bgpInstances": [_INSTANCE], "nodeSelector": {"matchLabels": {"a": "b c"}}}),
    (C, {"bgpInstances": [_INSTANCE], "nodeSelector": {"matchLabels": {"a": "b" * 64}}}),
    (C, {"bgpInstances": [_INSTANCE], "nodeSelector": {"matchExpressions": [{"key": "a"}]}}),
    (C, _peer(peerASN=-1)),
    (C, _peer(peerConfigRef={})),
    (C, _peer(autoDiscovery={"mode": "DefaultGateway"})),
    # C57 and C66
    (P, {"timers": {"keepAliveTimeSeconds": 91}}),
    (P, {"timers": {"holdTimeSeconds": 29}}),
    (P, {"timers": {"holdTimeSeconds": 2, "keepAliveTimeSeconds": 1}}),
    (P, {"timers": {"connectRetryTimeSeconds": 2147483648}}),
    (P, {"gracefulRestart": {"enabled": True, "restartTimeSeconds": 4096}}),
    (P, {"gracefulRestart": {}}),
    (P, {"ebgpMultihop": 0}),
    (P, {"ebgpMultihop": 256}),
    (P, {"families": [{"afi": "ipv4"}]}),
    (P, {"transport": {"peerPort": 0}}),
    # C58
    (A, _advert(advertisementType="Service", selector={})),
    (A, _advert(advertisementType="PodCIDR", service={"addresses": ["ClusterIP"]})),
    (A, _advert(advertisementType="Interface")),
    (A, _advert(advertisementType="PodCIDR", interface={"name": "lo"})),
    (A, _advert(advertisementType="PodCIDR", selector={})),
    # C61
    (A, _service(addresses=["ClusterIP"], aggregationLengthIPv4=32)),
    (A, _service(addresses=["ClusterIP"], aggregationLengthIPv6=128)),
    # C64
    (A, _service(addresses=[])),
    (A, _community(standard=["65536:1"])),
    (A, _community(standard=["4294967296"])),
    (A, _community(standard=["01:1"])),
    (A, _community(large=["1:2"])),
    (A, _advert(advertisementType="PodCIDR", attributes={"localPreference": -1})),
    (A, {}),
    (N, {"bgpInstances": []}),
    (O, _router_id("0.0.0.0")),
    (O, _router_id("fd00::1")),
    (O, _router_id("10.0.0.01")),
    (O, _router_id("10.0.0")),
    (V1, {"virtualRouters": []}),
    (V1, {"virtualRouters": [{"localASN": 1, "neighbors": []}]}),
    (V1, {"virtualRouters": _policy()["virtualRouters"] * 2}),
    (V1, _policy(peerAddress="192.0.2.1")),
    (V1, _policy(peerAddress="192.0.2.0/24")),
    (V1, _policy(peerAddress="fd00::1/32")),
    (V1, _policy(peerAddress="::ffff:192.0.2.1/128")),
    (V1, _policy(holdTimeSeconds=2)),
]

OF_A_LATER_RELEASE: list[tuple[Kind[Any], Object]] = [
    (C, _peer(autoDiscovery={"mode": "Guess"})),
    (
        C,
        _peer(autoDiscovery={"mode": "DefaultGateway", "defaultGateway": {"addressFamily": "ip"}}),
    ),
    (P, {"families": [{"afi": "ipv5", "safi": "unicast"}]}),
    (P, {"families": [{"afi": "ipv4", "safi": "unicorn"}]}),
    (A, _service(addresses=["NodeIP"])),
    (A, _community(wellKnown=["local-as"])),
    (A, _advert(advertisementType="Egress")),
]

ADDRESSES = {
    "192.0.2.1": True,
    "0.0.0.0": True,
    "192.0.2.01": False,
    "192.0.2.256": False,
    "192.0.2.1/32": False,
    "192.0.2": False,
    " 192.0.2.1": False,
    "router": False,
    "": False,
    "fd00::1": True,
    "FD00::A": True,
    "::": True,
    "::1.2.3.4": True,
    "1:2:3:4:5:6:7::": True,
    "1:2:3:4:5:6:1.2.3.4": True,
    "1:2:3:4:5:6:7:8:9": False,
    "fd00::1::2": False,
    "00001::": False,
    "::ffff:192.0.2.1": False,
    "::ffff:c000:201": False,
    "0:0:0:0:0:ffff::1": False,
    "64:ff9b::192.0.2.01": False,
}
ZONED = {
    "fe80::1%eth0": True,
    "FEBF::1%2": True,
    "fe80::1%bond0.100": True,
    "fe80::1.2.3.4%eth0": True,
    "fe80::1%": False,
    "fe80::1%a b": False,
    "fe80::1%sixteen-letters!": False,
    "fec0::1%eth0": False,
    "fd00::1%eth0": False,
    "192.0.2.1%eth0": False,
}


def _refused_by_agent(kind: Kind[Any], spec: object, version: str = "") -> set[str]:
    """Decode; the fields that are named where it is refused."""
    try:
        kind.decode(_object(kind, spec, version))
    except InvalidObject as error:
        return {found.path for found in error.errors}
    return set()


def _names(spec: Kind[Any], value: Object) -> str:
    return f"{spec.name}-{value}"[:100]


@pytest.mark.parametrize(("kind", "spec"), GOOD, ids=map(_names, *zip(*GOOD, strict=True)))
def test_the_server_accepts_what_the_agent_accepts(
    server: KubeApiServer, kind: Kind[Any], spec: Object
) -> None:
    assert _refused_by_agent(kind, spec) == set()
    answer = _try(server, kind, spec)
    assert answer.ok, answer.body


@pytest.mark.parametrize(("kind", "spec"), BAD, ids=map(_names, *zip(*BAD, strict=True)))
def test_the_server_rejects_the_same_field_as_the_agent(
    server: KubeApiServer, kind: Kind[Any], spec: Object
) -> None:
    ours = _refused_by_agent(kind, spec)
    answer = _try(server, kind, spec)
    assert answer.status == 422, answer.body
    assert ours
    theirs = {field for found in _fields(answer) for field in (found, _without_index(found))}
    # A duplicate is the list's error for one of them, and the second item's for the other.
    assert ours & theirs or {re.sub(r"\[\d+\]\.localASN$", "", field) for field in ours} & theirs


@pytest.mark.parametrize(
    ("kind", "spec"), OF_A_LATER_RELEASE, ids=map(_names, *zip(*OF_A_LATER_RELEASE, strict=True))
)
def test_values_of_a_later_release_are_read_and_not_in_our_definitions(
    server: KubeApiServer, kind: Kind[Any], spec: Object
) -> None:
    assert _refused_by_agent(kind, spec) == set()
    assert _try(server, kind, spec).status == 422


def _fields(answer: Answer) -> Iterator[str]:
    """The fields that a refusal names; of a ``not`` only the message does."""
    for field, message in answer.causes.items():
        quoted = re.search(r'"(spec\S*)" must not validate', message)
        yield quoted[1] if quoted else field


def _without_index(field: str) -> str:
    return re.sub(r"\[\d+\]$", "", field)


@pytest.mark.parametrize(("text", "good"), [*ADDRESSES.items(), *ZONED.items()])
def test_an_address_of_a_peer(server: KubeApiServer, text: str, good: bool) -> None:
    for kind in (C, N):
        assert (_refused_by_agent(kind, _peer(peerAddress=text)) == set()) == good
        assert _try(server, kind, _peer(peerAddress=text)).ok == good


@pytest.mark.parametrize(("text", "good"), [*ADDRESSES.items(), *((text, False) for text in ZONED)])
def test_an_address_of_ours_has_no_zone(server: KubeApiServer, text: str, good: bool) -> None:
    for kind in (N, O):
        assert (_refused_by_agent(kind, _local(text)) == set()) == good
        assert _try(server, kind, _local(text)).ok == good


def test_the_message_of_a_rule_is_the_agents(server: KubeApiServer) -> None:
    answer = _try(server, P, {"timers": {"keepAliveTimeSeconds": 91}})
    (message,) = answer.causes.values()
    assert "is greater than holdTimeSeconds" in message


def test_the_message_about_an_address_is_short(server: KubeApiServer) -> None:
    answer = _try(server, C, _peer(peerAddress="router"))
    assert len(answer.body["message"]) < 600


def test_defaults_are_filled_in_as_the_agent_would(server: KubeApiServer) -> None:
    answer = _try(server, P, {"gracefulRestart": {"enabled": True}})
    stored = answer.body["spec"]
    assert stored["timers"] == {
        "connectRetryTimeSeconds": 120,
        "holdTimeSeconds": 90,
        "keepAliveTimeSeconds": 30,
    }
    assert stored["transport"] == {"peerPort": 179}
    assert stored["gracefulRestart"] == {"enabled": True, "restartTimeSeconds": 120}
    assert (
        P.decode(answer.body).spec
        == P.decode(_object(P, {"gracefulRestart": {"enabled": True}})).spec
    )


def test_an_unknown_field_is_rejected_by_strict_validation(server: KubeApiServer) -> None:
    answer = _try(server, P, {"timers": {"holdTimeSecond": 9}})
    assert not answer.ok
    assert 'unknown field "spec.timers.holdTimeSecond"' in answer.body["message"]


def test_the_older_version_accepts_dropped_fields(server: KubeApiServer) -> None:
    ref = {"name": "c", "group": "cilium.io", "kind": "CiliumBGPPeerConfig"}
    assert _try(server, C, _peer(peerConfigRef=ref), "v2alpha1").ok
    assert not _try(server, C, _peer(peerConfigRef=ref)).ok
    assert _try(server, P, {"transport": {"localPort": 1}}, "v2alpha1").ok


def test_kubectl_shows_the_columns_and_knows_the_short_names(server: KubeApiServer) -> None:
    # Of what is not written down the default is shown.
    spec = {"ebgpMultihop": 4, "authSecretRef": "s"}
    assert server.request("POST", _path(P), _object(P, spec, name="columns")).ok
    condition = {
        "type": "cilium.io/MissingAuthSecret",
        "status": "True",
        "reason": "AuthSecretMissing",
        "message": "s",
        "lastTransitionTime": "2026-01-01T12:00:00Z",
    }
    answer = server.request(
        "PATCH",
        _path(P, rest="/columns/status"),
        {"status": {"conditions": [condition]}},
        kind="merge-patch+json",
    )
    assert answer.ok, answer.body
    head, row = server.kubectl("get", "cbgppeer", "columns", "-o", "wide").splitlines()
    assert head.split("  ")[0] == "NAME"
    assert re.sub(r"\s+", " ", head) == "NAME PORT HOLD TTL RESTART SECRET NO SECRET AGE"
    assert re.sub(r"\s+", " ", row).startswith("columns 179 90 4 s True ")
    assert "columns" in server.kubectl("get", "ciliumbgp", "-o", "name")
    server.request("DELETE", _path(P, rest="/columns"))


def test_kubectl_explains_a_field(server: KubeApiServer) -> None:
    def explain() -> str:
        # The server describes a kind a moment after it serves it.
        try:
            return server.kubectl("explain", "cbgpcluster.spec.bgpInstances.peers.peerAddress")
        except RuntimeError as error:
            raise NotReadyError(str(error)) from None

    text = eventually(explain)
    assert "The router's IPv4 or IPv6 address, for example 192.0.2.1." in " ".join(text.split())


def test_server_side_apply_merges_instances_and_peers_by_name(server: KubeApiServer) -> None:
    def apply(manager: str, peer: str) -> Answer:
        body = _object(
            C, {"bgpInstances": [{"name": "i", "peers": [{"name": peer}]}]}, name="merge"
        )
        path = _path(C, rest=f"/merge?fieldManager={manager}")
        return server.request("PATCH", path, body, kind="apply-patch+yaml")

    assert apply("one", "a").ok
    answer = apply("two", "b")
    assert answer.ok, answer.body
    (instance,) = answer.body["spec"]["bgpInstances"]
    assert [peer["name"] for peer in instance["peers"]] == ["a", "b"]
    server.request("DELETE", _path(C, rest="/merge"))


def test_a_status_does_not_change_the_generation(server: KubeApiServer) -> None:
    made = server.request("POST", _path(N), _object(N, _local("192.0.2.1"), name="node"))
    assert made.ok, made.body
    peer = {
        "name": "p",
        "peerAddress": "192.0.2.1",
        "peerASN": 65001,
        "peeringState": "established",
        "timers": {"appliedHoldTimeSeconds": 90, "appliedKeepaliveSeconds": 30},
        "establishedTime": "2026-01-01T12:00:00Z",
        "routeCount": [{"afi": "ipv4", "safi": "unicast", "received": 1, "advertised": 2}],
    }
    status = {"bgpInstances": [{"name": "i", "localASN": 65000, "peers": [peer]}]}
    answer = server.request(
        "PATCH", _path(N, rest="/node/status"), {"status": status}, kind="merge-patch+json"
    )
    assert answer.ok, answer.body
    assert answer.body["status"] == status
    assert answer.body["metadata"]["generation"] == made.body["metadata"]["generation"]
    server.request("DELETE", _path(N, rest="/node"))
