"""Limits of prefixes and memory, over sessions that end and come back."""

from __future__ import annotations

import gc
import itertools
import os
import resource
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from speaker.api import Fault, GracefulRestart, MaximumPrefixes, PeerConfig, PrefixLimit
from speaker.attribute import encode_attribute
from speaker.capability import (
    EnhancedRouteRefresh,
    GracefulRestartCapability,
    RouteRefreshCapability,
)
from speaker.engine.inputs import SetPeer
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST, AttributeType
from speaker.message import KEEPALIVE, RefreshKind, RouteRefresh
from tests.speaker.engine.graceful_restart.hosts import RESTART, ROUTES, pair
from tests.speaker.engine.graceful_restart.test_refresh import writes_to_end
from tests.speaker.network import INSTANCE
from tests.speaker.raw import ATTRIBUTES, FAMILIES, REMOTE, REMOTE_ASN, Raw, open_message, update

RESTARTS = int(os.environ.get("WAGGLE_RESTARTS", "240"))
"""Of one peer, in the test of their memory."""


def test_rfc7313_4_a_refresh_is_delimited_by_borr_and_eorr() -> None:
    network, a, b = pair()
    a.writes.clear()
    b.refresh("a")
    network.run(1)
    octets = writes_to_end(a)
    begin = bytes.fromhex("00170500010101")
    end = bytes.fromhex("00170500010201")
    assert begin in octets
    assert end in octets
    assert octets.index(begin) < octets.index(bytes.fromhex("180a08")) < octets.index(end)
    assert set(b.available(IPV4_UNICAST)) == set(ROUTES)


def restarting(limit: int) -> Raw:
    """A peer with two routes that has restarted; ``limit`` is how many it may send."""
    opened = open_message(
        capabilities=(
            *FAMILIES,
            RouteRefreshCapability(),
            EnhancedRouteRefresh(),
            GracefulRestartCapability(
                restart_time=60, families=((IPV4_UNICAST, True), (IPV6_UNICAST, True))
            ),
        )
    )
    raw = Raw(graceful_restart=RESTART, maximum_prefixes=(MaximumPrefixes(limit),))
    raw.to_established(opened)
    raw.send(update(ATTRIBUTES, bytes((24, 10, 1, 1)) + bytes((24, 10, 1, 2))))
    raw.drop()
    raw.wait(5)
    return raw.to_established(opened)


def test_a_limit_does_not_count_the_routes_of_the_last_session() -> None:
    raw = restarting(limit=3)
    raw.send(update(ATTRIBUTES, bytes((24, 10, 2, 1)) + bytes((24, 10, 2, 2))))
    assert raw.state == "Established"
    assert not [event for event in raw.events if isinstance(event, PrefixLimit)]
    raw.send(update(ATTRIBUTES, bytes((24, 10, 2, 3)) + bytes((24, 10, 2, 4))))
    assert raw.state == "Idle"
    assert raw.notification == (6, 1, bytes.fromhex("00010100000003"))


def test_a_limit_counts_the_routes_before_a_refresh() -> None:
    """A peer may begin any number of refreshes, and end none: its routes would be without number."""
    raw = restarting(limit=3)
    raw.send(update(ATTRIBUTES, bytes((24, 10, 2, 1)) + bytes((24, 10, 2, 2))))
    raw.send(update(b""))
    raw.send(RouteRefresh(IPV4_UNICAST, RefreshKind.BEGIN).encode())
    raw.send(update(ATTRIBUTES, bytes((24, 10, 2, 1)) + bytes((24, 10, 3, 1))))
    assert raw.state == "Established"
    raw.send(RouteRefresh(IPV4_UNICAST, RefreshKind.BEGIN).encode())
    raw.send(update(ATTRIBUTES, bytes((24, 10, 4, 1))))
    assert raw.state == "Idle"


def restarts(
    number: int, meds: Callable[[int], Iterable[int]], **settings: object
) -> Iterator[Raw]:
    """Yield a peer that restarts, each time when it has announced its table and End-of-RIB.

    ``meds`` returns the MED of each prefix after a number of restarts.
    """
    opened = open_message(
        capabilities=(
            *FAMILIES,
            GracefulRestartCapability(restart_time=60, families=((IPV4_UNICAST, True),)),
        )
    )
    raw = Raw(graceful_restart=RESTART, **settings).to_established(opened)
    for restart in range(number):
        for prefix, med in enumerate(meds(restart)):
            value = med.to_bytes(4, "big")
            attribute = encode_attribute(0x80, AttributeType.MULTI_EXIT_DISC, value)
            raw.send(update(ATTRIBUTES + attribute, bytes((24, 10, 1, prefix))))
        raw.send(update(b""))
        yield raw
        raw.wait(31)  # a stable session, after which the next one may begin at once
        raw.drop()
        raw.wait(2)
        raw.to_established(opened)
        raw.events.clear()


def test_the_memory_of_a_peer_that_restarts_again_and_again_is_level() -> None:
    """Of its routes and of the process; ``WAGGLE_RESTARTS`` makes more of them."""
    sizes: list[int] = []
    resident: list[int] = []
    tracemalloc.start()
    try:
        for number, _ in enumerate(restarts(RESTARTS, lambda _: range(4)), 1):
            if number % (RESTARTS // 3) == 0:
                gc.collect()
                sizes.append(tracemalloc.get_traced_memory()[0])
                pages = int(Path("/proc/self/statm").read_text().split()[1])
                resident.append(pages * resource.getpagesize())
    finally:
        tracemalloc.stop()
    assert sizes[2] < sizes[1] + 8_000, sizes
    assert resident[2] < resident[1] + 2**20, resident


def test_the_attributes_of_former_sessions_are_released() -> None:
    """In each session half of 200 routes have other attributes than in all sessions before."""

    def meds(restart: int) -> Iterable[int]:
        return itertools.chain(range(100), range(100 * (restart + 1), 100 * (restart + 2)))

    sets = 0
    for raw in restarts(60, meds, import_="none", keep_received=50):
        (established,) = raw.engine.instance(INSTANCE).established.values()
        sets = max(sets, len(established.inbound.cache.by_field))
    # Of 6,000 the cache has room for half.
    assert 200 < sets < 4000


def test_a_limit_counts_the_routes_after_end_of_rib() -> None:
    """RFC 4724 section 4.2: at End-of-RIB the stale routes are removed, before prefixes are counted."""
    restart = GracefulRestart(restart_time=4000, stale_time=300)
    opened = open_message(
        capabilities=(
            *FAMILIES,
            GracefulRestartCapability(restart_time=4000, families=((IPV4_UNICAST, True),)),
        )
    )
    raw = Raw(graceful_restart=restart).to_established(opened)
    raw.send(update(ATTRIBUTES, b"".join(bytes((24, 10, 2, n)) for n in range(10))))
    raw.drop()
    limited = PeerConfig(
        name="p", address=REMOTE, peer_asn=REMOTE_ASN, passive=True, import_="all",
        graceful_restart=restart, maximum_prefixes=(MaximumPrefixes(5),),
    )  # fmt: skip
    raw.give(SetPeer(INSTANCE, limited))
    raw.wait(200)
    raw.connect()
    raw.send(opened)
    raw.send(KEEPALIVE)
    raw.events.clear()
    raw.send(update(b""))
    assert raw.state == "Established"
    assert not [event for event in raw.events if isinstance(event, Fault | PrefixLimit)]
    assert [family.received for family in raw.status.families] == [0, 0]
