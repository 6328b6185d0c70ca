"""The cells of the interop matrix that need routers of their own: restarts, confederations.

Each scenario is a coroutine; they all run together before the first test, and each test reports
how its own has ended.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.interop import duel
from tests.interop.duel import (
    BESIDE,
    CONFEDERATION,
    HERE,
    MEMBER_ASN,
    OUR_ASN,
    OURS,
    PORT,
    THEIR_ASN,
    THEIRS,
    THERE,
    Cell,
    Duel,
    LostError,
    Scenario,
    becomes,
    router_settings,
)
from tests.interop.matrix_rows import cell
from tests.support.netns import DEVICE, Link
from tests.support.routers import FAMILIES, KINDS, PeerSettings, RouterRoute, RouterSettings
from tests.support.routers.base import IPV4
from tests.support.routers.waggle import Waggle

pytestmark = [
    pytest.mark.interop,
    pytest.mark.netns,
    pytest.mark.program,
    # The first test waits for all that are played, by the one process that runs them (pytest-xdist).
    pytest.mark.timeout(1200),
    pytest.mark.xdist_group("matrix-alone"),
]

LLGR_STALE = "65535:6"
AWAY = 0.5
"""Seconds for which routes are watched while their origin is away."""
SCENARIOS: Final[dict[str, Scenario]] = {}


def scenario(feature: str) -> Callable[[Scenario], Callable[..., None]]:
    """Make a coroutine the row of a feature, once for every router that can do it."""

    def decorate(play: Scenario) -> Callable[..., None]:
        SCENARIOS[feature] = play

        def test(kind: str, outcomes: dict[Cell, Exception | None]) -> None:
            error = outcomes[feature, kind]
            if error is not None:
                raise error

        return cell(feature)(test)

    return decorate


@pytest.fixture(scope="module")
def outcomes(
    request: pytest.FixtureRequest,
    unavailable_routers: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[Cell, Exception | None]:
    """How the cells have ended that chosen tests ask for, all played together."""
    chosen: dict[Cell, Scenario] = {}
    for item in request.session.items:
        if isinstance(item, pytest.Function) and item.path == request.path:
            marker = item.get_closest_marker("cell")
            kind = str(item.callspec.params["kind"])
            if marker is not None and kind not in unavailable_routers:
                feature = str(marker.args[0])
                chosen[feature, kind] = SCENARIOS[feature]
    return duel.play(chosen, tmp_path_factory.mktemp("alone"))


def assert_alone(match: Duel, *, ours: bool) -> None:
    """Check that one of the two has noticed that the other is gone."""
    router, far = (match.ours, THERE) if ours else (match.theirs, HERE)
    assert not router.peers()[far].established


@scenario("restarting")
async def test_restarting(kind: str, link: Link, directory: Path) -> None:
    async with duel.duel(kind, link, directory, restart_time=300) as match:
        # SIGTERM: neighbours see the end of the connection and nothing else.
        match.ours.stop()

        def kept() -> None:
            assert_alone(match, ours=False)
            if set(match.advertised_routes()) != set(OURS):
                raise LostError(match.advertised_routes())

        await becomes(kept, stays=AWAY, context=match.logs)
        del match.ours.announced[OURS[1]]
        match.ours.resume()
        await duel.ready(match.ours)

        def back() -> None:
            routes = set(match.advertised_routes())
            if OURS[0] not in routes:
                raise LostError(routes)
            match.assert_up()
            assert routes == {OURS[0]}

        await becomes(back, context=match.logs)


@scenario("helper")
async def test_helper(kind: str, link: Link, directory: Path) -> None:
    async with duel.duel(kind, link, directory, restart_time=300) as match:
        match.theirs.kill()

        def kept() -> None:
            assert_alone(match, ours=True)
            if set(match.received_routes()) != set(THEIRS):
                raise LostError(match.received_routes())

        await becomes(kept, stays=AWAY, context=match.logs)
        del match.theirs.announced[THEIRS[1]]
        match.theirs.resume()
        await duel.ready(match.theirs)

        def back() -> None:
            received = set(match.received_routes())
            if THEIRS[0] not in received:
                raise LostError(received)
            match.assert_up()
            assert received == {THEIRS[0]}

        await becomes(back, context=match.logs)


@scenario("long-lived")
async def test_long_lived(kind: str, link: Link, directory: Path) -> None:
    async with duel.duel(kind, link, directory, restart_time=1, long_lived_time=600) as match:
        match.ours.kill()

        def kept_as_stale() -> None:
            routes = match.advertised_routes()
            assert set(routes) == set(OURS), routes
            for route in routes.values():
                assert LLGR_STALE in route.communities, route

        await becomes(kept_as_stale, context=match.logs)
        match.ours.resume()
        await duel.ready(match.ours)
        await becomes(match.assert_exchanged, context=match.logs)


@scenario("long-lived-helper")
async def test_long_lived_helper(kind: str, link: Link, directory: Path) -> None:
    async with duel.duel(kind, link, directory, restart_time=1, long_lived_time=600) as match:
        match.theirs.kill()

        def kept_as_stale() -> None:
            received = match.received_routes()
            assert set(received) == set(THEIRS), received
            for route in received.values():
                assert LLGR_STALE in route.communities, route

        await becomes(kept_as_stale, context=match.logs)
        match.theirs.resume()
        await duel.ready(match.theirs)
        await becomes(match.assert_exchanged, context=match.logs)


@scenario("confederation")
async def test_confederation(kind: str, link: Link, directory: Path) -> None:
    async with duel.duel(
        kind, link, directory, confederation=CONFEDERATION, internal_confederation=True
    ) as match:
        for routes, asn in (
            (match.advertised_routes(), OUR_ASN),
            (match.received_routes(), THEIR_ASN),
        ):
            for route in routes.values():
                assert (route.members, route.as_path) == ((asn,), ()), route
                if kind != "gobgp" or asn == OUR_ASN:
                    # As inside an AS (RFC 5065 section 5).
                    assert route.local_preference == 100, route


@scenario("confederation-outside")
async def test_confederation_from_outside(kind: str, link: Link, directory: Path) -> None:
    beyond = "198.18.201.0/24"
    link.left.add_address(f"{BESIDE}/24")

    def towards(address: str, asn: int, *, inside: bool, passive: bool = True) -> PeerSettings:
        return PeerSettings(
            address,
            asn,
            PORT,
            families=(IPV4,),
            passive=passive,
            internal_confederation=inside,
        )

    def passing_on(peer: PeerSettings) -> PeerSettings:
        return dataclasses.replace(peer, transit=True)

    member = Waggle(
        router_settings(
            BESIDE,
            MEMBER_ASN,
            towards(HERE, OUR_ASN, inside=True, passive=False),
            confederation=CONFEDERATION,
        ),
        link.left,
        directory / "member",
    )
    ours = router_settings(
        HERE,
        OUR_ASN,
        passing_on(towards(THERE, THEIR_ASN, inside=False, passive=False)),
        passing_on(towards(BESIDE, MEMBER_ASN, inside=True)),
        confederation=CONFEDERATION,
    )
    theirs = router_settings(THERE, THEIR_ASN, towards(HERE, CONFEDERATION, inside=False))
    async with duel.meeting(kind, link, directory, ours, theirs) as match, duel.running(member):
        member.announce(beyond)

        def one_as() -> None:
            routes = match.advertised_routes()
            assert set(routes) == {*OURS, beyond}, routes
            for route in routes.values():
                # Of the members, and which of them it has been through, nothing is left.
                assert (route.members, route.as_path) == ((), (CONFEDERATION,)), route
            inside = member.routes(IPV4)
            assert set(inside) == {*OURS, *THEIRS}, inside
            for prefix in THEIRS:
                assert inside[prefix].members == (OUR_ASN,), inside
                assert inside[prefix].as_path == (THEIR_ASN,), inside

        await becomes(one_as, context=match.logs)


@scenario("unnumbered")
async def test_unnumbered(kind: str, link: Link, directory: Path) -> None:
    anybody = "fe80::"
    ours, theirs = ("192.0.2.0/24", "2001:db8:1::/48"), ("198.51.100.0/24", "2001:db8:2::/48")

    def settings(own_id: str, asn: int, far_asn: int) -> RouterSettings:
        peer = PeerSettings(
            anybody, far_asn, PORT, passive=False, interface=DEVICE, extended_next_hop=True
        )
        return RouterSettings(asn, own_id, ("::",), (peer,), PORT)

    match = Duel(
        Waggle(settings(HERE, OUR_ASN, THEIR_ASN), link.left, directory / "ours"),
        KINDS[kind](settings(THERE, THEIR_ASN, OUR_ASN), link.right, directory / kind),
    )

    def exchanged() -> None:
        peers = list(match.ours.peers())
        assert len(peers) == 1, peers
        peer = peers[0]
        assert peer.endswith(f"%{DEVICE}"), peer
        assert match.ours.peers()[peer].established
        assert [each.established for each in match.theirs.peers().values()] == [True]
        received: list[RouterRoute] = []
        for family, prefix in zip(FAMILIES, ours, strict=True):
            routes = match.theirs.routes(family)
            assert prefix in routes, routes
            route = routes[prefix]
            # Also for IPv4 (RFC 8950).
            assert route.next_hop.startswith(anybody), route
            assert route.as_path == (OUR_ASN,), route
        for family in FAMILIES:
            received += match.ours.paths_from(family, DEVICE)
        assert {route.prefix for route in received} == set(theirs), received
        for route in received:
            assert route.next_hop.startswith(anybody), route

    async with duel.running(match.theirs, match.ours):
        match.theirs.announce(*theirs)
        match.ours.announce(*ours)
        await becomes(exchanged, context=match.logs)
