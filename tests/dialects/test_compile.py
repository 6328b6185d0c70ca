"""What a dialect compiles: alone, with the dialect that it feeds, and route by route."""

from __future__ import annotations

from resources.core.kinds import SERVICE
from tests.dialects.beacon.dialect import BeaconDialect
from tests.dialects.beacon.kinds import BEACON
from tests.dialects.lighthouse.dialect import LighthouseDialect
from tests.dialects.lighthouse.kinds import LIGHTHOUSE
from tests.dialects.objects import beacon, lighthouse, service
from tests.reconcilers.build import NODE, Cluster, peer_config, usual
from tests.support import kinds


def cluster() -> Cluster:
    """Make a cluster with a Cilium peer, a Beacon and a Service; run it once."""
    made = usual(also=[BeaconDialect, LighthouseDialect])
    made.put(BEACON, beacon(NODE, peerAddress="192.0.2.10"))
    made.put(SERVICE, service("web", "198.51.100.1"))
    made.run()
    return made


def sessions(cluster: Cluster) -> set[tuple[str, str | None]]:
    """Return the dialect and the address of each peer."""
    rows = cluster.intent.peers.all(cluster.db.snapshot())
    return {(row.dialect, row.address) for row in rows}


def test_two_dialects_configure_one_node() -> None:
    assert sessions(cluster()) == {("cilium", "192.0.2.9"), ("beacon", "192.0.2.10")}


def test_a_changed_table_compiles_its_dialect_alone() -> None:
    it = cluster()
    it.put(BEACON, beacon(NODE, peerAddress="192.0.2.11"))
    assert it.run().dialects == ("beacon",)
    it.put(kinds.PEER_CONFIG, peer_config(ebgpMultihop=7))
    assert it.run().dialects == ("cilium",)


def test_a_changed_table_compiles_the_dialect_that_it_feeds() -> None:
    it = cluster()
    it.delete(BEACON, NODE)
    it.run()
    it.put(LIGHTHOUSE, lighthouse("coast", NODE, peerAddress="192.0.2.12"))
    assert it.run().dialects == ("lighthouse", "beacon")
    assert sessions(it) == {("cilium", "192.0.2.9"), ("beacon", "192.0.2.12")}
    (instance,) = (
        row for row in it.intent.instances.all(it.db.snapshot()) if row.dialect == "beacon"
    )
    assert str(instance.origin) == "Lighthouse/coast"
    it.put(LIGHTHOUSE, lighthouse("coast", "another-node"))
    assert it.run().dialects == ("lighthouse", "beacon")
    assert sessions(it) == {("cilium", "192.0.2.9")}


def test_a_changed_object_of_a_route_source_compiles_no_dialect() -> None:
    it = cluster()
    it.put(SERVICE, service("web", "198.51.100.2"))
    summary = it.run()
    # One Service contributes to the route sets of both dialects.
    assert (summary.dialects, summary.objects, summary.routes) == ((), 2, 4)


def test_services_that_share_an_address_are_one_route() -> None:
    it = cluster()
    it.put(SERVICE, service("other", "198.51.100.1"))
    it.run()
    (route,) = it.render()["instances"][0]["peers"][0]["advertise"]
    assert route["communities"] == ["0:1"]
    assert [origin["name"] for origin in route["origins"]] == ["other", "web"]


def test_a_beacon_without_its_node_is_a_condition() -> None:
    it = cluster()
    it.put(BEACON, beacon("lost"))
    it.run()
    found = {c["name"]: c["status"] for c in it.render()["conditions"] if c["kind"] == "Beacon"}
    assert found == {NODE: "False", "lost": "True"}
