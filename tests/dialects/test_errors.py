"""A defect of one dialect: its last statuses are kept, and others go on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reconcilers import dialect as api
from reconcilers.cilium.dialect import CiliumDialect
from reconcilers.report.object_statuses import ObjectStatuses
from resources.core.kinds import SERVICE
from statedb import Snapshot
from tests.dialects.beacon.dialect import BeaconDialect
from tests.dialects.beacon.kinds import BEACON
from tests.dialects.objects import beacon, service
from tests.reconcilers.build import NODE, usual


class Defective(BeaconDialect):
    """A Beacon dialect that fails while `broken` is set."""

    broken = False

    def statuses(
        self, snapshot: Snapshot, context: api.ReportContext
    ) -> Iterator[api.ObjectStatus]:
        yield from super().statuses(snapshot, context)
        if self.broken:
            raise KeyError("on purpose")


@pytest.fixture(autouse=True)
def repaired() -> Iterator[None]:
    yield
    Defective.broken = False


def test_the_statuses_of_other_dialects_follow_while_one_cannot_report() -> None:
    cluster = usual(also=[Defective])
    cluster.put(BEACON, beacon(NODE))
    cluster.run()
    statuses = ObjectStatuses(cluster.db, cluster.intent, cluster.dialects, NODE, lambda: ())

    def reported() -> dict[str, tuple[str, object]]:
        rows = statuses.table.all(cluster.db.snapshot())
        return {row.object.kind: (row.dialect, row.status) for row in rows}

    statuses.run(1.0)
    before = reported()
    assert {name for name, _ in before.values()} == {CiliumDialect.name, "beacon"}
    Defective.broken = True
    cluster.put(BEACON, beacon(NODE, peerAddress="192.0.2.11"))
    cluster.put(SERVICE, service("web", "198.51.100.9"))
    cluster.run()
    statuses.run(2.0)
    assert reported().keys() == before.keys()
    assert reported()["Beacon"] == before["Beacon"]
    assert list(statuses.failures) == ["beacon"]
    Defective.broken = False
    statuses.run(3.0)
    assert not statuses.failures
