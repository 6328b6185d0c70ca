"""The first N keys by rank, after any changes, are the first that sorting finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconcilers.intent.first_by_rank import FirstByRank

KEYS = st.integers(0, 12)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, st.integers(0, 5)),
        st.tuples(st.just("discard"), KEYS, st.just(0)),
        st.tuples(st.just("size"), st.integers(0, 8), st.just(0)),
        st.tuples(st.just("settle"), st.just(0), st.just(0)),
    ),
    max_size=60,
)


@given(CHANGES, st.integers(0, 8))
def test_the_first_items_match_a_sorted_list(
    changes: list[tuple[str, int, int]], size: int
) -> None:
    found: FirstByRank[int] = FirstByRank(size)
    ranks: dict[int, tuple[int, int]] = {}
    seen: set[int] = set()
    for what, key, rank in [*changes, ("settle", 0, 0)]:
        match what:
            case "put":
                ranks[key] = (rank, key)
                found.put(key, (rank, key))
            case "discard":
                ranks.pop(key, None)
                found.discard(key)
            case "size":
                found.size = key
            case _:
                seen ^= found.settle()
                ordered = sorted(ranks, key=lambda one: ranks[one])
                assert seen == set(ordered[: found.size]) == {key for key in ranks if key in found}
                waiting = ordered[found.size :]
                assert found.waiting == len(waiting)
                assert list(found.waiting_keys()) == waiting
                assert len(found) == len(ranks)


def test_heaps_do_not_grow_with_changes() -> None:
    found: FirstByRank[int] = FirstByRank(2)
    for turn in range(2000):
        found.put(turn % 4, (-turn, turn % 4))
        found.settle()
    assert sum(len(getattr(found, heap)) for heap in ("_last", "_next")) < 200
