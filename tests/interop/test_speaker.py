"""The speaker alone (``waggle router``) and real routers: sessions either way, and routes both ways.

What the agent does not use of the speaker is tried here: the listener, collisions, routes passed
on, neighbours known by a prefix only.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.conftest import NeedRouter
from tests.interop.router_pair import LEFT, LEFT_ASN, PORT, RIGHT, RIGHT_ASN, TTL, make_pair
from tests.support.netns import Link
from tests.support.routers import FAMILIES, KINDS, PeerSettings, Router, RouterSettings
from tests.support.routers.waggle import Waggle
from tests.support.wait import eventually, settles

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

ALL_KINDS = sorted(KINDS)
# GoBGP waits for five seconds and more before it connects.
QUICK_TO_CONNECT = [kind for kind in ALL_KINDS if kind != "gobgp"]
WITH_PASSWORDS = [
    kind for kind, driver in KINDS.items() if "password" not in driver.CANNOT | driver.CONNECTS_FOR
]
PASSWORD = "only-the-two-of-us-know"


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_routes_go_both_ways_when_the_speaker_connects(
    kind: str, need_router: NeedRouter, link: Link, tmp_path: Path
) -> None:
    need_router(kind)
    pair = make_pair(Waggle, KINDS[kind], link, tmp_path, left_passive=False, right_passive=True)
    with pair.right, pair.left:
        pair.announce()
        eventually(pair.assert_learnt, context=pair.logs)
        before = pair.tokens()
        pair.left.withdraw("192.0.2.0/24", "2001:db8:1::/48")

        def withdrawn() -> None:
            assert [pair.right.routes(f, a) for f, a in zip(FAMILIES, LEFT, strict=True)] == [
                {},
                {},
            ]

        eventually(withdrawn, context=pair.logs)
        pair.left.announce("192.0.2.0/24", "2001:db8:1::/48")
        eventually(pair.assert_learnt, context=pair.logs)
        assert pair.tokens() == before
        pair.left.stop()
        eventually(lambda: _assert_ceased(pair.right), context=pair.logs)


@pytest.mark.parametrize("kind", QUICK_TO_CONNECT)
def test_routes_go_both_ways_when_the_router_connects(
    kind: str, need_router: NeedRouter, link: Link, tmp_path: Path
) -> None:
    need_router(kind)
    pair = make_pair(Waggle, KINDS[kind], link, tmp_path, left_passive=True, right_passive=False)
    with pair.right, pair.left:
        pair.announce()
        eventually(pair.assert_learnt, context=pair.logs)


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_one_session_is_left_when_both_connect(
    kind: str, need_router: NeedRouter, link: Link, tmp_path: Path
) -> None:
    need_router(kind)
    pair = make_pair(Waggle, KINDS[kind], link, tmp_path, left_passive=False, right_passive=False)
    with pair.right, pair.left:
        pair.announce()
        settles(pair.assert_learnt, stays=0.5, context=pair.logs)
        before = pair.tokens()
        settles(pair.assert_established, stays=1.0, context=pair.logs)
        assert pair.tokens() == before


@pytest.mark.parametrize("kind", WITH_PASSWORDS)
def test_a_session_is_protected_by_tcp_md5(
    kind: str, need_router: NeedRouter, link: Link, tmp_path: Path
) -> None:
    need_router(kind)
    pair = make_pair(
        Waggle,
        KINDS[kind],
        link,
        tmp_path,
        left_passive=False,
        right_passive=True,
        passwords=(PASSWORD, PASSWORD),
    )
    with pair.right, pair.left:
        pair.announce()
        eventually(pair.assert_learnt, context=pair.logs)


@pytest.mark.parametrize("kind", WITH_PASSWORDS)
def test_another_password_is_no_session(
    kind: str, need_router: NeedRouter, link: Link, tmp_path: Path
) -> None:
    need_router(kind)
    pair = make_pair(
        Waggle,
        KINDS[kind],
        link,
        tmp_path,
        left_passive=False,
        right_passive=True,
        passwords=("another", PASSWORD),
    )

    def refused() -> None:
        for peer in pair.left.peers().values():
            assert not peer.established
            state, _, reason = peer.state.partition(" ")
            assert reason, state

    with pair.right, pair.left:
        settles(refused, stays=1.0, context=pair.logs)
        assert PASSWORD not in pair.left.daemon.tail()
        assert "another" not in pair.left.daemon.tail()


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_routes_are_passed_on_with_our_as_in_front(
    kind: str, need_router: NeedRouter, link: Link, tmp_path: Path
) -> None:
    need_router(kind)
    middle, outer = "10.98.0.1", {"10.98.0.11": 65101, "10.98.0.12": 65102}
    for address in outer:
        link.connect(middle, address)
    speaker = Waggle(
        RouterSettings(
            asn=LEFT_ASN,
            router_id=middle,
            addresses=(middle,),
            port=PORT,
            peers=tuple(
                PeerSettings(address, asn, port=PORT, passive=False, multihop=TTL, transit=True)
                for address, asn in outer.items()
            ),
        ),
        link.left,
        tmp_path / "speaker",
    )
    source, target = (
        KINDS[kind](
            RouterSettings(
                asn=asn,
                router_id=address,
                addresses=(address,),
                port=PORT,
                peers=(PeerSettings(middle, LEFT_ASN, families=("ipv4-unicast",), multihop=TTL),),
            ),
            link.right,
            tmp_path / address,
        )
        for address, asn in outer.items()
    )

    def logs() -> str:
        return "\n".join(router.daemon.tail() for router in (speaker, source, target))

    def passed_on() -> None:
        route = target.routes("ipv4-unicast")["203.0.113.0/24"]
        assert (route.as_path, route.next_hop) == ((LEFT_ASN, 65101), middle)

    def withdrawn() -> None:
        assert target.routes("ipv4-unicast") == {}

    with source, target, speaker:
        source.announce("203.0.113.0/24")
        eventually(lambda: _has(target, "203.0.113.0/24"), context=logs)
        passed_on()
        source.stop()
        eventually(withdrawn, context=logs)


@pytest.mark.parametrize("kind", QUICK_TO_CONNECT)
def test_a_neighbour_known_by_its_prefix_may_connect(
    kind: str, need_router: NeedRouter, link: Link, tmp_path: Path
) -> None:
    need_router(kind)
    link.connect(LEFT[0], RIGHT[0])
    speaker = Waggle(
        RouterSettings(
            asn=LEFT_ASN,
            router_id=LEFT[0],
            addresses=(LEFT[0],),
            port=PORT,
            peers=(PeerSettings("10.98.0.0/24", RIGHT_ASN, multihop=TTL),),
        ),
        link.left,
        tmp_path / "speaker",
    )
    router = KINDS[kind](
        RouterSettings(
            asn=RIGHT_ASN,
            router_id=RIGHT[0],
            addresses=(RIGHT[0],),
            port=PORT,
            peers=(PeerSettings(LEFT[0], LEFT_ASN, port=PORT, passive=False, multihop=TTL),),
        ),
        link.right,
        tmp_path / "router",
    )

    def logs() -> str:
        return f"{speaker.daemon.tail()}\n{router.daemon.tail()}"

    with speaker, router:
        speaker.announce("192.0.2.0/24")
        eventually(lambda: _has(router, "192.0.2.0/24"), context=logs)
        assert speaker.peers()[RIGHT[0]].established


def _has(router: Router, prefix: str) -> None:
    assert prefix in router.routes("ipv4-unicast")


def _assert_ceased(router: Router) -> None:
    assert router.received_cease()
