"""The cells of the interop matrix: each feature with each router that can do it.

What can be tried on a session of its own shares one arena a kind; the rest has routers of its own. A
check reads the state of both ends.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop import arena as lab
from tests.interop.arena import Arena, running_arenas
from tests.interop.matrix_rows import cell
from tests.support.routers import FAMILIES, KINDS, Bird, ExaBGP, RouterRoute
from tests.support.routers.base import AS_TRANS, IPV4, IPV6
from tests.support.wait import eventually, settles

pytestmark = [
    pytest.mark.interop,
    pytest.mark.netns,
    pytest.mark.program,
    # All in one process, with one arena of each kind (pytest-xdist).
    pytest.mark.xdist_group("matrix"),
]


@pytest.fixture(scope="module")
def arenas(
    request: pytest.FixtureRequest,
    unavailable_routers: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Arena]]:
    """An arena of each kind that a selected test requires, all started together."""
    chosen = {
        item.callspec.params["kind"]
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and item.path == request.path
        and "arena" in item.fixturenames
    }
    available = [kind for kind in KINDS if kind in chosen and kind not in unavailable_routers]
    with running_arenas(available, tmp_path_factory.mktemp("arena")) as made:
        yield made


@pytest.fixture
def arena(recorded_cell: None, arenas: dict[str, Arena], kind: str) -> Arena:
    """The arena of the test's kind."""
    return arenas[kind]


def of(prefix: str, routes: dict[str, RouterRoute]) -> RouterRoute:
    """Return the route of a prefix, or fail in a way that is waited for."""
    assert prefix in routes, f"{prefix} is not among {sorted(routes)}"
    return routes[prefix]


def assert_told(
    arena: Arena, wire: str, *prefixes: str, next_hop: str | None = None, asn: int = lab.OUR_ASN
) -> None:
    """Check that the session is up and that their table has our prefixes, as received by eBGP."""
    arena.assert_up(wire)
    for prefix in prefixes:
        family = IPV6 if ":" in prefix else IPV4
        route = of(prefix, arena.theirs.routes(family, arena.here(wire)))
        assert route.next_hop == (next_hop or arena.here(wire)), route
        assert (route.as_path, route.origin) == ((asn,), "igp"), route


def assert_heard(arena: Arena, wire: str, *prefixes: str, next_hop: str | None = None) -> None:
    """Check that our table has their prefixes, as received by eBGP."""
    for prefix in prefixes:
        family = IPV6 if ":" in prefix else IPV4
        route = of(prefix, arena.ours.routes(family, arena.there(wire)))
        assert route.next_hop == (next_hop or arena.there(wire)), route
        assert (route.as_path, route.origin) == ((lab.THEIR_ASN,), "igp"), route


@cell("ipv4")
def test_ipv4(arena: Arena) -> None:
    def exchanged() -> None:
        assert_told(arena, "ipv4", *lab.OUR_IPV4)
        assert_heard(arena, "ipv4", *lab.THEIR_IPV4)

    eventually(exchanged, context=arena.logs)
    arena.ours.announce("198.18.10.0/24")
    eventually(lambda: assert_told(arena, "ipv4", "198.18.10.0/24"), context=arena.logs)
    arena.ours.withdraw("198.18.10.0/24")

    def withdrawn() -> None:
        routes = arena.theirs.routes(IPV4, arena.here("ipv4"))
        assert "198.18.10.0/24" not in routes
        assert lab.OUR_IPV4[0] in routes

    eventually(withdrawn, context=arena.logs)


@cell("ipv6")
def test_ipv6(arena: Arena) -> None:
    def exchanged() -> None:
        assert_told(arena, "ipv6", *lab.OUR_IPV6)
        assert_heard(arena, "ipv6", *lab.THEIR_IPV6)

    eventually(exchanged, context=arena.logs)


@cell("both-families")
def test_both_families(arena: Arena) -> None:
    (_, here), _ = lab.addresses(lab.number_of("both"))

    def exchanged() -> None:
        assert_told(arena, "both", *lab.OUR_IPV4)
        assert_told(arena, "both", *lab.OUR_IPV6, next_hop=here)
        assert_heard(arena, "both", *lab.THEIR_IPV4)
        of(lab.THEIR_IPV6[0], arena.ours.routes(IPV6, arena.there("both")))

    eventually(exchanged, context=arena.logs)


@cell("ipv6-over-ipv4")
def test_ipv6_over_ipv4(arena: Arena) -> None:
    wire = "ipv6-over-ipv4"
    (_, here), _ = lab.addresses(lab.number_of(wire))

    def exchanged() -> None:
        assert_told(arena, wire, *lab.OUR_IPV6, next_hop=here)
        # Some send an address of theirs, some the v4-mapped one, some that of the loopback.
        of(lab.THEIR_IPV6[0], arena.ours.routes(IPV6, arena.there(wire)))
        assert not arena.theirs.routes(IPV4, arena.here(wire))

    eventually(exchanged, context=arena.logs)


