"""Two dialects on one node: which one gets a peer, the problem of the other one, and the cost."""

from __future__ import annotations

from typing import Any

import pytest

from reconcilers.intent.explain import parse_target
from reconcilers.model import ObjectRef
from tests.dialects.beacon.dialect import BeaconDialect
from tests.dialects.beacon.kinds import BEACON
from tests.dialects.objects import beacon
from tests.reconcilers.apply.applied_cluster import Applied
from tests.reconcilers.build import NODE, Cluster, cluster_config, node, peer, service, usual
from tests.support import kinds

SHARED = "192.0.2.9"
"""The address of the usual cluster's peer."""


def rival(instance: str = "main", address: str = SHARED, **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    """Spell the Beacon of the node with an instance whose router is the one of Cilium's peer."""
    spec = {"peerAddress": address, "peerASN": 65010, **spec}
    return beacon(NODE, instance=instance, **spec)


def cluster() -> Cluster:
    """Make the usual cluster, with Beacons beside Cilium."""
    return usual(also=[BeaconDialect])


def peers(cluster: Cluster) -> list[tuple[str, str, str]]:
    """Run, and list the peers: dialect, instance, name."""
    cluster.run()
    rows = cluster.intent.peers.all(cluster.db.snapshot())
    return sorted((row.dialect, row.instance, row.name) for row in rows)


def test_the_dialect_that_has_a_peer_keeps_it_and_the_other_one_follows() -> None:
    it = cluster()
    assert peers(it) == [("cilium", "i", "p")]
    it.put(BEACON, rival(created="2001-01-01T00:00:00Z"))
    assert peers(it) == [("cilium", "i", "p")]
    (problem,) = it.intent.problems.all(it.db.snapshot())
    assert problem.objects == (
        ObjectRef("Beacon", "", NODE),
        ObjectRef("CiliumBGPNodeConfig", "", NODE),
    )
    assert problem.message == (
        "peer 'router' is not configured: its address 192.0.2.9 belongs to peer 'p' of "
        f"CiliumBGPNodeConfig/{NODE} (dialect cilium) until that peer is removed"
    )
    it.delete(kinds.CLUSTER_CONFIG, "c")
    assert peers(it) == [("beacon", "main", "router")]
    assert not it.render()["problems"]


@pytest.mark.parametrize("kept", ["beacon", "cilium"])
def test_the_claims_of_an_earlier_process_decide(kept: str) -> None:
    owners = {("peer", "", SHARED): kept}
    it = usual(also=[BeaconDialect], owners=owners)
    it.put(BEACON, rival())
    assert [row[0] for row in peers(it)] == [kept]


@pytest.mark.parametrize(("year", "has_it"), [("2023", "beacon"), ("2025", "cilium")])
def test_of_two_new_peers_the_older_object_has_it_a_generated_one_as_old_as_its_owner(
    year: str, has_it: str
) -> None:
    it = cluster()
    config = cluster_config()
    config["metadata"]["creationTimestamp"] = "2024-01-01T00:00:00Z"
    it.put(kinds.CLUSTER_CONFIG, config)
    it.put(BEACON, rival(created=f"{year}-01-01T00:00:00Z"))
    assert [row[0] for row in peers(it)] == [has_it]


OWNER = {"apiVersion": "cilium.io/v2", "kind": "CiliumBGPClusterConfig", "name": "c", "uid": "u"}


@pytest.mark.parametrize(
    ("owner", "has_it"),
    [
        (OWNER | {"controller": True}, "cilium"),
        (OWNER, "beacon"),
        (OWNER | {"controller": True, "name": "gone"}, "beacon"),
        (OWNER | {"controller": True, "kind": "Unknown"}, "beacon"),
        (None, "beacon"),
    ],
    ids=["controller", "no controller", "deleted", "of an unknown kind", "no owner"],
)
def test_a_stored_object_is_as_old_as_the_owner_that_controls_it(
    owner: dict[str, Any] | None, has_it: str
) -> None:
    # The operator has written the NodeConfig later than the Beacon was made.
    it = cluster()
    it.run()
    (written,) = it.render()["generated"]
    written["metadata"] |= {
        "creationTimestamp": "2025-01-01T00:00:00Z",
        "ownerReferences": [] if owner is None else [owner],
    }
    config = cluster_config()
    config["metadata"]["creationTimestamp"] = "2023-01-01T00:00:00Z"
    it = usual(also=[BeaconDialect], operator=False)
    it.put(kinds.CLUSTER_CONFIG, config)
    it.put(kinds.NODE_CONFIG, written)
    it.put(BEACON, rival(created="2024-01-01T00:00:00Z"))
    assert [row[0] for row in peers(it)] == [has_it]


def test_within_one_dialect_two_instances_with_one_peer_address_stay_as_they_are() -> None:
    it = cluster()
    config = cluster_config()
    config["spec"]["bgpInstances"].append({"name": "j", "localASN": 65002, "peers": [peer("p")]})
    it.put(kinds.CLUSTER_CONFIG, config)
    assert peers(it) == [("cilium", "i", "p"), ("cilium", "j", "p")]
    assert not it.render()["problems"]


def test_instances_of_one_name_are_two_instances_and_peers_keep_to_theirs() -> None:
    it = cluster()
    it.put(BEACON, rival("i", "192.0.2.10", created="2024-01-01T00:00:00Z"))
    assert peers(it) == [("beacon", "beacon.i", "router"), ("cilium", "i", "p")]


def test_an_explanation_names_the_peer_that_is_left_out_and_why() -> None:
    it = cluster()
    it.run()
    it.put(BEACON, rival(created="2001-01-01T00:00:00Z"))
    it.run()
    (group,) = (
        group
        for group in it.compiler.explainer().explain(parse_target("10.244.0.0/24", {}))
        if group and group[0].reason == "LeftOut"
    )
    (found,) = group
    assert (found.instance, found.peer, str(found.rule)) == ("main", "router", f"Beacon/{NODE}")
    assert "belongs to peer 'p' of CiliumBGPNodeConfig" in found.message


def test_an_explanation_is_given_where_all_peers_of_a_dialect_are_left_out() -> None:
    it = usual(also=[BeaconDialect], owners={("peer", "", SHARED): "beacon"})
    it.put(BEACON, rival())
    it.put(kinds.SERVICE, service("web", "198.51.100.1"))
    it.run()
    for target in ("Service/default/web", "198.51.100.1"):
        groups = list(it.compiler.explainer().explain(parse_target(target, {})))
        assert [[(one.peer, one.reason) for one in group] for group in groups if group] == [
            [("p", "LeftOut")],
            [("router", "NoRule")],
        ]


def test_a_change_of_one_dialect_compiles_that_dialect_alone() -> None:
    it = cluster()
    assert it.run().dialects == ("beacon", "cilium")
    it.put(BEACON, rival())
    assert it.run().dialects == ("beacon",)


def test_another_node_compiles_what_depends_on_it_alone() -> None:
    it = cluster()
    it.run()
    it.put(kinds.NODE, node("another"))
    assert it.run().dialects == ("cilium",), "a ClusterConfig may own several nodes"
    it.put(kinds.NODE, node(NODE, rack="b"))
    assert it.run().dialects == ("beacon", "cilium")


# The speaker


def calls(applied: Applied) -> list[tuple[Any, ...]]:
    """Run one round, and return the calls that it made."""
    summary = applied.run()
    assert not applied.runner.has_failures
    assert summary.retry_at is None
    return applied.speaker.take()


def test_a_peer_that_moves_to_another_instance_is_deleted_before_it_is_created() -> None:
    applied = Applied(dialects=[BeaconDialect]).set_up()
    applied.cluster.put(BEACON, rival(listenPort=179))
    assert calls(applied) == [("set_instance", "main")]
    applied.cluster.delete(kinds.CLUSTER_CONFIG, "c")
    names = [call[:3] for call in calls(applied)]
    assert names.index(("remove_peer", "i", "p")) < names.index(("set_peer", "main", "router"))
    # In one round, and back again.
    assert [row.instance for row in applied.speaker.peers()] == ["main"]
    applied.cluster.put(kinds.CLUSTER_CONFIG, cluster_config())
    assert not [call for call in calls(applied) if call[0] == "set_peer"]
    applied.cluster.delete(BEACON, NODE)
    names = [call[:3] for call in calls(applied)]
    assert names.index(("remove_peer", "main", "router")) < names.index(("set_peer", "i", "p"))


def test_a_session_is_established_again_when_its_peer_has_moved() -> None:
    applied = Applied(dialects=[BeaconDialect])
    applied.run()
    applied.router()
    applied.cluster.put(BEACON, rival())
    applied.run()
    applied.network.run(5)
    (session,) = applied.speaker.peers()
    assert (session.instance, session.established) == ("i", True)
    applied.cluster.delete(kinds.CLUSTER_CONFIG, "c")
    applied.run()
    applied.network.run(30)
    (session,) = applied.speaker.peers()
    assert (session.instance, session.established) == ("main", True)
