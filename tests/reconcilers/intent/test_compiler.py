"""Rounds of intent: what they compile, what they leave alone, and that order does not matter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcilers.cilium.dialect import CiliumDialect
from reconcilers.dialect import HostNeeds
from reconcilers.intent.session_addresses import SessionAddresses
from resources.row_updates import replace_all
from speaker.nlri import IPV6_UNICAST
from statedb import Snapshot, Table, WriteTxn
from tests.reconcilers.build import (
    NODE,
    Cluster,
    advertisement,
    cluster_config,
    endpoint_slice,
    node,
    peer,
    peer_config,
    service,
    usual,
)
from tests.support import kinds
from tests.support.examples import examples


def test_nothing_is_compiled_before_every_source_is_synced() -> None:
    cluster = usual()
    done = cluster.resources.services.register_initializer("slow")
    assert not cluster.run().ready
    assert cluster.render()["instances"] == []
    with cluster.db.write(cluster.resources.services) as txn:
        done(txn)
    assert cluster.run().ready
    assert cluster.prefixes() == ["10.244.0.0/24"]


def test_a_round_without_changes_does_nothing() -> None:
    cluster = usual()
    cluster.put(kinds.SERVICE, service("web", "198.51.100.1"))
    assert cluster.run().objects == 2  # the Service and the node's pod networks
    again = cluster.run()
    assert (again.dialects, again.objects, again.routes) == ((), 0, 0)


@pytest.mark.parametrize("operator", [True, False])
def test_a_round_makes_no_further_round_due(operator: bool) -> None:
    """What it generates and deletes is in effect at its end: a further round has nothing to do."""
    cluster = usual(operator=operator)
    due: list[str] = []
    of_operator = () if cluster.operator is None else cluster.operator.followed

    def follow(table: Table[Any]) -> None:
        table.observable.subscribe(lambda _: due.append(table.name))

    for table in dict.fromkeys((*cluster.compiler.followed, *of_operator)):
        follow(table)

    def one_round() -> set[str]:
        intent = cluster.intent
        before = [table.revision(cluster.db.snapshot()) for table in intent.compiled]
        cluster.run()
        written = list(due)
        after = [table.revision(cluster.db.snapshot()) for table in intent.compiled]
        assert before != after
        further = cluster.run()
        assert (further.ready, further.dialects, further.objects) == (True, (), 0)
        assert written == due == []
        return {str(peer.address) for peer in intent.peers.all(cluster.db.snapshot())}

    assert one_round() == {"192.0.2.9"}
    cluster.put(kinds.CLUSTER_CONFIG, cluster_config(peers=[peer(peerAddress="192.0.2.8")]))
    assert due == [cluster.resources.of(kinds.CLUSTER_CONFIG).name]
    due.clear()
    assert one_round() == {"192.0.2.8"}
    # A stored NodeConfig of the ClusterConfig, which no longer selects the node, is deleted.
    unselected = cluster_config(nodeSelector={"matchLabels": {"bgp": "no"}})
    unselected["metadata"]["uid"] = "u"
    owner = {
        "apiVersion": kinds.CLUSTER_CONFIG.api_versions[0],
        "kind": kinds.CLUSTER_CONFIG.name,
        "name": "c",
        "uid": "u",
        "controller": True,
    }
    instance = {"name": "i", "localASN": 65001, "peers": [peer(peerAddress="192.0.2.7")]}
    metadata = {"name": NODE, "ownerReferences": [owner]}
    cluster.put(kinds.NODE_CONFIG, {"metadata": metadata, "spec": {"bgpInstances": [instance]}})
    cluster.put(kinds.CLUSTER_CONFIG, unselected)
    due.clear()
    assert one_round() == (set() if operator else {"192.0.2.7"})
    deleted = [str(row.object) for row in cluster.intent.deletions.all(cluster.db.snapshot())]
    assert deleted == ([f"CiliumBGPNodeConfig/{NODE}"] if operator else [])


def test_a_changed_service_costs_that_service_only() -> None:
    cluster = usual()
    for number in range(50):
        cluster.put(kinds.SERVICE, service(f"s{number}", f"198.51.100.{number}"))
    cluster.run()
    cluster.put(kinds.SERVICE, service("s7", "203.0.113.7"))
    summary = cluster.run()
    assert (bool(summary.dialects), summary.objects, summary.routes) == (False, 1, 2)
    assert "203.0.113.7/32" in cluster.prefixes()
    assert "198.51.100.7/32" not in cluster.prefixes()


def test_a_changed_service_asks_no_dialect_whether_the_host_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def is_host_needed(_dialect: object, _snapshot: Snapshot, node: str) -> bool:
        asked.append(node)
        return False

    others = [one for one in CiliumDialect.extensions if not isinstance(one, HostNeeds)]
    extensions = (HostNeeds(is_host_needed), *others)
    monkeypatch.setattr(CiliumDialect, "extensions", extensions)
    cluster = usual()
    cluster.resources.host.register_initializer("netlink")
    cluster.run()
    assert asked == [NODE]
    cluster.put(kinds.SERVICE, service("web", "198.51.100.1"))
    assert cluster.run().ready
    assert asked == [NODE]
    cluster.put(kinds.CLUSTER_CONFIG, cluster_config(peers=[peer(peerAddress="192.0.2.77")]))
    assert cluster.run().ready
    assert asked == [NODE, NODE]


def test_rows_that_are_as_they_were_are_not_compared_with_the_table_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = usual()
    cluster.run()
    replaced: list[str] = []

    def counted(txn: WriteTxn, table: Table[Any], rows: Iterable[Any]) -> int:
        replaced.append(table.name)
        return replace_all(txn, table, rows)

    monkeypatch.setattr("reconcilers.intent_tables.replace_all", counted)
    cluster.put(kinds.CLUSTER_CONFIG, cluster_config(peers=[peer(peerAddress="192.0.2.77")]))
    cluster.run()
    assert "peers" in replaced
    assert not {"instances", "annotations", "problems"} & set(replaced)


def test_an_endpoint_slice_that_changes_its_service_concerns_both() -> None:
    cluster = usual()
    for number in (1, 2):
        cluster.put(kinds.SERVICE, service(f"s{number}", f"198.51.100.{number}", policy="Local"))
    cluster.put(kinds.ENDPOINT_SLICE, endpoint_slice("e", "s1"))
    cluster.run()
    assert cluster.prefixes() == ["10.244.0.0/24", "198.51.100.1/32"]
    cluster.put(kinds.ENDPOINT_SLICE, endpoint_slice("e", "s2"))
    cluster.run()
    assert cluster.prefixes() == ["10.244.0.0/24", "198.51.100.2/32"]
    cluster.delete(kinds.ENDPOINT_SLICE, "e", "default")
    cluster.run()
    assert cluster.prefixes() == ["10.244.0.0/24"]


def test_peers_with_the_same_advertisements_share_one_route_set() -> None:
    cluster = usual()
    peers = [
        peer(f"p{n}", peerAddress=f"192.0.2.{n}", peerConfigRef={"name": f"pc{n}"})
        for n in range(5)
    ]
    cluster.put(kinds.CLUSTER_CONFIG, cluster_config(peers=peers))
    for number in range(5):
        cluster.put(kinds.PEER_CONFIG, peer_config(f"pc{number}", ebgpMultihop=number + 1))
    cluster.run()
    rows = list(cluster.intent.peers.all(cluster.db.snapshot()))
    assert len(rows) == 5
    assert len({row.route_set for row in rows}) == 1


def test_a_changed_advertisement_is_another_route_set() -> None:
    cluster = usual()
    cluster.run()
    (before,) = cluster.intent.peers.all(cluster.db.snapshot())
    cluster.put(kinds.ADVERTISEMENT, advertisement(attributes={"localPreference": 7}))
    cluster.run()
    (after,) = cluster.intent.peers.all(cluster.db.snapshot())
    assert before.route_set != after.route_set
    assert {row.route_set for row in cluster.intent.routes.all(cluster.db.snapshot())} == {
        after.route_set
    }


def test_several_advertisements_of_one_prefix_are_joined() -> None:
    cluster = usual()
    for name, value in (("one", 5), ("two", 9)):
        attributes = {"localPreference": value, "communities": {"standard": [f"65000:{value}"]}}
        cluster.put(kinds.ADVERTISEMENT, advertisement(name, attributes=attributes))
    cluster.put(kinds.SERVICE, service("web", "198.51.100.1"))
    cluster.run()
    routes = cluster.render()["instances"][0]["peers"][0]["advertise"]
    assert routes[1]["localPreference"] == 9
    assert routes[1]["communities"] == ["65000:5", "65000:9"]


def test_f50_of_two_configurations_for_a_node_the_oldest_wins_and_both_have_a_problem() -> None:
    cluster = usual()
    cluster.delete(kinds.CLUSTER_CONFIG, "c")
    for name, year in (("young", 2025), ("old", 2024)):
        value = cluster_config(name)
        value["metadata"]["creationTimestamp"] = f"{year}-01-01T00:00:00Z"
        cluster.put(kinds.CLUSTER_CONFIG, value)
    cluster.run()
    document = cluster.render()
    (generated,) = document["generated"]
    assert generated["metadata"]["ownerReferences"][0]["name"] == "old"
    conflicts = {
        c["name"]: c["status"]
        for c in document["conditions"]
        if c["type"] == "cilium.io/ConflictingClusterConfig"
    }
    assert conflicts == {"old": "False", "young": "True"}
    (problem,) = document["problems"]
    assert problem["objects"] == ["CiliumBGPClusterConfig/young", "CiliumBGPClusterConfig/old"]


def test_f50_the_owner_of_a_node_keeps_it() -> None:
    cluster = usual()
    cluster.run()
    older = cluster_config("a-newcomer")
    older["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z"
    cluster.put(kinds.CLUSTER_CONFIG, older)
    cluster.run()
    (generated,) = cluster.render()["generated"]
    assert generated["metadata"]["ownerReferences"][0]["name"] == "c"
    cluster.delete(kinds.CLUSTER_CONFIG, "c")
    cluster.run()
    (generated,) = cluster.render()["generated"]
    assert generated["metadata"]["ownerReferences"][0]["name"] == "a-newcomer"


def _secret(**data: str) -> dict[str, Any]:
    return {"metadata": {"name": "key", "namespace": "kube-system"}, "stringData": data}


def test_f52_a_missing_secret_keeps_the_peer_down_until_it_exists() -> None:
    cluster = usual()
    cluster.put(kinds.PEER_CONFIG, peer_config(authSecretRef="key"))
    cluster.run()
    (row,) = cluster.intent.peers.all(cluster.db.snapshot())
    assert row.down_reason == "Secret kube-system/key does not exist, or may not be read"
    assert cluster.render()["instances"][0]["peers"][0]["password"] is True
    assert ("CiliumBGPPeerConfig/pc", "spec.authSecretRef") in cluster.problems()
    cluster.put(kinds.SECRET, _secret(other="x"))
    cluster.run()
    (row,) = cluster.intent.peers.all(cluster.db.snapshot())
    assert row.down_reason == "no key 'password' in Secret kube-system/key"
    cluster.put(kinds.SECRET, _secret(password="x"))
    cluster.run()
    (row,) = cluster.intent.peers.all(cluster.db.snapshot())
    assert row.down_reason is None
    assert cluster.problems() == []


def test_f53_a_removed_peer_is_deleted_with_its_routes() -> None:
    cluster = usual()
    cluster.run()
    cluster.put(kinds.CLUSTER_CONFIG, cluster_config(peers=[]))
    cluster.run()
    snapshot = cluster.db.snapshot()
    assert cluster.intent.peers.count(snapshot) == 0
    assert cluster.intent.routes.count(snapshot) == 0


def test_an_owned_node_config_is_generated_again_by_the_local_operator() -> None:
    cluster = usual()
    cluster.run()
    (written,) = cluster.render()["generated"]
    written["spec"]["bgpInstances"][0]["localASN"] = 65099
    cluster.put(kinds.NODE_CONFIG, written)
    cluster.run()
    assert [i["localASN"] for i in cluster.render()["instances"]] == [65001]
    del written["metadata"]["ownerReferences"]
    cluster.put(kinds.NODE_CONFIG, written)
    cluster.run()
    assert [i["localASN"] for i in cluster.render()["instances"]] == [65099]
    assert cluster.problems() == [("CiliumBGPClusterConfig/c", "metadata.name")]


def test_f54_a_selector_may_match_no_node_or_all() -> None:
    cluster = usual()
    cluster.put(kinds.NODE, node("other", bgp="yes"))
    cluster.put(
        kinds.CLUSTER_CONFIG, cluster_config(nodeSelector={"matchLabels": {"bgp": "never"}})
    )
    cluster.run()
    assert cluster.render()["generated"] == []
    assert cluster.render()["instances"] == []
    cluster.put(kinds.CLUSTER_CONFIG, cluster_config(nodeSelector={}))
    cluster.run()
    names = [item["metadata"]["name"] for item in cluster.render()["generated"]]
    assert names == ["other", "test-node"]
    assert cluster.prefixes() == ["10.244.0.0/24"]


def test_f56_an_invalid_instance_affects_no_other() -> None:
    cluster = usual()
    value = cluster_config()
    value["spec"]["bgpInstances"].insert(0, {"name": "no-asn", "peers": [peer("q")]})
    cluster.put(kinds.CLUSTER_CONFIG, value)
    cluster.run()
    assert [i["name"] for i in cluster.render()["instances"]] == ["i"]
    assert cluster.problems() == [
        ("CiliumBGPNodeConfig/test-node", "spec.bgpInstances[0].localASN")
    ]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"peerAddress": None}, "peerAddress"),
        ({"peerConfigRef": {"name": "none"}}, "peerConfigRef.name"),
    ],
)
def test_an_invalid_peer_is_left_out_with_a_problem(fields: dict[str, Any], field: str) -> None:
    cluster = usual()
    cluster.put(kinds.CLUSTER_CONFIG, cluster_config(peers=[peer("bad", **fields), peer()]))
    cluster.run()
    assert [p["name"] for p in cluster.render()["instances"][0]["peers"]] == ["p"]
    assert cluster.problems() == [
        ("CiliumBGPNodeConfig/test-node", f"spec.bgpInstances[0].peers[0].{field}")
    ]


@pytest.mark.parametrize("asn", [None, 0], ids=["absent", "0"])
def test_a_peer_without_as_number_has_any(asn: int | None) -> None:
    cluster = usual()
    cluster.put(kinds.CLUSTER_CONFIG, cluster_config(peers=[peer(peerASN=asn)]))
    cluster.run()
    assert [p["peerASN"] for p in cluster.render()["instances"][0]["peers"]] == [0]
    assert not cluster.problems()


def test_an_object_whose_computation_fails_is_a_problem_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from reconcilers.cilium import services

    original = services.service_addresses

    def fail(row: Any, *rest: Any) -> Any:  # noqa: ANN401
        if row.metadata.name == "bad":
            raise RuntimeError("surprise")
        return original(row, *rest)

    monkeypatch.setattr(services, "service_addresses", fail)
    cluster = usual()
    cluster.put(kinds.SERVICE, service("bad", "198.51.100.1"))
    cluster.put(kinds.SERVICE, service("good", "198.51.100.2"))
    cluster.run()
    assert cluster.prefixes() == ["10.244.0.0/24", "198.51.100.2/32"]
    assert cluster.problems() == [("Service/default/bad", "")]
    monkeypatch.setattr(services, "service_addresses", original)
    cluster.put(kinds.SERVICE, service("bad", "198.51.100.3"))
    cluster.run()
    assert cluster.problems() == []


def test_services_without_endpoints_are_not_routable_if_the_option_is_false() -> None:
    cluster = usual(no_service_endpoints_routable=False)
    cluster.put(kinds.SERVICE, service("web", "198.51.100.1"))
    cluster.run()
    assert cluster.prefixes() == ["10.244.0.0/24"]
    cluster.put(kinds.ENDPOINT_SLICE, endpoint_slice("e", "web", on="elsewhere"))
    cluster.run()
    assert cluster.prefixes() == ["10.244.0.0/24", "198.51.100.1/32"]


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("service"),
            st.sampled_from("abc"),
            st.integers(1, 3),
            st.sampled_from(["Cluster", "Local"]),
        ),
        st.tuples(st.just("no-service"), st.sampled_from("abc"), st.just(0), st.just("")),
        st.tuples(
            st.just("slice"),
            st.sampled_from("xy"),
            st.integers(0, 1),
            st.sampled_from("abc"),
        ),
        st.tuples(st.just("no-slice"), st.sampled_from("xy"), st.just(0), st.just("")),
        st.tuples(
            st.just("advert"), st.sampled_from("mn"), st.integers(0, 2), st.sampled_from("ab")
        ),
        st.tuples(st.just("no-advert"), st.sampled_from("mn"), st.just(0), st.just("")),
        st.tuples(st.just("node"), st.just("n"), st.integers(0, 1), st.just("")),
        st.tuples(st.just("session"), st.just("p"), st.integers(1, 4), st.just("")),
    ),
    max_size=12,
)


def _step(cluster: Cluster, what: str, name: str, number: int, text: str) -> None:
    match what:
        case "service":
            value = service(name, f"198.51.100.{number}", policy=text, app=name)
            cluster.put(kinds.SERVICE, value)
        case "no-service":
            cluster.delete(kinds.SERVICE, name, "default")
        case "slice":
            cluster.put(kinds.ENDPOINT_SLICE, endpoint_slice(name, text, ready=bool(number)))
        case "no-slice":
            cluster.delete(kinds.ENDPOINT_SLICE, name, "default")
        case "advert":
            selector = {"matchLabels": {"app": text}}
            attributes = {"localPreference": number} if number else {}
            cluster.put(
                kinds.ADVERTISEMENT, advertisement(name, selector=selector, attributes=attributes)
            )
        case "no-advert":
            cluster.delete(kinds.ADVERTISEMENT, name)
        case "session":
            sessions = SessionAddresses(cluster.db, cluster.intent)
            sessions.note("i", name, f"198.51.100.{number}", established=True)
            sessions.write()
        case _:
            cluster.put(kinds.NODE, node(bgp="yes" if number else "no"))


@settings(deadline=None, max_examples=examples(60))
@given(STEPS)
def test_incremental_rounds_equal_one_full_round(
    steps: list[tuple[str, str, int, str]],
) -> None:
    cluster = usual()
    cluster.run()
    for step in steps:
        _step(cluster, *step)
        cluster.run()
        assert cluster.render() == cluster.fresh()


def test_ipv6_prefixes_have_the_nodes_ipv6_address_as_next_hop_over_an_ipv4_session() -> None:
    cluster = usual()
    value = node()
    cluster.run()
    (row,) = cluster.intent.peers.all(cluster.db.snapshot())
    assert row.next_hop(IPV6_UNICAST, configured=False) is None
    value["status"]["addresses"].append({"type": "InternalIP", "address": "2001:db8::1"})
    cluster.put(kinds.NODE, value)
    cluster.run()
    (row,) = cluster.intent.peers.all(cluster.db.snapshot())
    assert row.next_hop(IPV6_UNICAST, configured=False) == "2001:db8::1"
    cluster.put(kinds.CLUSTER_CONFIG, cluster_config(peers=[peer(peerAddress="2001:db8::9")]))
    cluster.run()
    (row,) = cluster.intent.peers.all(cluster.db.snapshot())
    assert row.next_hop(IPV6_UNICAST, configured=False) is None


def test_the_table_that_is_read_last_triggers_the_first_round() -> None:
    cluster = usual()
    names = {table.name for table in cluster.compiler.followed}
    of_objects: tuple[Table[Any], ...] = cluster.resources.resources
    # And the kernel, and sessions.
    of_peers = {"session_addresses", "next_hops", "unsent-routes", "learned-limits", "bfd-sessions"}
    others = {
        "host",
        "gateways",
        "kernel-routes",
        "unread-objects",
        *of_peers,
    }
    assert names == {table.name for table in of_objects} | others
