"""The join rule of a dialect that has none of its own."""

import itertools

from reconcilers.dialect.join import united
from reconcilers.model import Attributes


def test_attributes_are_joined_independent_of_their_order() -> None:
    all_of = (
        Attributes(communities=(1, 2), med=7, next_hop="192.0.2.9"),
        Attributes(communities=(2,), large_communities=((1, 2, 3),), local_preference=50, med=5),
        Attributes(local_preference=200, next_hop="192.0.2.8", incomplete=True),
    )
    expected = Attributes(
        communities=(1, 2),
        large_communities=((1, 2, 3),),
        local_preference=200,
        med=5,
        next_hop="192.0.2.8",
        incomplete=True,
    )
    assert {united(order) for order in itertools.permutations(all_of)} == {expected}


def test_what_no_object_sets_stays_unset() -> None:
    assert united((Attributes(), Attributes())) == Attributes()