@cell("ipv4-over-ipv6")
def test_ipv4_over_ipv6(arena: Arena) -> None:
    def exchanged() -> None:
        # The next hops are the session's addresses, of IPv6.
        assert_told(arena, "ipv4-over-ipv6", *lab.OUR_IPV4, *lab.OUR_IPV6)
        assert_heard(arena, "ipv4-over-ipv6", *lab.THEIR_IPV4, *lab.THEIR_IPV6)

    eventually(exchanged, context=arena.logs)


@cell("md5")
def test_md5(arena: Arena) -> None:
    def exchanged() -> None:
        assert_told(arena, "md5", *lab.OUR_IPV4)
        assert_heard(arena, "md5", *lab.THEIR_IPV4)

    def refused() -> None:
        peer = arena.peer("md5-wrong")
        assert peer["state"] in {"Connect", "Active"}, peer
        assert not arena.theirs.peers()[arena.here("md5-wrong")].established
        # By the kernel of the listening end.
        assert arena.dropped("TCPMD5Failure")

    eventually(exchanged, context=arena.logs)
    # The other wire has had as long to come up.
    eventually(refused, context=arena.logs)


@cell("gtsm")
def test_gtsm(arena: Arena) -> None:
    def exchanged() -> None:
        assert_told(arena, "gtsm", *lab.OUR_IPV4)
        assert_heard(arena, "gtsm", *lab.THEIR_IPV4)

    def refused() -> None:
        peer = arena.peer("gtsm-far")
        assert peer["state"] in {"Connect", "Active"}, peer
        assert not arena.theirs.peers()[arena.here("gtsm-far")].established
        # By the kernel of the connecting end: the TTL of the answer is decremented. Where we listen,
        # there is no answer: the filter of our listener drops the SYN, which no counter has.
        ends = [state for end in arena.connections("gtsm-far") for state, _ in end]
        assert arena.dropped("TCPMinTTLDrop") or "SYN-SENT" in ends

    eventually(exchanged, context=arena.logs)
    eventually(refused, context=arena.logs)


@cell("multihop")
def test_multihop(arena: Arena) -> None:
    def exchanged() -> None:
        assert_told(arena, "multihop", *lab.OUR_IPV4)
        assert_heard(arena, "multihop", *lab.THEIR_IPV4)

    eventually(exchanged, context=arena.logs)


def assert_connections(arena: Arena, state: str, number: int) -> None:
    """Check that each end has so many TCP connections in a state."""
    for found in arena.connections("collision"):
        assert [each for each, _ in found].count(state) == number, found


@cell("collision")
def test_collision(arena: Arena) -> None:
    here = arena.here("collision")

    def both_try() -> None:
        assert_connections(arena, "SYN-SENT", 1)

    def exchanged() -> None:
        assert_told(arena, "collision", *lab.OUR_IPV4)
        assert_heard(arena, "collision", *lab.THEIR_IPV4)
        assert_connections(arena, "ESTAB", 1)

    def meet() -> None:
        with arena.frozen():
            # Neither was frozen between two attempts: that is tried again.
            both_try()
            arena.mend("collision")
            # Each has a session of its own, and a session that it has not accepted yet.
            eventually(lambda: assert_connections(arena, "ESTAB", 2), context=arena.logs)

    eventually(meet, context=arena.logs)
    eventually(exchanged, context=arena.logs)
    before = arena.theirs.peers()[here].uptime_token
    settles(exchanged, stays=0.5, context=arena.logs)
    assert arena.theirs.peers()[here].uptime_token == before


@cell("four-octet-as")
def test_four_octet_as(arena: Arena) -> None:
    def exchanged() -> None:
        assert_told(arena, "as4", *lab.OUR_IPV4, asn=lab.BIG_ASN)
        assert_heard(arena, "as4", *lab.THEIR_IPV4)

    eventually(exchanged, context=arena.logs)


@cell("old-speaker")
def test_old_speaker(arena: Arena) -> None:
    def exchanged() -> None:
        assert_told(arena, "as2", *lab.OUR_IPV4)
        assert_heard(arena, "as2", *lab.THEIR_IPV4)
        assert "four-octet-as" not in arena.peer("as2").get("capabilities", ())
        # BIRD reads AS4_PATH in this role, too.
        route = of(lab.THIRD_PREFIX, arena.theirs.routes(IPV4, arena.here("as2")))
        assert route.as_path in {(lab.OUR_ASN, AS_TRANS), (lab.OUR_ASN, lab.THIRD_ASN)}, route
        if "transit" not in arena.theirs.CANNOT:
            # Two octets and AS4_PATH make the whole path again.
            back = of(lab.THIRD_PREFIX, arena.ours.routes(IPV4, arena.there("as2")))
            assert back.as_path == (lab.THEIR_ASN, lab.THIRD_ASN), back

    eventually(exchanged, context=arena.logs)


