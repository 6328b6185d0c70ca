"""A defect of one dialect: its last statuses are kept, and others go on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reconcilers import dialect as api
from reconcilers.cilium.dialect import CiliumDialect
from reconcilers.model import PendingDialect
from reconcilers.report.status_rows import StatusRows
from resources.core.kinds import SERVICE
from statedb import Snapshot
from tests.dialects.beacon.dialect import BeaconDialect, statuses
from tests.dialects.beacon.kinds import BEACON
from tests.dialects.objects import beacon, service
from tests.reconcilers.build import NODE, usual


def reported(
    dialect: BeaconDialect, snapshot: Snapshot, context: api.ReportContext
) -> Iterator[api.ObjectStatus]:
    yield from statuses(dialect, snapshot, context)
    if Defective.broken:
        raise KeyError("on purpose")


class Defective(BeaconDialect):
    """A Beacon dialect that fails while `broken` is set."""

    broken = False
    extensions = (api.ReportedStatuses((BEACON,), reported),)


@pytest.fixture(autouse=True)
def repaired() -> Iterator[None]:
    yield
    Defective.broken = False


def test_the_statuses_of_other_dialects_follow_while_one_cannot_report() -> None:
    cluster = usual(also=[Defective])
    cluster.put(BEACON, beacon(NODE))
    cluster.run()
    reporting = StatusRows(cluster.db, cluster.intent, cluster.dialects, NODE, lambda: ())

    def stored() -> dict[str, tuple[str, object]]:
        rows = reporting.table.all(cluster.db.snapshot())
        return {row.object.kind: (row.dialect, row.status) for row in rows}

    reporting.run(1.0)
    before = stored()
    assert {name for name, _ in before.values()} == {CiliumDialect.name, "beacon"}
    Defective.broken = True
    cluster.put(BEACON, beacon(NODE, peerAddress="192.0.2.11"))
    cluster.put(SERVICE, service("web", "198.51.100.9"))
    cluster.run()
    reporting.run(2.0)
    assert stored().keys() == before.keys()
    assert stored()["Beacon"] == before["Beacon"]
    assert list(reporting.failures) == ["beacon"]
    Defective.broken = False
    reporting.run(3.0)
    assert not reporting.failures


def test_a_dialect_that_has_not_been_read_reports_nothing_of_what_it_reported_before() -> None:
    cluster = usual(also=[Defective])
    cluster.put(BEACON, beacon(NODE))
    cluster.run()
    pending = cluster.intent.pending_dialects
    with cluster.db.write(pending) as txn:
        pending.upsert(txn, PendingDialect("beacon", ("beacons",)))
    reporting = StatusRows(cluster.db, cluster.intent, cluster.dialects, NODE, lambda: ())
    reporting.run(1.0)
    rows = reporting.table.all(cluster.db.snapshot())
    assert {row.dialect for row in rows} == {CiliumDialect.name}
