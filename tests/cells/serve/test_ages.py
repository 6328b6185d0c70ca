"""Since when a route has been as it is."""

from __future__ import annotations

import sys

import pytest

from cells.serve.ages import RouteAges
from reconcilers.intent_tables import IntentTables
from reconcilers.model import Attributes, Route
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


def test_a_commit_costs_the_same_whatever_the_number_of_its_routes() -> None:
    db = Database()
    routes = IntentTables(db).routes
    now = 100.0
    ages = RouteAges(db, routes, lambda: now)

    def calls_of_a_commit(count: int) -> int:
        with db.write(routes) as txn:
            for i in range(count):
                nlri = b"\x20" + i.to_bytes(4, "big")
                routes.upsert(txn, Route("s", IPV4_UNICAST, nlri, Attributes(), ()))
            calls = 0

            def count_calls(_frame: object, event: str, _argument: object) -> None:
                nonlocal calls
                calls += event == "call"

            sys.setprofile(count_calls)
        sys.setprofile(None)
        return calls

    assert calls_of_a_commit(500) == calls_of_a_commit(1)
    assert ages.since("s", IPV4_UNICAST, b"\x20\0\0\0\x01") == 100.0


def test_only_the_commits_of_present_rows_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cells.serve.ages.MIN_COMMITS", 10)
    db = Database()
    routes = IntentTables(db).routes
    now = -10.0
    ages = RouteAges(db, routes, lambda: now)
    for number in range(1000):
        now = number + 0.5
        nlri = NLRI if number % 100 else b"\x10\x0a" + bytes((number // 100,))
        with db.write(routes) as txn:
            routes.upsert(txn, Route("s", IPV4_UNICAST, nlri, Attributes(), ()))
    kept = [ages.since("s", IPV4_UNICAST, b"\x10\x0a" + bytes((i,))) for i in range(10)]
    assert kept == [100 * i + 0.5 for i in range(10)]
    assert ages.since("s", IPV4_UNICAST, NLRI) == 999.5
    assert len(ages._times) <= 2 * 11
