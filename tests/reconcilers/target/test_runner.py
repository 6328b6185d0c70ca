"""Apply rounds on the real engine: order, differences only, retries, independence of instances."""

from __future__ import annotations

import weakref
from typing import Any

import msgspec
import pytest

from reconcilers.model import ReconcileStatus
from reconcilers.target.comparison import SLICE_PARTS
from reconcilers.target.reconciler import Pace
from speaker.api import PeerConfig
from speaker.engine.inputs import SetPeer, UpdateRoutes
from speaker.nlri import IPV4_UNICAST, prefix_to_wire
from statedb import Snapshot
from tests.reconcilers.apply.applied_cluster import ROUTER, Applied
from tests.reconcilers.build import (
    advertisement,
    cluster_config,
    node,
    peer,
    peer_config,
    service,
)
from tests.reconcilers.target.failures import failures
from tests.support import kinds

POD, WEB, NEW = "10.244.0.0/24", "198.51.100.1/32", "198.51.100.2/32"


def statuses(applied: Applied) -> dict[tuple[str, str], str | None]:
    """Return the errors of all objects, None for objects without an error."""
    rows = applied.cluster.intent.reconcile_statuses.all(applied.cluster.db.snapshot())
    return {(row.reconciler, row.object): row.error for row in rows}


def status(applied: Applied, reconciler: str, name: str) -> ReconcileStatus | None:
    """Return one object's status."""
    table = applied.cluster.intent.reconcile_statuses
    return table.get(applied.cluster.db.snapshot(), (reconciler, name))


def test_instances_come_first_then_route_sets_then_peers() -> None:
    applied = Applied()
    applied.run()
    assert applied.speaker.take() == [
        ("set_instance", "i"),
        ("update_routes", "i", {POD: True, WEB: True}),
        ("set_peer", "i", "p"),
    ]
    assert statuses(applied) == {
        ("instance", "i"): None,
        ("route-set", f"i/{applied.route_set()}"): None,
        ("import-policy", "i/p"): None,
        ("peer", "i/p"): None,
    }


def test_a_route_set_is_complete_before_a_peer_gets_it() -> None:
    applied = Applied()
    complete: list[set[str]] = []
    carry_out = applied.speaker.call

    def observed(item: object, *record: object) -> None:
        if isinstance(item, SetPeer):
            complete.append(applied.held())
        carry_out(item, *record)  # type: ignore[arg-type]

    applied.speaker.call = observed  # type: ignore[method-assign]
    applied.run()
    assert complete == [{POD, WEB}]


def test_a_peer_receives_the_initial_table_and_end_of_rib_at_once() -> None:
    applied = Applied()
    applied.run()
    router = applied.router()
    assert set(router.received(IPV4_UNICAST)) == {POD, WEB}
    assert all(status.initial_table_sent for status in applied.speaker.peers())


def test_a_round_without_differences_calls_nothing() -> None:
    applied = Applied().set_up()
    assert not applied.runner.run(1.0).changed
    assert applied.speaker.take() == []


def test_a_new_runner_compares_with_the_speakers_state_and_calls_nothing() -> None:
    applied = Applied().set_up()
    successor = applied.new_runner()
    assert successor.run(0.0).changed
    assert applied.speaker.take() == []


def test_a_new_runner_prunes_undesired_objects() -> None:
    applied = Applied().set_up()
    stray = PeerConfig(name="stray", address="192.0.2.77", peer_asn=65077)
    applied.speaker.host.give(SetPeer("i", stray))
    applied.new_runner().run(0.0)
    assert applied.speaker.take() == [("remove_peer", "i", "stray")]


def test_a_changed_service_is_one_call_and_changes_no_peer() -> None:
    applied = Applied().set_up()
    applied.cluster.put(kinds.SERVICE, service("new", "198.51.100.2"))
    applied.run(1.0)
    assert applied.speaker.take() == [("update_routes", "i", {NEW: True})]
    applied.cluster.delete(kinds.SERVICE, "new", "default")
    applied.run(2.0)
    assert applied.speaker.take() == [("update_routes", "i", {NEW: False})]


def test_the_cost_of_a_changed_service_does_not_grow_with_the_routes() -> None:
    applied = Applied()
    for number in range(300):
        applied.cluster.put(
            kinds.SERVICE, service(f"s{number}", f"10.1.{number >> 8}.{number & 255}")
        )
    applied.set_up()
    looked_up: list[int] = []
    read = applied.speaker.routes_of_set

    def counted(instance: str, route_set: str, prefixes: dict) -> object:  # type: ignore[type-arg]
        looked_up.append(sum(map(len, prefixes.values())))
        return read(instance, route_set, prefixes)

    applied.speaker.routes_of_set = counted  # type: ignore[method-assign,assignment]
    applied.cluster.put(kinds.SERVICE, service("new", "198.51.100.2"))
    applied.run(1.0)
    assert looked_up == [1]


