"""The cells of the interop matrix that need routers of their own: restarts and confederations.

Two routers with one session; what the one leaves with the other when it goes is read from the
other's table.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.cells import cell
from tests.support.netns import DEVICE, Link
from tests.support.routers import FAMILIES, KINDS, PeerSettings, Router, RouterSettings
from tests.support.routers.base import IPV4, RouterRoute
from tests.support.routers.waggle import Waggle
from tests.support.wait import eventually, settles

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

HERE, THERE = "10.98.0.1", "10.98.0.2"
OUR_ASN, THEIR_ASN = 65001, 65002
PORT = 1790
# The second of each is gone after a restart.
OURS = ("192.0.2.0/24", "198.18.1.0/24")
THEIRS = ("198.51.100.0/24", "198.18.101.0/24")
LLGR_STALE = "65535:6"
AWAY = 0.5
"""Seconds for which routes are watched while their origin is away."""


@dataclasses.dataclass(frozen=True, slots=True)
class Duel:
    """Our router and theirs."""

    ours: Waggle
    theirs: Router

    def told(self) -> dict[str, RouterRoute]:
        """Return what they have of us."""
        return self.theirs.routes(IPV4)

    def heard(self) -> dict[str, RouterRoute]:
        """Return what we have of them."""
        return self.ours.routes(IPV4)

    def assert_up(self) -> None:
        """Check the session at both ends."""
        for router in (self.ours, self.theirs):
            (peer,) = router.peers().values()
            assert peer.established, (router.kind, peer)

    def assert_exchanged(self) -> None:
        """Check the session and both tables."""
        self.assert_up()
        assert set(self.told()) == set(OURS)
        assert set(self.heard()) == set(THEIRS)

    def logs(self) -> str:
        """Return the ends of both logs."""
        return f"{self.ours.daemon.tail()}\n{self.theirs.daemon.tail()}"


@contextlib.contextmanager
def duel(
    kind: str, link: Link, directory: Path, *, confederation: int | None = None, **session: object
) -> Iterator[Duel]:
    """Run both until they have exchanged their routes; ``session`` is what each is told of it.

    Theirs is told only what it understands: some help others that restart without being asked.
    """
    for namespace, address in ((link.left, HERE), (link.right, THERE)):
        namespace.add_address(f"{address}/24")
    driver = KINDS[kind]

    def settings(own: str, asn: int, far: str, far_asn: int, **more: Any) -> RouterSettings:  # noqa: ANN401
        peer = PeerSettings(far, far_asn, PORT, families=(IPV4,), **more)
        return RouterSettings(asn, own, (own,), (peer,), PORT, confederation)

    understood = {name: v for name, v in session.items() if name not in driver.CANNOT}
    match = Duel(
        Waggle(
            settings(HERE, OUR_ASN, THERE, THEIR_ASN, passive=False, **session),
            link.left,
            directory / "ours",
        ),
        driver(
            settings(THERE, THEIR_ASN, HERE, OUR_ASN, **understood), link.right, directory / kind
        ),
    )
    match.theirs.start()
    with contextlib.ExitStack() as stack:
        stack.callback(match.theirs.stop)
        with match.ours:
            match.theirs.wait_ready()
            match.theirs.announce(*THEIRS)
            match.ours.announce(*OURS)
            settles(match.assert_exchanged, stays=0.2, context=match.logs)
            yield match


class LostError(Exception):
    """A route that had to stay was away: nothing that may still become better."""


@cell("restarting")
def test_restarting(kind: str, link: Link, tmp_path: Path) -> None:
    with duel(kind, link, tmp_path, restart_time=60) as match:
        # SIGTERM: neighbours see the end of the connection and nothing else.
        match.ours.stop()

        def alone() -> None:
            (peer,) = match.theirs.peers().values()
            assert not peer.established

        def kept() -> None:
            alone()
            if set(match.told()) != set(OURS):
                raise LostError(match.told())

        eventually(alone, context=match.logs)
        settles(kept, stays=AWAY, context=match.logs)
        del match.ours.announced[OURS[1]]
        match.ours.resume()

        def back() -> None:
            told = set(match.told())
            if OURS[0] not in told:
                raise LostError(told)
            match.assert_up()
            assert told == {OURS[0]}

        eventually(back, context=match.logs)


@cell("helper")
def test_helper(kind: str, link: Link, tmp_path: Path) -> None:
    with duel(kind, link, tmp_path, restart_time=60) as match:
        match.theirs.kill()

        def alone() -> None:
            (peer,) = match.ours.peers().values()
            assert not peer.established

        def kept() -> None:
            alone()
            if set(match.heard()) != set(THEIRS):
                raise LostError(match.heard())

        eventually(alone, context=match.logs)
        settles(kept, stays=AWAY, context=match.logs)
        del match.theirs.announced[THEIRS[1]]
        match.theirs.resume()

        def back() -> None:
            heard = set(match.heard())
            if THEIRS[0] not in heard:
                raise LostError(heard)
            match.assert_up()
            assert heard == {THEIRS[0]}

        eventually(back, context=match.logs)


@cell("long-lived")
def test_long_lived(kind: str, link: Link, tmp_path: Path) -> None:
    with duel(kind, link, tmp_path, restart_time=1, long_lived_time=60) as match:
        match.ours.kill()

        def last_choice() -> None:
            told = match.told()
            assert set(told) == set(OURS), told
            for route in told.values():
                assert LLGR_STALE in route.communities, route

        eventually(last_choice, context=match.logs)
        match.ours.resume()
        eventually(match.assert_exchanged, context=match.logs)


@cell("long-lived-helper")
def test_long_lived_helper(kind: str, link: Link, tmp_path: Path) -> None:
    with duel(kind, link, tmp_path, restart_time=1, long_lived_time=60) as match:
        match.theirs.kill()

        def last_choice() -> None:
            heard = match.heard()
            assert set(heard) == set(THEIRS), heard
            for route in heard.values():
                assert LLGR_STALE in route.communities, route

        eventually(last_choice, context=match.logs)
        match.theirs.resume()
        eventually(match.assert_exchanged, context=match.logs)


@cell("confederation")
def test_confederation(kind: str, link: Link, tmp_path: Path) -> None:
    with duel(kind, link, tmp_path, confederation=64999, internal_confederation=True) as match:
        for routes, asn in ((match.told(), OUR_ASN), (match.heard(), THEIR_ASN)):
            for route in routes.values():
                assert (route.members, route.as_path) == ((asn,), ()), route
                if kind != "gobgp" or asn == OUR_ASN:
                    # As inside an AS (RFC 5065 section 5).
                    assert route.local_preference == 100, route


@cell("unnumbered")
def test_unnumbered(kind: str, link: Link, tmp_path: Path) -> None:
    anybody = "fe80::"
    ours, theirs = ("192.0.2.0/24", "2001:db8:1::/48"), ("198.51.100.0/24", "2001:db8:2::/48")

    def settings(own_id: str, asn: int, far_asn: int) -> RouterSettings:
        peer = PeerSettings(
            anybody, far_asn, PORT, passive=False, interface=DEVICE, extended_next_hop=True
        )
        return RouterSettings(asn, own_id, ("::",), (peer,), PORT)

    match = Duel(
        Waggle(settings(HERE, OUR_ASN, THEIR_ASN), link.left, tmp_path / "ours"),
        KINDS[kind](settings(THERE, THEIR_ASN, OUR_ASN), link.right, tmp_path / kind),
    )

    def exchanged() -> None:
        peers = list(match.ours.peers())
        assert len(peers) == 1, peers
        peer = peers[0]
        assert peer.endswith(f"%{DEVICE}"), peer
        assert match.ours.peers()[peer].established
        assert [each.established for each in match.theirs.peers().values()] == [True]
        heard: list[RouterRoute] = []
        for family, prefix in zip(FAMILIES, ours, strict=True):
            told = match.theirs.routes(family)
            assert prefix in told, told
            route = told[prefix]
            # Also for IPv4 (RFC 8950).
            assert route.next_hop.startswith(anybody), route
            assert route.as_path == (OUR_ASN,), route
        for family in FAMILIES:
            heard += match.ours.paths_from(family, DEVICE)
        assert {route.prefix for route in heard} == set(theirs), heard
        for route in heard:
            assert route.next_hop.startswith(anybody), route

    with match.theirs, match.ours:
        match.theirs.announce(*theirs)
        match.ours.announce(*ours)
        eventually(exchanged, context=match.logs)
