"""Received routes that nothing uses: some are kept and shown, the rest is counted."""

from __future__ import annotations

import gc

import pytest

from speaker.api import (
    GracefulRestart,
    Match,
    MaximumPrefixes,
    PeerConfig,
    Policy,
    PrefixLimit,
    PrefixRule,
    RouteAttributes,
    Set,
    Term,
)
from speaker.api.status import FamilyStatus
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST, MessageType
from speaker.rib.path import Path
from tests.speaker.network import INSTANCE, ROUTE_REFRESH, Host, Network


class Lab:
    """A node that keeps ten paths, and a router that sends routes."""

    def __init__(self, *, node: dict[str, object] | None = None, **both: object) -> None:
        self.network = Network()
        self.node = self.network.host("node", "10.0.0.1", 65000)
        self.router = self.network.host("router", "10.0.0.2", 65001)
        self.options = {"keep_received": 10, "passive": True, **both, **(node or {})}
        self.node.peer(self.config())
        self.router.peer(config("node", self.node, 65000, export="local", **both))
        self.network.run(3)

    def config(self, **changes: object) -> PeerConfig:
        """Return the node's peer."""
        return config("router", self.router, 65001, **{**self.options, **changes})

    def announce(self, first: int, last: int, med: int = 0) -> None:
        """Announce 10.9.N.0/24 for a range of numbers."""
        self.router.routes(dict.fromkeys(prefixes(first, last), RouteAttributes(med=med)))
        self.network.run(2)

    def withdraw(self, first: int, last: int) -> None:
        """Withdraw them."""
        self.router.routes(dict.fromkeys(prefixes(first, last)))
        self.network.run(2)

    def status(self) -> FamilyStatus:
        """Return the counts of IPv4."""
        (status,) = self.node.engine.views.peers(self.network.now)
        return next(one for one in status.families if one.family == IPV4_UNICAST)

    def counts(self) -> tuple[int, int]:
        """Return how many prefixes are received, and how many of them are not kept."""
        status = self.status()
        return status.received, status.not_kept

    def shown(self) -> list[str]:
        """Return the prefixes of the received view."""
        view = self.node.engine.views.routes_received(INSTANCE, "router", IPV4_UNICAST)
        return sorted((route.prefix for route in view), key=lambda text: int(text.split(".")[2]))


def config(name: str, host: Host, asn: int, **options: object) -> PeerConfig:
    return PeerConfig(name=name, address=host.address, peer_asn=asn, **options)  # type: ignore[arg-type]


def prefixes(first: int, last: int) -> list[str]:
    return [f"10.9.{number}.0/24" for number in range(first, last)]


def test_the_first_paths_are_kept_and_all_are_counted() -> None:
    lab = Lab()
    lab.announce(0, 25)
    assert lab.counts() == (25, 15)
    assert lab.shown() == prefixes(0, 10)
    lab.announce(0, 25, med=7)  # again: nothing has two entries
    assert lab.counts() == (25, 15)
    view = list(lab.node.engine.views.routes_received(INSTANCE, "router", IPV4_UNICAST))
    assert {route.med for route in view} == {7}


def test_withdrawals_count_of_kept_and_of_counted_prefixes() -> None:
    lab = Lab()
    lab.announce(0, 25)
    lab.withdraw(20, 25)
    assert lab.counts() == (20, 10)
    lab.withdraw(20, 25)
    assert lab.counts() == (20, 10)
    lab.withdraw(0, 5)
    assert (lab.counts(), lab.shown()) == ((15, 10), prefixes(5, 10))
    lab.announce(18, 20, med=3)  # there is room for what is announced now
    assert (lab.counts(), lab.shown()) == ((15, 8), [*prefixes(5, 10), *prefixes(18, 20)])


def test_the_number_is_of_the_peer_and_not_of_a_family() -> None:
    lab = Lab(families=(IPV4_UNICAST, IPV6_UNICAST))
    lab.announce(0, 6)
    lab.router.routes({f"fd00:{n:x}::/48": RouteAttributes() for n in range(1, 9)})
    lab.network.run(2)
    (status,) = lab.node.engine.views.peers(lab.network.now)
    assert {str(one.family): (one.received, one.not_kept) for one in status.families} == {
        "ipv4-unicast": (6, 0),
        "ipv6-unicast": (8, 4),
    }


