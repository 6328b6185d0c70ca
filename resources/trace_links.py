"""Trace links: the spans that caused a round, passed from one loop to the next as values.

Span contexts do not travel through streams or tables. The loop that commits rows adds the contexts of
its spans here, and the loop that reads the rows links its next span to them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from opentelemetry.trace import SpanContext

MAX_LINKS = 32
"""Links of one span: a bulk load causes one round, and its trace stays readable."""
SDK: Final = "opentelemetry.sdk.trace"
"""The module without which no span is recorded: it is loaded where tracing is on.

Where it is not in `sys.modules`, callers do without the API, which would make and end objects that do
nothing: a tenth of the calls of a round.
"""


UNSAMPLED: Final = SpanContext((1 << 128) - 1, (1 << 64) - 1, is_remote=False)
"""The cause of what follows from changes whose trace is not begun (`resources.trace_sampling`)."""


def is_recorded(context: SpanContext) -> bool:
    """True if a span, for a trace link, is sent to a collector, or kept by this process.

    A span that is kept without being sampled has a trace state, which nothing else here sets.
    """
    if context is UNSAMPLED:
        return False
    return context.trace_flags.sampled or bool(context.trace_state)


class TraceLinks:
    """The spans of the changes since the last round, and the time of the first change."""

    def __init__(self) -> None:
        self._contexts: list[SpanContext] = []
        self._since: float | None = None

    def add(self, contexts: Iterable[SpanContext], since: float | None = None) -> None:
        """Add spans that cause the next round; ``since`` is the first change's monotonic time.

        Spans beyond `MAX_LINKS` are ignored, but a sampled span takes the place of an unsampled one:
        a trace that a collector has does not end at a busy round.
        """
        for context in contexts:
            if context in self._contexts or not context.is_valid:
                continue
            if len(self._contexts) < MAX_LINKS:
                self._contexts.append(context)
            elif context.trace_flags.sampled:
                self._displace(context)
        if since is not None and (self._since is None or since < self._since):
            self._since = since

    def _displace(self, context: SpanContext) -> None:
        for place, present in enumerate(self._contexts):
            if not present.trace_flags.sampled:
                self._contexts[place] = context
                return

    def take(self) -> tuple[list[SpanContext], float | None]:
        """Return the trace links since the last call: the spans and the first change's time."""
        contexts, since = self._contexts, self._since
        self._contexts, self._since = [], None
        return contexts, since
