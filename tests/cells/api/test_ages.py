"""Since when a route has been as it is."""

from __future__ import annotations

from cells.api.ages import RouteAges
from reconcilers.model import Attributes, Route
from reconcilers.tables import IntentTables
from speaker.nlri import IPV4_UNICAST
from statedb import Database

NLRI = b"\x08\x0a"


def test_the_age_of_a_route_is_that_of_its_last_change() -> None:
    db = Database()
    routes = IntentTables(db).routes
    now = 100.0
    ages = RouteAges(db, routes, lambda: now)

    def put(preference: int) -> None:
        attributes = Attributes(local_preference=preference)
        with db.write(routes) as txn:
            routes.upsert(txn, Route("s", IPV4_UNICAST, NLRI, attributes, ()))

    assert ages.since("s", IPV4_UNICAST, NLRI) is None
    put(1)
    now = 200.0
    assert ages.since("s", IPV4_UNICAST, NLRI) == 100.0
    put(2)
    assert ages.since("s", IPV4_UNICAST, NLRI) == 200.0
    with db.write(routes) as txn:
        routes.delete_all(txn)
    assert ages.since("s", IPV4_UNICAST, NLRI) is None