@pytest.mark.parametrize("options", [{"keep_received": None}, {"import_": "all"}])
def test_all_are_kept_without_a_number_and_where_routes_are_imported(
    options: dict[str, object],
) -> None:
    lab = Lab(node=options)
    lab.announce(0, 25)
    assert (lab.counts(), lab.shown()) == ((25, 0), prefixes(0, 25))


def test_an_end_of_the_session_and_stale_routes_leave_no_count() -> None:
    restart: dict[str, object] = {"graceful_restart": GracefulRestart(60)}
    for options, after in ((None, 0), (restart, 10)):
        lab = Lab(node=options)
        lab.announce(0, 25)
        (established,) = lab.node.engine.instance(INSTANCE).established.values()
        if after:
            established.adj_in.mark_stale(IPV4_UNICAST)
        else:
            established.stale.clear()
        assert lab.counts() == (after, 0)
        lab.announce(0, 25, med=9)
        assert lab.counts() == (25, 15)


def test_paths_of_add_path_are_kept_and_counted_one_by_one() -> None:
    lab = Lab(add_path="both")
    lab.announce(0, 25)
    for med in range(70):  # more often than a prefix may have paths
        lab.announce(0, 25, med=med)
    assert lab.counts() == (25, 15)
    assert lab.shown() == prefixes(0, 10)
    lab.withdraw(0, 25)
    assert lab.counts() == (0, 0)


def test_an_import_policy_has_the_counted_routes_announced_again() -> None:
    lab = Lab()
    lab.announce(0, 25)
    lab.node.peer(lab.config(import_="all"))
    lab.network.run(2)
    assert (lab.counts(), lab.status().accepted) == ((25, 0), 25)
    assert not lab.node.engine.instance(INSTANCE).peer("router").flaps


def test_a_greater_number_has_them_announced_again() -> None:
    lab = Lab()
    lab.announce(0, 25)
    lab.node.peer(lab.config(keep_received=20))
    lab.network.run(2)
    assert (lab.counts(), lab.shown()) == ((25, 5), prefixes(0, 20))


def test_a_prefix_limit_includes_prefixes_that_are_not_kept() -> None:
    limit = (MaximumPrefixes(40, warning_percent=50),)
    lab = Lab(node={"maximum_prefixes": limit})
    lab.announce(0, 25)
    lab.announce(25, 41)
    reached = [event for event in lab.node.events if isinstance(event, PrefixLimit)]
    assert [(event.received, event.ended) for event in reached] == [(25, False), (41, True)]


ACCEPTING = Policy(default="accept")


@pytest.mark.parametrize("options", [{"import_": "all"}, {"import_": ACCEPTING}])
@pytest.mark.parametrize("both", [{}, {"add_path": "both"}])
def test_routes_that_are_imported_no_more_are_kept_up_to_the_number(
    options: dict[str, object], both: dict[str, object]
) -> None:
    lab = Lab(node=options, **both)
    lab.announce(0, 25)
    assert lab.counts() == (25, 0)
    lab.node.peer(lab.config(import_="none"))
    lab.network.run(2)
    assert (lab.counts(), lab.shown(), lab.status().accepted) == ((25, 15), prefixes(0, 10), 0)
    assert not lab.node.engine.instance(INSTANCE).peer("router").flaps
    lab.withdraw(5, 20)
    assert (lab.counts(), lab.shown()) == ((10, 5), prefixes(0, 5))
    lab.node.peer(lab.config(import_="all"))
    lab.network.run(2)
    assert (lab.counts(), lab.status().accepted) == ((10, 0), 10)


@pytest.mark.parametrize(("before", "counts"), [(20, (25, 15)), (None, (25, 15))])
def test_a_smaller_number_applies_to_kept_routes(before: int | None, counts: object) -> None:
    lab = Lab(node={"keep_received": before})
    lab.announce(0, 25)
    lab.node.peer(lab.config(keep_received=10))
    lab.network.run(2)
    assert (lab.counts(), lab.shown()) == (counts, prefixes(0, 10))


