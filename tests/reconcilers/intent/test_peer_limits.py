"""The limit of what a peer is sent: addresses of the newest Services wait, and nothing else does."""

from __future__ import annotations

import random
from typing import Any

import pytest

from reconcilers.intent.explain import parse_target
from reconcilers.intent.options import IntentOptions
from reconcilers.model import LearnedLimit
from resources.option_declarations import InvalidOption
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST
from tests.reconcilers.antrea import build as antrea
from tests.reconcilers.build import Cluster
from tests.reconcilers.intent.test_address_limits import DAYS, addresses, put
from tests.reconcilers.intent.test_address_limits import cluster as one_peer
from tests.reconcilers.metallb import objects as metallb
from tests.reconcilers.metallb.build import MetalLBNode
from tests.reconcilers.metallb.test_services import READY
from tests.reconcilers.metallb.test_services import service as balanced
from tests.support import kinds

POD_NETWORK = "10.244.0.0/24"


def cluster(limit: int = 0, *limits: str, peers: int = 1, **options: Any) -> Cluster:  # noqa: ANN401
    found = one_peer(advertise_peer_limit=limit, advertise_peer_limits=limits, **options)
    listed = [
        {
            "name": f"p{number or ''}",
            "peerASN": 1,
            "peerAddress": f"192.0.2.{number + 1}",
            "peerConfigRef": {"name": "p"},
        }
        for number in range(peers)
    ]
    instances = [{"name": "i", "localASN": 65001, "peers": listed}]
    found.put(
        kinds.CLUSTER_CONFIG, {"metadata": {"name": "c"}, "spec": {"bgpInstances": instances}}
    )
    return found


def sent(found: Cluster, peer: str = "p") -> list[str]:
    found.run()
    return found.prefixes(peer)


def hosts(first: int, count: int) -> list[str]:
    return [f"{address}/32" for address in addresses(first, count)]


def use(found: Cluster) -> list[tuple[str, int, int, int, bool]]:
    rows = found.intent.advertise_limits.all(found.db.snapshot())
    return [(row.peer, row.limit, row.prefixes, row.waiting, row.learned) for row in rows]


def learn(found: Cluster, peer: str, limit: int | None, configured: int = 0, end: str = "") -> None:
    table = found.intent.learned_limits
    with found.db.write(table) as txn:
        if limit is None:
            table.delete(txn, ("i", peer, IPV4_UNICAST))
        else:
            table.upsert(txn, LearnedLimit("i", peer, IPV4_UNICAST, limit, configured, end))


def test_there_is_no_limit_by_default() -> None:
    found = cluster()
    put(found, "s", *addresses(0, 60))
    assert len(sent(found)) == 61
    assert use(found) == []


def test_the_newest_services_wait_and_what_administrators_configure_is_sent() -> None:
    found = cluster(4)
    put(found, "new", *addresses(0, 2), created=DAYS[5])
    put(found, "old", *addresses(2, 2), created=DAYS[0])
    put(found, "other", *addresses(4, 2), created=DAYS[0], namespace="b")
    assert sent(found) == [POD_NETWORK, *hosts(2, 3)]
    assert use(found) == [("p", 4, 7, 3, False)]
    problem, *of_services = found.render()["problems"]
    assert problem["message"] == (
        "peer 'p' is sent no more than 4 prefixes of ipv4-unicast (--advertise-peer-limit): "
        "198.18.0.5/32 of Service/b/other, and the addresses of newer Services, wait"
    )
    assert (problem["count"], problem["ofTenant"], problem["category"]) == (3, False, "conflict")
    # Each Service that waits has a problem, and so an Event, of its own.
    assert [(one["objects"], one["ofTenant"]) for one in of_services] == [
        (["Service/a/new"], True),
        (["Service/b/other"], True),
    ]
    assert of_services[1]["message"] == (
        "198.18.0.5/32 waits on node test-node: peer 'p' is sent no more than 4 prefixes of "
        "ipv4-unicast, and older Services come first"
    )


