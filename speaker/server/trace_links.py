"""Trace links from a changed route set to the UPDATEs that advertise the change.

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

MAX_LINKS: Final = 32
"""Spans that the UPDATEs of one turn of the event loop are linked to."""
MAX_PEERS: Final = 32
"""Peers that the span of an update group names."""
HEADER_LENGTH: Final = 19


class TraceLinks:
    """The spans that changed route sets since UPDATEs were last sent."""

    __slots__ = ("contexts",)

    def __init__(self) -> None:
        self.contexts: list[SpanContext] = []
        """The contexts of these spans, in order."""

    def note(self) -> None:
        """Add the current span if it records."""
        trace = _api()
        if trace is None:
            return
        span = trace.get_current_span()
        if span.is_recording() and len(self.contexts) < MAX_LINKS:
            context = span.get_span_context()
            if context not in self.contexts:
                self.contexts.append(context)

    def take(self) -> list[SpanContext]:
        """Return the contexts since the last call."""
        contexts, self.contexts = self.contexts, []
        return contexts

    def trace(
        self,
        contexts: Sequence[SpanContext],
        actions: Sequence[Action],
        describe: Callable[[int], tuple[str, str] | None],
    ) -> None:
        """Record a span ``bgp.update.send`` for each update group that is sent UPDATEs.

        The first context is its parent, the others are links. ``describe`` returns the names of the
        instance and the peer of a connection. Peers that are sent the same octets are one group.
        """
        trace = _api()
        if trace is None:
            return
        tracer = trace.get_tracer("speaker.server")
        parent = trace.set_span_in_context(trace.NonRecordingSpan(contexts[0]))
        links = [trace.Link(context) for context in contexts[1:]]
        groups: dict[tuple[str, tuple[int, ...]], tuple[Write, list[str]]] = {}
        for action in actions:
            if not isinstance(action, Write) or not action.prefixes:
                continue
            instance, peer = describe(action.connection) or ("", "")
            key = (instance, tuple(map(id, action.parts)))
            groups.setdefault(key, (action, []))[1].append(peer)
        for (instance, _), (write, peers) in groups.items():
            tracer.start_span(
                "bgp.update.send",
                context=parent,
                kind=trace.SpanKind.PRODUCER,
                links=links,
                attributes={
                    "network.protocol.name": "bgp",
                    "bgp.instance": instance,
                    "bgp.peers": sorted(peers)[:MAX_PEERS],
                    "bgp.peer_count": len(peers),
                    "bgp.prefixes": write.prefixes,
                    "bgp.updates": sum(map(_messages, write.parts)),
                    "bgp.octets": sum(map(len, write.parts)),
                },
            ).end()


def _messages(octets: bytes) -> int:
    """Return the number of messages, by the lengths in their headers (RFC 4271 section 4.1)."""
    position = count = 0
    while position + HEADER_LENGTH <= len(octets):
        position += max(HEADER_LENGTH, int.from_bytes(octets[position + 16 : position + 18]))
        count += 1
    return count


def _api() -> ModuleType | None:
    """Return the OpenTelemetry API where another module has already imported it.

    No span can exist without it, and a router alone does not pay for the import.
    """
    return sys.modules.get("opentelemetry.trace")