def test_prefixes_of_a_service_and_of_a_pod_network_that_change_together_share_an_update() -> None:
    applied = Applied()
    applied.cluster.delete(kinds.SERVICE, "web", "default")
    applied.cluster.put(kinds.NODE, node() | {"spec": {}})
    applied.set_up()
    router = applied.router()
    applied.speaker.take()
    applied.speaker.host.sent()
    applied.cluster.put(kinds.NODE, node())
    applied.cluster.put(kinds.SERVICE, service("web", "198.51.100.1"))
    applied.run(1.0)
    assert applied.speaker.take() == [("update_routes", "i", {POD: True, WEB: True})]
    applied.network.run(0.01)
    octets = applied.speaker.host.sent()
    # RFC 4271: header 19, two lengths 4, ORIGIN 4, AS_PATH 9, NEXT_HOP 7, NLRI 4 + 5.
    assert len(octets) == int.from_bytes(octets[16:18], "big") == 52
    assert set(router.received(IPV4_UNICAST)) == {POD, WEB}


def test_a_changed_advertisement_fills_the_new_set_before_it_moves_the_peers() -> None:
    applied = Applied().set_up()
    router = applied.router()
    applied.cluster.put(kinds.ADVERTISEMENT, advertisement(attributes={"localPreference": 7}))
    applied.run(1.0)
    assert [call[0] for call in applied.speaker.take()] == [
        "update_routes",
        "set_peer",
        "remove_route_set",
    ]
    applied.network.run(1)
    assert set(router.received(IPV4_UNICAST)) == {POD, WEB}
    assert [status.flaps for status in applied.speaker.peers()] == [0]


def test_a_set_is_kept_until_the_last_peer_has_moved() -> None:
    applied = Applied().set_up()
    former = applied.route_set()
    applied.cluster.put(kinds.ADVERTISEMENT, advertisement(attributes={"localPreference": 7}))
    applied.speaker.failing = {"p"}
    summary = applied.run(1.0)
    assert former in applied.speaker.route_sets("i")
    assert len(applied.speaker.route_sets("i")) == 2
    applied.speaker.failing = set()
    assert summary.retry_at is not None
    applied.run(summary.retry_at)
    assert applied.route_set() != former
    assert set(statuses(applied).values()) == {None}


def test_a_kept_set_is_compared_as_a_whole_when_it_is_desired_again() -> None:
    applied = Applied().set_up()
    applied.cluster.put(kinds.ADVERTISEMENT, advertisement(attributes={"localPreference": 7}))
    applied.speaker.failing = {"p"}
    applied.run(1.0)
    # While it is not wanted, changes of its routes do not reach it.
    applied.cluster.delete(kinds.SERVICE, "web", "default")
    applied.run(1.1)
    applied.cluster.put(kinds.ADVERTISEMENT, advertisement())
    applied.speaker.failing = set()
    applied.run(1.2)
    assert applied.held() == {POD}
    assert set(statuses(applied).values()) == {None}


def test_f53_objects_are_deleted_in_the_opposite_order() -> None:
    applied = Applied().set_up()
    applied.cluster.delete(kinds.CLUSTER_CONFIG, "c")
    applied.run(1.0)
    assert [call[0] for call in applied.speaker.take()] == [
        "remove_peer",
        "remove_route_set",
        "remove_instance",
    ]
    assert statuses(applied) == {}


def test_an_instance_is_kept_while_a_peer_of_it_cannot_be_removed() -> None:
    applied = Applied().set_up()
    applied.cluster.delete(kinds.CLUSTER_CONFIG, "c")
    applied.speaker.failing = {"p"}
    summary = applied.run(1.0)
    assert applied.speaker.instance_config("i") is not None
    assert statuses(applied) == {("peer", "i/p"): "OSError: no"}
    applied.speaker.failing = set()
    assert summary.retry_at is not None
    applied.run(summary.retry_at)
    assert applied.speaker.instance_configs() == {}
    assert statuses(applied) == {}


def test_an_error_is_the_status_of_its_object_and_is_retried() -> None:
    applied = Applied()
    applied.speaker.failing = {"p"}
    summary = applied.run()
    assert failures(applied.runner) == 1
    found = status(applied, "peer", "i/p")
    assert found is not None
    assert (found.error, found.attempts) == ("OSError: no", 1)
    assert summary.retry_at is not None
    assert 0.0 < summary.retry_at < 1.0
    applied.speaker.take()
    assert not applied.runner.run(summary.retry_at - 0.01).changed
    applied.speaker.failing = set()
    applied.runner.run(summary.retry_at)
    assert failures(applied.runner) == 0
    assert applied.speaker.take() == [("set_peer", "i", "p")]