def test_many_services_that_wait_at_many_peers_are_a_few_problems() -> None:
    found = cluster(11, peers=5)
    for number in range(100):
        put(found, f"s{number:03}", *addresses(3 * number, 3), created=DAYS[0])
    sent(found)
    of_services = [one for one in found.render()["problems"] if one["ofTenant"]]
    assert [one["objects"] for one in of_services] == [
        [f"Service/a/s{number:03}"] for number in range(3, 23)
    ]
    assert "peers 'p', 'p1', 'p2' and 2 more are sent" in of_services[0]["message"]


def test_what_administrators_configure_is_sent_beyond_the_limit() -> None:
    found = cluster(1)
    found.put(
        kinds.SERVICE,
        {"metadata": {"name": "k", "namespace": "a"}, "spec": {"clusterIP": "10.96.0.1"}},
    )
    put(found, "s", *addresses(0, 2))
    assert sent(found) == ["10.96.0.1/32", POD_NETWORK]
    problem, *_ = found.render()["problems"]
    assert problem["message"].endswith(
        "; 2 prefixes that are not of Services are sent beyond the limit"
    )


@pytest.mark.parametrize("is_named", [False, True])
def test_an_address_that_is_also_an_administrators_prefix_does_not_wait(is_named: bool) -> None:
    found = cluster(1)
    external = addresses(0 if is_named else 2, 3)
    spec = {"clusterIP": "198.18.0.1", "externalIPs": external}
    found.put(kinds.SERVICE, {"metadata": {"name": "s", "namespace": "a"}, "spec": spec})
    assert sorted(sent(found)) == sorted(["198.18.0.1/32", POD_NETWORK])


def test_a_service_that_goes_makes_room_for_the_next_one() -> None:
    found = cluster(3)
    for number in range(4):
        put(found, f"s{number}", *addresses(number, 1), created=DAYS[number])
    assert sent(found) == [POD_NETWORK, *hosts(0, 2)]
    found.delete(kinds.SERVICE, "s0", "a")
    assert sent(found) == [POD_NETWORK, *hosts(1, 2)]
    # A Service that is created again under its name is the newest.
    put(found, "s1", *addresses(1, 1), created=DAYS[20])
    assert sent(found) == [POD_NETWORK, *hosts(2, 2)]
    found.delete(kinds.SERVICE, "s2", "a")
    found.delete(kinds.SERVICE, "s3", "a")
    assert sent(found) == [POD_NETWORK, *hosts(1, 1)]
    assert not found.render()["problems"]


def test_one_peer_has_a_limit_and_the_others_share_the_whole_set() -> None:
    found = cluster(0, "p1=2", "192.0.2.3=2", "p4=0", peers=5)
    put(found, "s", *addresses(0, 3))
    assert len(sent(found, "p")) == 4
    assert [len(found.prefixes(f"p{number}")) for number in range(1, 5)] == [2, 2, 4, 4]
    sets = {row.name: row.route_set for row in found.intent.peers.all(found.db.snapshot())}
    assert sets["p"] == sets["p3"] == sets["p4"]
    assert sets["p1"] == sets["p2"] != sets["p"]


def test_a_change_of_one_service_writes_the_routes_that_differ_and_no_others() -> None:
    found = cluster(100, advertise_namespace_limit=0)
    for number in range(1000):
        put(found, f"s{number:04}", *addresses(number, 1))
    found.run()
    put(found, "older", "198.19.0.1", created="2025-01-01T00:00:00Z")
    # In both sets it is new; in the limited one another prefix leaves.
    summary = found.run()
    assert (summary.objects, summary.routes) == (1, 3)
    put(found, "newer", "198.19.0.2", created=DAYS[9])
    summary = found.run()
    assert (summary.objects, summary.routes) == (1, 1)


