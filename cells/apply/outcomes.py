"""The outcomes of a runner's objects, for people: log lines, counts and a text of health."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

from prometheus_client.core import Counter as CounterMetric

from reconcilers.model import ObjectRef
from reconcilers.target import ReconcileError, ReconcileOutcome, ReconcilerReport
from reconcilers.target.queue import LISTING
from reconcilers.target.reconciler import ObjectKey
from resources.enumeration import first_of

K = TypeVar("K")


class LogLine(Protocol):
    """Writes a line of the log."""

    def __call__(self, **fields: object) -> None:
        """Write it with these values."""


def _no_line(**_: object) -> None:
    """Write nothing."""


class OutcomeLog(Generic[K]):
    """Logs and counts outcomes."""

    def __init__(
        self,
        fields: Callable[[ReconcileOutcome], dict[str, Any]],
        group: Callable[[ReconcileOutcome], K],
        *,
        failed: LogLine = _no_line,
        repeated: LogLine = _no_line,
        recovered: LogLine = _no_line,
        written: LogLine | None = None,
        errors: CounterMetric | None = None,
    ) -> None:
        """``fields`` are the values of each line; ``group`` is what failures are counted by.

        ``failed``: an attempt with another error than the attempt before, ``repeated``: with the same.
        """
        self._fields = fields
        self._group = group
        self._failed = failed
        self._repeated = repeated
        self._recovered = recovered
        self._written = written
        self._errors = errors
        self.writes = 0
        """Objects written, each time."""
        self.failures: Counter[K] = Counter()
        """Attempts that failed."""

    def note(self, outcome: ReconcileOutcome) -> None:
        """Log and count an outcome."""
        if outcome.error is not None:
            self.failures[self._group(outcome)] += 1
            if self._errors is not None:
                self._errors.inc()
            line = self._repeated if outcome.repeated else self._failed
            line(**self._fields(outcome))
        if outcome.recovered:
            self._recovered(**self._fields(outcome))
        if outcome.written:
            self.writes += 1
            if self._written is not None:
                self._written(**self._fields(outcome))


def object_ref(key: ObjectKey) -> ObjectRef:
    """Return an object of the API server, or what stands for the listing of all."""
    return ObjectRef("listing", "", "") if key == LISTING else ObjectRef(*key)


def reason(outcome: ReconcileOutcome) -> str:
    """Return the error of a request without what was requested, which a line has as a value."""
    return outcome.error.reason if isinstance(outcome.error, ReconcileError) else outcome.text


def failure_text(reports: Iterable[ReconcilerReport], name: Callable[[str, ObjectKey], str]) -> str:
    """Return the first failure of reconcilers with the number of all; empty without one.

    ``name`` returns the name of an object of a reconciler.
    """
    first: tuple[str, ObjectKey, str] | None = None
    errors = 0
    for report in reports:
        if report.failure is not None:
            failure = (report.description.name, *report.failure)
            first = failure if first is None else min(first, failure)
            errors += max(1, report.errors)
    if first is None:
        return ""
    reconciler, key, error = first
    return first_of(f"{name(reconciler, key)}: {error}", errors)
