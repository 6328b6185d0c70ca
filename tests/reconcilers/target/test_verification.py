"""Full verification: the speaker is changed behind the reconcilers' back, found out, and repaired."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from reconcilers.model import Attributes, Route
from reconcilers.target import Drift, Verification
from reconcilers.target.verification import PIECE_PARTS
from speaker.api import InstanceConfig, PeerConfig, RouteAttributes
from speaker.engine.inputs import (
    Input,
    RemoveInstance,
    RemovePeer,
    RemoveRouteSet,
    SetInstance,
    SetPeer,
    UpdateRoutes,
)
from speaker.nlri import IPV4_UNICAST, prefix_to_wire
from tests.reconcilers.apply.applied_cluster import Applied
from tests.reconcilers.build import service
from tests.reconcilers.target.failures import failures
from tests.support import kinds

POD, WEB, NEW = "10.244.0.0/24", "198.51.100.1/32", "198.51.100.2/32"


def verify(applied: Applied) -> list[Drift]:
    """Run a full verification."""
    slices = Verification(applied.runner, now=lambda: 10.0).slices()
    return [drift for found in slices for drift in found]


def wire(prefix: str) -> bytes:
    """Return an IPv4 prefix's wire bytes."""
    return prefix_to_wire(prefix)[1]


def peer_of(applied: Applied) -> PeerConfig:
    """Return the peer's configuration in the speaker."""
    config = applied.speaker.peer_config("i", "p")
    assert isinstance(config, PeerConfig)
    return config


def remove_peer(applied: Applied) -> Input:
    return RemovePeer("i", "p")


def change_peer(applied: Applied) -> Input:
    return SetPeer("i", msgspec.structs.replace(peer_of(applied), hold_time=30, keepalive_time=10))


def change_import(applied: Applied) -> Input:
    return SetPeer("i", msgspec.structs.replace(peer_of(applied), import_="all"))


def add_peer(applied: Applied) -> Input:
    return SetPeer("i", PeerConfig(name="stray", address="192.0.2.77", peer_asn=65077))


def withdraw_route(applied: Applied) -> Input:
    return UpdateRoutes("i", applied.route_set(), {IPV4_UNICAST: {wire(WEB): None}})


def add_route(applied: Applied) -> Input:
    changes = {IPV4_UNICAST: {wire(NEW): RouteAttributes()}}
    return UpdateRoutes("i", applied.route_set(), changes)


def change_attributes(applied: Applied) -> Input:
    changes = {IPV4_UNICAST: {wire(WEB): RouteAttributes(communities=(7,))}}
    return UpdateRoutes("i", applied.route_set(), changes)


def remove_set(applied: Applied) -> Input:
    return RemoveRouteSet("i", applied.route_set())


def add_set(applied: Applied) -> Input:
    return UpdateRoutes("i", "stray", {IPV4_UNICAST: {wire(NEW): RouteAttributes()}})


def add_large_set(applied: Applied) -> Input:
    prefixes = [b"\x20" + (0x0C000000 + number).to_bytes(4, "big") for number in range(100_000)]
    changes = {IPV4_UNICAST: dict.fromkeys(prefixes, RouteAttributes())}
    return UpdateRoutes("i", "stray", changes)


def remove_instance(applied: Applied) -> Input:
    return RemoveInstance("i")


def change_instance(applied: Applied) -> Input:
    return SetInstance(InstanceConfig(name="i", local_asn=65001, router_id="9.9.9.9"))


def add_instance(applied: Applied) -> Input:
    return SetInstance(InstanceConfig(name="stray", local_asn=65001, router_id="9.9.9.9"))


def everything(applied: Applied) -> dict[str, Any]:
    """Return all that the speaker holds."""
    speaker = applied.speaker
    return {
        name: (
            config,
            speaker.peer_configs(name),
            {
                route_set: speaker.routes_of_set(name, route_set, prefixes)
                for route_set in speaker.route_sets(name)
                if (prefixes := speaker.route_set_prefixes(name, route_set)) is not None
            },
        )
        for name, config in speaker.instance_configs().items()
    }


