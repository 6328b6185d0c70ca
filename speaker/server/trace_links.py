"""Trace links from a changed configuration or route set to the UPDATEs and best paths that follow.

Uses the OpenTelemetry API only, and not even that without an SDK. Without a recording span around
a call of `speaker.server.Speaker` it costs one attribute lookup per call and nothing per peer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, final

from speaker.message import HEADER_SIZE
from speaker.peer.actions import Action, SendBestPaths, Write

if TYPE_CHECKING:
    from opentelemetry.trace import Span, SpanContext

SDK: Final = "opentelemetry.sdk.trace"
MAX_LINKS: Final = 32
"""Spans that the UPDATEs of one turn of the event loop are linked to."""
MAX_EXPORTS: Final = 32
"""Turns with UPDATEs of one change that have a span; a large change takes more."""
MAX_PEERS: Final = 32
"""Peers that the span of an update group names."""


class Receiver(NamedTuple):
    """The peer at the other end of a connection."""

    instance: str
    peer: str
    address: str


class TraceLinks:
    """The spans that changed the configuration or routes since UPDATEs were last sent."""

    __slots__ = ("_turns", "contexts")

    def __init__(self) -> None:
        self._turns = 0
        """Turns in which the UPDATEs of a large change were sent before."""
        self.contexts: list[SpanContext] = []
        """The contexts of these spans, in order."""

    def note(self) -> None:
        """Add the current span if it records."""
        # Without both no span is recorded, and a router alone does not pay for the import.
        trace = sys.modules.get("opentelemetry.trace") if SDK in sys.modules else None
        if trace is None:
            return
        span = trace.get_current_span()
        if span.is_recording() and len(self.contexts) < MAX_LINKS:
            context = span.get_span_context()
            if context not in self.contexts:
                self.contexts.append(context)

    def begin(self) -> Export:
        """Begin the span of the UPDATEs that follow from the spans of `contexts`, and forget these."""
        contexts, self.contexts = self.contexts, []
        turns, self._turns = self._turns + 1, 0
        return Export(contexts, turns)

    def go_on(self, export: Export) -> None:
        """Trace the rest of a large change, which is sent in later turns."""
        if export.turns < MAX_EXPORTS:
            self.contexts[:0] = export.causes
            self._turns = export.turns


@final
class Export:
    """A span ``bgp.export``: from the selection of what peers are sent until it is sent.

    Below it is a span ``bgp.update.send`` for each update group that is sent UPDATEs. A single
    cause is its parent; the spans of one round are of one trace, and so is this one.
    """

    __slots__ = ("_context", "_groups", "_span", "_tracer", "causes", "turns")

    def __init__(self, causes: list[SpanContext], turns: int) -> None:
        """``turns``: how many there were, with this one, in which UPDATEs of the change are sent."""
        trace = sys.modules["opentelemetry.trace"]
        causes.sort(key=lambda cause: not cause.trace_flags.sampled)
        self.causes, self.turns = causes, turns
        self._tracer = trace.get_tracer("speaker.server")
        parent = trace.set_span_in_context(trace.NonRecordingSpan(causes[0]))
        links = [trace.Link(cause) for cause in causes[1:]]
        self._span: Span = self._tracer.start_span("bgp.export", context=parent, links=links)
        self._context = trace.set_span_in_context(self._span)
        self._groups: list[Span] = []

    @property
    def span(self) -> SpanContext:
        """The span, for what follows from the best paths that are sent meanwhile."""
        return self._span.get_span_context()

    def sending(
        self, actions: Sequence[Action], describe: Callable[[int], Receiver | None]
    ) -> None:
        """Begin a span for each update group that is sent UPDATEs: peers that get the same octets.

        ``describe`` returns the peer of a connection.
        """
        groups: dict[tuple[str, tuple[int, ...]], tuple[Write, list[Receiver]]] = {}
        for action in actions:
            if isinstance(action, Write) and action.prefixes:
                receiver = describe(action.connection) or Receiver("", "", "")
                key = (receiver.instance, tuple(map(id, action.parts)))
                groups.setdefault(key, (action, []))[1].append(receiver)
        for (instance, _), (write, receivers) in groups.items():
            self._groups.append(self._send(instance, write, sorted(receivers)))
        self._span.set_attribute("bgp.update_group_count", len(groups))
        best_paths = sum(isinstance(action, SendBestPaths) for action in actions)
        self._span.set_attribute("bgp.best_path_batch_count", best_paths)

    def _send(self, instance: str, write: Write, receivers: Sequence[Receiver]) -> Span:
        trace = sys.modules["opentelemetry.trace"]
        span: Span = self._tracer.start_span(
            "bgp.update.send",
            context=self._context,
            kind=trace.SpanKind.PRODUCER,
            attributes={
                "network.protocol.name": "bgp",
                "network.transport": "tcp",
                "bgp.instance": instance,
                "bgp.peers": [receiver.peer for receiver in receivers[:MAX_PEERS]],
                "bgp.peer_count": len(receivers),
                "bgp.prefix_count": write.prefixes,
                "bgp.update_count": sum(map(_messages, write.parts)),
                "bgp.octet_count": sum(map(len, write.parts)),
            },
        )
        if len(receivers) == 1:
            span.set_attribute("network.peer.address", receivers[0].address)
        return span

    def end(self) -> None:
        """End the spans, once the octets are handed to the sockets."""
        for span in (*self._groups, self._span):
            span.end()


def _messages(octets: bytes) -> int:
    """Return the number of messages, by the lengths in their headers (RFC 4271 section 4.1)."""
    position = count = 0
    while position + HEADER_SIZE <= len(octets):
        position += max(HEADER_SIZE, int.from_bytes(octets[position + 16 : position + 18]))
        count += 1
    return count