def test_the_memory_of_routes_that_are_not_kept_any_more_is_freed() -> None:
    def paths() -> int:
        """The paths of the node, each with attributes of its own."""
        gc.collect()
        return sum(type(one) is Path and one.source.name == "router" for one in gc.get_objects())

    lab = Lab(node={"import_": Policy(default="accept")})
    count = 5000  # more than the smaller cache of attributes has
    lab.router.routes({f"10.{n >> 8}.{n & 255}.0/24": RouteAttributes(med=n) for n in range(count)})
    lab.network.run(2)
    assert paths() >= count
    lab.node.peer(lab.config(import_="none"))
    lab.network.run(2)
    while lab.node.engine.updates_pending:
        lab.network.run(0.1)
    assert lab.counts() == (count, count - 10)
    assert paths() < 100


SOME = (PrefixRule("10.9.0.0/21", ge=24, le=24),)
"""The first eight prefixes."""


def test_of_routes_that_a_policy_rejects_the_first_are_kept_and_all_are_counted() -> None:
    lab = Lab(node={"import_": SOME})
    lab.announce(0, 25)
    assert (lab.counts(), lab.status().accepted) == ((25, 7), 8)
    assert lab.shown() == prefixes(0, 18)
    lab.announce(0, 25, med=7)
    assert (lab.counts(), lab.shown()) == ((25, 7), prefixes(0, 18))
    lab.withdraw(10, 25)
    assert (lab.counts(), lab.shown()) == ((10, 0), prefixes(0, 10))


def test_a_changed_policy_has_the_peer_announce_the_counted_routes_again() -> None:
    lab = Lab(node={"import_": SOME})
    lab.announce(0, 40)
    lab.node.peer(lab.config(import_=(PrefixRule("10.9.32.0/21", ge=24, le=24),)))
    lab.network.run(2)
    assert (lab.counts(), lab.status().accepted) == ((40, 22), 8)
    # The route that was accepted before is one more of the rejected ones: there is no room for it.
    assert lab.shown() == [*prefixes(8, 18), *prefixes(32, 40)]
    assert not lab.node.engine.instance(INSTANCE).peer("router").flaps


def test_a_policy_keeps_all_routes_of_a_peer_that_takes_no_route_refresh() -> None:
    lab = Lab(node={"import_": SOME, "disabled_reason": "later"})
    lab.router.withheld = (ROUTE_REFRESH,)
    lab.node.peer(lab.config(disabled_reason=None))
    lab.network.run(5)
    lab.announce(0, 40)
    assert (lab.counts(), lab.status().accepted) == ((40, 0), 8)
    lab.node.peer(
        lab.config(import_=(PrefixRule("10.9.32.0/21", ge=24, le=24),), disabled_reason=None)
    )
    lab.network.run(2)
    assert (lab.counts(), lab.status().accepted) == ((40, 0), 8)
    assert not lab.node.engine.instance(INSTANCE).peer("router").flaps


def test_routes_are_counted_and_requested_again_until_the_peer_has_answered() -> None:
    lab = Lab(node={"import_": SOME})
    lab.announce(0, 40)
    lab.node.writes.clear()
    for first in (32, 24):
        lab.node.peer(lab.config(import_=(PrefixRule(f"10.9.{first}.0/21", ge=24, le=24),)))
        assert lab.status().received == 40
    requests = [
        one for one in lab.node.writes if b"".join(one.parts)[18] == MessageType.ROUTE_REFRESH
    ]
    assert len(requests) == 2
    lab.network.run(2)
    assert (lab.counts(), lab.status().accepted) == ((40, 22), 8)


def test_a_counted_prefix_whose_route_becomes_ineligible_has_one_count() -> None:
    only = Policy(terms=(Term(match=Match(communities=("65001:1",))),))
    loops = Policy(
        terms=(Term(match=Match(communities=("65001:1",)), set=Set(prepend=(65000,))),),
        default="accept",
    )
    lab = Lab(node={"import_": only})
    lab.router.peer(config("node", lab.node, 65000, export="local", export_policy=loops))
    lab.network.run(2)
    lab.announce(0, 25)
    assert lab.counts() == (25, 15)
    marked = RouteAttributes(communities=(65001 << 16 | 1,))
    lab.router.routes(dict.fromkeys(prefixes(20, 25), marked))
    lab.network.run(2)
    assert (lab.counts(), lab.status().accepted) == ((25, 10), 0)
    lab.withdraw(0, 25)
    assert lab.counts() == (0, 0)
