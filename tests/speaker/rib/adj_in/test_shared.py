"""Routes that are held only in the Loc-RIB are found by the log, which stays small."""

from __future__ import annotations

from speaker.attribute import PathAttributes
from speaker.iana import Afi
from speaker.nlri import NlriFields
from speaker.rib.adj_in.prefix_log import SLACK_PREFIXES
from speaker.rib.adj_in.shared import SharedAdjRibIn
from speaker.rib.loc_rib import LocRib
from speaker.rib.path import Path, Source

SOURCE = Source("p", address=bytes((10, 0, 0, 1)), router_id=1, ebgp=True)
PATH = Path(PathAttributes(), SOURCE)


def prefix(number: int) -> bytes:
    return b"\x20" + number.to_bytes(4, "big")


def announce(routes: SharedAdjRibIn, loc: LocRib, *numbers: int) -> None:
    field = b"".join(map(prefix, numbers))
    assert routes.announce_new([PATH], NlriFields([field], Afi.IPV4)) == 1
    loc.take_changes()


def test_prefixes_of_fields_and_of_lists_are_found_and_taken() -> None:
    loc = LocRib()
    routes = SharedAdjRibIn(loc, SOURCE)
    announce(routes, loc, 1, 2)
    routes.announce(PATH, [prefix(3)])
    routes.withdraw([prefix(2)])
    assert (routes.count, dict(routes.items())) == (2, {prefix(3): PATH, prefix(1): PATH})
    assert sorted(routes.take(10)) == [prefix(1), prefix(2), prefix(3)]
    assert list(routes.items()) == []


def test_a_flapping_prefix_takes_bounded_memory() -> None:
    loc = LocRib()
    routes = SharedAdjRibIn(loc, SOURCE)
    announce(routes, loc, 0)
    for _ in range(3 * SLACK_PREFIXES):
        announce(routes, loc, 1)
        routes.withdraw([prefix(1)])
        loc.take_changes()
    assert sum(map(len, routes.prefix_lists())) <= 2 * SLACK_PREFIXES
    assert dict(routes.items()) == {prefix(0): PATH}
