"""Next hops in the kernel of routes from BIRD and FRR: over IPv6, by RFC 8950, and link-local ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.interop.conftest import NeedRouter
from tests.interop.test_kernel_routes import OTHERS, OURS, PORT, PREFIX, accepting, running
from tests.support.netns import DEVICE, Link
from tests.support.routers import KINDS, PeerSettings, RouterSettings
from tests.support.routers.base import IPV4, IPV6

pytestmark = [pytest.mark.interop, pytest.mark.netns, pytest.mark.program]

PREFIX6, OTHERS6 = "2001:db8:77::/48", "2001:db8:78::/64"
ROUTER_ID = "10.99.0.11"
TWO = ("fd00:99::11", "fd00:99::12")


@pytest.mark.parametrize("kind", ["bird", "frr"])
def test_ipv6_routes_follow_their_peers(
    kind: str, need_router: NeedRouter, link: Link, tmp_path: Path
) -> None:
    need_router(kind)
    link.left.add_address(f"{OURS[1]}/64")
    for address in TWO:
        link.right.add_address(f"{address}/64")
    session = PeerSettings(OURS[1], 64710, port=PORT, families=(IPV6,), passive=True)
    routers = [
        KINDS[kind](
            RouterSettings(64701, f"10.99.0.{11 + number}", (address,), (session,), PORT),
            link.right,
            tmp_path / f"router-{number}",
        )
        for number, address in enumerate(TWO)
    ]
    neighbors = ({"address": address, "asn": 64701} for address in TWO)
    with running(link, tmp_path, routers, accepting(*neighbors)) as found:
        one, two = routers
        one.announce(PREFIX6, OTHERS6)
        two.announce(PREFIX6)
        found.until({PREFIX6: list(TWO), OTHERS6: [TWO[0]]})
        one.withdraw(PREFIX6)
        found.until({PREFIX6: [TWO[1]], OTHERS6: [TWO[0]]})
        one.announce(PREFIX6)
        found.until({PREFIX6: list(TWO), OTHERS6: [TWO[0]]})
        two.stop()
        found.until({PREFIX6: [TWO[0]], OTHERS6: [TWO[0]]})


@pytest.mark.parametrize("kind", ["bird", "frr"])
def test_a_path_over_another_as_follows_the_best_one(
    kind: str, need_router: NeedRouter, link: Link, tmp_path: Path
) -> None:
    """Of equal length, and no equal path without --fib-multipath-relax."""
    need_router(kind)
    link.left.add_address(f"{OURS[0]}/24")
    session = PeerSettings(OURS[0], 64710, port=PORT, families=(IPV4,), passive=True)
    ases = {"10.99.0.11": 64701, "10.99.0.12": 64702}
    routers = []
    for address, asn in ases.items():
        link.right.add_address(f"{address}/24")
        settings = RouterSettings(asn, address, (address,), (session,), PORT)
        routers.append(KINDS[kind](settings, link.right, tmp_path / f"router-{asn}"))
    neighbors = ({"address": address, "asn": asn} for address, asn in ases.items())
    first, second = ases
    with running(link, tmp_path, routers, accepting(*neighbors)) as found:
        one, two = routers
        # It is the older one, and has the lower router ID.
        one.announce(PREFIX)
        found.until({PREFIX: [first]})
        two.announce(PREFIX, OTHERS)
        found.until({PREFIX: [first], OTHERS: [second]})
        one.withdraw(PREFIX)
        found.until({PREFIX: [second], OTHERS: [second]})


@pytest.mark.parametrize("kind", ["bird", "frr"])
def test_rfc8950_an_ipv4_route_has_the_ipv6_next_hop_of_its_session(
    kind: str, need_router: NeedRouter, link: Link, tmp_path: Path
) -> None:
    need_router(kind)
    link.left.add_address(f"{OURS[1]}/64")
    link.right.add_address(f"{TWO[0]}/64")
    session = PeerSettings(
        OURS[1], 64710, port=PORT, families=(IPV4, IPV6), passive=True, extended_next_hop=True
    )
    settings = RouterSettings(64701, ROUTER_ID, (TWO[0],), (session,), PORT)
    router = KINDS[kind](settings, link.right, tmp_path / kind)
    neighbor = {"address": TWO[0], "asn": 64701, "dualStackAddressFamily": True}
    with running(link, tmp_path, [router], accepting(neighbor)) as found:
        router.announce(PREFIX, PREFIX6)
        found.until({PREFIX: [TWO[0]], PREFIX6: [TWO[0]]})
        router.withdraw(PREFIX)
        found.until({PREFIX6: [TWO[0]]})


@pytest.mark.parametrize("kind", ["bird", "frr"])
def test_an_unnumbered_peer_is_the_link_local_gateway_of_both_families(
    kind: str, need_router: NeedRouter, link: Link, tmp_path: Path
) -> None:
    need_router(kind)
    session = PeerSettings(
        "fe80::", 64710, PORT, passive=False, interface=DEVICE, extended_next_hop=True
    )
    settings = RouterSettings(64701, ROUTER_ID, ("::",), (session,), PORT)
    router = KINDS[kind](settings, link.right, tmp_path / kind)
    neighbor = {"interface": DEVICE, "asn": 64701}
    (row,) = json.loads(link.right.run("ip", "-j", "-6", "addr", "show", "dev", DEVICE))
    (gateway,) = (one["local"] for one in row["addr_info"] if one["scope"] == "link")
    with running(link, tmp_path, [router], accepting(neighbor)) as found:
        router.announce(PREFIX, PREFIX6)
        found.until({PREFIX: [gateway], PREFIX6: [gateway]})
        router.stop()
        found.until({})
