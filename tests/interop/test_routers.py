"""The drivers of real routers, proved on each other: what one announces the other's table has.

If these fail, then the tests of Waggle against the same routers say nothing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.conftest import NeedRouter
from tests.support.netns import Link
from tests.support.routers import (
    FAMILIES,
    KINDS,
    PeerSettings,
    Router,
    RouterSettings,
)
from tests.support.wait import eventually

pytestmark = [pytest.mark.interop, pytest.mark.netns]

PAIRS = [("bird", "gobgp"), ("bird", "frr"), ("frr", "bird")]
OURS, THEIRS = ("10.98.0.1", "fd00:98::1"), ("10.98.0.2", "fd00:98::2")
PORT = 1790


def _settings(
    asn: int, own: tuple[str, str], far_asn: int, far: tuple[str, str], *, passive: bool
) -> RouterSettings:
    """One session a family, each over its own kind of address."""
    return RouterSettings(
        asn=asn,
        router_id=own[0],
        addresses=own,
        port=PORT,
        peers=tuple(
            PeerSettings(
                address, far_asn, port=PORT, passive=passive, families=(family,), multihop=2
            )
            for address, family in zip(far, FAMILIES, strict=True)
        ),
    )


def _assert_learnt(router: Router, origin: Router, prefixes: tuple[str, str]) -> None:
    addresses = origin.settings.addresses
    for family, address, prefix in zip(FAMILIES, addresses, prefixes, strict=True):
        found = router.routes(family, address)
        assert [
            (route.prefix, route.next_hop, route.as_path, route.origin) for route in found.values()
        ] == [(prefix, address, (origin.settings.asn,), "igp")]


@pytest.mark.parametrize(("active", "passive"), PAIRS)
def test_routers_see_what_the_other_announces(
    active: str, passive: str, need_router: NeedRouter, link: Link, tmp_path: Path
) -> None:
    for kind in (active, passive):
        need_router(kind)
    for own, far in zip(OURS, THEIRS, strict=True):
        link.connect(own, far)
    caller = KINDS[active](
        _settings(65001, OURS, 65002, THEIRS, passive=False), link.left, tmp_path / active
    )
    listener = KINDS[passive](
        _settings(65002, THEIRS, 65001, OURS, passive=True), link.right, tmp_path / passive
    )
    with listener, caller:
        caller.announce("192.0.2.0/24", "2001:db8:1::/48")
        listener.announce("198.51.100.0/24", "2001:db8:2::/48")

        def learnt() -> None:
            _assert_learnt(listener, caller, ("192.0.2.0/24", "2001:db8:1::/48"))
            _assert_learnt(caller, listener, ("198.51.100.0/24", "2001:db8:2::/48"))

        def logs() -> str:
            return caller.daemon.tail() + listener.daemon.tail()

        eventually(learnt, context=logs)
        before = listener.peers()
        assert before[OURS[0]].established
        caller.withdraw("192.0.2.0/24")
        eventually(lambda: _assert_none(listener, OURS[0]), context=logs)
        assert listener.peers()[OURS[0]].uptime_token == before[OURS[0]].uptime_token
        assert not listener.received_cease()
        if active == "bird":
            # Not all of them say goodbye when they are ended; this one does.
            caller.stop()
            eventually(lambda: _assert_ceased(listener), context=logs)


def _assert_ceased(router: Router) -> None:
    assert router.received_cease()


def _assert_none(router: Router, peer: str) -> None:
    assert router.routes("ipv4-unicast", peer) == {}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_router_tells_its_version(kind: str, need_router: NeedRouter) -> None:
    need_router(kind)
    name, number = KINDS[kind].version().split()
    assert name.lower() == kind
    assert number[0].isdigit()
