"""Routes that a session cannot carry are written for the intent and logged, each obstacle once."""

from __future__ import annotations

from structlog.testing import capture_logs

from cells.apply.unsent_routes import UnsentRoutesWriter
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST
from tests.reconcilers.apply.intent_rows import INSTANCE, PEER, Rows


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
