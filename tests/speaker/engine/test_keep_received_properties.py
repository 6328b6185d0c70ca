"""Kept and counted routes against a model: random routes, policies, numbers and ends of sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hypothesis import example, given
from hypothesis import strategies as st

from speaker.api import (
    GracefulRestart,
    Match,
    PeerConfig,
    Policy,
    PrefixRule,
    RouteAttributes,
    Set,
    Term,
)
from speaker.iana import IPV4_UNICAST
from tests.speaker.network import INSTANCE, ROUTE_REFRESH, Network

MARKED, LOOPED = 65001 << 16 | 1, 65001 << 16 | 2
KINDS = {
    "plain": RouteAttributes(),
    "marked": RouteAttributes(communities=(MARKED,)),
    "looped": RouteAttributes(communities=(LOOPED,)),
    "both": RouteAttributes(communities=(MARKED, LOOPED)),
}
LOOPING = Policy(
    terms=(Term(match=Match(communities=("65001:2",)), set=Set(prepend=(65000,))),),
    default="accept",
)
HALF = (PrefixRule("10.9.0.0/21", ge=24, le=24),)
LIST = Term(match=Match(prefixes=HALF))
MARK = Term(match=Match(communities=("65001:1",)))
POLICIES: Final[dict[str, tuple[Any, Callable[[int, bool], bool]]]] = {
    "none": ("none", lambda *_: False),
    "all": ("all", lambda *_: True),
    "half": (HALF, lambda n, _: n < 8),
    "other": ((PrefixRule("10.9.8.0/21", ge=24, le=24),), lambda n, _: n >= 8),
    "marked": (Policy(terms=(MARK,)), lambda _, m: m),
    "but marked": (
        Policy(terms=(Term(match=MARK.match, action="reject"),), default="accept"),
        lambda _, m: not m,
    ),
    "half and marked": (
        Policy(terms=(Term(match=Match(prefixes=HALF, communities=("65001:1",))),)),
        lambda n, m: n < 8 and m,
    ),
    "set": (
        Policy(
            terms=(
                Term(
                    match=Match(prefixes=HALF), set=Set(add_communities=("65001:1",)), action="next"
                ),
                MARK,
            )
        ),
        lambda n, m: n < 8 or m,
    ),
    "reject half": (
        Policy(terms=(Term(match=Match(prefixes=HALF), action="reject"),), default="accept"),
        lambda n, _: n >= 8,
    ),
    "reject some": (
        Policy(
            terms=(
                Term(
                    match=Match(prefixes=(PrefixRule("10.9.0.0/22", ge=24, le=24),)),
                    action="reject",
                ),
            ),
            default="accept",
        ),
        lambda n, _: n >= 4,
    ),
}
NUMBERS = st.lists(st.integers(0, 15), min_size=1, max_size=12)
STEP = st.one_of(
    st.tuples(st.just("announce"), st.sampled_from(sorted(KINDS)), NUMBERS),
    st.tuples(st.just("announce"), st.sampled_from(sorted(KINDS)), NUMBERS),
    st.tuples(st.just("withdraw"), st.none(), NUMBERS),
    st.tuples(st.just("policy"), st.sampled_from(sorted(POLICIES)), st.none()),
    st.tuples(st.just("policy"), st.sampled_from(sorted(POLICIES)), st.none()),
    st.tuples(st.just("keep"), st.sampled_from([None, 0, 2, 5]), st.none()),
    st.tuples(st.sampled_from(["refresh", "run", "cut"]), st.none(), st.none()),
)
RESTART = GracefulRestart(30)


class Routers:
    """A node with an import policy, and a router that announces routes to it."""

    def __init__(self, *, refreshable: bool, both: dict[str, Any]) -> None:
        self.network = Network()
        self.node = self.network.host("node", "10.0.0.1", 65000)
        self.router = self.network.host("router", "10.0.0.2", 65001)
        if not refreshable:
            self.router.withheld = (ROUTE_REFRESH,)
        self.refreshable = refreshable
        self.options: dict[str, Any] = {
            "keep_received": 2,
            "passive": True,
            "import_": "none",
            **both,
        }
        self.policy = "none"
        self.announced: dict[int, str] = {}
        self.configure()
        peer = PeerConfig(
            name="node",
            address="10.0.0.1",
            peer_asn=65000,
            export="local",
            export_policy=LOOPING,
            **both,
        )
        self.router.peer(peer)
        self.network.run(3)

    def configure(self) -> None:
        """Configure the router as a peer of the node."""
        peer = PeerConfig(name="router", address="10.0.0.2", peer_asn=65001, **self.options)
        self.node.peer(peer)

    def step(self, what: str, value: Any, numbers: list[int] | None) -> None:  # noqa: ANN401  by step
        if what == "announce":
            self.router.routes(dict.fromkeys(map(text, numbers or ()), KINDS[value]))
            self.announced.update(dict.fromkeys(numbers or (), value))
        elif what == "withdraw":
            self.router.routes(dict.fromkeys(map(text, numbers or ())))
            for number in numbers or ():
                self.announced.pop(number, None)
        elif what == "policy":
            self.policy = value
            self.options["import_"] = POLICIES[value][0]
            self.configure()
        elif what == "keep":
            self.options["keep_received"] = value
            self.configure()
        elif what == "refresh":
            self.node.refresh("router")
        elif what == "run":
            self.network.run(1)
        else:
            for connection in list(self.node.ends):
                self.network.cut(self.node, connection)
                self.node.give_closed(connection)

    def accepts(self, number: int) -> bool:
        """Return whether the policy accepts a route."""
        return POLICIES[self.policy][1](number, self.announced[number] in ("marked", "both"))

    def check(self) -> None:
        node, announced = self.node, self.announced
        (family,) = [one for one in node.status().families if one.family == IPV4_UNICAST]
        eligible = {n for n, kind in announced.items() if kind in ("plain", "marked")}
        used = {n for n in eligible if self.accepts(n)}
        assert set(node.available(IPV4_UNICAST)) == set(map(text, used))
        assert (family.received, family.accepted) == (len(announced), len(used))
        view = node.engine.views.routes_received(INSTANCE, "router", IPV4_UNICAST)
        shown = {route.prefix for route in view}
        held = {n for n in announced if text(n) in shown}
        assert len(shown) == len(held) == len(announced) - family.not_kept
        assert used <= held
        keep = self.options["keep_received"]
        if keep is None or self.policy == "all" or not (self.refreshable or self.policy == "none"):
            assert not family.not_kept
        else:
            assert len([n for n in held & eligible if not self.accepts(n)]) <= keep


def text(number: int) -> str:
    return f"10.9.{number}.0/24"


@example(
    refreshable=True,
    both={},
    steps=[
        ("announce", "both", [0, 2]),
        ("announce", "looped", [1]),
        ("policy", "half and marked", None),
        ("announce", "both", [1]),
    ],
)
@example(
    refreshable=True,
    both={},
    steps=[
        ("announce", "both", [0]),
        ("policy", "but marked", None),
        ("run", None, None),
        ("announce", "both", [0]),
        ("keep", 0, None),
        ("announce", "marked", [0]),
    ],
)
@given(
    refreshable=st.booleans(),
    both=st.fixed_dictionaries(
        {}, optional={"add_path": st.just("both"), "graceful_restart": st.just(RESTART)}
    ),
    steps=st.lists(STEP, max_size=14),
)
def test_what_is_received_kept_and_used_is_what_the_peer_announces(
    refreshable: bool, both: dict[str, Any], steps: list[tuple[str, Any, list[int] | None]]
) -> None:
    routers = Routers(refreshable=refreshable, both=both)
    for what, value, numbers in steps:
        routers.step(what, value, numbers)
    routers.network.run(60)
    routers.check()
