"""The last spans in memory, and the spans of one change among them."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from cells.api.resource import BadRequestError, NotFoundError
from cells.hive.lifecycle import Lifecycle
from cells.observability import span_export, spans
from cells.observability.spans import RecentSpans, spans_resource
from cells.options import SpansOptions
from reconcilers.round_span import round_span

PREFIX = "198.51.100.10/32"


class Recorder:
    """Recent spans, and a tracer whose spans they are."""

    def __init__(self, size: int = 100) -> None:
        self.recent = RecentSpans(Lifecycle(), SpansOptions(buffer=size))
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(self.recent)  # type: ignore[arg-type]
        self.tracer = provider.get_tracer("test")

    def event(self, name: str) -> trace.SpanContext:
        """Record the event of an object."""
        with self.tracer.start_as_current_span("resource.event") as span:
            span.set_attribute("waggle.kind", "Service")
            span.set_attribute("waggle.object", name)
            with self.tracer.start_as_current_span("statedb.commit"):
                pass
        return span.get_span_context()

    def round(self, *causes: trace.SpanContext, prefixes: tuple[str, ...] = ()) -> None:
        """Record a round of intent, and what it causes."""
        with round_span(self.tracer, "intent.round", causes) as span:
            span.set_attribute("waggle.prefixes", prefixes)
        with round_span(self.tracer, "apply.round", [span.get_span_context()]):
            pass

    def names(self, target: str) -> list[str]:
        """Return the names of the spans of the last change."""
        return [span.name for span in self.recent.last_change(target)]


ONE_CHANGE = ["resource.event", "statedb.commit", "intent.round", "apply.round"]


def test_a_change_with_one_cause_is_one_trace() -> None:
    recorder = Recorder()
    recorder.round(recorder.event("shop/web"), prefixes=(PREFIX,))
    recorder.round(recorder.event("shop/other"), prefixes=("192.0.2.0/24",))
    assert recorder.names(PREFIX) == ONE_CHANGE
    assert recorder.names("shop/web") == ONE_CHANGE
    assert recorder.names("Service/shop/web") == ONE_CHANGE
    assert recorder.names("Node/shop/web") == []
    event, commit, intent, apply = recorder.recent.last_change(PREFIX)
    assert len({span.trace_id for span in (event, commit, intent, apply)}) == 1
    assert commit.parent_span_id == intent.parent_span_id == event.span_id
    assert apply.parent_span_id == intent.span_id
    assert event.attributes == {"waggle.kind": "Service", "waggle.object": "shop/web"}
    assert intent.attributes == {"waggle.prefixes": [PREFIX]}


def test_a_round_with_several_causes_is_a_trace_of_its_own_with_links_to_them() -> None:
    recorder = Recorder()
    causes = [recorder.event("shop/web"), recorder.event("shop/other")]
    recorder.round(*causes, prefixes=(PREFIX,))
    spans = recorder.recent.last_change(PREFIX)
    assert [span.name for span in spans] == [*ONE_CHANGE[:2], *ONE_CHANGE]
    (intent,) = (span for span in spans if span.name == "intent.round")
    assert intent.parent_span_id is None
    assert intent.links == [f"{cause.span_id:016x}" for cause in causes]
    # From one of the objects the round is found by its link, without the other object.
    assert recorder.names("shop/web") == ONE_CHANGE


def test_the_last_change_is_shown_and_the_oldest_spans_make_room() -> None:
    recorder = Recorder(size=4)
    for name in ("shop/web", "shop/other"):
        recorder.round(recorder.event(name), prefixes=(PREFIX,))
    event, *_ = recorder.recent.last_change(PREFIX)
    assert event.attributes["waggle.object"] == "shop/other"
    assert recorder.names("shop/web") == []
    assert recorder.names("203.0.113.0/24") == []


def test_an_unsampled_change_is_kept() -> None:
    recent = RecentSpans(Lifecycle(), SpansOptions(buffer=100))
    provider = TracerProvider(
        shutdown_on_exit=False, sampler=span_export.OfCauses(0.0, record_all=True)
    )
    provider.add_span_processor(recent)  # type: ignore[arg-type]
    tracer = provider.get_tracer("test")
    with tracer.start_as_current_span("resource.event") as event:
        event.set_attribute("waggle.object", "shop/web")
    with round_span(tracer, "intent.round", [event.get_span_context()]):
        pass
    names = [each.name for each in recent.last_change("shop/web")]
    assert names == ["resource.event", "intent.round"]


@pytest.mark.parametrize(
    ("target", "nearest"),
    [
        ("198.51.100.12/32", "198.51.100.14/32, 198.51.100.0/24, 198.51.0.0/16"),
        ("2001:db8:0:2::/64", "2001:db8::/32"),
        ("203.0.113.0/24", ""),
        ("shop/wob", "shop/web"),
        ("Service/shop/wob", "Service/shop/web"),
        ("other", ""),
    ],
)
def test_an_unknown_prefix_or_object_is_answered_with_the_nearest(
    target: str, nearest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spans, "SLICE", 2)
    recorder = Recorder()
    known = ("198.51.0.0/16", "198.51.100.14/32", "198.51.100.0/24", "198.0.0.0/9", "2001:db8::/32")
    recorder.round(recorder.event("shop/web"), prefixes=known)
    with pytest.raises(NotFoundError) as error:
        list(spans_resource(recorder.recent).read({"target": target}))
    assert str(error.value).startswith(f"no change of {target} is among the last spans")
    assert str(error.value).partition("; the nearest: ")[2] == nearest


def test_the_path_has_the_last_change() -> None:
    recorder = Recorder()
    recorder.round(recorder.event("shop/web"), prefixes=(PREFIX,))
    (change,) = spans_resource(recorder.recent).read({"target": "shop/web"})
    assert [span.name for span in change] == ONE_CHANGE


def test_a_target_is_required() -> None:
    resource = spans_resource(Recorder().recent)
    with pytest.raises(BadRequestError, match="target: "):
        resource.read({})


def test_a_flush_of_all_spans_succeeds_and_waits_for_nothing() -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    recent: Any = RecentSpans(Lifecycle(), SpansOptions())
    provider.add_span_processor(recent)
    assert provider.force_flush() is True
