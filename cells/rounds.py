"""What a change hands on from one loop to the next: its causes for tracing, and when it began.

Trace context must not travel by accident (a stream's subscriber sees whatever span its producer had
open), so it is carried as a value. Nothing here decides anything.
"""

from __future__ import annotations

from collections.abc import Iterable

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanContext

LIMIT = 32
"""Causes kept: a flood of changes is one round, and its trace stays readable."""


class Handoff:
    """Causes and the first moment of the changes that the next round will deal with."""

    def __init__(self) -> None:
        self._contexts: list[SpanContext] = []
        self._since: float | None = None

    def add(self, contexts: Iterable[SpanContext], since: float | None) -> None:
        """Take what a round or a commit was caused by; ``since`` in the loop's time."""
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


def links(contexts: Iterable[SpanContext]) -> list[trace.Link]:
    """Return a link to each."""
    return [trace.Link(context) for context in contexts]


def child_of(context: SpanContext) -> Context:
    """Return the context for a span whose parent is known as a value."""
    return trace.set_span_in_context(trace.NonRecordingSpan(context), Context())
