"""A dialect whose kinds cannot be read does not stop the others: in virtual time, with two dialects."""

from __future__ import annotations

from typing import Any

import pytest

from reconcilers.dialect import Dialect, Feeding
from reconcilers.intent.arbitrate import Owners
from reconcilers.intent.dialect_readings import WAIT_SECONDS, DialectReadings
from reconcilers.model import PendingDialect, SessionAddress
from resources.kind import Kind
from resources.tables import Tables
from statedb import Database, Initializer
from tests.dialects.beacon.dialect import BeaconDialect
from tests.dialects.beacon.kinds import BEACON
from tests.dialects.objects import beacon
from tests.reconcilers.build import NODE, usual
from tests.support import kinds

CILIUMS, BEACONS = "192.0.2.9", "192.0.2.10"


def _written_by_the_operator() -> dict[str, Any]:
    cluster = usual()
    cluster.run()
    (written,) = cluster.render()["generated"]
    return dict(written)


class Start:
    """A cluster with Cilium's objects and a Beacon, as a source fills its tables."""

    def __init__(self, *unread: Kind[Any], owners: Owners | None = None) -> None:
        self.now = 100.0
        self.cluster = usual(
            also=[BeaconDialect], owners=owners, operator=False, clock=lambda: self.now
        )
        self.cluster.put(kinds.NODE_CONFIG, _written_by_the_operator())
        self.cluster.put(BEACON, beacon(NODE, peerAddress=BEACONS, peerASN=65010))
        self.unread: dict[Kind[Any], Initializer] = {
            kind: self.cluster.resources.of(kind).register_initializer("test") for kind in unread
        }

    def read(self, kind: Kind[Any]) -> None:
        """Let the source have read a kind."""
        with self.cluster.db.write(self.cluster.resources.of(kind)) as txn:
            self.unread.pop(kind)(txn)

    def after(self, seconds: float) -> set[str]:
        """Return the addresses of the peers after a run at a later time."""
        self.now += seconds
        self.cluster.run()
        peers = self.cluster.intent.peers.all(self.cluster.db.snapshot())
        return {str(peer.address) for peer in peers}

    @property
    def pending(self) -> list[PendingDialect]:
        """The dialects that are not compiled, while others are."""
        return list(self.cluster.intent.pending_dialects.all(self.cluster.db.snapshot()))


@pytest.mark.parametrize(
    ("unread", "read"),
    [(BEACON, CILIUMS), (kinds.ADVERTISEMENT, BEACONS)],
    ids=lambda one: str(one),
)
def test_a_dialect_that_has_been_read_waits_ten_seconds_for_another_dialect(
    unread: Kind[Any], read: str
) -> None:
    start = Start(unread)
    assert start.after(0) == set()
    summary = start.cluster.run()
    assert (summary.ready, summary.waiting_for, summary.retry) == (False, (unread.table,), 10.0)
    assert start.after(9.9) == set()
    assert start.after(0.1) == {read}
    summary = start.cluster.run()
    assert (summary.ready, summary.waiting_for, summary.retry) == (True, (unread.table,), None)
    (pending,) = start.pending
    assert pending.unread == (unread.table,)
    start.read(unread)
    assert start.after(1) == {CILIUMS, BEACONS}
    assert start.pending == []
    assert start.cluster.run().waiting_for == ()


def test_dialects_that_are_read_in_time_are_compiled_together() -> None:
    start = Start(BEACON)
    assert start.after(0) == set()
    start.read(BEACON)
    assert start.after(9) == {CILIUMS, BEACONS}


def test_a_dialect_that_is_read_after_the_wait_is_compiled_at_once() -> None:
    start = Start(BEACON, kinds.ADVERTISEMENT)
    assert start.after(0) == set()
    assert start.after(60) == set(), "no dialect has been read"
    start.read(BEACON)
    assert start.after(0) == set()
    assert start.after(WAIT_SECONDS) == {BEACONS}
    start.read(kinds.ADVERTISEMENT)
    assert start.after(0) == {CILIUMS, BEACONS}


def test_a_kind_of_all_dialects_is_waited_for() -> None:
    start = Start(BEACON, kinds.SERVICE)
    assert start.after(0) == set()
    assert start.after(3600) == set()
    start.read(kinds.SERVICE)
    assert start.after(0) == {CILIUMS}


def test_a_dialect_that_has_not_been_read_keeps_what_it_had_before_a_restart() -> None:
    owners = {("peer", "", CILIUMS): "beacon", ("peer", "", "192.0.2.77"): "beacon"}
    start = Start(BEACON, owners=owners)
    intent, db = start.cluster.intent, start.cluster.db
    address = SessionAddress("main", "router", "192.0.2.1")
    with db.write(intent.session_addresses) as txn:
        intent.session_addresses.upsert(txn, address)
    start.after(0)
    assert start.after(WAIT_SECONDS) == set(), "the address is the Beacon's"
    (problem,) = start.cluster.render()["problems"]
    assert problem["message"] == (
        "peer 'p' is not configured: its address 192.0.2.9 belongs to the peer of an object that has "
        "not been read yet (dialect beacon) until that peer is removed"
    )
    assert start.cluster.compiler.owners.items() >= owners.items()
    assert list(intent.session_addresses.all(db.snapshot())) == [address]
    start.read(BEACON)
    assert start.after(0) == {CILIUMS, BEACONS}, "the Beacon has another address now"
    assert ("peer", "", "192.0.2.77") not in start.cluster.compiler.owners


def test_the_name_of_an_instance_stays_with_a_dialect_that_has_not_been_read() -> None:
    start = Start(BEACON, owners={("instance", "", "i"): "beacon"})
    start.after(0)
    start.after(WAIT_SECONDS)
    (instance,) = start.cluster.intent.instances.all(start.cluster.db.snapshot())
    assert (instance.name, instance.configured_name) == ("cilium.i", "i")


# Dialects that feed each other


class _Fed(Dialect):
    name, title, kinds = "fed", "Fed", ()


class _Feeder(Dialect):
    name, title, kinds, feeds = "feeder", "Feeder", (), "fed"


class _Second(Dialect):
    name, title, kinds, feeds = "second", "Second", (), "fed"


class _Alone(Dialect):
    name, title, kinds, feeds = "alone", "Alone", (), "absent"


def test_dialects_that_feed_each_other_are_one_group_and_wait_for_each_other() -> None:
    db = Database()
    tables = Tables(db, [BEACON])
    feeding = Feeding(one(tables, one.options_type()) for one in (_Fed, _Feeder, _Second, _Alone))
    groups = set(feeding.groups)
    assert groups == {frozenset({"fed", "feeder", "second"}), frozenset({"alone"})}
    beacons = tables.of(BEACON)
    beacons.register_initializer("test")
    own = {name: frozenset({beacons} if name == "second" else ()) for name in feeding.dialects}
    now = 0.0
    readings = DialectReadings([beacons], own, feeding, lambda: now)
    assert not readings.reading(db.snapshot()).ready
    now = WAIT_SECONDS
    assert readings.reading(db.snapshot()).ready == {"alone"}
    assert readings.unread_of("fed") == readings.unread_of("second") == (beacons.name,)
    assert readings.unread_of("alone") == ()
