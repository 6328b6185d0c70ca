"""Outcomes of reconcilers as log lines, counts and a text of health."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from cells.apply.outcomes import OutcomeLog, failure_text, object_ref
from reconcilers.model import ObjectRef
from reconcilers.target.queue import LISTING, ReconcileOutcome

KEY = ("Router", "ns", "a")


class Lines(list[tuple[str, str]]):
    """The lines of a log, each with its object."""

    def of(self, name: str) -> Any:  # noqa: ANN401
        return lambda **fields: self.append((name, fields["object"]))


def test_an_outcome_is_a_line_of_each_thing_that_it_is() -> None:
    lines = Lines()
    outcomes = OutcomeLog(
        lambda outcome: {"object": outcome.key[-1]},
        lambda outcome: outcome.reconciler,
        failed=lines.of("failed"),
        recovered=lines.of("recovered"),
        written=lines.of("written"),
    )
    failed = ReconcileOutcome("object", KEY, error=ValueError(), text="no")
    repeated = ReconcileOutcome("object", KEY, error=ValueError(), text="no", repeated=True)
    for outcome in (
        failed,
        repeated,
        ReconcileOutcome("object", KEY, written=True, recovered=True),
    ):
        outcomes.note(outcome)
    assert lines == [("failed", "a"), ("recovered", "a"), ("written", "a")]
    assert (outcomes.writes, outcomes.failures) == (1, {"object": 2})


def report(name: str, errors: int, *failure: object) -> Any:  # noqa: ANN401
    description = SimpleNamespace(name=name)
    return SimpleNamespace(description=description, errors=errors, failure=failure or None)


def test_health_has_the_first_failure_and_the_number_of_all() -> None:
    def text(*reports: Any) -> str:  # noqa: ANN401
        return failure_text(reports, lambda name, key: f"{name} {object_ref(key)}")

    assert text(report("object", 0)) == ""
    # An object that was given up fails no more.
    assert text(report("object", 0, KEY, "no")) == "object Router/ns/a: no"
    two = text(report("object", 2, KEY, "no"), report("condition", 1, LISTING, "away"))
    assert two.startswith("condition listing: away")
    assert "2" in two


def test_the_listing_of_all_objects_has_a_name() -> None:
    assert object_ref(KEY) == ObjectRef("Router", "ns", "a")
    assert str(object_ref(LISTING)) == "listing"
