"""The entry of a changed row of each table: its name, what differs, why, and which objects cause it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from cells.api.history import HistoryItem
from cells.history.rows import MOST_CAUSES, Recorded, recorded_tables
from reconcilers.bfd_session import BfdSession
from reconcilers.intent_tables import IntentTables
from reconcilers.model import (
    Attributes,
    Condition,
    Contribution,
    Instance,
    ObjectRef,
    Origin,
    Peer,
    Problem,
    ReconcileStatus,
    Route,
    UnsentRoutes,
)
from reconcilers.sliced_work import finish
from resources.core import Service
from resources.meta import ObjectMeta, OwnerReference
from resources.row_updates import primary_key
from resources.tables import Tables
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, prefix_to_wire
from statedb import Database

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WEB = ObjectRef("Service", "shop", "web")
API = ObjectRef("Service", "shop", "api")
RULE = ObjectRef("CiliumBGPAdvertisement", "", "services")
OTHER_RULE = ObjectRef("CiliumBGPAdvertisement", "", "others")
CONFIG = ObjectRef("CiliumBGPNodeConfig", "", "n")


@pytest.fixture(name="recorded", scope="module")
def _recorded() -> dict[str, Recorded]:
    db = Database()
    return {of.kind: of for of in recorded_tables(Tables(db), IntentTables(db))}


def entry(recorded: dict[str, Recorded], kind: str, old: object, new: object) -> HistoryItem:
    item = finish(recorded[kind].entry(old, new, NOW))
    assert item is not None
    assert (item.kind, item.event_time) == (kind, NOW)
    return item


def changes(item: HistoryItem) -> dict[str, tuple[str | None, str | None]]:
    return {change.field: (change.old, change.new) for change in item.changes}


def route(*origins: Origin, **attributes: Any) -> Route:  # noqa: ANN401
    family, nlri = prefix_to_wire("198.51.100.10/32")
    of_route = Attributes(**attributes)
    contributions = tuple(Contribution(origin, of_route) for origin in origins)
    return Route("main", family, nlri, of_route, contributions)


PEER = Peer("main", "tor-1", "192.0.2.1", None, 65001, origins=(CONFIG, RULE))
INSTANCE = Instance("main", None, 65000, "192.0.2.9", origin=CONFIG)
UNSENT = UnsentRoutes("main", "tor-1", IPV6_UNICAST, "no next hop")
BFD = BfdSession(instance="main", peer="tor-1", state="Down", diagnostic="Neighbor Down")
CONDITION = Condition(CONFIG, "Ready", True, "AllEstablished", "2 of 2")
PROBLEM = Problem((WEB, API), "spec.externalIPs", "two of an address", category="conflict")


@pytest.mark.parametrize(
    ("kind", "row", "name", "causes", "message"),
    [
        ("Instance", INSTANCE, "main", [CONFIG], None),
        ("Peer", PEER, "main/tor-1", [CONFIG, RULE], None),
        ("Route", route(Origin(WEB, RULE)), "198.51.100.10/32", [WEB, RULE], None),
        ("Condition", CONDITION, f"{CONFIG}/Ready", [CONFIG], "2 of 2"),
        ("Problem", PROBLEM, f"{WEB}: spec.externalIPs", [WEB, API], "two of an address"),
        ("Unsent", UNSENT, "main/tor-1", [], None),
        ("BFD", BFD, "main/tor-1", [], "Neighbor Down"),
        ("Reconciler", ReconcileStatus("peers", "main/x", "no room"), "peers/main/x", [], None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_row_that_comes_and_goes_is_named_with_its_objects(
    recorded: dict[str, Recorded],
    kind: str,
    row: object,
    name: str,
    causes: list[ObjectRef],
    message: str | None,
) -> None:
    for old, new, what in ((None, row, "ADDED"), (row, None, "DELETED")):
        item = entry(recorded, kind, old, new)
        assert (item.type, item.name, item.message) == (what, name, message)
        assert list(item.causes) == list(map(str, causes))
    assert finish(recorded[kind].entry(row, row, NOW)) is None


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("Instance", INSTANCE),
        ("Peer", PEER),
        ("Route", route()),
        ("Condition", CONDITION),
        ("Problem", PROBLEM),
        ("Unsent", UNSENT),
        ("BFD", BFD),
        ("Reconciler", ReconcileStatus("peers", "main/x", "no room")),
        ("Service", Service(metadata=ObjectMeta(name="web", namespace="shop"))),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_row_before_a_change_is_found_by_the_key_of_its_table(kind: str, row: object) -> None:
    db = Database()
    recorded = {of.kind: of for of in recorded_tables(Tables(db), IntentTables(db))}[kind]
    with db.write(recorded.table) as txn:
        recorded.table.upsert(txn, row)
    assert recorded.table.get(db.snapshot(), primary_key(recorded.table)(row)) == row


def test_the_address_is_that_of_a_peer_and_the_route_set_that_of_a_route(
    recorded: dict[str, Recorded],
) -> None:
    of_peer = entry(recorded, "Peer", None, PEER)
    of_route = entry(recorded, "Route", None, route())
    assert (of_peer.address, of_peer.route_set) == ("192.0.2.1", None)
    assert (of_route.address, of_route.route_set) == (None, "main")


def test_the_attributes_of_a_route_are_as_operators_write_them(
    recorded: dict[str, Recorded],
) -> None:
    plain = route(Origin(WEB, RULE))
    full = route(
        Origin(WEB, RULE),
        communities=(65000 << 16 | 100, 0xFFFFFF01),
        large_communities=((65000, 1, 2),),
        local_preference=200,
        med=5,
        next_hop="192.0.2.7",
        incomplete=True,
    )
    assert changes(entry(recorded, "Route", plain, full)) == {
        "communities": (None, "65000:100, 65535:65281"),
        "largeCommunities": (None, "65000:1:2"),
        "localPreference": (None, "200"),
        "med": (None, "5"),
        "nextHop": (None, "192.0.2.7"),
        "origin": (None, "INCOMPLETE"),
    }
    assert changes(entry(recorded, "Route", None, plain)) == {"origins": (None, str(WEB))}


def test_a_route_is_caused_by_the_contributions_that_differ(recorded: dict[str, Recorded]) -> None:
    web, api = Origin(WEB, RULE), Origin(API, OTHER_RULE)
    for old, new in ((route(web), route(web, api)), (route(web, api), route(web))):
        assert list(entry(recorded, "Route", old, new).causes) == [str(API), str(OTHER_RULE)]
    both = entry(recorded, "Route", route(api), route(web))
    assert list(both.causes) == [str(WEB), str(API), str(RULE), str(OTHER_RULE)]


def test_the_causes_are_a_few_and_each_is_named_once(recorded: dict[str, Recorded]) -> None:
    many = [Origin(ObjectRef("Service", "shop", f"web-{n}"), RULE) for n in range(9)]
    causes = entry(recorded, "Route", None, route(*many)).causes
    assert causes == tuple(f"Service/shop/web-{n}" for n in range(MOST_CAUSES))
    few = entry(recorded, "Route", None, route(*many[:2])).causes
    assert few == ("Service/shop/web-0", "Service/shop/web-1", str(RULE))


@pytest.mark.parametrize(
    ("kind", "old", "new", "expected"),
    [
        (
            "Condition",
            CONDITION,
            Condition(CONFIG, "Ready", False, "SessionsDown", "1 of 2"),
            {"status": ("True", "False"), "reason": ("AllEstablished", "SessionsDown")},
        ),
        (
            "Problem",
            PROBLEM,
            Problem((WEB, API), "spec.externalIPs", "two of an address", count=3),
            {"category": ("conflict", "invalid"), "count": ("1", "3")},
        ),
        (
            "Unsent",
            UNSENT,
            UnsentRoutes("main", "tor-1", IPV4_UNICAST, "no room"),
            {
                "family": ("ipv6-unicast", "ipv4-unicast"),
                "reason": ("no next hop", "no room"),
            },
        ),
        (
            "BFD",
            BFD,
            BfdSession(instance="main", peer="tor-1", state="Up", remote_state="Up"),
            {"state": ("Down", "Up"), "remoteState": ("Unknown", "Up")},
        ),
        (
            "Reconciler",
            ReconcileStatus("peers", "main/x", "no room", 1),
            ReconcileStatus("peers", "main/x", None, 0),
            {"error": ("no room", None)},
        ),
        (
            "Instance",
            INSTANCE,
            Instance("main", "blue", 65000, "192.0.2.9", origin=CONFIG),
            {"vrf": (None, "blue")},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_differs_is_listed_by_field(
    recorded: dict[str, Recorded],
    kind: str,
    old: object,
    new: object,
    expected: dict[str, tuple[str | None, str | None]],
) -> None:
    item = entry(recorded, kind, old, new)
    assert (item.type, changes(item)) == ("MODIFIED", expected)


def test_what_is_not_among_the_fields_is_no_change(recorded: dict[str, Recorded]) -> None:
    other = Condition(CONFIG, "Ready", True, "AllEstablished", "3 of 3", observed_generation=7)
    assert finish(recorded["Condition"].entry(CONDITION, other, NOW)) is None
    held = BfdSession(instance="main", peer="tor-1", state="Down", transmit_interval=300_000)
    assert finish(recorded["BFD"].entry(BFD, held, NOW)) is None


def test_a_reconciler_without_an_error_comes_and_goes_unseen(
    recorded: dict[str, Recorded],
) -> None:
    done = ReconcileStatus("peers", "main/x")
    assert finish(recorded["Reconciler"].entry(None, done, NOW)) is None
    assert finish(recorded["Reconciler"].entry(done, None, NOW)) is None


def test_the_cause_of_an_object_is_its_owner(recorded: dict[str, Recorded]) -> None:
    owner = OwnerReference(api_version="v1", kind="Gateway", name="edge", uid="u")
    metadata = ObjectMeta(name="web", namespace="shop", owner_references=(owner,))
    item = entry(recorded, "Service", None, Service(metadata=metadata))
    assert (item.name, item.causes) == ("shop/web", ("Gateway/edge",))
    gone = entry(recorded, "Service", Service(metadata=metadata), None)
    assert (gone.type, gone.causes) == ("DELETED", ("Gateway/edge",))
