"""The Adj-RIB-In against a model: what is held, what of it is used, whatever way it is kept in."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from speaker.api import Match, Policy, PrefixRule, Term
from speaker.attribute import PathAttributes
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family
from speaker.rib.adj_in import AdjRibIn, prefix_log, reapply
from speaker.rib.adj_in.reapply import PendingKeys
from speaker.rib.adj_in.shared import SharedAdjRibIn
from speaker.rib.loc_rib import LocRib
from speaker.rib.path import Path, Source
from speaker.rib.policy import PrefixList, compile_import
from speaker.rib.prefix_table import FORM, PrefixTable

SOURCES = [Source(f"s{n}", address=bytes((10, 0, 0, n)), router_id=n, ebgp=True) for n in (1, 2)]
GOOD = [[Path(PathAttributes(med=med), source) for med in (1, 2)] for source in SOURCES]
BAD = [Path(PathAttributes(), source, "own AS in the AS path") for source in SOURCES]
PREFIXES = [bytes((8, n)) for n in range(8)]
LOW = "0.0.0.0/6"
"""Has the first half of them."""
RULES = {
    "all": compile_import("p", "all"),
    "none": compile_import("p", "none"),
    "some": compile_import("p", (PrefixRule(prefix=LOW, ge=8, le=8),)),
    "more": compile_import("p", (PrefixRule(LOW, 8, 8), PrefixRule("6.0.0.0/8"))),
    "other": compile_import("p", (PrefixRule("4.0.0.0/6", 8, 8), PrefixRule("0.0.0.0/8"))),
    "but": compile_import(
        "p",
        Policy(
            terms=(
                Term(match=Match(prefixes=(PrefixRule("2.0.0.0/7", 8),)), action="reject"),
                Term(match=Match(prefixes=(PrefixRule("0.0.0.0/0", 8, 8),))),
            )
        ),
    ),
    "never": compile_import("p", Policy(terms=(Term(match=Match(), action="reject"),))),
}
USED: dict[str, Callable[[bytes], bool]] = {
    "all": lambda _: True,
    "none": lambda _: False,
    "some": lambda nlri: nlri[1] < 4,
    "more": lambda nlri: nlri[1] < 4 or nlri[1] == 6,
    "other": lambda nlri: nlri[1] > 3 or nlri[1] == 0,
    "but": lambda nlri: nlri[1] not in (2, 3),
    "never": lambda _: False,
}

Step = tuple[str, int, int, list[bytes]]
WHO = st.integers(0, 1)
NLRI = st.lists(st.sampled_from(PREFIXES), min_size=1, max_size=8)
STEP: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("announce"), WHO, st.integers(0, 2), NLRI),
    st.tuples(st.just("announce"), WHO, st.integers(0, 2), NLRI),
    st.tuples(st.just("withdraw"), WHO, st.just(0), NLRI),
    st.tuples(st.sampled_from(["stale", "sweep", "clear"]), WHO, st.just(0), st.just([])),
    st.tuples(st.sampled_from(sorted(RULES)), WHO, st.just(0), st.just([])),
    st.tuples(st.sampled_from(sorted(RULES)), WHO, st.just(0), st.just([])),
    st.tuples(st.just("slice"), WHO, st.just(0), st.just([])),
)


def sweep(adj_in: AdjRibIn) -> set[bytes]:
    """Remove the stale routes and return their keys."""
    mark = adj_in.end_stale(IPV4_UNICAST)
    gone: set[bytes] = set()
    if mark is not None:
        for contested in (True, False):
            for keys in adj_in.stale_keys(IPV4_UNICAST, mark, 2, contested=contested):
                adj_in.withdraw(IPV4_UNICAST, keys)
                gone.update(keys)
        adj_in.forget_mark(IPV4_UNICAST, mark)
    return gone


def clear(adj_in: AdjRibIn) -> None:
    """Remove all routes."""
    for routes in adj_in.depart():
        for _ in (*routes.fail_over(2), *routes.remove(2)):
            assert not adj_in.held(IPV4_UNICAST)
        assert routes.finished


class Model:
    """One session's routes, kept in the plainest way."""

    def __init__(self, source: Source, loc: dict[Family, LocRib]) -> None:
        self.held: dict[bytes, Path] = {}
        self.stale: set[bytes] = set()
        self.rule = "all"
        self.adj_in = AdjRibIn(source, RULES["all"], loc, itertools.count(2))

    def used(self) -> dict[bytes, Path]:
        used = USED[self.rule]
        return {n: p for n, p in self.held.items() if p.rejected is None and used(n)}

    def step(self, what: str, path: Path, nlri: list[bytes]) -> None:
        adj_in = self.adj_in
        if what == "announce":
            adj_in.announce(IPV4_UNICAST, path, list(nlri))
            self.held.update(dict.fromkeys(nlri, path))
            self.stale.difference_update(nlri)
        elif what == "withdraw":
            adj_in.withdraw(IPV4_UNICAST, nlri)
            for prefix in nlri:
                self.held.pop(prefix, None)
            self.stale.difference_update(nlri)
        elif what == "stale":
            adj_in.mark_stale(IPV4_UNICAST)
            self.stale = set(self.held)
        elif what == "sweep":
            assert sweep(adj_in) == self.stale
            self.held = {n: p for n, p in self.held.items() if n not in self.stale}
            self.stale.clear()
        elif what == "clear":
            clear(adj_in)
            self.held.clear()
            self.stale.clear()
        elif what == "slice":
            self.reapply()
        else:
            self.rule = what
            adj_in.set_policy(RULES[what])

    def reapply(self) -> bool:
        """Apply a changed policy to one slice; False if there was none."""
        pending = self.adj_in.reapplying
        if pending:
            self.adj_in.reapply()
        return pending

    def check(self) -> None:
        while self.reapply():
            pass
        adj_in, used = self.adj_in, self.used()
        routes = list(chain.from_iterable(adj_in.routes(IPV4_UNICAST, 7)))
        assert {nlri: path for nlri, path, _ in routes} == self.held
        assert len(routes) == len(self.held)
        assert {nlri: path for nlri, _, path in routes if path is not None} == used
        assert adj_in.received(IPV4_UNICAST) == len(self.held)
        assert adj_in.accepted(IPV4_UNICAST) == len(used)
        assert adj_in.stale(IPV4_UNICAST) == len(self.stale)
        groups, gone = adj_in.by_path(IPV4_UNICAST, PREFIXES)
        assert {nlri: path for path, nlris in groups.items() for nlri in nlris} == self.held
        assert set(gone) == set(PREFIXES) - self.held.keys()
        stale = adj_in.stale_paths(IPV4_UNICAST)
        assert {nlri for nlris in stale.values() for nlri in nlris} == self.stale
        assert all(self.held[nlri] is path for path, nlris in stale.items() for nlri in nlris)


