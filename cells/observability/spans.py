"""The spans cell: the last spans of the process in memory, for `waggle trace`; off by default.

It has the spans of all traces, whatever part of them is sampled for a collector.
"""

from __future__ import annotations

import asyncio
import difflib
import importlib
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import trace

from cells.api.model import SpanItem
from cells.api.resource import ApiResource, BadRequestError, NotFoundError, Query
from cells.hive import Wiring
from cells.hive.lifecycle import Lifecycle
from cells.nearest_prefixes import NEAREST, nearest_prefixes, network_of
from cells.observability.process_attributes import UnsampledSpans
from cells.options import SpansOptions

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan, Span

MAX_SPANS: Final = 500
"""Spans of one answer."""
SLICE: Final = 100
"""Prefixes or objects that are compared in a turn of the loop."""


class RecentSpans:
    """A span processor of the SDK that keeps the last spans."""

    def __init__(self, lifecycle: Lifecycle, options: SpansOptions) -> None:
        self._spans: deque[ReadableSpan] = deque(maxlen=options.buffer or 1)
        self._lock = threading.Lock()
        lifecycle.append("spans", start=self.start)

    async def start(self) -> None:
        """Receive the spans of the process."""
        # The SDK takes 40 ms and 3 MB, only where this cell is on.
        sdk = await asyncio.to_thread(importlib.import_module, "opentelemetry.sdk.trace")
        provider: Any = trace.get_tracer_provider()
        if not isinstance(provider, sdk.TracerProvider):
            provider = sdk.TracerProvider(shutdown_on_exit=False)
            trace.set_tracer_provider(provider)
        provider.add_span_processor(self)

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """See the SDK's SpanProcessor."""

    def on_end(self, span: ReadableSpan) -> None:
        """Keep a span; the oldest one makes room."""
        with self._lock:
            self._spans.append(span)

    def _on_ending(self, span: Span) -> None:
        """See the SDK's SpanProcessor."""

    def shutdown(self) -> None:
        """See the SDK's SpanProcessor."""

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """See the SDK's SpanProcessor."""
        del timeout_millis
        return True

    def last_change(self, target: str) -> list[SpanItem]:
        """Return the spans of the last change of a prefix or an object, in the order of their begin.

        ``target`` is a prefix in canonical form, or ``[KIND/][NAMESPACE/]NAME`` of an object.
        """
        with self._lock:
            spans = list(self._spans)
        named = next((span for span in reversed(spans) if _is_of(span, target)), None)
        return [] if named is None else list(map(_item, _change(named, spans)))[:MAX_SPANS]

    def targets(self) -> list[str]:
        """Return the prefixes and objects with a change, ``[KIND/][NAMESPACE/]NAME`` in both forms."""
        with self._lock:
            spans = list(self._spans)
        names: dict[str, None] = {}
        for span in spans:
            attributes = span.attributes or {}
            if (name := attributes.get("waggle.object")) is not None:
                names |= {str(name): None, f"{attributes.get('waggle.kind')}/{name}": None}
            prefixes = attributes.get("waggle.prefixes", ())
            if isinstance(prefixes, tuple):
                names |= dict.fromkeys(map(str, prefixes))
        return list(names)


def _is_of(span: ReadableSpan, target: str) -> bool:
    attributes = span.attributes or {}
    prefixes = attributes.get("waggle.prefixes", ())
    name = attributes.get("waggle.object")
    if name is not None and target in (name, f"{attributes.get('waggle.kind')}/{name}"):
        return True
    return isinstance(prefixes, tuple) and target in prefixes


def _change(named: ReadableSpan, spans: Iterable[ReadableSpan]) -> list[ReadableSpan]:
    """Return the spans of the trace of a span, of traces that it links to, and that link to it."""
    known = {span.context.span_id: span for span in spans}
    traces = {named.context.trace_id}
    traces |= {link.context.trace_id for link in named.links}
    for span in known.values():
        if any(link.context.trace_id == named.context.trace_id for link in span.links):
            traces.add(span.context.trace_id)
    change = [span for span in known.values() if span.context.trace_id in traces]
    return sorted(change, key=lambda span: span.start_time or 0)


def _item(span: ReadableSpan) -> SpanItem:
    start, end = span.start_time or 0, span.end_time or 0
    return SpanItem(
        name=span.name,
        trace_id=f"{span.context.trace_id:032x}",
        span_id=f"{span.context.span_id:016x}",
        parent_span_id=None if span.parent is None else f"{span.parent.span_id:016x}",
        links=[f"{link.context.span_id:016x}" for link in span.links],
        start_time=datetime.fromtimestamp(start / 1e9, UTC),
        duration_seconds=(end - start) / 1e9,
        attributes=dict(_attributes(span)),
    )


def _attributes(span: ReadableSpan) -> Iterator[tuple[str, Any]]:
    for name, value in (span.attributes or {}).items():
        yield name, list(value) if isinstance(value, tuple) else value


def spans_resource(recent: RecentSpans) -> ApiResource:
    """Return the path of the last change of a prefix or an object."""

    def read(query: Query) -> Iterator[Sequence[SpanItem]]:
        target = query.get("target")
        if not target:
            raise BadRequestError("target: a prefix or an object is required")
        return _found(recent, target)

    return ApiResource(path="/v1/spans", kind="SpanList", parameters=("target",), read=read)


def _found(recent: RecentSpans, target: str) -> Iterator[Sequence[SpanItem]]:
    """Yield the last change of a target. Raises `NotFoundError` with the nearest ones."""
    items = recent.last_change(target)
    if items:
        yield items
        return
    near: list[str] = []
    rest = iter(recent.targets())
    while some := list(islice(rest, SLICE)):
        near = _nearest(target, [*near, *some])
        yield ()
    hint = f"; the nearest: {', '.join(near)}" if near else ""
    raise NotFoundError(
        f"no change of {target} is among the last spans: the agent keeps --trace-buffer of them, and "
        f"of a round with many changes the first 32 prefixes{hint}"
    )


def _nearest(target: str, names: Iterable[str]) -> list[str]:
    """Return similar names, or of a prefix the nearest prefixes."""
    if network_of(target) is None:
        return difflib.get_close_matches(target, names, n=NEAREST)
    return nearest_prefixes(target, names)


WIRING = Wiring(
    private=(RecentSpans,),
    invokes=(RecentSpans,),
    contributes=(spans_resource, UnsampledSpans),
)
