"""The drivers of real routers, proved on each other: what one announces the other's table has.

If these fail, the tests of Waggle against the same routers are meaningless.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.conftest import NeedRouter
from tests.interop.router_pair import LEFT, make_pair
from tests.support.netns import Link
from tests.support.routers import KINDS, Router
from tests.support.wait import eventually

pytestmark = [pytest.mark.interop, pytest.mark.netns]


@pytest.mark.parametrize(
    ("active", "passive"),
    [
        ("bird", "gobgp"),
        ("bird", "frr"),
        ("frr", "bird"),
        ("bird", "openbgpd"),
        ("openbgpd", "bird"),
        ("bird", "exabgp"),
        ("exabgp", "bird"),
    ],
)
def test_routers_receive_the_routes_of_the_other(
    active: str, passive: str, need_router: NeedRouter, link: Link, tmp_path: Path
) -> None:
    for kind in (active, passive):
        need_router(kind)
    pair = make_pair(
        KINDS[active], KINDS[passive], link, tmp_path, left_passive=False, right_passive=True
    )
    with pair.right, pair.left:
        pair.announce()
        eventually(pair.assert_learnt, context=pair.logs)
        pair.assert_established()
        before = pair.tokens()
        pair.left.withdraw("192.0.2.0/24")
        eventually(lambda: _assert_none(pair.right), context=pair.logs)
        assert pair.tokens() == before
        assert not pair.right.received_cease()
        if active == "bird":
            # Not every router sends a Cease when it is stopped; this one does.
            pair.left.stop()
            eventually(lambda: _assert_ceased(pair.right), context=pair.logs)


def _assert_none(router: Router) -> None:
    assert router.routes("ipv4-unicast", LEFT[0]) == {}


def _assert_ceased(router: Router) -> None:
    assert router.received_cease()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_router_reports_its_version(kind: str, need_router: NeedRouter) -> None:
    need_router(kind)
    name, number = KINDS[kind].version().split()
    assert name.lower() == kind
    assert number[0].isdigit()