@pytest.mark.parametrize(
    ("change", "drifted"),
    [
        (remove_peer, [("peer", "i/p", (1, 0, 0), ())]),
        (change_peer, [("peer", "i/p", (0, 0, 1), ("hold_time", "keepalive_time"))]),
        (change_import, [("import-policy", "i/p", (0, 0, 1), ())]),
        (add_peer, [("peer", "i/stray", (0, 1, 0), ())]),
        (withdraw_route, [("route-set", "i/{set}", (1, 0, 0), (WEB,))]),
        (add_route, [("route-set", "i/{set}", (0, 1, 0), (NEW,))]),
        (change_attributes, [("route-set", "i/{set}", (0, 0, 1), (WEB,))]),
        (remove_set, [("route-set", "i/{set}", (2, 0, 0), (POD, WEB))]),
        (add_set, [("route-set", "i/stray", (0, 1, 0), ())]),
        (
            remove_instance,
            [
                ("instance", "i", (1, 0, 0), ()),
                ("route-set", "i/{set}", (2, 0, 0), (POD, WEB)),
                ("peer", "i/p", (1, 0, 0), ()),
            ],
        ),
        (change_instance, [("instance", "i", (0, 0, 1), ("router_id",))]),
        (add_instance, [("instance", "stray", (0, 1, 0), ())]),
    ],
)
def test_a_change_behind_the_reconcilers_back_is_found_and_repaired(
    change: Callable[[Applied], Input], drifted: list[tuple[str, str, tuple[int, ...], tuple[str]]]
) -> None:
    applied = Applied().set_up()
    intended, route_set = everything(applied), applied.route_set()
    applied.speaker.host.give(change(applied))
    assert everything(applied) != intended
    found = [
        (d.reconciler, d.object, (d.missing, d.unexpected, d.different), d.details, d.error)
        for d in verify(applied)
    ]
    assert found == [
        (reconciler, name.format(set=route_set), counts, details, None)
        for reconciler, name, counts, details in drifted
    ]
    assert everything(applied) == intended
    assert verify(applied) == []
    reports = {report.description.name: report for report in applied.runner.reports()}
    for reconciler, _, counts, _ in drifted:
        assert reports[reconciler].drifted == sum(counts)


def test_the_router_receives_a_repaired_route_again() -> None:
    applied = Applied().set_up()
    router = applied.router()
    applied.speaker.host.give(remove_set(applied))
    applied.network.run(1)
    assert router.received(IPV4_UNICAST) == {}
    verify(applied)
    applied.network.run(1)
    assert set(router.received(IPV4_UNICAST)) == {POD, WEB}
    assert [status.flaps for status in applied.speaker.peers()] == [0]


def test_without_drift_nothing_is_called() -> None:
    applied = Applied().set_up()
    assert verify(applied) == []
    assert applied.speaker.take() == []


def test_nothing_is_verified_before_the_first_round() -> None:
    applied = Applied()
    applied.cluster.run()
    assert verify(applied) == []
    assert applied.speaker.take() == []


def test_a_failed_repair_is_reported_and_left_to_the_rounds() -> None:
    applied = Applied().set_up()
    applied.speaker.host.give(remove_peer(applied))
    applied.speaker.failing = {"p"}
    (drift,) = verify(applied)
    assert (drift.object, drift.error) == ("i/p", "OSError: no")
    # It is dirty now, so that it is no drift any more.
    assert verify(applied) == []
    applied.speaker.failing = set()
    summary = applied.runner.run(10.0)
    assert summary.retry_at is not None
    applied.runner.run(summary.retry_at)
    assert failures(applied.runner) == 0
    assert applied.speaker.peer_config("i", "p") is not None


