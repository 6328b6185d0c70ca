"""Labels of nodes on which an object meets all others that it can meet."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from reconcilers.admission.hypothetical_nodes import (
    MAX_NODES,
    example_labels,
    hypothetical_label_sets,
    selects,
)
from resources.label_selectors import LabelSelector, LabelSelectorRequirement

KEYS, VALUES = ("rack", "zone"), ("a", "b")
NODES = [
    {key: value for key, value in zip(KEYS, values, strict=True) if value is not None}
    for values in itertools.product((None, "", *VALUES, "z"), repeat=2)
]
"""All sets of labels that the selectors distinguish."""

requirements = st.one_of(
    st.builds(
        LabelSelectorRequirement,
        key=st.sampled_from(KEYS),
        operator=st.sampled_from(("In", "NotIn")),
        values=st.lists(st.sampled_from(VALUES), min_size=1, max_size=2).map(tuple),
    ),
    st.builds(
        LabelSelectorRequirement,
        key=st.sampled_from(KEYS),
        operator=st.sampled_from(("Exists", "DoesNotExist")),
    ),
)
selectors = st.builds(
    LabelSelector,
    match_labels=st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=1),
    match_expressions=st.lists(requirements, max_size=3).map(tuple),
)
objects = st.lists(selectors, max_size=2)


@given(selectors)
def test_labels_are_found_exactly_where_there_are_any(selector: LabelSelector) -> None:
    labels = example_labels(selector)
    if labels is None:
        assert not any(selector.matches(node) for node in NODES)
    else:
        assert selector.matches(labels)


@given(objects, st.lists(objects, max_size=6))
def test_all_meet_that_can_meet(
    own: list[LabelSelector], others: list[list[LabelSelector]]
) -> None:
    found = hypothetical_label_sets(own, others)
    assert all(selects(own, labels) for labels in found)
    for other in others:
        can_meet = any(selects(own, node) and selects(other, node) for node in NODES)
        assert can_meet == any(selects(other, labels) for labels in found)


def test_the_number_of_nodes_is_limited() -> None:
    hosts = [[LabelSelector(match_labels={"host": str(i)})] for i in range(2 * MAX_NODES)]
    assert len(hypothetical_label_sets((), hosts)) == MAX_NODES
