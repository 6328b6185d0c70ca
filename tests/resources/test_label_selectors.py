"""Label selectors: Kubernetes' semantics."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.label_selectors import (
    LabelSelector,
    LabelSelectorRequirement,
    SelectorIndex,
    SelectorTextError,
    parse_selector,
    strict_selector_errors,
)

_KEYS, _VALUES = st.sampled_from("ab"), st.sampled_from("12")
_LABELS = st.dictionaries(_KEYS, _VALUES)
_SELECTORS = st.builds(
    LabelSelector,
    match_labels=_LABELS,
    match_expressions=st.lists(
        st.builds(
            LabelSelectorRequirement,
            key=_KEYS,
            operator=st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
            values=st.lists(_VALUES, min_size=1, unique=True).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
)

LABELS = {"app": "web", "tier": "front"}


@pytest.mark.parametrize(
    ("operator", "key", "values", "matches"),
    [
        ("In", "app", ("web", "api"), True),
        ("In", "app", ("api",), False),
        ("In", "none", ("web",), False),
        ("NotIn", "app", ("api",), True),
        ("NotIn", "app", ("web",), False),
        ("NotIn", "none", ("web",), True),
        ("Exists", "app", (), True),
        ("Exists", "none", (), False),
        ("DoesNotExist", "none", (), True),
        ("DoesNotExist", "app", (), False),
    ],
)
def test_operators(operator: str, key: str, values: tuple[str, ...], matches: bool) -> None:
    requirement = LabelSelectorRequirement(key=key, operator=operator, values=values)  # type: ignore[arg-type]
    assert LabelSelector(match_expressions=(requirement,)).matches(LABELS) is matches


def test_all_parts_have_to_match_and_an_empty_selector_matches_everything() -> None:
    exists = LabelSelectorRequirement(key="tier", operator="Exists")
    both = LabelSelector(match_labels={"app": "web"}, match_expressions=(exists,))
    assert both.matches(LABELS)
    assert not both.matches({"app": "web"})
    assert LabelSelector().matches({})
    assert both.keys == {"app", "tier"}


@given(_SELECTORS, _SELECTORS, _LABELS)
def test_both_is_the_conjunction_of_two_selectors(
    one: LabelSelector, other: LabelSelector, labels: dict[str, str]
) -> None:
    expected = one.matches(labels) and other.matches(labels)
    assert one.both(other).matches(labels) == expected


@pytest.mark.parametrize("key", ["", "-a", "a/", "/a", "a b", "A.example/x", "x" * 64, "a/b/c"])
def test_a_strict_selector_has_no_impossible_key(key: str) -> None:
    selector = LabelSelector(match_labels={key: "x"})
    assert [e.path for e in strict_selector_errors(selector, "s")] == ["s.matchLabels"]
    requirement = LabelSelectorRequirement(key=key, operator="Exists")
    [error] = strict_selector_errors(LabelSelector(match_expressions=(requirement,)), "s")
    assert error.path == "s.matchExpressions[0].key"


@pytest.mark.parametrize("value", ["@", "-", "a b", "x" * 64, "a\n"])
def test_a_strict_selector_has_no_impossible_value(value: str) -> None:
    requirement = LabelSelectorRequirement(key="a", operator="In", values=("ok", value))
    [error] = strict_selector_errors(LabelSelector(match_expressions=(requirement,)), "s")
    assert error.path == "s.matchExpressions[0].values[1]"


def test_a_strict_selector_takes_qualified_names_and_empty_values() -> None:
    labels = {"kubernetes.io/hostname": "n-1.x_y", "a": ""}
    assert not list(strict_selector_errors(LabelSelector(match_labels=labels), "s"))


@given(st.lists(_SELECTORS, max_size=8), _LABELS)
def test_an_index_finds_what_selects_in_its_order(
    selectors: list[LabelSelector], labels: dict[str, str]
) -> None:
    index = SelectorIndex(enumerate(selectors))
    assert list(index.matching(labels)) == [
        number for number, selector in enumerate(selectors) if selector.matches(labels)
    ]


@pytest.mark.parametrize(
    ("labels", "wanted", "present", "count"),
    [
        ({"app": "shop", "zone": "a"}, "app=web", "app=shop", 1),
        ({"zone": "c"}, "app=web,zone in (a,b)", "no label app, zone=c", 2),
        ({"app": "web", "zone": "b", "off": ""}, "!off", "off=", 1),
    ],
)
def test_a_mismatch_names_what_is_wanted_and_what_is_there(
    labels: dict[str, str], wanted: str, present: str, count: int
) -> None:
    zone = LabelSelectorRequirement(key="zone", operator="In", values=("a", "b"))
    off = LabelSelectorRequirement(key="off", operator="DoesNotExist")
    selector = LabelSelector(match_labels={"app": "web"}, match_expressions=(zone, off))
    assert selector.mismatch(labels) == (wanted, present, count)
    assert selector.mismatch({"app": "web", "zone": "a"}) is None


@given(_SELECTORS, _LABELS)
def test_a_selector_is_read_from_its_text(selector: LabelSelector, labels: dict[str, str]) -> None:
    text = selector.text if selector.keys else ""
    assert parse_selector(text).matches(labels) == selector.matches(labels)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("a", "a"),
        (" ! a ", "!a"),
        ("a==b , c != d", "a in (b),c notin (d)"),
        ("example.com/a in(x, y)", "example.com/a in (x,y)"),
        ("a=", "a in ()"),
        ("in,notin", "in,notin"),
    ],
)
def test_a_text_has_kubectl_s_forms(text: str, canonical: str) -> None:
    assert parse_selector(text).text == canonical


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        ("a,", ""),
        (",a", ",a"),
        ("a b", "a b"),
        ("ok,a in b", "a in b"),
        ("a in (b", "a in (b"),
        ("!a=b", "!a=b"),
        ("a > 1", "a > 1"),
        ("-a=b", "-a=b"),
        ("a=-b", "a=-b"),
    ],
)
def test_a_text_that_is_no_selector_is_an_error_with_the_part(text: str, unread: str) -> None:
    with pytest.raises(SelectorTextError) as error:
        parse_selector(text)
    assert str(error.value) == unread
