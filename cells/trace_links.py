"""Trace links: the spans that caused a round, and the time of its first change, for the next loop.

Trace context must not travel by accident (a stream's subscriber sees whatever span its producer had
open), so it is carried as a value.
"""

from __future__ import annotations

from collections.abc import Iterable

from opentelemetry.trace import SpanContext

LIMIT = 32
"""Links kept: a flood of changes is one round, and its trace stays readable."""


class TraceLinks:
    """The spans and the first moment of the changes that the next round reconciles."""

    def __init__(self) -> None:
        self._contexts: list[SpanContext] = []
        self._since: float | None = None

    def add(self, contexts: Iterable[SpanContext], since: float | None) -> None:
        """Add the spans that caused a round; ``since`` is the first change's monotonic time."""
        for context in contexts:
            if context.is_valid and len(self._contexts) < LIMIT:
                self._contexts.append(context)
        if since is not None and (self._since is None or since < self._since):
            self._since = since

    def take(self) -> tuple[list[SpanContext], float | None]:
        """Return all that was added since the last call."""
        contexts, since = self._contexts, self._since
        self._contexts, self._since = [], None
        return contexts, since
