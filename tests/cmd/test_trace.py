"""One change can be followed from the object's event to the UPDATE of each peer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cmd.lab import NODE, configuration, established, routers, service
from tests.support.agent import Agent
from tests.support.otlp import Collector, Span

pytestmark = pytest.mark.program


def test_a_trace_leads_from_an_event_to_the_update_of_each_peer(tmp_path: Path) -> None:
    with Collector() as collector, routers(tmp_path, 2) as ports:
        arguments = ["--otlp-endpoint", collector.endpoint, "--otlp-interval-seconds", "0.1"]
        agent = Agent(None, tmp_path, node=NODE, arguments=arguments)
        agent.write_objects("bgp.json", *configuration(ports))
        agent.start()
        try:
            established(agent, 2)
            collector.wait_for("intent.round")
            collector.spans.clear()
            agent.write_objects("web.json", service("web", "198.51.100.10"))
            sends = collector.wait_for("bgp.update.send", 2)
        finally:
            agent.stop()
        # The collector has all spans now: those of the same trace may come in later batches.
        (event,) = (span for span in collector.named("resource.event") if _is_ours(span))
        by_id = {span.span_id: span for span in collector.spans}
    assert event.parent_id == ""
    (commit,) = (s for s in collector.named("statedb.commit") if s.parent_id == event.span_id)
    assert event.start <= commit.start <= commit.end <= event.end

    (intent,) = (s for s in collector.named("intent.round") if event.span_id in s.links)
    assert intent.parent_id == ""
    assert intent.trace_id != event.trace_id

    (apply,) = (s for s in collector.named("apply.round") if s.parent_id == intent.span_id)
    assert apply.trace_id == intent.trace_id

    assert sorted(span.attributes["peer"] for span in sends) == ["tor-1", "tor-2"]
    for send in sends:
        assert send.trace_id == intent.trace_id
        assert apply in _ancestors(send, by_id)
        assert send.attributes["prefixes"] == 1
        assert send.attributes["bytes"] > 0
    assert {span.service for span in collector.spans} == {"waggle-agent"}
    # The whole way takes a few milliseconds; the limit leaves room for a loaded machine.
    assert max(span.end for span in sends) - event.start < 500_000_000


def _is_ours(span: Span) -> bool:
    return span.attributes.get("waggle.kind") == "Service"


def _ancestors(span: Span, by_id: dict[str, Span]) -> list[Span]:
    found = []
    while span.parent_id in by_id:
        span = by_id[span.parent_id]
        found.append(span)
    return found
