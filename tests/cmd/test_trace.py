"""One change can be followed from the object's event to the UPDATE of its peers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cmd.lab import NODE, configuration, established, routers, service
from tests.support.agent import Agent
from tests.support.otlp import Collector, Span
from tests.support.wait import eventually
from waggle.__main__ import main

pytestmark = pytest.mark.program


def test_a_trace_leads_from_an_event_to_the_update_of_all_peers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Collector() as collector, routers(tmp_path, 2) as ports:
        arguments = ["--otlp-endpoint", collector.endpoint, "--otlp-interval-seconds", "0.1"]
        arguments += ["--trace-buffer", "500"]
        agent = Agent(None, tmp_path, node=NODE, arguments=arguments)
        agent.write_objects("bgp.json", *configuration(ports))
        agent.start()
        try:
            established(agent, 2)
            # An event without effect is no cause of the next change.
            agent.write_objects("idle.json", idle_service())
            eventually(lambda: _rounds_of("shop/idle", collector)[0])
            collector.spans.clear()
            agent.write_objects("web.json", service("web", "198.51.100.10"))
            sends = collector.wait_for("bgp.update.send")
            assert main(["trace", "198.51.100.10/32", "--socket", str(agent.socket)]) == 0
            tree = [line.split()[2:] for line in capsys.readouterr().out.splitlines()]
            assert main(["trace", "192.0.2.0/24", "--socket", str(agent.socket)]) == 4
        finally:
            agent.stop()
        # The collector has all spans now: spans of the same trace may come in later batches.
        (event,) = (span for span in collector.named("resource.event") if _is_of("shop/web", span))
        by_id = {span.span_id: span for span in collector.spans}
    assert event.parent_id == ""
    (commit,) = (s for s in collector.named("statedb.commit") if s.parent_id == event.span_id)
    assert event.start <= commit.start <= commit.end <= event.end

    (intent,) = (s for s in collector.named("intent.round") if s.parent_id == event.span_id)
    assert intent.trace_id == event.trace_id
    assert intent.links == ()
    assert intent.attributes["waggle.prefixes"] == ["198.51.100.10/32"]

    (apply,) = (s for s in collector.named("apply.round") if s.parent_id == intent.span_id)
    assert apply.trace_id == intent.trace_id

    (send,) = sends
    # The agent itself prints the same tree.
    assert [tree[1][0], *tree[1][2:]] == [
        "resource.event",
        *("event=Upsert", "kind=Service", "object=shop/web"),
    ]
    assert ["+-", "statedb.commit"] in [line[:2] for line in tree]
    (update,) = (line for line in tree if "bgp.update.send" in line)
    assert {"peers=tor-1,tor-2", "prefix_count=1", "update_count=1"} <= set(update)
    # Without attributes that are empty.
    assert not {"dialects=", "configuration=False", "best_path_batch_count=0"} & {
        word for line in tree for word in line
    }
    assert sorted(send.attributes["bgp.peers"]) == ["tor-1", "tor-2"]
    assert send.trace_id == intent.trace_id
    assert apply in _ancestors(send, by_id)
    assert (send.attributes["bgp.prefix_count"], send.attributes["bgp.update_count"]) == (1, 1)
    assert send.attributes["bgp.octet_count"] > 0
    assert {span.resource["service.name"] for span in collector.spans} == {"waggle-agent"}


def idle_service() -> dict[str, Any]:
    """Return a Service without an address to advertise."""
    return {**service("idle", ""), "status": {}}


def _rounds_of(name: str, collector: Collector) -> list[Span]:
    """Return the rounds whose cause is an event of the object."""
    events = {span.span_id for span in collector.named("resource.event") if _is_of(name, span)}
    return [span for span in collector.named("intent.round") if span.parent_id in events]


def _is_of(name: str, span: Span) -> bool:
    return span.attributes.get("waggle.object") == name


def _ancestors(span: Span, by_id: dict[str, Span]) -> list[Span]:
    found = []
    while span.parent_id in by_id:
        span = by_id[span.parent_id]
        found.append(span)
    return found
