"""Spans of received UPDATEs: the causes of what is sent to other peers and of best paths."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from speaker.engine.inputs import BytesReceived, Input, SendUpdates
from speaker.peer.actions import Action
from speaker.server.input_loop import InputLoop
from speaker.server.received_spans import ReceivedSpans, count_updates
from speaker.server.trace_links import TraceLinks
from tests.speaker.server.speaker_pair import NAME, A, pair, routes
from tests.support.api_calls import tracing_calls
from tests.support.wait import until

MARKER = b"\xff" * 16


def message(kind: int, length: int = 23) -> bytes:
    return MARKER + length.to_bytes(2) + bytes([kind]) + bytes(length - 19)


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (message(4, 19), 0),
        (message(2), 1),
        (message(4, 19) + message(2) + message(2), 2),
        (message(2)[:19], 1),
        (bytes(7) + message(4, 19), 1),
        (bytes(40), 1),
    ],
    ids=["KEEPALIVE", "UPDATE", "three messages", "a beginning", "an end first", "a middle"],
)
def test_rfc4271_4_1_updates_are_counted_by_the_headers_of_messages(
    data: bytes, count: int
) -> None:
    assert count_updates(data) == count


def test_a_received_update_is_the_cause_of_best_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)

    def spans(name: str) -> list[ReadableSpan]:
        return [span for span in exporter.get_finished_spans() if span.name == name]

    async def main() -> None:
        async with pair() as p:
            p.b._inputs.trace_received(1.0)
            p.connect()
            await until(lambda: p.up)
            reader = p.b.follow_best_paths(NAME)
            await asyncio.sleep(0)
            reader.take()
            p.a.update_routes(NAME, "s", routes("10.1.0.0/16"))
            await reader.wait()
            (cause,) = reader.take_causes()
            (export,) = [span for span in spans("bgp.export") if span.context == cause]
            (received,) = [s for s in spans("bgp.update.receive") if s.context == export.parent]
            assert received.parent is None
            attributes = dict(received.attributes or {})
            assert attributes.pop("bgp.octet_count") > 23  # type: ignore[operator]  # a number
            assert attributes == {
                "network.protocol.name": "bgp",
                "network.transport": "tcp",
                "network.peer.address": A,
                "bgp.instance": NAME,
                "bgp.peers": ("a",),
                "bgp.peer_count": 1,
                "bgp.update_count": 1,
            }

    asyncio.run(main())


def test_a_trace_that_is_not_sampled_is_no_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)

    async def main() -> None:
        async with pair() as p:
            p.b._inputs.trace_received(1.0)
            p.connect()
            await until(lambda: p.up)
            reader = p.b.follow_best_paths(NAME)
            p.a.update_routes(NAME, "s", routes("10.1.0.0/16"))
            await until(lambda: len(p.received()) == 1)
            assert list(reader.take_causes()) == []

    asyncio.run(main())


@pytest.mark.parametrize("is_traced", [False, True])
def test_without_spans_no_input_passes_through_them(is_traced: bool) -> None:
    handled: list[Callable[..., object]] = []

    async def main() -> None:
        async with pair() as p:
            inputs: InputLoop = p.b._inputs
            if is_traced:
                inputs.trace_received(1.0)
            handled.append(inputs.handle)
            assert (inputs.handle == p.b._engine.handle) is not is_traced

    asyncio.run(main())
    assert handled


@pytest.mark.parametrize(
    "item", [BytesReceived(1, message(2)), SendUpdates()], ids=["UPDATE", "turn"]
)
def test_what_is_not_drawn_makes_no_call_of_the_tracing_api(
    item: Input, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As without spans: what the core is given, and no other call than the draw."""
    given: list[Input] = []

    def core(item: Input, _: float) -> list[Action]:
        given.append(item)
        return []

    links = TraceLinks()
    spans = ReceivedSpans(core, pytest.fail, links, lambda _: None, 0.01)
    monkeypatch.setattr(random, "random", lambda: 0.01)
    assert tracing_calls(lambda: spans.handle(item, 0.0)) == []
    assert (given, links.contexts) == ([item], [])


def test_a_drawn_update_makes_calls_of_the_tracing_api() -> None:
    spans = ReceivedSpans(lambda *_: [], lambda: False, TraceLinks(), lambda _: None, 1.0)
    assert tracing_calls(lambda: spans.handle(BytesReceived(1, message(2)), 0.0))


def test_what_is_not_drawn_has_no_span_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)

    async def main() -> None:
        async with pair() as p:
            p.b._inputs.trace_received(0.0)
            p.connect()
            await until(lambda: p.up)
            p.a.update_routes(NAME, "s", routes("10.1.0.0/16"))
            await until(lambda: len(p.received()) == 1)

    asyncio.run(main())
    assert exporter.get_finished_spans() == ()
