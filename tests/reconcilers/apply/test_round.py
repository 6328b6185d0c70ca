"""Apply rounds: the order of calls, only differences, errors and retries, one instance at a time."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from reconcilers.apply import ApplyRound
from resources import kinds
from speaker.api import DynamicPeerConfig, InstanceConfig, PeerConfig
from speaker.api.port import RouteChanges
from speaker.engine import Engine
from speaker.engine.configuration import ConfigurationReads
from tests.reconcilers.build import (
    Cluster,
    advertisement,
    cluster_config,
    peer,
    peer_config,
    service,
    usual,
)


class Recorder(ConfigurationReads):
    """A speaker that writes down what it is told, and fails where it is asked to."""

    def __init__(self) -> None:
        super().__init__(Engine(random.Random(1)))  # noqa: S311  jitter
        self.calls: list[tuple[Any, ...]] = []
        self.failing: set[str] = set()
        self.interrupt = False
        self.peers_told: dict[str, PeerConfig] = {}

    def _call(self, name: str, *arguments: Any) -> None:  # noqa: ANN401
        if self.interrupt:
            raise KeyboardInterrupt
        if arguments and arguments[-1] in self.failing:
            raise OSError("no")
        self.calls.append((name, *arguments))

    def take(self) -> list[tuple[Any, ...]]:
        """Give the calls so far, and forget them."""
        calls, self.calls = self.calls, []
        return calls

    def set_instance(self, config: InstanceConfig) -> None:
        self._call("set_instance", config.name)

    def remove_instance(self, name: str) -> None:
        self._call("remove_instance", name)

    def set_peer(self, instance: str, config: PeerConfig | DynamicPeerConfig) -> None:
        self._call("set_peer", instance, config.name)
        assert isinstance(config, PeerConfig)
        self.peers_told[config.name] = config

    def remove_peer(self, instance: str, name: str) -> None:
        self._call("remove_peer", instance, name)

    def update_routes(self, instance: str, route_set: str, changes: RouteChanges) -> None:
        del route_set
        for family, rows in changes.items():
            told = tuple((nlri.hex(), value is not None) for nlri, value in rows.items())
            self._call("update_routes", instance, str(family), told)

    def remove_route_set(self, instance: str, route_set: str) -> None:
        del route_set
        self._call("remove_route_set", instance)

    def update_local(self, instance: str, changes: RouteChanges) -> None:
        raise AssertionError((instance, changes))

    def peers(self) -> Sequence[Any]:
        return []

    def instances(self) -> Sequence[Any]:
        return []

    def routes_available(self, *_: Any) -> Iterator[Any]:  # noqa: ANN401
        return iter(())

    def routes_advertised(self, *_: Any) -> Iterator[Any]:  # noqa: ANN401
        return iter(())

    def routes_received(self, *_: Any) -> Iterator[Any]:  # noqa: ANN401
        return iter(())


def started() -> tuple[Cluster, Recorder, ApplyRound]:
    """Make a cluster with one Service, and apply it to a recorder; nothing has run yet."""
    cluster = usual()
    cluster.put(kinds.SERVICE, service("web", "198.51.100.1"))
    recorder = Recorder()
    apply = ApplyRound(
        cluster.db,
        cluster.intent,
        cluster.resources.secrets,
        recorder,
        random.Random(1),  # noqa: S311  jitter
    )
    return cluster, recorder, apply


def applied() -> tuple[Cluster, Recorder, ApplyRound]:
    """Make the same, all of it applied; what the recorder has is what comes after."""
    cluster, recorder, apply = started()
    cluster.run()
    apply.run(0.0)
    recorder.take()
    return cluster, recorder, apply


POD = "180af400"
WEB = "20c6336401"


def test_instance_then_pod_networks_then_services_then_peers() -> None:
    cluster, recorder, apply = started()
    cluster.run()
    apply.run(0.0)
    assert recorder.take() == [
        ("set_instance", "i"),
        ("update_routes", "i", "ipv4-unicast", ((POD, True),)),
        ("update_routes", "i", "ipv4-unicast", ((WEB, True),)),
        ("set_peer", "i", "p"),
    ]


def test_a_round_without_differences_calls_nothing() -> None:
    _, recorder, apply = applied()
    assert not apply.run(1.0).changed
    assert recorder.take() == []


def test_a_changed_service_is_one_call_and_touches_no_peer() -> None:
    cluster, recorder, apply = applied()
    cluster.put(kinds.SERVICE, service("new", "198.51.100.2"))
    cluster.run()
    apply.run(1.0)
    assert recorder.take() == [("update_routes", "i", "ipv4-unicast", (("20c6336402", True),))]
    cluster.delete(kinds.SERVICE, "new", "default")
    cluster.run()
    apply.run(2.0)
    assert recorder.take() == [("update_routes", "i", "ipv4-unicast", (("20c6336402", False),))]


def test_a_changed_advertisement_fills_the_new_set_before_it_moves_the_peers() -> None:
    cluster, recorder, apply = applied()
    cluster.put(kinds.ADVERTISEMENT, advertisement(attributes={"localPreference": 7}))
    cluster.run()
    apply.run(1.0)
    assert [call[0] for call in recorder.take()] == [
        "update_routes",
        "update_routes",
        "set_peer",
        "remove_route_set",
    ]


def test_f53_what_has_gone_is_taken_away_in_the_opposite_order() -> None:
    cluster, recorder, apply = applied()
    cluster.delete(kinds.CLUSTER_CONFIG, "c")
    cluster.run()
    apply.run(1.0)
    assert [call[0] for call in recorder.take()] == [
        "remove_peer",
        "remove_route_set",
        "remove_instance",
    ]
    assert list(cluster.intent.reconcile_statuses.all(cluster.db.snapshot())) == []


def test_an_error_is_an_outcome_and_is_tried_again_later() -> None:
    cluster, recorder, apply = started()
    cluster.run()
    recorder.failing = {"p"}
    summary = apply.run(0.0)
    assert summary.errors == 1
    outcome = cluster.intent.reconcile_statuses.get(cluster.db.snapshot(), ("neighbor", "i/p"))
    assert outcome is not None
    assert (outcome.error, outcome.attempts) == ("OSError: no", 1)
    assert summary.retry_at is not None
    assert 0.0 < summary.retry_at < 1.0
    recorder.take()
    assert not apply.run(summary.retry_at - 0.01).changed
    recorder.failing = set()
    assert apply.run(summary.retry_at).errors == 0
    assert recorder.take() == [("set_peer", "i", "p")]


def test_routes_that_could_not_be_told_are_told_whole_the_next_time() -> None:
    cluster, recorder, apply = applied()
    cluster.put(kinds.SERVICE, service("new", "198.51.100.2"))
    cluster.run()
    recorder.failing = {(("20c6336402", True),)}  # type: ignore[arg-type]
    summary = apply.run(1.0)
    recorder.failing = set()
    assert summary.retry_at is not None
    apply.run(summary.retry_at)
    told = {entry for call in recorder.take() if call[0] == "update_routes" for entry in call[3]}
    assert told == {(POD, True), (WEB, True), ("20c6336402", True)}


def test_a_round_that_is_broken_off_owes_everything() -> None:
    cluster, recorder, apply = started()
    cluster.run()
    apply.run(0.0)
    cluster.put(kinds.SERVICE, service("new", "198.51.100.2"))
    cluster.run()
    recorder.interrupt = True
    with pytest.raises(KeyboardInterrupt):
        apply.run(1.0)
    recorder.interrupt = False
    recorder.take()
    apply.run(2.0)
    told = {entry for call in recorder.take() if call[0] == "update_routes" for entry in call[3]}
    assert told == {(POD, True), (WEB, True), ("20c6336402", True)}


def test_one_instance_that_fails_stops_no_other() -> None:
    cluster, recorder, apply = started()
    value = cluster_config()
    value["spec"]["bgpInstances"].append(
        {"name": "j", "localASN": 65002, "peers": [peer("q", peerAddress="192.0.2.8")]}
    )
    cluster.put(kinds.CLUSTER_CONFIG, value)
    cluster.run()
    recorder.failing = {"i"}
    assert apply.run(0.0).errors == 1
    assert [call[:2] for call in recorder.take() if call[0].startswith("set")] == [
        ("set_instance", "j"),
        ("set_peer", "j"),
    ]


def test_f52_a_password_is_taken_from_the_secret_and_its_rotation_is_told() -> None:
    cluster, recorder, apply = started()
    cluster.put(kinds.PEER_CONFIG, peer_config(authSecretRef="key"))
    cluster.run()
    apply.run(0.0)
    assert recorder.peers_told["p"].disabled_reason == "no Secret kube-system/key"
    for number, password in enumerate(("one", "two\n")):
        meta = {"name": "key", "namespace": "kube-system"}
        cluster.put(kinds.SECRET, {"metadata": meta, "stringData": {"password": password}})
        cluster.run()
        apply.run(1.0 + number)
        told = recorder.peers_told["p"]
        assert told.disabled_reason is None
        assert told.password is not None
        assert told.password.reveal() == password.strip().encode()
    cluster.delete(kinds.SECRET, "key", "kube-system")
    cluster.run()
    apply.run(9.0)
    assert recorder.peers_told["p"].disabled_reason == "no Secret kube-system/key"
    assert recorder.peers_told["p"].password is None


def test_another_router_id_is_another_router_with_everything_anew() -> None:
    cluster, recorder, apply = applied()
    spec = {"bgpInstances": [{"name": "i", "routerID": "5.6.7.8"}]}
    cluster.put(kinds.NODE_CONFIG_OVERRIDE, {"metadata": {"name": "test-node"}, "spec": spec})
    cluster.run()
    apply.run(1.0)
    assert [call[0] for call in recorder.take()] == [
        "set_instance",
        "update_routes",
        "update_routes",
        "set_peer",
    ]


def test_f14_ten_thousand_services_that_come_at_once_are_told_in_one_call() -> None:
    """Its name says why it takes longer than others."""
    count = 10_000
    cluster, recorder, apply = applied()
    table = cluster.resources.services
    with cluster.db.write(table) as txn:
        for i in range(count):
            value = service(f"s{i}", f"10.1.{i >> 8}.{i & 255}")
            table.upsert(txn, kinds.SERVICE.decode(value))
    assert cluster.run().services == count
    apply.run(1.0)
    ((name, _, _, told),) = recorder.take()
    assert name == "update_routes"
    assert len(told) == count
    assert all(announced for _, announced in told)