def test_a_limit_that_a_peer_makes_known_concerns_that_peer_until_it_is_lifted() -> None:
    found = cluster(peers=2)
    put(found, "s", *addresses(0, 5))
    assert len(sent(found)) == 6
    learn(found, "p1", 3)
    assert (len(sent(found)), sent(found, "p1")) == (6, [POD_NETWORK, *hosts(0, 2)])
    assert use(found) == [("p1", 3, 6, 3, True)]
    problem, *_ = found.render()["problems"]
    assert "(the peer ended the session: Maximum Number of Prefixes Reached)" in problem["message"]
    learn(found, "p1", None)
    assert len(sent(found, "p1")) == 6
    assert use(found) == []
    assert not found.render()["problems"]
    sets = {row.route_set for row in found.intent.routes.all(found.db.snapshot())}
    assert len(sets) == 1


def test_the_lower_one_of_two_limits_is_in_effect() -> None:
    found = cluster(4)
    put(found, "s", *addresses(0, 9))
    learn(found, "p", 7, configured=4)
    assert (len(sent(found)), use(found)) == (4, [("p", 4, 10, 6, False)])
    learn(found, "p", 2, configured=4)
    assert (len(sent(found)), use(found)) == (2, [("p", 2, 10, 8, True)])


def test_a_limit_that_is_configured_since_takes_the_place_of_the_learned_one() -> None:
    found = cluster(4)
    put(found, "s", *addresses(0, 9))
    learn(found, "p", 2, configured=0)
    assert (len(sent(found)), use(found)) == (4, [("p", 4, 10, 6, False)])


def test_a_limit_is_of_the_router_that_made_it_known() -> None:
    """Before the row of the former router is deleted, too."""
    found = cluster()
    put(found, "s", *addresses(0, 5))
    learn(found, "p", 2, end="192.0.2.1")
    assert len(sent(found)) == 2
    learn(found, "p", 2, end="192.0.2.99")
    assert len(sent(found)) == 6


def test_explain_names_the_limit_of_what_waits() -> None:
    found = cluster(3)
    put(found, "s", *addresses(0, 4))
    found.run()
    rows = [
        row
        for some in found.compiler.explainer().explain(parse_target("a/s", {}))
        for row in some
        if row.type == "ExternalIP"
    ]
    assert [row.reason for row in rows] == ["Advertised", "Advertised", "PeerLimit", "PeerLimit"]
    assert rows[-1].message == (
        "the peer is sent no more than 3 prefixes of ipv4-unicast (--advertise-peer-limit), and older "
        "Services have them"
    )


