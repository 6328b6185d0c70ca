"""Items of the API have each value of what they are made from, by the names of the API."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from msgspec.structs import replace

from cells.api.model import OriginItem
from cells.options import NodeOptions
from cells.serve import host
from cells.serve.bfd import bfd_item
from cells.serve.host import AgentHost
from cells.serve.items import explain_item, origin_item, received_item, route_item
from cells.serve.received import explain_received_route
from cells.state.node import ThisNode
from reconcilers.apply.received_verdict import ReceivedDecision
from reconcilers.bfd_session import BfdCounters, BfdProcess, BfdSession
from reconcilers.model import ObjectRef, PrefixRule, RouteExplanation
from speaker.api import NOT_ACCEPTED, InstanceStatus, PolicyDecision, RouteView
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, prefix_to_wire
from tests.reconcilers.apply.intent_rows import changed

WEB = ObjectRef("Service", "shop", "web")
NODE = ObjectRef("Node", "", "n")
VIEW = RouteView(
    family=IPV6_UNICAST,
    prefix="2001:db8::/32",
    next_hop="2001:db8::1",
    as_path="64700 64701",
    origin="igp",
    med=7,
    local_preference=200,
    communities=("64700:1",),
    large_communities=("64700:2:3",),
    extended_communities=(),
    peer="tor-1",
    best=True,
    reason="best",
    path_id=4,
    used=True,
    imported_from="red",
)


def spelled(item: object) -> Any:  # noqa: ANN401
    """Return an item as its JSON."""
    return msgspec.json.decode(msgspec.json.encode(item))


def test_an_object_without_a_namespace_has_none() -> None:
    assert spelled(origin_item(WEB)) == {"kind": "Service", "namespace": "shop", "name": "web"}
    assert spelled(origin_item(NODE)) == {"kind": "Node", "name": "n"}


def test_a_route() -> None:
    assert spelled(route_item("n", "main", VIEW, [origin_item(WEB)])) == {
        "node": "n",
        "instance": "main",
        "peer": "tor-1",
        "importedFrom": "red",
        "family": "ipv6-unicast",
        "prefix": "2001:db8::/32",
        "pathID": 4,
        "nextHop": "2001:db8::1",
        "asPath": "64700 64701",
        "origin": "igp",
        "communities": ["64700:1"],
        "largeCommunities": ["64700:2:3"],
        "localPreference": 200,
        "med": 7,
        "best": True,
        "status": "best",
        "origins": [{"kind": "Service", "namespace": "shop", "name": "web"}],
    }
    item = route_item("n", "main", replace(VIEW, reason=""))
    assert (item.status, item.origins) == (None, [])


ACCEPTED = ReceivedDecision(accepted=True, filter="all", object=WEB)
REJECTED = ReceivedDecision(accepted=False, filter="AlwaysBlock 10.96.0.0/12")
UNUSED = replace(VIEW, used=False, best=False)


@pytest.mark.parametrize(
    ("view", "decision", "status"),
    [
        pytest.param(VIEW, ACCEPTED, "accepted", id="best"),
        pytest.param(
            replace(VIEW, best=False, reason="longer"),
            ACCEPTED,
            "accepted, not best: longer",
            id="not best",
        ),
        pytest.param(
            replace(UNUSED, reason=NOT_ACCEPTED), REJECTED, REJECTED.filter, id="rejected"
        ),
        pytest.param(
            replace(UNUSED, reason="AS loop"), REJECTED, "AS loop", id="not usable and rejected"
        ),
        pytest.param(
            replace(UNUSED, reason=NOT_ACCEPTED),
            ACCEPTED,
            NOT_ACCEPTED,
            id="accepted by the intent, not yet by the speaker",
        ),
        pytest.param(replace(UNUSED, reason=NOT_ACCEPTED), None, NOT_ACCEPTED, id="no intent"),
        pytest.param(VIEW, None, "accepted", id="used, no intent"),
    ],
)
@pytest.mark.parametrize("kept", [False, True])
def test_the_status_of_a_received_route(
    view: RouteView, decision: ReceivedDecision | None, status: str, *, kept: bool
) -> None:
    item = received_item("n", "main", replace(view, kept=kept), decision)
    assert item.status == (f"{status}, kept while the peer is away" if kept else status)
    assert item.kept is (True if kept else None)
    if decision is None:
        assert (item.accepted, item.filter, item.object) == (None, None, None)
    else:
        assert (item.accepted, item.filter) == (decision.accepted, decision.filter)
        assert item.object == (None if decision.object is None else origin_item(WEB))


def test_an_explanation() -> None:
    family, nlri = prefix_to_wire("10.8.0.0/24")
    _, aggregate = prefix_to_wire("10.8.0.0/16")
    explanation = RouteExplanation(
        instance="main",
        peer="tor-1",
        object=WEB,
        type="LoadBalancerIP",
        family=family,
        nlri=nlri,
        advertised=(nlri, aggregate),
        reason="Advertised",
        message="by the advertisement",
        rule=NODE,
    )
    assert spelled(explain_item("n", explanation)) == {
        "node": "n",
        "instance": "main",
        "peer": "tor-1",
        "object": {"kind": "Service", "namespace": "shop", "name": "web"},
        "addressType": "LoadBalancerIP",
        "family": "ipv4-unicast",
        "prefix": "10.8.0.0/24",
        "advertised": True,
        "advertisedPrefixes": ["10.8.0.0/24", "10.8.0.0/16"],
        "reason": "Advertised",
        "message": "by the advertisement",
        "rule": {"kind": "Node", "name": "n"},
    }
    nothing = RouteExplanation(
        instance=None,
        peer=None,
        object=None,
        type="",
        family=None,
        nlri=None,
        advertised=(),
        reason="NoPeer",
        message="",
    )
    assert spelled(explain_item("n", nothing)) == {
        "node": "n",
        "advertised": False,
        "reason": "NoPeer",
    }


def test_a_bfd_session() -> None:
    row = BfdSession(
        instance="i",
        peer="p",
        address="192.0.2.1",
        local_address="192.0.2.2",
        device="red",
        multihop=True,
        profile="fast",
        strict=True,
        state="Up",
        diagnostic="Path Down",
        since=1000.5,
        ups=3,
        remote_state="Init",
        remote_diagnostic="Administratively Down",
        remote_independent=True,
        local_discriminator=8,
        remote_discriminator=9,
        desired_min_tx=300_000,
        required_min_rx=200_000,
        detect_multiplier=3,
        remote_min_tx=400_000,
        remote_min_rx=500_000,
        remote_detect_multiplier=5,
        transmit_interval=600_000,
        detection_time=700_000,
        passive=True,
        minimum_ttl=250,
        authentication="SHA1",
        echo_problem="no echo",
    )
    counters = BfdCounters(
        instance="i", peer="p", packets_sent=4, packets_received=5, longest_gap=6_000
    )
    process = BfdProcess(connected=True, lateness=1_500)
    found = spelled(bfd_item("n", row, counters, process))
    assert found == {
        "node": "n",
        "instance": "i",
        "peer": "p",
        "address": "192.0.2.1",
        "localAddress": "192.0.2.2",
        "device": "red",
        "multihop": True,
        "profile": "fast",
        "strict": True,
        "state": "Up",
        "sinceTime": "1970-01-01T00:16:40Z",
        "diagnostic": "Path Down",
        "remoteState": "Init",
        "remoteDiagnostic": "Administratively Down",
        "remoteIndependent": True,
        "localDiscriminator": 8,
        "remoteDiscriminator": 9,
        "localIntervals": {
            "transmitSeconds": 0.3,
            "receiveSeconds": 0.2,
            "detectMultiplier": 3,
        },
        "remoteIntervals": {
            "transmitSeconds": 0.4,
            "receiveSeconds": 0.5,
            "detectMultiplier": 5,
        },
        "transmitIntervalSeconds": 0.6,
        "detectionSeconds": 0.7,
        "passive": True,
        "minimumTTL": 250,
        "authentication": "SHA1",
        "ups": 3,
        "packetsSent": 4,
        "packetsReceived": 5,
        "longestGapSeconds": 0.006,
        "latenessSeconds": 0.0015,
        "problem": "no echo",
    }
    # A session that does not run is the first thing to repair.
    assert bfd_item("n", replace(row, problem="no route"), None, None).problem == "no route"


def test_the_host_with_the_instances_of_the_speaker(monkeypatch: pytest.MonkeyPatch) -> None:
    main = InstanceStatus(
        name="main",
        local_asn=64710,
        router_id="192.0.2.1",
        vrf=None,
        listening=(("192.0.2.1", 179), ("::", 1179)),
        listen_error=None,
        peers=2,
        refused=0,
    )
    red = replace(main, name="red", vrf="red", listening=(), listen_error="in use")
    speaker = SimpleNamespace(instances=lambda: (main, red))
    asked: list[str] = []

    def interfaces(directory: object) -> list[object]:
        asked.append(str(directory))
        return [{"name": "eth0", "mtu": 9000}]

    monkeypatch.setattr(host, "interfaces", interfaces)
    monkeypatch.setattr(host, "_is_synchronized", lambda: True)
    monkeypatch.setattr(host, "_has_md5", lambda: True)
    monkeypatch.setattr(host, "has_vrf", lambda: False)
    monkeypatch.setattr(host, "_has_ipv6", lambda: True)
    item = AgentHost(ThisNode(NodeOptions(name="n1")), cast("Any", speaker)).host()
    assert asked == ["/sys/class/net"]
    found = spelled(item)
    assert found.pop("kernel")
    assert found == {
        "node": "n1",
        "clockSynchronized": True,
        "supports": {"tcpMD5": True, "vrf": False, "ipv6": True},
        "interfaces": [{"name": "eth0", "mtu": 9000}],
        "instances": [
            {
                "name": "main",
                "localASN": 64710,
                "routerID": "192.0.2.1",
                "listening": ["192.0.2.1:179", ":::1179"],
            },
            {
                "name": "red",
                "localASN": 64710,
                "routerID": "192.0.2.1",
                "vrf": "red",
                "listenError": "in use",
            },
        ],
    }


def test_a_received_route_that_is_not_the_best_path() -> None:
    peer = changed(
        accept=(PrefixRule("2001:db8::/16", le=64, origin=WEB),), families=(IPV4_UNICAST,)
    )
    view = replace(
        VIEW, best=False, reason="longer AS path", decision=PolicyDecision(accepted=True)
    )
    assert spelled(explain_received_route("n", peer, view)) == {
        "node": "n",
        "instance": peer.instance,
        "peer": peer.name,
        "family": "ipv6-unicast",
        "prefix": "2001:db8::/32",
        "received": True,
        "accepted": True,
        "filter": "all",
        "reason": "Accepted",
        "message": "accepted by the selector all; not the best path: longer AS path",
    }


def test_an_origin_in_text_has_no_empty_parts() -> None:
    assert str(OriginItem(kind="Service", namespace="shop", name="web")) == "Service/shop/web"
    assert str(OriginItem(kind="Node", name="n")) == "Node/n"
