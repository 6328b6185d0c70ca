"""Which object events a reconcile round is the consequence of, for traces.

Span contexts cannot travel through streams or tables on their own; the round that reads what they
committed takes them here and links to them.
"""

from __future__ import annotations

from opentelemetry.trace import SpanContext

LIMIT = 32
"""Links of one round; a bulk load has more causes than a trace has use for."""


class PendingCauses:
    """The spans of the events since the last round."""

    def __init__(self) -> None:
        self._pending: list[SpanContext] = []

    def add(self, context: SpanContext) -> None:
        """Remember an event's span, unless there are enough or it is not recorded."""
        if context.is_valid and len(self._pending) < LIMIT:
            self._pending.append(context)

    def take(self) -> tuple[SpanContext, ...]:
        """Give what there is, and forget it."""
        taken, self._pending = tuple(self._pending), []
        return taken
