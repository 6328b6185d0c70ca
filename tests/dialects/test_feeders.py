"""Two dialects feed a third one: what is in effect, what is generated twice, and their conditions."""

from __future__ import annotations

from tests.dialects.beacon.dialect import BeaconDialect
from tests.dialects.beacon.kinds import BEACON
from tests.dialects.buoy.dialect import GENERATED, BuoyDialect
from tests.dialects.buoy.kinds import BUOY
from tests.dialects.lighthouse.dialect import LighthouseDialect
from tests.dialects.lighthouse.kinds import LIGHTHOUSE
from tests.dialects.objects import beacon, buoy, lighthouse
from tests.reconcilers.build import NODE, Cluster
from tests.support import kinds


def cluster() -> Cluster:
    made = Cluster(also=[BeaconDialect, LighthouseDialect, BuoyDialect])
    made.put(kinds.NODE, {"metadata": {"name": NODE}})
    return made


def peers(it: Cluster) -> set[str | None]:
    return {row.address for row in it.intent.peers.all(it.db.snapshot())}


def problems(it: Cluster) -> list[tuple[str, str, str]]:
    """Return the dialect, the first object and the text of each problem."""
    rows = sorted(it.intent.problems.all(it.db.snapshot()))
    return [(row.dialect, str(row.objects[0]), row.message) for row in rows]


def test_the_objects_of_two_feeders_are_one_order_and_the_oldest_one_is_in_effect() -> None:
    it = cluster()
    it.put(LIGHTHOUSE, lighthouse("coast", NODE, peerAddress="192.0.2.20"))
    it.put(BUOY, buoy("bay", NODE, "2026-01-02T00:00:00Z", peerAddress="192.0.2.30"))
    it.run()
    assert peers(it) == {"192.0.2.20"}
    assert problems(it) == [("buoy", "Buoy/bay", "a node has one Beacon")]
    it.delete(LIGHTHOUSE, "coast")
    it.run()
    assert peers(it) == {"192.0.2.30"}
    assert problems(it) == []


def test_a_stored_object_that_another_program_has_generated_is_replaced() -> None:
    it = cluster()
    it.put(BEACON, beacon(NODE, peerAddress="192.0.2.30"))
    it.run()
    assert peers(it) == {"192.0.2.30"}
    it.put(BUOY, buoy("bay", NODE, peerAddress="192.0.2.31"))
    it.run()
    assert peers(it) == {"192.0.2.31"}
    assert problems(it) == [("buoy", f"Beacon/{NODE}", GENERATED)]


def test_the_operators_part_of_a_feeder_reports_its_objects() -> None:
    it = cluster()
    it.put(BUOY, buoy("bay", NODE, "2026-01-02T00:00:00Z"))
    it.put(BUOY, buoy("cape", NODE, "2026-01-01T00:00:00Z"))
    it.put(BUOY, buoy("reef", "another-node"))
    it.run()
    conditions = {c["name"]: c["status"] for c in it.render()["conditions"] if c["kind"] == "Buoy"}
    assert conditions == {"bay": "False", "cape": "True", "reef": "False"}