@pytest.mark.parametrize("seed", range(6))
def test_any_history_comes_to_what_a_fresh_compiler_finds(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  reproducible
    found = cluster(5, "p1=3", peers=3)
    for _ in range(60):
        name = f"s{chance.randrange(8)}"
        match chance.randrange(6):
            case 0:
                found.delete(kinds.SERVICE, name, "a")
            case 1:
                learn(found, "p2", chance.choice([None, 2, 4]))
            case _:
                some = [addresses(chance.randrange(12), 1)[0] for _ in range(chance.randrange(4))]
                put(found, name, *some, created=chance.choice(DAYS[:3]))
        if chance.random() < 0.6:
            found.run()
    learn(found, "p2", 4)
    found.run()
    fresh = cluster(5, "p1=3", peers=3)
    learn(fresh, "p2", 4)
    for row in found.resources.services.all(found.db.snapshot()):
        created = row.metadata.creation_timestamp
        put(fresh, row.metadata.name, *row.spec.external_ips, created=created)
    fresh.run()
    assert found.render() == fresh.render()
    assert sorted(use(found)) == sorted(use(fresh))


@pytest.mark.parametrize("text", ["x", "5", "p=-1", "=5", "p=", "p=x", "p=1.5"])
def test_a_limit_that_cannot_be_read_is_an_error_of_its_option(text: str) -> None:
    with pytest.raises(InvalidOption, match="is not PEER=N"):
        IntentOptions(advertise_peer_limits=(text,))


def test_a_limit_is_found_by_name_address_or_interface() -> None:
    limits = ("tor=1", "2001:db8::1=2", "eth0=3", "off=0")
    options = IntentOptions(advertise_peer_limit=7, advertise_peer_limits=limits)
    assert options.peer_limit("tor", None, None) == 1
    assert options.peer_limit("a", "2001:db8::1", None) == 2
    assert options.peer_limit("a", None, "eth0") == 3
    assert options.peer_limit("a", "192.0.2.1", None) == 7
    assert options.peer_limit("off") == 0
    assert IntentOptions().peer_limit("a") == 0


def test_families_have_limits_of_their_own() -> None:
    found = cluster(3)
    families: list[dict[str, Any]] = [
        {"afi": afi, "safi": "unicast", "advertisements": {}} for afi in ("ipv4", "ipv6")
    ]
    found.put(kinds.PEER_CONFIG, {"metadata": {"name": "p"}, "spec": {"families": families}})
    put(found, "s", *addresses(0, 4), *(f"2001:db8::{n}" for n in range(1, 5)))
    found.run()
    counts = {
        family: sum(row.family == family for row in found.intent.routes.all(found.db.snapshot()))
        for family in (IPV4_UNICAST, IPV6_UNICAST)
    }
    # Of the whole set, and of the limited one.
    assert counts == {IPV4_UNICAST: 5 + 3, IPV6_UNICAST: 4 + 3}


# Other dialects


def test_prefixes_of_frrconfigurations_are_sent_and_services_of_metallb_wait() -> None:
    found = MetalLBNode()
    session = {"address": "203.0.113.9", "asn": 64950, "toAdvertise": {"allowed": {"mode": "all"}}}
    router = {"asn": 64900, "prefixes": ["192.168.7.0/24"], "neighbors": [session]}
    configuration = {
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "kind": "FRRConfiguration",
        "metadata": {"name": "own", "namespace": "frr-k8s-system"},
        "spec": {"bgp": {"routers": [router]}},
    }
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": "web-1",
            "namespace": "shop",
            "labels": {"kubernetes.io/service-name": "web"},
        },
        "addressType": "IPv4",
        "endpoints": [READY],
    }
    many = balanced(*addresses(0, 100))
    found.put(
        metallb.peer("tor"),
        metallb.pool("front", "198.18.0.0/16"),
        metallb.advertisement("all"),
        endpoints,
        configuration,
        many,
    )
    # The first 64 of the Service.
    assert found.routes()["203.0.113.9"] == ["192.168.7.0/24", *hosts(0, 64)]
    (peer,) = found.intent.peers.all(found.db.snapshot())
    with found.db.write(found.intent.learned_limits) as txn:
        row = LearnedLimit(peer.instance, peer.name, IPV4_UNICAST, 3)
        found.intent.learned_limits.upsert(txn, row)
    found.put()
    assert found.routes()["203.0.113.9"] == ["192.168.7.0/24", *hosts(0, 2)]


def test_pod_networks_of_antrea_are_sent_and_services_wait() -> None:
    shop = antrea.service(externalIPs=addresses(0, 100))
    edge = antrea.policy("edge", "ExternalIP", pod=True)
    found = antrea.Cluster(antrea.node(), edge, shop)
    found.run()
    pods = [prefix for prefix in found.prefixes() if prefix not in hosts(0, 100)]
    assert pods
    assert found.prefixes() == [*pods, *hosts(0, 64)]
    (peer,) = found.intent.peers.all(found.db.snapshot())
    with found.db.write(found.intent.learned_limits) as txn:
        row = LearnedLimit(peer.instance, peer.name, IPV4_UNICAST, 3)
        found.intent.learned_limits.upsert(txn, row)
    found.run()
    assert found.prefixes() == [*pods, *hosts(0, 3 - len(pods))]
