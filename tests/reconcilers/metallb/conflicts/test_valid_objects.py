"""What follows from all valid objects: which advertisements select one of some pools."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconcilers.metallb.bit_sets import bits_of, members
from reconcilers.metallb.conflicts import ValidObjects
from tests.reconcilers.metallb.objects import advertisement, pool, rows

NUMBERS = st.frozensets(st.integers(0, 4))


@given(st.lists(NUMBERS, min_size=1, max_size=5), NUMBERS, NUMBERS)
def test_advertisements_share_the_pools_that_they_select(
    selections: list[frozenset[int]], advertisements: frozenset[int], pools: frozenset[int]
) -> None:
    """Whether there are fewer advertisements or fewer pools."""
    valid = ValidObjects(
        rows(
            *(pool(f"p{number}", f"10.0.{number}.0/24") for number in range(5)),
            *(
                advertisement(f"a{i}", ipAddressPools=[f"p{n}" for n in selected] or ["none"])
                for i, selected in enumerate(selections)
            ),
        )
    )
    compared = advertisements & set(range(len(selections)))
    sharing = valid.sharing(bits_of(compared), bits_of(pools))
    assert set(members(sharing)) == {number for number in compared if selections[number] & pools}