@pytest.mark.parametrize(
    ("slack", "slice_keys", "factor"),
    [(0, 2, 1000), (prefix_log.SLACK_PREFIXES, reapply.SLICE_KEYS, 0)],
)
@given(steps=st.lists(STEP, max_size=30))
def test_held_and_used_routes_equal_the_model(
    slack: int, slice_keys: int, factor: int, steps: list[Step]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prefix_log, "SLACK_PREFIXES", slack)
        patch.setattr(reapply, "SLICE_KEYS", slice_keys)
        patch.setattr(reapply, "LOOKUP_FACTOR", factor)
        loc = {IPV4_UNICAST: LocRib()}
        models = [Model(source, loc) for source in SOURCES]
        for what, who, which, nlri in steps:
            models[who].step(what, [*GOOD[who], BAD[who]][which], nlri)
        for model in models:
            model.check()
        expected: dict[bytes, set[Path]] = {}
        for model in models:
            for nlri_, path in model.used().items():
                expected.setdefault(nlri_, set()).add(path)
        assert {nlri: set(paths) for nlri, paths in loc[IPV4_UNICAST].items()} == expected


KEEP_STEP: st.SearchStrategy[tuple[str, object]] = st.one_of(
    st.tuples(st.sampled_from(["announce", "withdraw"]), NLRI),
    st.tuples(st.just("keep"), st.sampled_from([None, 0, 2, 5])),
    st.tuples(st.just("policy"), st.sampled_from(["all", "none", "some", "more", "never"])),
    st.tuples(st.sampled_from(["slice", "stale", "sweep"]), st.none()),
)


