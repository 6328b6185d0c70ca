"""The failed routes of a table are counted as they come and go."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from reconcilers.kernel.failed_routes import FailedRoutes, RouteFailure
from reconcilers.kernel.writer.protocol_messages import Reason

PREFIXES = [bytes((24, 10, 0, n)) for n in range(8)]
FAILURES = [
    RouteFailure(Reason.TABLE_FULL, "no memory"),
    RouteFailure(Reason.REFUSED, "a"),
    RouteFailure(Reason.REFUSED, "b"),
]
SOME = st.lists(st.sampled_from(PREFIXES), max_size=6)


@given(st.lists(st.tuples(SOME, st.sampled_from([*FAILURES, None]))))
def test_counts_match_the_routes(
    steps: list[tuple[list[bytes], RouteFailure | None]],
) -> None:
    failed = FailedRoutes()
    expected: dict[bytes, RouteFailure] = {}
    for prefixes, failure in steps:
        if failure is None:
            failed.discard(prefixes)
            for nlri in prefixes:
                expected.pop(nlri, None)
        else:
            failed.add(prefixes, failure)
            expected.update(dict.fromkeys(prefixes, failure))
    assert dict(failed.counts()) == Counter(expected.values())
    assert {nlri: failed.get(nlri) for nlri in PREFIXES if failed.get(nlri)} == expected
    assert bool(failed) is bool(expected)
