"""Import and export policies: applied, and changed without a session reset."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from speaker.api import (
    Match,
    PeerConfig,
    Policy,
    PolicyDecision,
    PrefixRule,
    RouteAttributes,
    Set,
    Term,
)
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST
from tests.speaker.network import INSTANCE, Host, Network
from tests.support.examples import examples

A, B, C = "10.0.0.1", "10.0.0.2", "10.0.0.3"
ROUTES = {
    "10.8.0.0/24": RouteAttributes(communities=(65001 << 16 | 1,)),
    "10.9.0.0/24": RouteAttributes(med=5),
    "192.0.2.0/24": RouteAttributes(),
}
TENS = Match(prefixes=(PrefixRule("10.0.0.0/8", ge=8),))


def config(name: str, address: str, asn: int, **changes: object) -> PeerConfig:
    values: dict[str, object] = {"import_": "all", "export": "all", **changes}
    return PeerConfig(name=name, address=address, peer_asn=asn, **values)  # type: ignore[arg-type]


def chain(**middle: object) -> tuple[Network, Host, Host, Host]:
    """a, with routes, to b to c; ``to_a`` and ``to_c`` change how b is configured."""
    network = Network()
    a, b, c = (
        network.host(n, x, 65001 + i) for i, (n, x) in enumerate(zip("abc", (A, B, C), strict=True))
    )
    a.peer(config("b", B, 65002))
    c.peer(config("b", B, 65002))
    b.peer(config("a", A, 65001, passive=True, **middle.get("to_a", {})))  # type: ignore[arg-type]
    b.peer(config("c", C, 65003, passive=True, **middle.get("to_c", {})))  # type: ignore[arg-type]
    a.routes(ROUTES)
    network.run(5)
    assert b.status("a").established
    assert b.status("c").established
    return network, a, b, c


def test_rfc8212_2_without_a_policy_no_route_is_imported_or_exported() -> None:
    """By default, towards peers of every kind, until a policy is configured."""
    for other in (65001, 65003):
        network = Network()
        a, b = network.host("a", A, 65001), network.host("b", B, other)
        # Configured with the identity of the peer only.
        a.peer(PeerConfig(name="b", address=B, peer_asn=other))
        b.peer(config("a", A, 65001, passive=True))
        a.routes(ROUTES)
        # Prefixes that only the peer has: an imported route is not behind a route of its own.
        b.routes({"10.99.0.0/24": RouteAttributes(), "fd00:99::/48": RouteAttributes()})
        network.run(5)
        assert a.status().established
        assert set(a.received(IPV4_UNICAST)) == {"10.99.0.0/24"}
        assert set(a.available(IPV4_UNICAST)) == set(ROUTES)
        assert set(a.received(IPV6_UNICAST)) == {"fd00:99::/48"}
        assert a.available(IPV6_UNICAST) == {}
        assert {family.accepted for family in a.status().families} == {0}
        assert b.received(IPV4_UNICAST) == {}


def test_an_import_policy_filters_and_changes_received_routes() -> None:
    policy = Policy(
        terms=(Term(match=TENS, set=Set(local_preference=200, add_communities=("1:1",))),)
    )
    _, _, b, c = chain(to_a={"import_": policy})
    best = b.available(IPV4_UNICAST)
    assert set(best) == {"10.8.0.0/24", "10.9.0.0/24"}
    assert best["10.9.0.0/24"].local_preference == 200
    assert best["10.8.0.0/24"].communities == ("65001:1", "1:1")
    assert set(c.available(IPV4_UNICAST)) == set(best)
    # The Adj-RIB-In has them all, as received, and the reason why one is not used.
    received = b.received(IPV4_UNICAST, "a")
    assert received["10.8.0.0/24"].communities == ("65001:1",)
    assert received["10.8.0.0/24"].best
    assert received["192.0.2.0/24"].reason == "not accepted by the import policy"
    status = b.status("a").families[0]
    assert (status.received, status.accepted) == (3, 2)


def test_another_import_policy_is_applied_to_held_routes_and_sends_only_differences() -> None:
    network, _, b, c = chain()
    c.writes.clear()
    seen = c.status().updates_received
    b.peer(config("a", A, 65001, passive=True, import_=Policy(terms=(Term(match=TENS),))))
    network.run(1)
    assert set(c.available(IPV4_UNICAST)) == {"10.8.0.0/24", "10.9.0.0/24"}
    # One withdrawal; the two that stay are not advertised again.
    assert c.status().updates_received == seen + 1
    assert b.status("a").flaps == b.status("c").flaps == 0


def test_an_export_policy_filters_and_changes_advertised_routes() -> None:
    policy = Policy(
        terms=(
            Term(match=Match(communities=("65001:1",)), set=Set(prepend=(65002, 65002))),
            Term(match=TENS, set=Set(med=77, remove_communities=("*:*",))),
        )
    )
    _, _, b, c = chain(to_c={"export_policy": policy})
    available = c.available(IPV4_UNICAST)
    assert set(available) == {"10.8.0.0/24", "10.9.0.0/24"}
    assert available["10.8.0.0/24"].as_path == "65002 65002 65002 65001"
    # RFC 4271 section 5.1.4: only a MED of our own is for another AS.
    assert available["10.8.0.0/24"].med is None
    assert available["10.9.0.0/24"].med == 77
    assert b.status("c").families[0].advertised == 2
    shown = {r.prefix: r for r in b.engine.views.routes_advertised(INSTANCE, "c", IPV4_UNICAST)}
    assert set(shown) == set(available)
    assert shown["10.9.0.0/24"].med == 77


def test_a_changed_export_policy_sends_only_differences() -> None:
    network, _, b, c = chain()
    seen = c.status().updates_received
    policy = Policy(terms=(Term(match=TENS, set=Set(add_communities=("9:9",))), Term()))
    b.peer(config("c", C, 65003, passive=True, export_policy=policy))
    network.run(1)
    available = c.available(IPV4_UNICAST)
    assert {p for p, r in available.items() if "9:9" in r.communities} == {
        "10.8.0.0/24",
        "10.9.0.0/24",
    }
    assert c.status().updates_received == seen + 2
    b.peer(config("c", C, 65003, passive=True, export_policy=Policy()))
    network.run(1)
    assert c.available(IPV4_UNICAST) == {}
    assert c.status().flaps == 0


def test_peers_with_equal_policies_are_sent_the_same_octets() -> None:
    network = Network()
    hub = network.host("hub", A, 65000)
    for n in range(5):
        leaf = network.host(f"leaf{n}", f"10.0.1.{n + 1}", 65001 + n)
        policy = Policy(terms=(Term(match=TENS, set=Set(med=1)),))
        hub.peer(config(leaf.name, leaf.address, 65001 + n, passive=True, export_policy=policy))
        leaf.peer(config("hub", A, 65000))
    network.run(3)
    hub.writes.clear()
    hub.routes(ROUTES)
    network.run(0.1)
    assert {write.prefixes for write in hub.writes} == {2}
    assert len({id(part) for write in hub.writes for part in write.parts}) == 1


def test_the_next_hop_is_self_or_unchanged_by_policy() -> None:
    kept = Policy(terms=(Term(set=Set(next_hop="unchanged")),))
    _, _, _, c = chain(to_c={"export_policy": kept})
    assert c.available(IPV4_UNICAST)["10.8.0.0/24"].next_hop == A
    _, _, _, c = chain(to_c={"export_policy": Policy(default="accept")})
    assert c.available(IPV4_UNICAST)["10.8.0.0/24"].next_hop == B
    named = Policy(terms=(Term(set=Set(next_hop="10.0.0.77")),))
    _, _, _, c = chain(to_c={"export_policy": named})
    assert c.available(IPV4_UNICAST)["10.8.0.0/24"].next_hop == "10.0.0.77"


POLICIES = [
    None,
    Policy(default="accept"),
    Policy(),
    Policy(terms=(Term(match=TENS),)),
    Policy(terms=(Term(match=TENS, set=Set(med=3)), Term(set=Set(prepend=(7,))))),
    Policy(terms=(Term(match=Match(communities=("65001:1",)), action="reject"), Term())),
]


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_only_the_last_policy_determines_the_routes(
    seed: int,
) -> None:
    rng = random.Random(seed)  # noqa: S311  a seed, no secret
    network, a, b, c = chain()
    mode = rng.choice(["none", "both"])
    b.peer(config("c", C, 65003, passive=True, add_path=mode))
    c.peer(config("b", B, 65002, add_path=mode))
    network.run(5)
    last = None
    for _ in range(6):
        last = rng.choice(POLICIES)
        b.peer(config("c", C, 65003, passive=True, add_path=mode, export_policy=last))
        entry = rng.choice(POLICIES)
        b.peer(config("a", A, 65001, passive=True, import_="all" if entry is None else entry))
        if rng.random() < 0.5:
            a.routes({rng.choice(list(ROUTES)): rng.choice([None, RouteAttributes(med=9)])})
        if rng.random() < 0.7:
            network.run(0.05)
    network.run(5)
    assert c.status().flaps <= 1
    held = {(r.prefix, r.as_path, r.med, r.communities) for r in c.received(IPV4_UNICAST).values()}
    advertised = {
        (r.prefix, r.as_path, r.med, r.communities)
        for r in b.engine.views.routes_advertised(INSTANCE, "c", IPV4_UNICAST)
    }
    assert held == advertised
    # A session that is established now is sent the same.
    b.peer(
        config(
            "c",
            C,
            65003,
            passive=True,
            add_path=mode,
            export_policy=last,
            hold_time=60,
            keepalive_time=20,
        )
    )
    network.run(10)
    assert c.status().established
    fresh = {(r.prefix, r.as_path, r.med, r.communities) for r in c.received(IPV4_UNICAST).values()}
    assert fresh == held


def message_types(octets: bytes) -> set[int]:
    """Return the types of some messages (RFC 4271 section 4.1)."""
    found = set()
    while octets:
        found.add(octets[18])
        octets = octets[int.from_bytes(octets[16:18], "big") :]
    return found


def test_a_changed_filter_of_a_large_table_is_applied_in_turns_without_a_route_refresh() -> None:
    rules = (PrefixRule("10.0.0.0/16", le=24),)
    network, a, b, c = chain(to_a={"import_": rules})
    a.routes(dict.fromkeys(ROUTES))
    a.routes({f"10.{n >> 8}.{n & 255}.0/24": RouteAttributes() for n in range(5000)})
    network.run(1)
    assert len(c.received(IPV4_UNICAST)) == 256
    for changed, count in (
        ((*rules, PrefixRule("10.1.0.0/16", le=24)), 512),
        ((PrefixRule("10.0.0.0/8", le=24),), 5000),
        ((PrefixRule("10.0.0.0/8", le=23),), 0),
        (rules, 256),
    ):
        b.sent()
        b.peer(config("a", A, 65001, passive=True, import_=changed))
        network.run(1)
        assert len(c.received(IPV4_UNICAST)) == len(b.available(IPV4_UNICAST)) == count
        assert [family.accepted for family in b.status("a").families] == [count, 0]
        # Nothing but UPDATEs to the other peer: no ROUTE-REFRESH and no NOTIFICATION.
        assert message_types(b.sent()) == {2}
    assert [b.status("a").flaps, b.status("c").flaps] == [0, 0]


def test_a_filter_that_changes_while_it_is_applied_is_the_last_one() -> None:
    network, a, b, _ = chain(to_a={"import_": (PrefixRule("10.0.0.0/16", le=24),)})
    a.routes({f"10.{n >> 8}.{n & 255}.0/24": RouteAttributes() for n in range(5000)})
    network.run(1)
    for last in (PrefixRule("10.3.0.0/16", le=24), PrefixRule("10.4.7.0/24")):
        for rules in ((PrefixRule("10.0.0.0/8", le=24),), (last,)):
            b.peer(config("a", A, 65001, passive=True, import_=rules))
        network.run(1)
        assert len(b.available(IPV4_UNICAST)) == (256 if last.le else 1)


def test_a_received_route_has_the_term_and_the_rule_that_decide() -> None:
    blocked, ours = PrefixRule("10.9.0.0/16", le=32), PrefixRule("10.0.0.0/8", le=24)
    policy = Policy(
        terms=(
            Term(name="never", match=Match(prefixes=(blocked,)), action="reject"),
            Term(match=Match(prefixes=(ours,))),
        )
    )
    _, _, b, _ = chain(to_a={"import_": policy})
    decisions = {prefix: view.decision for prefix, view in b.received(IPV4_UNICAST, "a").items()}
    assert decisions == {
        "10.8.0.0/24": PolicyDecision(True, "term 1", ours),
        "10.9.0.0/24": PolicyDecision(False, "never", blocked),
        "192.0.2.0/24": PolicyDecision(False),
    }
    assert all(view.decision is None for view in b.available(IPV4_UNICAST).values())