class Sender:
    """A peer, and an Adj-RIB-In that keeps a part of the routes that its policy rejects."""

    def __init__(self, *, refreshable: bool) -> None:
        self.loc = {IPV4_UNICAST: LocRib()}
        self.refreshable = refreshable
        self.adj_in = AdjRibIn(
            SOURCES[0],
            RULES["none"],
            self.loc,
            itertools.count(2),
            keep=2,
            refreshable=refreshable,
        )
        self.keep: int | None = 2
        self.rule = "none"
        self.announced: set[bytes] = set()
        """What the peer has announced since the routes became stale."""
        self.stale: set[bytes] = set()

    @property
    def held(self) -> set[bytes]:
        return {nlri for nlri, _ in self.adj_in.items(IPV4_UNICAST)}

    def step(self, what: str, value: Any) -> None:  # noqa: ANN401  by step
        adj_in = self.adj_in
        if what == "announce":
            adj_in.announce(IPV4_UNICAST, GOOD[0][0], value)
            self.announced.update(value)
            self.stale.difference_update(value)
        elif what == "withdraw":
            adj_in.withdraw(IPV4_UNICAST, value)
            self.announced.difference_update(value)
            self.stale.difference_update(value)
        elif what == "stale":
            adj_in.mark_stale(IPV4_UNICAST)
            self.announced, self.stale = set(), self.held
        elif what == "sweep":
            sweep(adj_in)
            self.stale.clear()
        elif what == "slice" and adj_in.reapplying:
            adj_in.reapply()
        elif what == "keep":
            more = self.keep is not None and (value is None or value > self.keep)
            self.keep = value
            adj_in.set_keep(value)
            self.refresh(more=more)
        elif what == "policy":
            self.rule = value
            self.refresh(more=adj_in.set_policy(RULES[value]))

    def refresh(self, *, more: bool) -> None:
        """Announce everything again where others are to be kept, as after a ROUTE-REFRESH."""
        if self.adj_in.not_kept and more:
            self.adj_in.forget_counted()
            self.adj_in.announce(IPV4_UNICAST, GOOD[0][0], sorted(self.announced))
            self.stale -= self.announced

    def check(self) -> None:
        adj_in, held = self.adj_in, self.held
        assert held <= self.announced | self.stale
        assert adj_in.received(IPV4_UNICAST) == len(self.announced | (held & self.stale))
        assert adj_in.stale(IPV4_UNICAST) == len(held & self.stale)
        accepts = USED[self.rule]
        if self.keep is None or not (self.refreshable or adj_in.accepts_nothing):
            assert self.announced <= held
            assert not adj_in.not_kept
        elif not adj_in.reapplying:
            assert {nlri for nlri in self.announced if accepts(nlri)} <= held
            assert sum(not accepts(nlri) for nlri in held) <= self.keep
        if not adj_in.reapplying:
            assert set(self.loc[IPV4_UNICAST].prefixes()) == {
                nlri for nlri in held if accepts(nlri)
            }


