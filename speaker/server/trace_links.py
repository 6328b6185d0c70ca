"""From a changed route set to the UPDATEs that tell of it: spans, when somebody records them.

Uses the OpenTelemetry API only, which does nothing without an SDK. Without a recording span around
`Speaker.update_routes` it costs one attribute lookup per call and nothing per peer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Final

from speaker.peer.actions import Action, Write

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext

LIMIT: Final = 32
"""How many causes of one flush are kept."""


class TraceLinks:
    """The spans in which route sets were changed since the last flush."""

    __slots__ = ("contexts",)

    def __init__(self) -> None:
        self.contexts: list[SpanContext] = []
        """What was remembered."""

    def note(self) -> None:
        """Remember the current span if it records."""
        trace = _api()
        if trace is None:
            return
        span = trace.get_current_span()
        if span.is_recording() and len(self.contexts) < LIMIT:
            context = span.get_span_context()
            if context not in self.contexts:
                self.contexts.append(context)

    def take(self) -> list[SpanContext]:
        """Return what was remembered, and forget it."""
        contexts, self.contexts = self.contexts, []
        return contexts

    def trace(
        self,
        causes: Sequence[SpanContext],
        actions: Sequence[Action],
        describe: Callable[[int], tuple[str, str] | None],
    ) -> None:
        """Make a span ``bgp.update.send`` for each peer that is told something.

        The first cause is its parent, the others are links. ``describe`` gives the instance and
        peer of a connection.
        """
        trace = _api()
        if trace is None:
            return
        tracer = trace.get_tracer("speaker.server")
        parent = trace.set_span_in_context(trace.NonRecordingSpan(causes[0]))
        links = [trace.Link(context) for context in causes[1:]]
        for action in actions:
            if not isinstance(action, Write) or not action.prefixes:
                continue
            instance, peer = describe(action.connection) or ("", "")
            tracer.start_span(
                "bgp.update.send",
                context=parent,
                kind=trace.SpanKind.PRODUCER,
                links=links,
                attributes={
                    "instance": instance,
                    "peer": peer,
                    "prefixes": action.prefixes,
                    "bytes": sum(map(len, action.parts)),
                },
            ).end()


def _api() -> ModuleType | None:
    """Return the OpenTelemetry API where something else has already imported it.

    Nobody can have started a span without it, and a router alone does not pay for the import.
    """
    return sys.modules.get("opentelemetry.trace")