@cell("communities")
def test_communities(arena: Arena) -> None:
    def exchanged() -> None:
        arena.assert_up("ipv4")
        found = of(lab.OUR_COLOURED, arena.theirs.routes(IPV4, arena.here("ipv4")))
        assert found.communities == set(lab.OUR_COMMUNITIES)
        assert found.large_communities == set(lab.OUR_LARGE_COMMUNITIES)
        heard = of(lab.THEIR_COLOURED, arena.ours.routes(IPV4, arena.there("ipv4")))
        assert heard.communities == set(lab.THEIR_COMMUNITIES)
        assert heard.large_communities == set(lab.THEIR_LARGE_COMMUNITIES)

    eventually(exchanged, context=arena.logs)


LARGE = tuple(f"65001:7:{number}" for number in range(400))
"""4,800 octets of attribute."""


@cell("extended-messages")
def test_extended_messages(arena: Arena) -> None:
    ours, theirs = "198.18.11.0/24", "198.18.111.0/24"

    def up() -> None:
        arena.assert_up("ipv4")
        assert "extended-message" in arena.peer("ipv4")["capabilities"]

    def exchanged() -> None:
        arena.assert_up("ipv4")
        if isinstance(arena.theirs, Bird):
            condition = f"net = {ours} && bgp_large_community.len = {len(LARGE)}"
            assert arena.theirs.count_where(arena.here("ipv4"), condition) == 1
        else:
            found = of(ours, arena.theirs.routes(IPV4, arena.here("ipv4")))
            assert found.large_communities == set(LARGE)
        heard = of(theirs, arena.ours.routes(IPV4, arena.there("ipv4")))
        assert heard.large_communities == set(LARGE)

    eventually(up, context=arena.logs)
    arena.ours.announce(ours, large_communities=LARGE)
    arena.theirs.announce(theirs, large_communities=LARGE)
    eventually(exchanged, context=arena.logs)
    arena.ours.withdraw(ours)
    arena.theirs.withdraw(theirs)


def assert_refreshable(arena: Arena) -> None:
    """Check that both tables are complete."""
    assert_told(arena, "refresh", *lab.OUR_IPV4)
    assert_heard(arena, "refresh", *lab.THEIR_IPV4)
    of(lab.OUR_IPV6[0], arena.theirs.routes(IPV6, arena.here("refresh")))
    of(lab.THEIR_IPV6[0], arena.ours.routes(IPV6, arena.there("refresh")))


@cell("route-refresh-sent")
def test_route_refresh_sent(arena: Arena) -> None:
    here, there = arena.here("refresh"), arena.there("refresh")
    settles(lambda: assert_refreshable(arena), stays=0.3, context=arena.logs)
    before, requests = (
        arena.ours.message_counts(there),
        arena.theirs.message_counts(here).refresh_requests,
    )
    assert requests is not None
    arena.ours.request_refresh(there)

    def answered() -> None:
        # A request for each family, and its routes again.
        assert (arena.theirs.message_counts(here).refresh_requests or 0) >= requests + len(FAMILIES)
        assert arena.ours.message_counts(there).updates > before.updates

    eventually(answered, context=arena.logs)
    assert_refreshable(arena)


@cell("route-refresh-received")
def test_route_refresh_received(arena: Arena) -> None:
    here = arena.here("refresh")
    settles(lambda: assert_refreshable(arena), stays=0.3, context=arena.logs)
    before = arena.theirs.message_counts(here)
    arena.theirs.request_refresh(here)

    def advertised_again() -> None:
        assert arena.theirs.message_counts(here).updates > before.updates

    eventually(advertised_again, context=arena.logs)
    assert_refreshable(arena)


@cell("enhanced-route-refresh")
def test_enhanced_route_refresh(arena: Arena) -> None:
    here = arena.here("refresh")

    def up() -> None:
        assert_told(arena, "refresh", *lab.OUR_IPV4)
        assert "enhanced-route-refresh" in arena.peer("refresh")["capabilities"]

    eventually(up, context=arena.logs)
    before = arena.theirs.message_counts(here)
    assert before.refresh_begins is not None
    assert before.refresh_ends is not None
    arena.theirs.request_refresh(here)

    def marked() -> None:
        now = arena.theirs.message_counts(here)
        # For both families.
        assert (now.refresh_begins or 0) >= (before.refresh_begins or 0) + len(FAMILIES)
        assert (now.refresh_ends or 0) >= (before.refresh_ends or 0) + len(FAMILIES)

    eventually(marked, context=arena.logs)
    assert_told(arena, "refresh", *lab.OUR_IPV4)


