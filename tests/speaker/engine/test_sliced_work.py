"""Steps of large changes: what is performed in which slice."""

from __future__ import annotations

from speaker.engine.sliced_work import SLICE_UNITS, SlicedWork, Steps


def test_another_path_comes_before_the_removal_of_routes_of_a_session_that_was_lost_earlier() -> (
    None
):
    done: list[str] = []

    def steps(name: str, count: int) -> Steps:
        for _ in range(count):
            done.append(name)
            yield SLICE_UNITS

    errors: list[Exception] = []
    work = SlicedWork(errors.append)
    work.add(steps("removal", 3))
    work.add(steps("failover", 2), failover=True)
    while work.pending:
        work.renew()
    assert done == ["removal", "failover", "failover", "removal", "removal"]
    assert errors == []