@pytest.mark.parametrize("method", ["wanted", "possible", "actual", "desired", "pieces"])
def test_an_object_that_cannot_be_read_is_reported_and_others_are_verified(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied = Applied().set_up()
    applied.speaker.host.give(remove_peer(applied))
    with monkeypatch.context() as patch:
        patch.setattr(applied.runner.queues[1].reconciler, method, unreadable)
        drifts = {drift.reconciler: drift for drift in verify(applied)}
    broken = drifts.pop("route-set")
    assert (broken.error, broken.parts) == ("OSError: unreadable", 0)
    assert (drifts["peer"].error, drifts["peer"].missing) == (None, 1)
    assert len(applied.speaker.peer_configs("i")) == 1
    # The rounds retry it.
    summary = applied.runner.run(10.0)
    assert (failures(applied.runner), summary.retry_at is not None) == (1, True)
    applied.runner.run(summary.retry_at or 0.0)
    assert failures(applied.runner) == 0
    assert verify(applied) == []


@pytest.mark.parametrize("method", ["wanted", "actual", "still_used", "pieces"])
def test_an_unexpected_object_that_cannot_be_read_is_reported_and_others_are_deleted(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied = Applied().set_up()
    for change in (add_peer, add_set):
        applied.speaker.host.give(change(applied))
    route_sets = applied.runner.queues[1].reconciler
    read = getattr(route_sets, method)

    def failing(*arguments: Any) -> Any:  # noqa: ANN401
        if "stray" in str(arguments):
            raise OSError("unreadable")
        return read(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(route_sets, method, failing)
        found = {drift.reconciler: drift.error for drift in verify(applied)}
    assert found == {"peer": None, "route-set": "OSError: unreadable"}
    assert "stray" not in applied.speaker.peer_configs("i")
    assert "stray" in applied.speaker.route_sets("i")
    summary = applied.runner.run(10.0)
    applied.runner.run(summary.retry_at or 0.0)
    assert failures(applied.runner) == 0
    assert "stray" not in applied.speaker.route_sets("i")


@pytest.mark.parametrize("method", ["objects", "actual_objects"])
def test_objects_that_cannot_be_listed_are_reported_and_other_reconcilers_are_verified(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied = Applied().set_up()
    for change in (remove_peer, add_set):
        applied.speaker.host.give(change(applied))
    with monkeypatch.context() as patch:
        patch.setattr(applied.runner.queues[1].reconciler, method, unreadable)
        drifts = {(drift.reconciler, drift.object): drift for drift in verify(applied)}
    broken = drifts["route-set", "*"]
    assert (broken.error, broken.parts) == ("OSError: unreadable", 0)
    assert (drifts["peer", "i/p"].error, drifts["peer", "i/p"].missing) == (None, 1)
    assert len(applied.speaker.peer_configs("i")) == 1
    # What could not be listed is left to the rounds, which list everything.
    assert [drift for drift in verify(applied) if drift.reconciler == "route-set"] == []
    applied.runner.run(10.0)
    assert failures(applied.runner) == 0
    assert "stray" not in applied.speaker.route_sets("i")
    assert verify(applied) == []


def unreadable(*_: object) -> Any:  # noqa: ANN401
    """Fail as a read of a target does."""
    raise OSError("unreadable")


def test_a_password_that_differs_is_named_by_its_field_alone() -> None:
    applied = Applied()
    meta = {"name": "key", "namespace": "kube-system"}
    secret = {"metadata": meta, "stringData": {"password": "hunter2"}}
    applied.cluster.put(kinds.SECRET, secret)
    from tests.reconcilers.build import peer_config

    applied.cluster.put(kinds.PEER_CONFIG, peer_config(authSecretRef="key"))
    applied.set_up()
    changed = msgspec.structs.replace(peer_of(applied), password=None)
    applied.speaker.host.give(SetPeer("i", changed))
    (drift,) = verify(applied)
    assert drift.details == ("password",)
    assert "hunter2" not in str(drift)


def with_routes(count: int) -> Applied:
    """Apply a route set of that many routes, without compiling as many Services."""
    applied = Applied().set_up()
    route_set = applied.route_set()
    routes = applied.cluster.intent.routes
    with applied.cluster.db.write(routes) as txn:
        for number in range(count):
            nlri = b"\x20" + (0x0A000000 + number).to_bytes(4, "big")
            row = Route(route_set, IPV4_UNICAST, nlri, Attributes(), ())
            routes.upsert(txn, row)
    applied.runner.run(1.0)
    applied.speaker.take()
    return applied


class Work:
    """A clock that runs by the work that is done: a microsecond per prefix that is looked up."""

    def __init__(self, applied: Applied) -> None:
        self.done = 0
        self._read = applied.speaker.routes_of_set
        applied.speaker.routes_of_set = self._count  # type: ignore[method-assign]

    def _count(self, instance: str, route_set: str, prefixes: Any) -> Any:  # noqa: ANN401
        self.done += sum(map(len, prefixes.values()))
        return self._read(instance, route_set, prefixes)

    def clock(self) -> float:
        """Return seconds."""
        return self.done / 1e6


def test_a_slice_of_twenty_thousand_routes_is_bounded() -> None:
    count = 20_000
    applied = with_routes(count)
    work = Work(applied)
    for damage in (None, withdraw_route, remove_set, add_large_set):
        if damage is not None:
            applied.speaker.host.give(damage(applied))
        slices, before = [], work.done
        for _ in Verification(applied.runner, clock=work.clock).slices():
            slices.append(work.done - before)
            before = work.done
        # 5 ms of a slice are 5,000 lookups of this clock; a piece may come on top.
        assert max(slices) <= 5_000 + PIECE_PARTS
        assert sum(slices) >= count
        # One call of the speaker never carries more than a piece.
        assert max((len(call[2]) for call in applied.speaker.take()), default=0) <= PIECE_PARTS
        assert len(applied.held()) == count + 2


def test_a_change_between_two_slices_is_no_drift() -> None:
    applied = with_routes(2_000)
    cluster, routes, route_set = applied.cluster, applied.cluster.intent.routes, applied.route_set()
    ticks = iter(range(1_000_000))
    verification = Verification(applied.runner, clock=lambda: float(next(ticks)))
    found, number = [], 0
    for drifts in verification.slices():
        found += drifts
        # Each piece is a slice. Routes that were compared, and routes that were not, come and go.
        with cluster.db.write(routes) as txn:
            for offset in (number, 1_999 - number):
                nlri = b"\x20" + (0x0A000000 + offset).to_bytes(4, "big")
                routes.delete(txn, (route_set, IPV4_UNICAST, nlri))
                other = b"\x20" + (0x0B000000 + offset).to_bytes(4, "big")
                row = Route(route_set, IPV4_UNICAST, other, Attributes(), ())
                routes.upsert(txn, row)
        if number % 2:
            applied.runner.run(2.0)
        number += 1
    assert number > 10
    assert found == []
    applied.runner.run(3.0)
    assert verify(applied) == []


def test_objects_that_go_between_two_slices_are_no_drift() -> None:
    applied = with_routes(1_000)
    ticks = iter(range(1_000_000))
    found = []
    for number, drifts in enumerate(
        Verification(applied.runner, clock=lambda: float(next(ticks))).slices()
    ):
        found += drifts
        if number == 3:
            applied.cluster.delete(kinds.CLUSTER_CONFIG, "c")
            applied.run(2.0)
    assert found == []
    assert applied.speaker.instance_configs() == {}


def test_a_commit_that_no_round_has_applied_yet_is_no_drift() -> None:
    applied = Applied().set_up()
    applied.cluster.put(kinds.SERVICE, service("new", "198.51.100.2"))
    applied.cluster.run()
    assert verify(applied) == []
    assert applied.speaker.take() == []