@pytest.mark.parametrize("slice_keys", [1, reapply.SLICE_KEYS])
@example(
    refreshable=True, steps=[("keep", None), ("announce", PREFIXES), ("stale", None), ("keep", 2)]
)
@example(
    refreshable=True,
    steps=[("policy", "all"), ("announce", PREFIXES), ("stale", None), ("policy", "none")],
)
@example(
    refreshable=True,
    steps=[("policy", "some"), ("announce", PREFIXES), ("policy", "none"), ("policy", "all")],
)
@example(
    refreshable=True,
    steps=[("announce", PREFIXES[:2] * 2), ("stale", None), ("announce", PREFIXES[:1])],
)
@given(st.booleans(), st.lists(KEEP_STEP, max_size=30))
def test_as_many_routes_are_held_as_are_kept_and_all_are_counted(
    slice_keys: int, refreshable: bool, steps: list[tuple[str, object]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reapply, "SLICE_KEYS", slice_keys)
        sender = Sender(refreshable=refreshable)
        for what, value in steps:
            sender.step(what, value)
            sender.check()


def test_announced_and_withdrawn_routes_leave_no_state() -> None:
    loc = {IPV4_UNICAST: LocRib()}
    adj_in = AdjRibIn(SOURCES[0], None, loc, itertools.count(2))
    routes = SharedAdjRibIn(loc[IPV4_UNICAST], SOURCES[1])
    for turn in range(5000):
        adj_in.announce(IPV4_UNICAST, GOOD[0][turn % 2], list(PREFIXES))
        routes.announce(GOOD[1][turn % 2], list(PREFIXES))
        adj_in.withdraw(IPV4_UNICAST, PREFIXES)
        routes.withdraw(PREFIXES[:4])
    assert adj_in.received(IPV4_UNICAST) == 0
    assert routes.count == 4
    assert sum(
        map(len, routes.prefix_lists())
    ) <= 5 * routes.count + 2 * prefix_log.SLACK_PREFIXES + len(PREFIXES)


TABLE: PrefixTable[Path] = PrefixTable()
TABLE.insert([bytes((24, 10, n >> 8, n & 255)) for n in range(20_000)], GOOD[0][0])


def looked_at(only: PrefixList | None) -> tuple[int, set[bytes]]:
    """Return the number of slices, and the keys to which a policy is applied."""
    pending = PendingKeys()
    pending.add(IPV4_UNICAST, TABLE, int, only, skip=0)
    slices, keys = 0, set()
    while pending:
        slices += 1
        for _, part, _ in pending.take():
            keys.update(part)
    return slices, keys


def test_a_narrow_selector_is_looked_up_and_not_searched() -> None:
    slices, keys = looked_at(PrefixList([PrefixRule("10.1.0.0/20", le=24)]))
    assert slices == 1
    assert keys == {bytes((24, 10, 1, n)) for n in range(16)}
    assert looked_at(PrefixList([PrefixRule("192.0.2.0/24")])) == (0, set())


def test_a_wide_selector_is_searched_in_slices() -> None:
    slices, keys = looked_at(PrefixList([PrefixRule("10.1.0.0/16", le=32)]))
    assert slices == 20_000 // reapply.SLICE_KEYS + 1
    assert keys == {bytes((24, 10, 1, n)) for n in range(256)}
    assert looked_at(None) == (slices, set(TABLE))


def test_one_ineligible_route_does_not_send_a_table_the_long_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loc = LocRib()
    adj_in = AdjRibIn(SOURCES[0], None, {IPV4_UNICAST: loc}, itertools.count(1))
    adj_in.announce(IPV4_UNICAST, BAD[0], PREFIXES[:2])
    monkeypatch.setattr(AdjRibIn, "announce", None)
    assert adj_in.announce_fields(IPV4_UNICAST, GOOD[0], [PREFIXES[1], b"".join(PREFIXES[4:])]) == 2
    # What is announced again is eligible now; what is not stays as it was.
    assert dict(adj_in.items(IPV4_UNICAST)) == {
        PREFIXES[0]: BAD[0],
        PREFIXES[1]: GOOD[0][0],
        **dict.fromkeys(PREFIXES[4:], GOOD[0][1]),
    }
    assert (adj_in.held(IPV4_UNICAST), adj_in.accepted(IPV4_UNICAST)) == (6, 5)
    assert sorted(loc.prefixes()) == [PREFIXES[1], *PREFIXES[4:]]


def test_a_stale_route_that_the_policy_rejects_by_its_new_path_is_not_counted() -> None:
    policy = Policy(
        terms=(Term(match=Match(communities=("65535:6",)), action="reject"),), default="accept"
    )
    adj_in = AdjRibIn(
        SOURCES[0],
        compile_import("p", policy),
        {IPV4_UNICAST: LocRib()},
        itertools.count(2),
        keep=1,
    )
    adj_in.announce(IPV4_UNICAST, GOOD[0][0], PREFIXES[:4])
    adj_in.mark_stale(IPV4_UNICAST)
    llgr_stale = Path(PathAttributes(communities=(0xFFFF0006,)), SOURCES[0])
    adj_in.replace_stale(IPV4_UNICAST, llgr_stale, PREFIXES[:4])
    assert (adj_in.received(IPV4_UNICAST), adj_in.stale(IPV4_UNICAST)) == (1, 1)
    assert adj_in.announced(IPV4_UNICAST) == 0
    sweep(adj_in)
    assert adj_in.received(IPV4_UNICAST) == 0


def test_routes_of_a_family_that_the_next_session_does_not_have_are_left_out_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reapply, "SLICE_KEYS", 1)
    loc = {IPV6_UNICAST: LocRib(), IPV4_UNICAST: LocRib()}
    policy = compile_import("p", Policy(default="accept"))
    adj_in = AdjRibIn(SOURCES[0], policy, loc, itertools.count(2), keep=1)
    for family in loc:
        adj_in.announce(family, GOOD[0][0], PREFIXES[:4])
    adj_in.set_policy(RULES["none"])
    for routes in adj_in.attach({IPV4_UNICAST: loc[IPV4_UNICAST]}, frozenset()):
        routes.finish()
    while adj_in.reapplying:
        adj_in.reapply()
    assert (adj_in.held(IPV4_UNICAST), adj_in.received(IPV4_UNICAST)) == (1, 4)


@pytest.mark.skipif(FORM != "C", reason="a dictionary's keys are objects")
def test_a_route_that_a_policy_rejects_is_no_object() -> None:
    count = 20_000
    loc = {IPV4_UNICAST: LocRib()}
    rib = AdjRibIn(SOURCES[0], RULES["some"], loc, itertools.count(2))
    tracemalloc.start()
    try:
        for start in range(0, count, 1000):
            numbers = range(start, start + 1000)
            rib.announce(
                IPV4_UNICAST,
                GOOD[0][0],
                [bytes((24, 10)) + number.to_bytes(2, "big") for number in numbers],
            )
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert rib.held(IPV4_UNICAST) == count
    assert rib.accepted(IPV4_UNICAST) == 0
    # In each of two tables six octets, a number of four, and two words of the index at most.
    assert taken / count < 70
