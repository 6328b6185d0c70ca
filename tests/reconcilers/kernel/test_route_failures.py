"""Failed routes by table: which are sent again, after which pause, and which are no error."""

from __future__ import annotations

import pytest

from reconcilers.kernel.failed_routes import RouteFailure
from reconcilers.kernel.route_failures import ERRORS, FIRST_RETRY, LAST_RETRY, RouteFailures
from reconcilers.kernel.writer.protocol_messages import Reason, RouteTable

MAIN = RouteTable(254, 2, 20)
VRF = RouteTable(10, 2, 20)
ONE, TWO = bytes((24, 10, 0, 1)), bytes((24, 10, 0, 2))
FULL = RouteFailure(Reason.TABLE_FULL, "no memory")
OCCUPIED = RouteFailure(Reason.OCCUPIED, "a route of another program")


class Failures:
    """The failures of a kernel at a time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.failures = RouteFailures(lambda: self.now)

    def fail(self, *prefixes: bytes, failure: RouteFailure = FULL) -> RouteFailures:
        """Have the kernel take no route of these."""
        self.failures.add(MAIN, prefixes, failure)
        self.failures.postpone(MAIN)
        return self.failures


@pytest.mark.parametrize("reason", sorted(ERRORS))
def test_a_route_that_failed_is_postponed_until_its_pause_is_over(reason: Reason) -> None:
    at = Failures()
    failures = at.fail(ONE, failure=RouteFailure(reason, "no"))
    assert failures.postponed(MAIN, [ONE, TWO]) == {ONE}
    assert not failures.postponed(VRF, [ONE])
    at.now = FIRST_RETRY
    assert not failures.postponed(MAIN, [ONE])


def test_the_pause_doubles_up_to_its_limit_and_begins_anew_without_a_failure() -> None:
    at = Failures()
    pauses = []
    for _ in range(7):
        failures, began = at.fail(ONE), at.now
        while failures.postponed(MAIN, [ONE]):
            at.now += 0.5
        pauses.append(at.now - began)
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, LAST_RETRY, LAST_RETRY]
    failures.end_pauses([MAIN])
    at.fail(ONE)
    at.now += FIRST_RETRY
    assert failures.postponed(MAIN, [ONE]), "a route is still missing"
    failures.confirmed(MAIN, [ONE])
    failures.end_pauses([MAIN])
    at.fail(ONE)
    at.now += FIRST_RETRY
    assert not failures.postponed(MAIN, [ONE])


def test_failures_within_a_pause_do_not_lengthen_it() -> None:
    at = Failures()
    at.fail(ONE)
    at.now = 0.5
    failures = at.fail(TWO)
    at.now = FIRST_RETRY
    assert not failures.postponed(MAIN, [ONE, TWO])


def test_a_place_of_another_program_is_no_error_and_not_postponed() -> None:
    failures = Failures().fail(ONE, failure=OCCUPIED)
    assert set(failures.occupied(MAIN)) == {ONE}
    assert failures.error(MAIN) == ""
    assert not failures.postponed(MAIN, [ONE])
    failures.freed(MAIN, [ONE])
    assert not failures.occupied(MAIN)
    assert failures.get(MAIN, ONE) == OCCUPIED, "until the route is there"


def test_numbers_and_texts_are_by_reason_and_table() -> None:
    failures = Failures().fail(ONE, TWO)
    failures.add(VRF, [ONE], FULL)
    assert failures.counts() == {Reason.TABLE_FULL: 3}
    assert failures.counts(VRF) == {Reason.TABLE_FULL: 1}
    assert failures.error(MAIN) == "2 routes: TableFull: no memory"
    assert set(failures.prefixes(MAIN)) == {ONE, TWO}
    failures.clear()
    assert failures.counts() == {}


def test_an_unwanted_route_is_a_failure_only_while_the_kernel_has_it() -> None:
    failures = Failures().fail(ONE, TWO, failure=OCCUPIED)
    assert not failures.forget(VRF, [ONE], ())
    assert failures.forget(MAIN, [ONE, TWO], {TWO})
    assert failures.prefixes(MAIN) == (TWO,)
    assert set(failures.occupied(MAIN)) == {TWO}
    assert not failures.forget(MAIN, [TWO], {TWO})
