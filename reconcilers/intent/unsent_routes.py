"""Routes that are to be advertised on Established sessions and cannot be: their table and problems.

The intent does not know what a session carries: its families and next hops come with the OPEN of the
peer and with the interface of the connection. The speaker reports both, and each obstacle becomes a
problem of the peer's objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconcilers.intent_tables import IntentTables
from reconcilers.model import Problem, UnsentRoutes
from resources.row_updates import replace_all
from speaker.api import PeerStatus
from statedb import Database, Snapshot, WriteTxn


def unsent_routes(statuses: Iterable[PeerStatus]) -> Iterator[UnsentRoutes]:
    """Yield a row for each family of an Established session with routes that are not sent."""
    for status in statuses:
        if not status.established:
            continue
        for family in status.families:
            if family.left_out and family.obstacle:
                yield UnsentRoutes(
                    status.instance,
                    status.name,
                    family.family,
                    family.note,
                    all_routes=family.obstacle != "NotEncodable",
                )


def write_unsent_routes(
    database: Database, intent: IntentTables, rows: Iterable[UnsentRoutes]
) -> list[UnsentRoutes]:
    """Replace the rows of unsent routes, where one differs; returns the new rows."""
    table, wanted = intent.unsent_routes, set(rows)
    known = set(table.all(database.snapshot()))
    if wanted != known:
        with database.write(table) as txn:
            replace_all(txn, table, wanted)
    return sorted(wanted - known)


def unsent_problems(intent: IntentTables, snapshot: Snapshot | WriteTxn) -> Iterator[Problem]:
    """Yield a problem for each row of unsent routes of a configured peer."""
    for row in intent.unsent_routes.all(snapshot):
        peer = intent.peers.get(snapshot, (row.instance, row.peer))
        if peer is not None:
            text = f"peer {row.peer!r}: {row.family} routes are not advertised: {row.reason}"
            yield Problem(peer.origins, "", text, category="unsupported", dialect=peer.dialect)
