"""Spans ``bgp.update.receive``: reads of a connection with UPDATEs.

A read that changes routes is the cause of the UPDATEs and best paths that follow, so that a trace leads
from a peer's UPDATE to other peers and to the kernel. Stands around the core only where spans are
exported: without them no input passes through it. Of sampled traces the draw comes before the span: a
span that is dropped would cost a tenth of a route's way.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, final

from opentelemetry import trace
from opentelemetry.context import Context

from speaker.engine.inputs import BytesReceived, Input
from speaker.iana import MessageType
from speaker.message import HEADER_SIZE, MARKER
from speaker.peer.actions import Action
from speaker.server.trace_links import MAX_LINKS, Receiver, TraceLinks

_NO_CONTEXT: Final = Context()

Handle = Callable[[Input, float], list[Action]]


@final
class ReceivedSpans:
    """Processes inputs in the core's place, and notes the spans of received UPDATEs."""

    __slots__ = ("_describe", "_handle", "_links", "_pending", "_share", "_tracer")

    def __init__(
        self,
        handle: Handle,
        pending: Callable[[], bool],
        links: TraceLinks,
        describe: Callable[[int], Receiver | None],
        share: float,
    ) -> None:
        """``pending`` returns whether UPDATEs or best paths follow; ``describe`` the peer.

        ``share``: the part of the reads that have a span.
        """
        self._handle = handle
        self._pending = pending
        self._links = links
        self._describe = describe
        self._share = share
        self._tracer = trace.get_tracer("speaker.server")

    def handle(self, item: Input, now: float) -> list[Action]:
        """Process an input."""
        if type(item) is not BytesReceived or random.random() >= self._share:  # noqa: S311  no secret
            return self._handle(item, now)
        if len(self._links.contexts) >= MAX_LINKS:
            return self._handle(item, now)
        count = count_updates(item.data)
        if not count:
            return self._handle(item, now)
        span = self._tracer.start_span(
            "bgp.update.receive", context=_NO_CONTEXT, kind=trace.SpanKind.CONSUMER
        )
        if not span.is_recording():
            return self._handle(item, now)
        try:
            actions = self._handle(item, now)
        finally:
            receiver = self._describe(item.connection) or Receiver("", "", "")
            span.set_attributes(
                {
                    "network.protocol.name": "bgp",
                    "network.transport": "tcp",
                    "network.peer.address": receiver.address,
                    "bgp.instance": receiver.instance,
                    "bgp.peers": [receiver.peer],
                    "bgp.peer_count": 1,
                    "bgp.update_count": count,
                    "bgp.octet_count": len(item.data),
                }
            )
            span.end()
        if self._pending():
            self._links.contexts.append(span.get_span_context())
        return actions


def count_updates(data: bytes) -> int:
    """Return the number of UPDATEs in received octets, by their headers (RFC 4271 section 4.1).

    A message that begins before the octets is taken for one.
    """
    start = data.find(MARKER)
    if start < 0:
        return 1
    count = 0 if start == 0 else 1
    while start + HEADER_SIZE <= len(data):
        count += data[start + 18] == MessageType.UPDATE
        start += max(HEADER_SIZE, int.from_bytes(data[start + 16 : start + 18]))
    return count
