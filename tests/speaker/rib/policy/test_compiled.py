"""Terms in order: what matches, what is changed, who decides, and what is remembered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speaker.api import InvalidConfig, Match, Policy, PrefixRule, Set, Term
from speaker.attribute import AS_SEQUENCE, PathAttributes, Segment, as_path_text
from speaker.iana import IPV4_UNICAST, IPV6_UNICAST
from speaker.nlri import prefix_to_wire
from speaker.rib.local_routes import LOCAL
from speaker.rib.path import MED_SET, NEXT_HOP_KEPT, NEXT_HOP_SELF, NEXT_HOP_SET, Path, Source
from speaker.rib.policy import CompiledPolicy, compile_import

PEER = Source("upstream", address=b"\x0a\x00\x00\x01", router_id=1, ebgp=True)


def path(source: Source = PEER, **fields: object) -> Path:
    values: dict[str, object] = {
        "as_path": (Segment(AS_SEQUENCE, (65009, 65010)),),
        "next_hop": bytes([10, 0, 0, 1]),
        **fields,
    }
    return Path(PathAttributes(**values), source)  # type: ignore[arg-type]


def apply(policy: Policy, given_: Path, prefix: str = "10.8.0.0/24") -> Path | None:
    compiled = CompiledPolicy(policy, "p", "import")
    family, wire = prefix_to_wire(prefix)
    return compiled.apply(given_, family, compiled.matching_lists(family, wire))


def terms(*items: Term, default: str = "reject") -> Policy:
    return Policy(terms=items, default=default)  # type: ignore[arg-type]


def test_rfc8212_without_a_matching_term_the_default_is_reject() -> None:
    assert apply(Policy(), path()) is None
    assert apply(terms(Term(match=Match(communities=("1:1",)))), path()) is None
    assert apply(Policy(default="accept"), path()) is not None


@pytest.mark.parametrize(
    ("match", "matches"),
    [
        (Match(), True),
        (Match(prefixes=(PrefixRule("10.0.0.0/8", ge=9),)), True),
        (Match(prefixes=(PrefixRule("10.0.0.0/8"),)), False),
        (Match(prefixes=()), False),
        (Match(families=(IPV4_UNICAST,)), True),
        (Match(families=(IPV6_UNICAST,)), False),
        (Match(communities=("65001:80", "1:1")), True),
        (Match(all_communities=("65001:80", "1:1")), False),
        (Match(all_communities=("65001:80", "65001:*")), True),
        (Match(as_path="65009 *"), True),
        (Match(as_path="65010 *"), False),
        (Match(as_path_min=2, as_path_max=2), True),
        (Match(as_path_min=3), False),
        (Match(as_path_max=1), False),
        (Match(origin=(2,)), True),
        (Match(origin=(0, 1)), False),
        (Match(received=True), True),
        (Match(received=False), False),
        (Match(peers=("upstream",)), True),
        (Match(peers=("other",)), False),
        (Match(communities=("65001:80",), origin=(0,)), False),
    ],
)
def test_every_condition_of_a_match_has_to_hold(match: Match, *, matches: bool) -> None:
    route = path(communities=(65001 << 16 | 80,), origin=2)
    assert (apply(terms(Term(match=match)), route) is not None) is matches


def test_an_originated_route_matches_no_peer() -> None:
    policy = terms(Term(match=Match(peers=("local",))))
    assert apply(policy, path(LOCAL)) is None
    assert apply(terms(Term(match=Match(received=False))), path(LOCAL)) is not None


def test_the_first_term_with_accept_or_reject_decides() -> None:
    policy = terms(
        Term(match=Match(communities=("1:1",)), action="reject"),
        Term(set=Set(local_preference=200)),
        Term(set=Set(local_preference=300)),
    )
    assert apply(policy, path(communities=(65537,))) is None
    passed = apply(policy, path())
    assert passed is not None
    assert passed.attributes.local_preference == 200
    # What decides is worked out from the changed attributes.
    assert passed.rank.early[2] == -200


def test_next_continues_and_later_terms_see_the_changes() -> None:
    policy = terms(
        Term(set=Set(add_communities=("1:1",)), action="next"),
        Term(match=Match(communities=("1:1",)), set=Set(med=7)),
    )
    passed = apply(policy, path())
    assert passed is not None
    assert (passed.attributes.communities, passed.attributes.med) == ((65537,), 7)


def test_next_in_the_last_term_leaves_the_default() -> None:
    items = (Term(set=Set(med=7), action="next"),)
    assert apply(Policy(terms=items), path()) is None
    passed = apply(Policy(terms=items, default="accept"), path())
    assert passed is not None
    assert passed.attributes.med == 7


@pytest.mark.parametrize(
    ("change", "field", "value"),
    [
        (Set(local_preference=5), "local_preference", 5),
        (Set(med=5), "med", 5),
        (Set(add_med=5), "med", 15),
        (Set(add_med=-50), "med", 0),
        (Set(remove_med=True), "med", None),
        (Set(communities=("1:1", "1:2:3")), "communities", (65537,)),
        (Set(communities=()), "communities", ()),
        (Set(add_communities=("1:1",)), "communities", (9, 65537)),
        (Set(remove_communities=("0:9",)), "communities", ()),
        (Set(remove_communities=("*:*",), add_communities=("1:1",)), "communities", (65537,)),
        (Set(next_hop="10.0.0.9"), "next_hop", bytes([10, 0, 0, 9])),
        (Set(next_hop="fd00::1"), "next_hop", bytes.fromhex("fd" + "00" * 14 + "01")),
    ],
)
def test_a_change_changes_its_field(change: Set, field: str, value: object) -> None:
    passed = apply(terms(Term(set=change)), path(med=10, communities=(9,)))
    assert passed is not None
    assert getattr(passed.attributes, field) == value


def test_prepending_puts_the_first_number_first() -> None:
    passed = apply(terms(Term(set=Set(prepend=(1, 2, 2)))), path())
    assert passed is not None
    assert as_path_text(passed.attributes.as_path) == "1 2 2 65009 65010"


@pytest.mark.parametrize(
    ("change", "overrides"),
    [
        (Set(med=1), MED_SET),
        (Set(remove_med=True), MED_SET),
        (Set(next_hop="self"), NEXT_HOP_SELF),
        (Set(next_hop="unchanged"), NEXT_HOP_KEPT),
        (Set(next_hop="10.0.0.9", med=1), NEXT_HOP_SET | MED_SET),
    ],
)
def test_attributes_that_a_policy_sets_are_marked_for_the_export_rules(
    change: Set, overrides: int
) -> None:
    passed = apply(terms(Term(set=change)), path())
    assert passed is not None
    assert passed.overrides == overrides


def test_an_unchanged_path_remains_the_same_object() -> None:
    route = path(med=5)
    assert apply(terms(Term()), route) is route
    assert apply(terms(Term(set=Set(local_preference=None))), route) is route


def test_results_are_cached_while_the_path_lives() -> None:
    compiled = CompiledPolicy(terms(Term(set=Set(med=5))), "p", "import")
    route = path()
    assert compiled.apply(route, IPV4_UNICAST, 0) is compiled.apply(route, IPV4_UNICAST, 0)
    assert len(compiled._results) == 1
    del route
    assert len(compiled._results) == 0


PREFIXES = ["10.8.0.0/24", "10.9.0.0/24", "192.0.2.0/24", "10.8.1.0/25"]


@given(st.lists(st.sampled_from(PREFIXES), max_size=10), st.integers(0, 3), st.integers(0, 3))
def test_grouped_prefixes_get_the_result_of_each_prefix_alone(
    prefixes: list[str], one: int, two: int
) -> None:
    policy = terms(
        Term(match=Match(prefixes=(PrefixRule(PREFIXES[one], le=32),)), set=Set(med=1), action="next"),
        Term(match=Match(prefixes=(PrefixRule("10.8.0.0/16", ge=16),)), set=Set(local_preference=9)),
        Term(match=Match(prefixes=(PrefixRule(PREFIXES[two]),), origin=(0,))),
    )  # fmt: skip
    compiled = CompiledPolicy(policy, "p", "import")
    route = path()
    wires = [prefix_to_wire(prefix)[1] for prefix in prefixes]
    parts = list(compiled.group_by_matching_lists(IPV4_UNICAST, wires))
    assert sorted(wire for _, part in parts for wire in part) == sorted(wires)
    for lists, part in parts:
        together = compiled.apply(route, IPV4_UNICAST, lists)
        for wire in part:
            # The same with nothing remembered.
            fresh = CompiledPolicy(policy, "p", "import")
            alone = fresh.apply(route, IPV4_UNICAST, fresh.matching_lists(IPV4_UNICAST, wire))
            assert (alone is None) == (together is None)
            if alone is not None and together is not None:
                assert alone.attributes == together.attributes


@pytest.mark.parametrize(
    ("term", "words"),
    [
        (
            Term(match=Match(communities=("x",)), name="first"),
            "first: match.communities: 'x' is not a community",
        ),
        (Term(match=Match(as_path="x")), "term 0: match.as_path: AS path"),
        (Term(match=Match(prefixes=(PrefixRule("x"),))), "match.prefixes: 'x' is not a prefix"),
        (Term(set=Set(next_hop="x")), "set.next_hop: "),
        (Term(set=Set(prepend=(0,))), "set.prepend: 0: an AS number is"),
        (Term(set=Set(med=-1)), "set.med: -1 is not within"),
        (Term(set=Set(add_communities=("1:*",))), "set.add_communities: "),
    ],
)
def test_an_error_names_the_term_and_the_value(term: Term, words: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        CompiledPolicy(terms(term), "p", "import")
    assert (caught.value.name, caught.value.field) == ("p", "import")
    assert words in caught.value.rule


def test_all_and_none_are_policies() -> None:
    assert compile_import("p", "all") is None
    nothing = compile_import("p", "none")
    assert nothing is not None
    assert nothing.accepts_nothing
    listed = compile_import("p", (PrefixRule("10.0.0.0/8"),))
    assert listed is not None
    assert not listed.accepts_nothing


def test_an_address_that_an_earlier_term_has_set_stays_so_unchanged() -> None:
    set_before = Term(set=Set(next_hop="10.0.0.9"), action="next")
    passed = apply(terms(set_before, Term(set=Set(next_hop="unchanged"))), path())
    assert passed is not None
    assert passed.overrides == NEXT_HOP_SET