@cell("add-path-send")
def test_add_path_send(arena: Arena) -> None:
    def both_paths() -> None:
        arena.assert_up("add-path-send")
        found = {
            route.as_path
            for route in arena.theirs.paths(IPV4, arena.here("add-path-send"))
            if route.prefix == lab.SHARED
        }
        assert {(lab.OUR_ASN,), (lab.OUR_ASN, lab.THIRD_ASN)} <= found, found

    eventually(both_paths, context=arena.logs)


@cell("add-path-receive")
def test_add_path_receive(arena: Arena) -> None:
    wire = "add-path-receive"
    if isinstance(arena.theirs, ExaBGP):
        # It has no table to advertise from, but can be configured with two paths.
        path = f"{lab.SHARED} next-hop {arena.there(wire)} path-information 0.0.0.7"
        path += f" as-path [ {lab.THEIR_ASN} {lab.THIRD_ASN} ]"
        arena.theirs.ask(f"neighbor {arena.here(wire)} announce route {path}")

    def both_paths() -> None:
        arena.assert_up(wire)
        found = {
            route.as_path
            for route in arena.ours.paths(IPV4, arena.there(wire))
            if route.prefix == lab.SHARED
        }
        assert {(lab.THEIR_ASN,), (lab.THEIR_ASN, lab.THIRD_ASN)} <= found, found

    eventually(both_paths, context=arena.logs)


@cell("limit-theirs")
def test_their_limit(arena: Arena) -> None:
    def ended() -> None:
        peer = arena.peer("limit-theirs")
        assert peer["state"] != "Established", peer
        assert "Maximum Number of Prefixes" in f"{peer['lastError']} {peer['reason']}", peer
        assert not arena.theirs.peers()[arena.here("limit-theirs")].established
        assert not arena.theirs.routes(IPV4, arena.here("limit-theirs"))

    eventually(ended, context=arena.logs)


@cell("limit-ours")
def test_our_limit(arena: Arena) -> None:
    def ended() -> None:
        peer = arena.peer("limit-ours")
        assert peer["state"] == "Idle", peer
        assert f"the limit is {lab.PREFIX_LIMIT}" in peer["reason"], peer
        word = arena.theirs.last_notification(arena.here("limit-ours"))
        assert any(sign in word.lower() for sign in ("prefix", "6/1", '"subcode":1')), word
        assert not arena.ours.routes(IPV4, arena.there("limit-ours"))

    eventually(ended, context=arena.logs)


REASON = "new cable at 14:00"


@cell("shutdown-sent")
def test_shutdown_sent(arena: Arena) -> None:
    wire = "shutdown-ours"
    eventually(lambda: assert_told(arena, wire, *lab.OUR_IPV4), context=arena.logs)
    arena.ours.shut_down(arena.there(wire), REASON)

    def communicated() -> None:
        assert not arena.theirs.peers()[arena.here(wire)].established
        assert REASON in arena.theirs.last_notification(arena.here(wire))
        assert not arena.theirs.routes(IPV4, arena.here(wire))

    eventually(communicated, context=arena.logs)


@cell("shutdown-received")
def test_shutdown_received(arena: Arena) -> None:
    wire = "shutdown-theirs"
    reason = arena.theirs.SHUTDOWN_TEXT or REASON
    eventually(lambda: assert_told(arena, wire, *lab.OUR_IPV4), context=arena.logs)
    arena.theirs.shut_down(arena.here(wire), reason)

    def communicated() -> None:
        peer = arena.peer(wire)
        status = f"{peer['lastError']} {peer['reason']}"
        assert f"Cease / Administrative Shutdown: '{reason}'" in status, peer
        if arena.theirs.SHUTDOWN_TEXT is None:
            assert peer["state"] != "Established", peer
            assert not arena.ours.routes(IPV4, arena.there(wire))

    eventually(communicated, context=arena.logs)


@cell("role")
def test_role(arena: Arena) -> None:
    def exchanged() -> None:
        assert_told(arena, "role", *lab.OUR_IPV4)
        assert_heard(arena, "role", *lab.THEIR_IPV4)
        assert "role customer" in arena.peer("role")["capabilities"]
        marked = arena.theirs.only_to_customer(lab.OUR_IPV4[0], arena.here("role"))
        assert marked == lab.OUR_ASN

    def refused() -> None:
        peer = arena.peer("role-wrong")
        assert peer["state"] != "Established", peer
        assert "Role Mismatch" in f"{peer['lastError']} {peer['reason']}", peer
        assert not arena.theirs.peers()[arena.here("role-wrong")].established

    eventually(exchanged, context=arena.logs)
    eventually(refused, context=arena.logs)
