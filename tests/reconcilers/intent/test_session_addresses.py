"""The local addresses of sessions are this node's: no Service advertises one."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from reconcilers.intent.explain import parse_target
from reconcilers.intent.session_addresses import SessionAddresses
from reconcilers.intent_tables import IntentTables
from reconcilers.model import SessionAddress
from reconcilers.sliced_work import finish
from statedb import Database
from tests.reconcilers.antrea import build as antrea
from tests.reconcilers.build import (
    NODE,
    Cluster,
    advertisement,
    cluster_config,
    peer,
    service,
    usual,
)
from tests.reconcilers.metallb import objects as metallb
from tests.reconcilers.metallb.build import MetalLBNode
from tests.reconcilers.metallb.test_services import READY
from tests.reconcilers.metallb.test_services import service as balanced
from tests.support import kinds

OWN, OTHER = "198.51.100.7", "198.51.100.8"
POD_NETWORK = "10.244.0.0/24"


def up(cluster: Cluster, *addresses: str, name: str = "p", established: bool = True) -> None:
    """Let a session have one local address after the other."""
    sessions = SessionAddresses(cluster.db, cluster.intent)
    for address in addresses:
        sessions.note("i", name, address, established=established)
        sessions.write()


def known(db: Database, intent: IntentTables) -> dict[str, str]:
    return {row.peer: row.address for row in intent.session_addresses.all(db.snapshot())}


def cluster(*addresses: str, **options: Any) -> Cluster:  # noqa: ANN401
    """Return a cluster with two peers, and a Service for each address."""
    found = usual(**options)
    peers = [peer(), peer("q", peerAddress="192.0.2.10")]
    found.put(kinds.CLUSTER_CONFIG, cluster_config(peers=peers))
    for number, address in enumerate(addresses):
        found.put(kinds.SERVICE, service(f"s{number}", address))
    found.run()
    return found


def test_a_service_with_the_address_of_a_session_is_withheld_with_a_problem() -> None:
    found = cluster(OWN, OTHER)
    assert found.prefixes() == [POD_NETWORK, f"{OWN}/32", f"{OTHER}/32"]
    up(found, OWN)
    found.run()
    for name in ("p", "q"):
        assert found.prefixes(name) == [POD_NETWORK, f"{OTHER}/32"]
    (problem,) = found.render()["problems"]
    assert problem["objects"] == ["Service/default/s0"]
    assert problem["field"] == "status.loadBalancer.ingress"
    assert problem["message"] == (
        f"{OWN} is not advertised by node {NODE}: it is an address of this node"
    )
    target = parse_target(OWN, {})
    explained = [one for some in found.compiler.explainer().explain(target) for one in some]
    assert {(one.peer, one.reason) for one in explained} == {
        ("p", "NodeAddress"),
        ("q", "NodeAddress"),
    }
    # A Service that comes later is judged alike.
    found.put(kinds.SERVICE, service("late", OWN))
    found.run()
    assert found.prefixes() == [POD_NETWORK, f"{OTHER}/32"]


def test_an_address_that_becomes_known_costs_the_services_that_have_it() -> None:
    found = cluster(*(f"198.51.100.{number}" for number in range(50)), OWN, "127.0.0.1")
    up(found, "192.0.2.77")
    summary = found.run()
    assert (summary.dialects, summary.objects, summary.routes) == ((), 0, 0)
    up(found, OWN)
    summary = found.run()
    # One prefix, written once for each of its contributions that goes.
    assert (summary.dialects, summary.objects, summary.routes) == ((), 2, 2)
    up(found, OTHER)
    summary = found.run()
    # The two that had the former address, and the peer that has this.
    assert (summary.dialects, summary.objects, summary.routes) == ((), 3, 3)


def test_a_session_that_returns_with_its_address_writes_nothing() -> None:
    found = cluster(OWN)
    up(found, OWN)
    found.run()
    before = found.intent.session_addresses.revision(found.db.snapshot())
    up(found, OWN, OWN)
    assert found.intent.session_addresses.revision(found.db.snapshot()) == before
    summary = found.run()
    assert (summary.dialects, summary.objects, summary.routes) == ((), 0, 0)


def test_another_address_takes_the_place_of_the_last_once_the_session_is_up() -> None:
    found = cluster(OWN, OTHER)
    up(found, OWN, established=False)
    found.run()
    assert found.prefixes() == [POD_NETWORK, f"{OTHER}/32"]
    up(found, OTHER, OWN, OTHER, established=False)
    found.run()
    assert found.prefixes() == [POD_NETWORK, f"{OTHER}/32"]
    up(found, OTHER)
    found.run()
    assert found.prefixes() == [POD_NETWORK, f"{OWN}/32"]


def test_one_of_several_connections_counts_until_the_session_is_up() -> None:
    found = cluster()
    sessions = SessionAddresses(found.db, found.intent)
    assert sessions.note("i", "p", OWN, established=False)
    assert not sessions.note("i", "p", OTHER, established=False)
    sessions.write()
    assert known(found.db, found.intent) == {"p": OWN}
    assert sessions.note("i", "p", OTHER, established=True)
    assert not sessions.note("i", "p", OWN, established=False)
    sessions.write()
    assert known(found.db, found.intent) == {"p": OTHER}


def test_an_address_goes_with_the_last_peer_that_has_it() -> None:
    found = cluster(OWN)
    for name in ("p", "q"):
        up(found, OWN, name=name)
    found.run()
    found.put(kinds.CLUSTER_CONFIG, cluster_config(peers=[peer()]))
    found.run()
    assert known(found.db, found.intent) == {"p": OWN}
    assert found.prefixes() == [POD_NETWORK]
    found.put(kinds.CLUSTER_CONFIG, cluster_config(peers=[peer("new")]))
    found.run()
    assert known(found.db, found.intent) == {}
    assert found.prefixes("new") == [POD_NETWORK, f"{OWN}/32"]
    assert not found.render()["problems"]


def test_an_address_of_a_former_peer_that_is_restored_after_the_first_round_is_deleted() -> None:
    """The peer went while the agent was down, and its file is read late."""
    found = cluster(OWN)
    former = SessionAddress("i", "former", OWN)
    SessionAddresses(found.db, found.intent).restore([former])
    found.run()
    assert known(found.db, found.intent) == {}
    found.run()
    assert found.prefixes() == [POD_NETWORK, f"{OWN}/32"]


def test_a_session_gets_an_address_between_two_slices_of_a_round() -> None:
    found = cluster(OWN)
    up(found, "192.0.2.77", name="q")
    found.run()
    # Each prefix is a slice of a round that lets a peer go.
    found.compiler._pieces._size = found.compiler._pieces._left = 1
    found.put(kinds.CLUSTER_CONFIG, cluster_config(peers=[peer()]))
    found.put(kinds.SERVICE, service("late", "198.51.100.9"))
    assert found.operator is not None
    found.operator.run()
    slices = found.compiler.slices()
    next(slices)

    def connect() -> None:
        up(found, OWN)
        up(found, OTHER, name="q")

    session = threading.Thread(target=connect, daemon=True)
    session.start()
    session.join(60)
    assert not session.is_alive(), "it waits for the round"
    finish(slices)
    # The peer that has gone got an address while the round went on.
    assert known(found.db, found.intent) == {"p": OWN}
    found.run()
    assert found.prefixes() == [POD_NETWORK, "198.51.100.9/32"]


def test_a_changed_peer_keeps_its_address() -> None:
    found = cluster(OWN)
    up(found, OWN)
    found.run()
    found.put(kinds.CLUSTER_CONFIG, cluster_config(peers=[peer(peerAddress="192.0.2.99")]))
    found.run()
    assert found.prefixes() == [POD_NETWORK]


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "::1", "169.254.3.4", "fe80::1", "fe80::1%eth0", "::ffff:198.51.100.7"],
)
def test_link_local_and_loopback_addresses_write_nothing(address: str) -> None:
    found = cluster()
    up(found, address)
    assert known(found.db, found.intent) == {}
    up(found, "2001:db8::7", address)
    assert known(found.db, found.intent) == {"p": "2001:db8::7"}


def test_a_session_without_a_configured_peer_writes_nothing() -> None:
    found = cluster()
    up(found, OWN, name="dynamic-1")
    assert known(found.db, found.intent) == {}


def test_an_aggregate_loses_the_contribution_of_the_address_alone() -> None:
    found = cluster(OWN, OTHER)
    entry = advertisement(
        service={"addresses": ["LoadBalancerIP"], "aggregationLengthIPv4": 24},
    )
    found.put(kinds.ADVERTISEMENT, entry)
    found.run()

    def aggregate() -> list[str]:
        routes = found.intent.routes.all(found.db.snapshot())
        (row,) = (row for row in routes if row.nlri[0] == 24 and row.nlri[1] == 198)
        return sorted(str(part.origin.object) for part in row.contributions)

    assert aggregate() == ["Service/default/s0", "Service/default/s1"]
    up(found, OWN)
    found.run()
    assert aggregate() == ["Service/default/s1"]


def test_what_the_administrator_configures_is_advertised() -> None:
    found = cluster()
    entry = advertisement(service={"addresses": ["ClusterIP"]})
    found.put(kinds.ADVERTISEMENT, entry)
    value = {"metadata": {"name": "web", "namespace": "d"}, "spec": {"clusterIP": OWN}}
    found.put(kinds.SERVICE, value)
    up(found, OWN)
    found.run()
    assert found.prefixes() == [POD_NETWORK, f"{OWN}/32"]
    assert not found.render()["problems"]


def test_allowed_prefixes_do_not_permit_it() -> None:
    found = cluster(OWN, advertise_allow=("198.51.100.0/24",))
    up(found, OWN)
    found.run()
    assert found.prefixes() == [POD_NETWORK]


def test_services_of_metallb_are_withheld_and_free_again() -> None:
    found = MetalLBNode()
    tor = metallb.peer("tor")
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
    pool = metallb.pool("front", "198.51.100.0/24")
    found.put(tor, pool, metallb.advertisement("all"), balanced(OWN), endpoints)
    (address,) = found.routes()
    assert found.routes() == {address: [f"{OWN}/32"]}
    (row,) = found.intent.peers.all(found.db.snapshot())
    sessions = SessionAddresses(found.db, found.intent)
    for own, expected in ((OWN, []), (OTHER, [f"{OWN}/32"])):
        sessions.note(row.instance, row.name, own, established=True)
        sessions.write()
        assert found.compiler.run().dialects == ()
        assert found.routes() == {address: expected}


def test_services_of_antrea_are_withheld_and_free_again() -> None:
    shop = antrea.service(externalIPs=[OWN])
    found = antrea.Cluster(antrea.node(), antrea.policy("edge", "ExternalIP"), shop)
    assert found.prefixes() == [f"{OWN}/32"]
    (row,) = found.intent.peers.all(found.db.snapshot())
    sessions = SessionAddresses(found.db, found.intent)
    for own, expected in ((OWN, []), (OTHER, [f"{OWN}/32"])):
        sessions.note(row.instance, row.name, own, established=True)
        sessions.write()
        assert found.prefixes() == expected