def test_the_pause_before_a_retry_doubles_up_to_half_a_minute() -> None:
    applied = Applied()
    applied.speaker.failing = {"p"}
    now, pauses = 0.0, []
    for _ in range(10):
        summary = applied.run(now)
        assert summary.retry_at is not None
        pauses.append(summary.retry_at - now)
        now = summary.retry_at
    for number, pause in enumerate(pauses):
        expected = min(30.0, Pace().first_retry * 2**number)
        assert 0.75 * expected <= pause <= 1.25 * expected


def test_a_failed_update_of_a_set_is_retried_as_a_whole() -> None:
    applied = Applied().set_up()
    applied.cluster.put(kinds.SERVICE, service("new", "198.51.100.2"))
    applied.speaker.failing = {NEW}
    summary = applied.run(1.0)
    # The failed call may have done a part of its work: every route of the set is compared.
    family, nlri = prefix_to_wire(WEB)
    applied.speaker.host.give(UpdateRoutes("i", applied.route_set(), {family: {nlri: None}}))
    applied.speaker.failing = set()
    applied.speaker.take()
    assert summary.retry_at is not None
    applied.run(summary.retry_at)
    assert applied.speaker.take() == [("update_routes", "i", {WEB: True, NEW: True})]
    assert applied.held() == {POD, WEB, NEW}


def test_an_interrupted_round_is_completed_by_the_next() -> None:
    applied = Applied().set_up()
    applied.cluster.put(kinds.SERVICE, service("new", "198.51.100.2"))
    applied.speaker.interrupt = True
    with pytest.raises(KeyboardInterrupt):
        applied.run(1.0)
    assert applied.runner.applied is None
    applied.speaker.interrupt = False
    applied.run(2.0)
    assert applied.held() == {POD, WEB, NEW}


LISTINGS = ["changes", "objects", "actual_objects"]


