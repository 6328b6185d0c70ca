"""What an instance originates and imports, and its confederation, reach the speaker."""

from __future__ import annotations

from msgspec.structs import replace

from reconcilers.model import InstanceImport, PrefixRule
from speaker.api import Confederation, RouteAttributes
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST
from tests.reconcilers.apply.intent_rows import INSTANCE, PEER, Rows, changed

RED = replace(INSTANCE, name="red", vrf="red", router_id="192.0.2.2")


def table(rows: Rows, instance: str) -> dict[str, str | None]:
    """Return the prefixes that an instance can use, and from where they are imported."""
    engine = rows.speaker.host.engine
    return {
        view.prefix: view.imported_from
        for family in (IPV4_UNICAST, IPV6_UNICAST)
        for view in engine.views.routes_available(instance, family)
    }


def test_what_an_instance_originates_is_in_its_table_and_changes_without_a_reset() -> None:
    rows = Rows()
    rows.apply([INSTANCE], [PEER])
    router = rows.router()
    for prefixes in (("10.1.0.0/24", "2001:db8::/32"), ("10.1.0.0/24", "10.2.0.0/24"), ()):
        rows.apply([replace(INSTANCE, originates=prefixes)], [PEER])
        assert table(rows, "i") == dict.fromkeys(prefixes)
    # Whether it is advertised is the route set's: this one is empty.
    assert router.received(IPV4_UNICAST) == {}
    assert router.status().flaps == 0


def test_peers_and_route_sets_follow_what_they_need_of_an_instance() -> None:
    rows = Rows()
    rows.apply([INSTANCE], [PEER])
    rows.router()

    def due(**fields: object) -> frozenset[str]:
        with rows.db.write(rows.intent.instances) as txn:
            rows.intent.instances.upsert(txn, replace(INSTANCE, **fields))
        rows.now += 60
        return rows.runner.run(rows.now).due

    assert due(originates=("10.1.0.0/24",)) == {"instance"}
    assert due(originates=("10.1.0.0/24",), local_asn=65002) == {"instance", "peer"}
    rows.apply([], [PEER])
    assert due() == {"instance", "route-set", "peer"}


def test_routes_are_imported_by_name_and_the_import_changes_without_a_reset() -> None:
    rows = Rows()
    red = replace(RED, originates=("10.1.0.0/24", "10.2.0.0/24"))
    peers = [changed(accept=None)]
    rows.apply([INSTANCE, red], peers)
    router = rows.router()
    router.routes({"10.9.0.0/24": RouteAttributes()})
    rows.network.run(0.5)
    own = {"10.9.0.0/24": None}
    for accept, imported in (
        (None, {"10.1.0.0/24", "10.2.0.0/24"}),
        ((PrefixRule("10.2.0.0/15", le=24),), {"10.2.0.0/24"}),
        ((), set()),
    ):
        importing = replace(INSTANCE, imports=(InstanceImport("red", accept),))
        rows.apply([importing, red], peers)
        assert table(rows, "i") == own | dict.fromkeys(imported, "red")
    # Both ways at once, and what was accepted, too.
    both = [
        replace(INSTANCE, imports=(InstanceImport("red", None),)),
        replace(red, imports=(InstanceImport("i", None),)),
    ]
    rows.apply(both, peers)
    assert table(rows, "red") == dict.fromkeys(red.originates) | {"10.9.0.0/24": "i"}
    rows.apply([INSTANCE, red], peers)
    assert table(rows, "red") == dict.fromkeys(red.originates)
    rows.apply([both[0]], peers)
    assert table(rows, "i") == own
    assert router.status().flaps == 0


def test_a_confederation_reaches_the_speaker() -> None:
    rows = Rows()
    member = replace(INSTANCE, local_asn=64601, confederation=Confederation(65001, (64602,)))
    rows.route("10.1.0.0/24")
    rows.apply([member], [PEER])
    router = rows.router()
    # The identifier is the AS that a peer outside sees.
    assert router.received(IPV4_UNICAST)["10.1.0.0/24"].as_path == "65001"
