"""The next hops of received routes are written for the intent, and kept while a session is down."""

from __future__ import annotations

from typing import cast

import msgspec
from structlog.testing import capture_logs

from cells.apply.session_readings import NextHopWriter, UnsentRoutesWriter
from reconcilers.intent.session_addresses import forget_session_addresses
from reconcilers.model import NextHops
from speaker.api import PeerStatus
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST
from tests.reconcilers.apply.intent_rows import INSTANCE, PEER, Rows
from tests.reconcilers.intent.service_addresses.build import cluster


class _Status(msgspec.Struct):
    instance: str
    name: str
    next_hops: tuple[str, ...]


def statuses(*found: _Status) -> list[PeerStatus]:
    return cast("list[PeerStatus]", list(found))


def test_next_hops_of_configured_peers_are_written_where_they_differ() -> None:
    found = cluster()
    found.run()
    writer = NextHopWriter(found.db, found.intent)
    table = found.intent.next_hops

    def rows() -> list[NextHops]:
        return list(table.all(found.db.snapshot()))

    known = _Status("i", "p", ("192.0.2.253",))
    writer.write(statuses(known, _Status("i", "other", ("192.0.2.7",))))
    assert rows() == [NextHops("i", "p", ("192.0.2.253",))]
    revision = table.revision(found.db.snapshot())
    writer.write(statuses(_Status("i", "p", ())))
    assert table.revision(found.db.snapshot()) == revision
    writer.write(statuses(_Status("i", "p", ("192.0.2.252",))))
    assert rows() == [NextHops("i", "p", ("192.0.2.252",))]


def test_they_go_with_their_peer() -> None:
    found = cluster()
    found.run()
    with found.db.write(found.intent.next_hops) as txn:
        found.intent.next_hops.upsert(txn, NextHops("i", "gone", ("192.0.2.1",)))
    forget_session_addresses(found.db, found.intent)
    assert not list(found.intent.next_hops.all(found.db.snapshot()))


def lines(rows: Rows, writer: UnsentRoutesWriter) -> list[tuple[str, str, str]]:
    """Return what one run logs: the event, the family and the reason."""
    with capture_logs() as found:
        writer.write(rows.speaker.peers())
    return [(line["event_name"], line["family"], line["reason"]) for line in found]


def test_a_family_that_the_router_does_not_support_is_logged_once_while_it_has_routes() -> None:
    rows = Rows()
    rows.apply([INSTANCE], [PEER])
    router = rows.router(families=(IPV4_UNICAST,))
    rows.run()
    writer = UnsentRoutesWriter(rows.db, rows.intent)
    assert rows.speaker.peers()[0].established
    assert lines(rows, writer) == []
    rows.route("2001:db8:1::/48")
    rows.run()
    text = "the peer does not support the family"
    assert lines(rows, writer) == [("peer.routes_unsent", "ipv6-unicast", text)]
    assert lines(rows, writer) == []
    assert router.received(IPV6_UNICAST) == {}
    rows.apply([INSTANCE], [])
    assert lines(rows, writer) == []
    assert not list(rows.intent.unsent_routes.all(rows.db.snapshot()))