def test_the_snapshot_of_the_last_round_is_dropped_before_changes_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The log of a table releases the rows of before in slices, unless a snapshot has them."""
    applied = Applied().set_up()
    assert applied.runner.applied is not None
    last = weakref.ref(applied.runner.applied)
    held: list[object] = []
    (reconciler,) = (q.reconciler for q in applied.runner.queues if q.name == "route-set")
    changes = reconciler.changes

    def noted(snapshot: Snapshot) -> Any:  # noqa: ANN401
        held.append(last())
        return changes(snapshot)

    monkeypatch.setattr(reconciler, "changes", noted)
    applied.cluster.put(kinds.SERVICE, service("new", "198.51.100.2"))
    applied.run(1.0)
    assert held == [None]


def listing_fails(applied: Applied, patch: pytest.MonkeyPatch, method: str) -> None:
    """Make the reconciler of route sets fail where it lists objects, once changes are consumed."""
    route_sets = applied.runner.queues[1].reconciler
    changes = route_sets.changes

    def broken(*arguments: Any) -> Any:  # noqa: ANN401
        if method == "changes":
            changes(*arguments)
        raise OSError("unreadable")

    patch.setattr(route_sets, method, broken)


@pytest.mark.parametrize("method", LISTINGS)
def test_a_listing_that_fails_has_a_status_and_is_retried_while_other_reconcilers_go_on(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied = Applied().set_up()
    with monkeypatch.context() as patch:
        listing_fails(applied, patch, method)
        # After an error everything is listed.
        applied.runner.queues[1].current = method == "changes"
        applied.cluster.put(kinds.SERVICE, service("new", "198.51.100.2"))
        both = [peer("p", peerAddress=ROUTER), peer("q", peerAddress="192.0.2.8")]
        applied.cluster.put(kinds.CLUSTER_CONFIG, cluster_config(peers=both))
        summary = applied.run(1.0)
        assert (summary.changed, summary.complete, failures(applied.runner)) == (True, True, 1)
        assert statuses(applied)["route-set", "*"] == "OSError: unreadable"
        assert set(applied.speaker.peer_configs("i")) == {"p", "q"}
        assert applied.held() == {POD, WEB}
        assert summary.retry_at is not None
        assert 0.0 < summary.retry_at - 1.0 < 1.0
    # Its changes are not lost.
    summary = applied.run(summary.retry_at)
    assert (summary.changed, failures(applied.runner), summary.retry_at) == (True, 0, None)
    assert applied.held() == {POD, WEB, NEW}
    assert ("route-set", "*") not in statuses(applied)
    assert not applied.run(3.0).changed


@pytest.mark.parametrize("method", LISTINGS)
def test_no_peer_is_created_before_the_route_sets_could_be_listed_once(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied = Applied()
    with monkeypatch.context() as patch:
        listing_fails(applied, patch, method)
        summary = applied.run()
        assert (summary.complete, failures(applied.runner)) == (False, 1)
        assert set(applied.speaker.instance_configs()) == {"i"}
        assert applied.speaker.peer_configs("i") == {}
    assert summary.retry_at is not None
    assert applied.run(summary.retry_at).complete
    assert applied.held() == {POD, WEB}
    assert set(applied.speaker.peer_configs("i")) == {"p"}


def test_the_pause_before_a_failed_listing_is_retried_doubles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    applied = Applied()
    listing_fails(applied, monkeypatch, "objects")
    now, pauses = 0.0, []
    for _ in range(5):
        summary = applied.run(now)
        assert summary.retry_at is not None
        pauses.append(summary.retry_at - now)
        now = summary.retry_at
    for number, pause in enumerate(pauses):
        assert 0.75 * 2**number <= pause / Pace().first_retry <= 1.25 * 2**number


def unreadable(applied: Applied, reconciler: str, method: str, name: str) -> None:
    """Make a read of a reconciler fail for the object whose last name this is."""
    (found,) = (queue.reconciler for queue in applied.runner.queues if queue.name == reconciler)
    read = getattr(found, method)

    def failing(*arguments: Any) -> Any:  # noqa: ANN401
        keys = arguments[0] if method == "still_used" else [arguments[method in WITH_SNAPSHOT]]
        if any(key[-1] == name for key in keys):
            raise OSError("unreadable")
        return read(*arguments)

    setattr(found, method, failing)


WITH_SNAPSHOT = ("wanted", "desired")
"""Reads whose first argument is the snapshot."""


@pytest.mark.parametrize("method", ["wanted", "possible", "actual", "desired"])
def test_an_error_of_a_read_is_the_status_of_its_object_alone(method: str) -> None:
    applied = Applied()
    both = [peer("p", peerAddress=ROUTER), peer("q", peerAddress="192.0.2.8")]
    applied.cluster.put(kinds.CLUSTER_CONFIG, cluster_config(peers=both))
    unreadable(applied, "peer", method, "p")
    summary = applied.run()
    assert failures(applied.runner) == 1
    assert statuses(applied)["peer", "i/p"] == "OSError: unreadable"
    assert statuses(applied)["peer", "i/q"] is None
    assert set(applied.speaker.peer_configs("i")) == {"q"}
    delattr(applied.runner.queues[3].reconciler, method)
    assert summary.retry_at is not None
    applied.run(summary.retry_at)
    assert failures(applied.runner) == 0
    assert set(applied.speaker.peer_configs("i")) == {"p", "q"}


@pytest.mark.parametrize("method", ["wanted", "actual", "still_used"])
def test_an_error_of_a_read_of_a_deleted_object_is_the_status_of_its_object_alone(
    method: str,
) -> None:
    applied = Applied()
    both = [peer("p", peerAddress=ROUTER), peer("q", peerAddress="192.0.2.8")]
    applied.cluster.put(kinds.CLUSTER_CONFIG, cluster_config(peers=both))
    applied.set_up()
    unreadable(applied, "peer", method, "p")
    applied.cluster.put(kinds.CLUSTER_CONFIG, cluster_config(peers=[]))
    summary = applied.run(1.0)
    assert statuses(applied)["peer", "i/p"] == "OSError: unreadable"
    assert set(applied.speaker.peer_configs("i")) == {"p"}
    delattr(applied.runner.queues[3].reconciler, method)
    assert summary.retry_at is not None
    applied.run(summary.retry_at)
    assert failures(applied.runner) == 0
    assert applied.speaker.peer_configs("i") == {}


def test_an_instance_that_fails_blocks_no_other() -> None:
    applied = Applied()
    value = cluster_config()
    value["spec"]["bgpInstances"].append(
        {"name": "j", "localASN": 65002, "peers": [peer("q", peerAddress="192.0.2.8")]}
    )
    applied.cluster.put(kinds.CLUSTER_CONFIG, value)
    applied.speaker.failing = {"i"}
    summary = applied.run()
    assert failures(applied.runner) == 1
    assert [call[:2] for call in applied.speaker.take() if call[0].startswith("set")] == [
        ("set_instance", "j"),
        ("set_peer", "j"),
    ]
    applied.speaker.failing = set()
    assert summary.retry_at is not None
    applied.run(summary.retry_at)
    assert failures(applied.runner) == 0
    assert [call[0] for call in applied.speaker.take()] == [
        "set_instance",
        "update_routes",
        "set_peer",
    ]


def test_a_changed_import_policy_is_one_call_and_resets_nothing() -> None:
    applied = Applied().set_up()
    applied.router()
    peers = applied.cluster.intent.peers
    (row,) = peers.all(applied.cluster.db.snapshot())
    with applied.cluster.db.write(peers) as txn:
        peers.upsert(txn, msgspec.structs.replace(row, accept=None))
    applied.runner.run(1.0)
    assert applied.speaker.take() == [("set_peer", "i", "p")]
    config = applied.speaker.peer_config("i", "p")
    assert isinstance(config, PeerConfig)
    assert config.import_ == "all"
    assert [status.flaps for status in applied.speaker.peers()] == [0]


def test_f52_a_password_comes_from_the_secret_and_follows_its_rotation() -> None:
    applied = Applied()
    applied.cluster.put(kinds.PEER_CONFIG, peer_config(authSecretRef="key"))
    applied.run()

    def config() -> PeerConfig:
        found = applied.speaker.peer_config("i", "p")
        assert isinstance(found, PeerConfig)
        return found

    assert config().disabled_reason == "Secret kube-system/key does not exist, or may not be read"
    for number, password in enumerate(("one", "two\n")):
        meta = {"name": "key", "namespace": "kube-system"}
        applied.cluster.put(kinds.SECRET, {"metadata": meta, "stringData": {"password": password}})
        applied.run(1.0 + number)
        assert config().disabled_reason is None
        known = config().password
        assert known is not None
        assert known.reveal() == password.strip().encode()
    applied.cluster.delete(kinds.SECRET, "key", "kube-system")
    applied.run(9.0)
    assert config().disabled_reason == "Secret kube-system/key does not exist, or may not be read"
    assert config().password is None


def test_a_changed_router_id_recreates_the_instance_with_its_peers_and_routes() -> None:
    applied = Applied().set_up()
    router = applied.router()
    spec = {"bgpInstances": [{"name": "i", "routerID": "5.6.7.8"}]}
    applied.cluster.put(
        kinds.NODE_CONFIG_OVERRIDE, {"metadata": {"name": "test-node"}, "spec": spec}
    )
    applied.run(1.0)
    assert [call[0] for call in applied.speaker.take()] == ["set_instance"]
    applied.network.run(30)
    assert router.status().peer_router_id == "5.6.7.8"
    assert set(router.received(IPV4_UNICAST)) == {POD, WEB}


def test_a_peer_with_another_name_and_the_same_address_replaces_the_former_one() -> None:
    applied = Applied().set_up()
    applied.router()
    applied.cluster.put(
        kinds.CLUSTER_CONFIG, cluster_config(peers=[peer("renamed", peerAddress=ROUTER)])
    )
    applied.run(1.0)
    assert [call for call in applied.speaker.take() if "peer" in call[0]] == [
        ("remove_peer", "i", "p"),
        ("set_peer", "i", "renamed"),
    ]


def test_f14_ten_thousand_new_services_are_a_few_calls() -> None:
    """Takes longer than others: the intent of ten thousand Services is compiled."""
    count = 10_000
    applied = Applied().set_up()
    table = applied.cluster.resources.services
    with applied.cluster.db.write(table) as txn:
        for i in range(count):
            value = service(f"s{i}", f"10.1.{i >> 8}.{i & 255}")
            table.upsert(txn, kinds.SERVICE.decode(value))
    assert applied.cluster.run().objects == count
    applied.runner.run(1.0)
    calls = applied.speaker.take()
    assert {name for name, *_ in calls} == {"update_routes"}
    assert [len(changed) for _, _, changed in calls] == [SLICE_PARTS] * (count // SLICE_PARTS)
    assert all(all(changed.values()) for _, _, changed in calls)


def test_reports_list_the_reconcilers_in_order_with_their_last_run() -> None:
    applied = Applied()
    applied.speaker.failing = {"p"}
    applied.run()
    reports = applied.runner.reports()
    assert [(report.description.name, report.objects, report.errors) for report in reports] == [
        ("instance", 1, 0),
        ("route-set", 1, 0),
        ("import-policy", 0, 0),
        ("peer", 1, 1),
    ]
    assert [report.description.order for report in reports] == [10, 20, 30, 40]
    assert {report.last_run for report in reports} == {1e9}
    assert all(report.seconds > 0 for report in reports)
    assert {report.description.target for report in reports} == {"speaker"}
