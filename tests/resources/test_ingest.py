"""Ingest: events become rows; an error is reported and the next event is processed."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any
from unittest.mock import Mock

import pytest
from opentelemetry.sdk.trace import TracerProvider
from reactivex import Observable
from reactivex.subject import Subject

from resources import ingest
from resources.ingest import Ingest
from resources.kind import Kind
from resources.source import Delete, Event, Replace, SourceProblem, Upsert
from resources.tables import Tables
from resources.trace_links import SDK, UNSAMPLED, TraceLinks
from resources.trace_sampling import ROOTS
from statedb import Database
from tests.support.api_calls import tracing_calls
from tests.support.kinds import KINDS, NODE


class Source:
    """A source whose events the test emits."""

    name = "test"
    kinds = tuple(KINDS)

    def __init__(self) -> None:
        self.subjects: dict[str, Subject[Event]] = {kind.name: Subject() for kind in KINDS}
        self.problem_subject: Subject[tuple[SourceProblem, ...]] = Subject()

    def events(self, kind: Kind[Any]) -> Observable[Event]:
        return self.subjects[kind.name]

    @property
    def problems(self) -> Observable[tuple[SourceProblem, ...]]:
        return self.problem_subject

    async def run(self) -> None:
        """Emit nothing by itself."""


def _node(name: str, **labels: str) -> Any:  # noqa: ANN401
    return NODE.decode({"metadata": {"name": name, "labels": labels}})


def _started() -> tuple[Database, Tables, Source, list[BaseException]]:
    db, source, errors = Database(), Source(), list[BaseException]()
    tables = Tables(db, KINDS)
    Ingest(db, tables, source, TraceLinks(), errors.append, KINDS).subscribe()
    return db, tables, source, errors


def test_without_the_sdk_an_event_has_no_span(monkeypatch: pytest.MonkeyPatch) -> None:
    tracer = Mock()
    monkeypatch.setattr(ingest, "_tracer", tracer)
    monkeypatch.delitem(sys.modules, SDK)
    db, tables, source, _ = _started()
    source.subjects["Node"].on_next(Replace((_node("a"),)))
    assert tables.nodes.count(db.snapshot()) == 1
    assert tracer.mock_calls == []


def test_an_event_whose_trace_is_not_begun_makes_no_call_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ROOTS, "share", 0.0)
    links, db, source, errors = TraceLinks(), Database(), Source(), list[BaseException]()
    tables = Tables(db, KINDS)
    Ingest(db, tables, source, links, errors.append, KINDS).subscribe()
    # Each cause is checked to be one, the first time that it is added.
    links.add([UNSAMPLED])
    events: list[Event] = [Replace((_node("a"),)), Upsert(_node("b")), Delete(("", "a"))]
    for event in events:
        assert tracing_calls(partial(source.subjects["Node"].on_next, event)) == []
    assert (tables.nodes.count(db.snapshot()), errors) == (1, [])
    assert links.take()[0] == [UNSAMPLED], "what follows is no trace of its own"


def test_events_become_rows() -> None:
    db, tables, source, _ = _started()
    nodes = source.subjects["Node"]
    assert not tables.nodes.initialized(db.snapshot())
    nodes.on_next(Replace((_node("a"), _node("b"))))
    assert tables.nodes.initialized(db.snapshot())
    nodes.on_next(Upsert(_node("c")))
    nodes.on_next(Delete(("", "a")))
    assert {row.metadata.name for row in tables.nodes.all(db.snapshot())} == {"b", "c"}
    nodes.on_next(Replace((_node("c"),)))
    assert {row.metadata.name for row in tables.nodes.all(db.snapshot())} == {"c"}


def test_an_unchanged_row_is_not_written() -> None:
    db, tables, source, _ = _started()
    source.subjects["Node"].on_next(Replace((_node("a"),)))
    revision = tables.nodes.revision(db.snapshot())
    source.subjects["Node"].on_next(Upsert(_node("a")))
    source.subjects["Node"].on_next(Replace((_node("a"),)))
    assert tables.nodes.revision(db.snapshot()) == revision


def test_only_events_that_make_a_round_due_are_its_causes(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    monkeypatch.setattr(ingest, "_tracer", provider.get_tracer("test"))
    links, db, source, errors = TraceLinks(), Database(), Source(), list[BaseException]()
    Ingest(db, Tables(db, KINDS), source, links, errors.append, KINDS).subscribe()
    events: list[tuple[Event, int]] = [
        # The first listing, also of no object.
        (Replace(()), 1),
        (Upsert(_node("a")), 1),
        (Upsert(_node("a")), 0),
        (Replace((_node("a"),)), 0),
        (Delete(("", "b")), 0),
        (Delete(("", "a")), 1),
    ]
    for event, causes in events:
        source.subjects["Node"].on_next(event)
        assert len(links.take()[0]) == causes, event


def test_an_error_is_reported_and_the_next_event_is_taken() -> None:
    db, tables, source, errors = _started()
    source.subjects["Node"].on_next(Upsert(object()))
    source.subjects["Node"].on_next(Upsert(_node("a")))
    assert len(errors) == 1
    assert tables.nodes.count(db.snapshot()) == 1


def test_problems_last_until_they_are_corrected() -> None:
    db, tables, source, _ = _started()
    problem = SourceProblem("f.yaml", 1, 3, None, "spec", "is wrong")
    source.problem_subject.on_next((problem,))
    assert list(tables.source_problems.all(db.snapshot())) == [problem]
    source.problem_subject.on_next(())
    assert list(tables.source_problems.all(db.snapshot())) == []
