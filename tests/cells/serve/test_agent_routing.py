"""Sessions and routes of an agent: with BFD, the objects of a route and the time of its last change."""

from __future__ import annotations

from datetime import UTC, datetime

from msgspec.structs import replace

from cells.api.model import OriginItem
from reconcilers.bfd_session import BfdSession
from reconcilers.model import Attributes, Contribution, ObjectRef, Origin, Route
from speaker.api import RouteAttributes
from speaker.nlri import IPV4_UNICAST, prefix_to_wire
from tests.cells.serve.test_left_out import routing
from tests.cells.serve.test_received import OBJECT
from tests.cells.serve.test_received import PEER as IMPORTING
from tests.reconcilers.apply.intent_rows import INSTANCE, PEER, Rows

WEB = ObjectRef("Service", "shop", "web")
PREFIX = "10.8.0.0/24"


def session() -> Rows:
    rows = Rows()
    rows.apply([INSTANCE], [PEER])
    rows.router()
    return rows


def test_the_item_of_a_session_has_the_state_of_its_bfd_session() -> None:
    rows = session()
    (item,) = routing(rows).peers(peer=None, instance=None)
    assert (item["node"], item["name"], item.get("bfd")) == ("n", PEER.name, None)
    with rows.db.write(rows.intent.bfd_sessions) as txn:
        row = BfdSession(instance=INSTANCE.name, peer=PEER.name, state="Down")
        rows.intent.bfd_sessions.upsert(txn, row)
        rows.intent.bfd_sessions.upsert(txn, replace(row, peer="other", state="Up"))
    (item,) = routing(rows).peers(peer=None, instance=None)
    assert item["bfd"] == "Down"


def test_the_counts_of_the_sessions_are_of_this_node() -> None:
    rows = session()
    before = routing(rows).peer_counts()
    rows.route("10.9.0.0/24")
    rows.run()
    after = routing(rows).peer_counts()
    assert [(item.node, item.name) for item in after] == [("n", PEER.name)]
    assert [item.routes_advertised for item in (*before, *after)] == [0, 1]
    assert after[0].updates_sent > before[0].updates_sent


def advertised(rows: Rows) -> list[tuple[str, list[OriginItem], datetime | None]]:
    found = routing(rows).routes("advertised", family=None, peer=None, instance=None, prefix=None)
    return [(item.prefix, item.origins, item.since_time) for items in found for item in items]


def test_an_advertised_route_has_its_objects_and_the_time_of_its_session() -> None:
    rows = session()
    with rows.db.write(rows.intent.routes) as txn:
        origin = Origin(WEB, ObjectRef("BGPAdvertisement", "", "a"))
        contributions = (Contribution(origin, Attributes()),)
        row = Route("set", *prefix_to_wire(PREFIX), Attributes(), contributions)
        rows.intent.routes.upsert(txn, row)
    rows.route("10.9.0.0/24")
    rows.run()
    (status,) = rows.speaker.peers()
    since = datetime.fromtimestamp(int(status.since), UTC)
    (_, own, at), (_, none, other) = sorted(advertised(rows))
    assert own == [OriginItem(kind="Service", namespace="shop", name="web")]
    assert none == []
    assert at is not None
    assert other is not None
    assert min(at, other) >= since


def test_a_received_route_has_the_rule_that_accepts_it() -> None:
    rows = Rows()
    rows.apply([INSTANCE], [IMPORTING])
    rows.router().routes({"10.1.0.0/16": RouteAttributes()})
    rows.network.run(1)
    sessions = routing(rows)
    found = sessions.routes("received", family=None, peer=None, instance=None, prefix=None)
    (item,) = [item for items in found for item in items]
    assert (item.node, item.prefix, item.family) == ("n", "10.1.0.0/16", str(IPV4_UNICAST))
    assert item.accepted
    assert item.object == OriginItem(kind=OBJECT.kind, namespace=OBJECT.namespace, name=OBJECT.name)
