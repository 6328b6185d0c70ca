"""Commits the events of a source to the tables; the first subscriber of each kind's events.

An exception is reported and does not reach the source; the next event is processed. An unchanged row is
not written, so that a change of a table is a change of an object.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from opentelemetry import trace
from reactivex.abc import DisposableBase

from resources.enumeration import counted
from resources.kind import Kind
from resources.row_updates import replace_all
from resources.source import Delete, Event, Replace, Source, SourceProblem, Upsert
from resources.streams import guarded
from resources.tables import Tables
from resources.trace_links import SDK, UNSAMPLED, TraceLinks
from resources.trace_sampling import ROOTS
from statedb import Database, Initializer

_tracer = trace.get_tracer("waggle.resources")


class Ingest:
    """Commits a source's events to the tables; `subscribe` before the source runs."""

    def __init__(
        self,
        db: Database,
        tables: Tables,
        source: Source,
        trace_links: TraceLinks,
        on_error: Callable[[BaseException], None],
        kinds: Iterable[Kind[Any]],
    ) -> None:
        self._db = db
        self._tables = tables
        self._source = source
        self._trace_links = trace_links
        self._on_error = on_error
        self._kinds = tuple(kinds)
        self._waiting: dict[str, Initializer] = {
            kind.name: tables.of(kind).register_initializer(source.name) for kind in self._kinds
        }

    def subscribe(self) -> list[DisposableBase]:
        """Subscribe to the events of a source, to commit them; disposing the results ends it."""
        fail = self._on_error
        subscriptions = [
            self._source.events(kind).subscribe(guarded(self._handler(kind), fail), fail)
            for kind in self._kinds
        ]
        problems = self._source.problems.subscribe(guarded(self._problems, fail), fail)
        return [*subscriptions, problems]

    def _handler(self, kind: Kind[Any]) -> Callable[[Event], None]:
        def handle(event: Event) -> None:
            if SDK not in sys.modules:
                self.commit(kind, event)
                return
            if not ROOTS.draw():
                if self.commit(kind, event):
                    self._trace_links.add([UNSAMPLED])
                return
            with _tracer.start_as_current_span("resource.event") as span:
                span.set_attribute("waggle.kind", kind.name)
                span.set_attribute("waggle.event", type(event).__name__)
                span.set_attribute("waggle.object", _name(event))
                with _tracer.start_as_current_span("statedb.commit"):
                    changes = self.commit(kind, event)
                if changes:
                    self._trace_links.add([span.get_span_context()])

        return handle

    def commit(self, kind: Kind[Any], event: Event) -> bool:
        """Write one event of a source to its kind's table; returns whether it makes a round due."""
        table = self._tables.of(kind)
        with self._db.write(table) as txn:
            before = table.revision(txn)
            match event:
                case Replace(objects):
                    replace_all(txn, table, objects)
                    done = self._waiting.pop(kind.name, None)
                    if done is not None:
                        done(txn)
                        return True
                case Upsert(row):
                    if table.get(txn, row.key) != row:
                        table.upsert(txn, row)
                case Delete(key):
                    table.delete(txn, key)
            return table.revision(txn) != before

    def _problems(self, problems: tuple[SourceProblem, ...]) -> None:
        table = self._tables.source_problems
        with self._db.write(table) as txn:
            replace_all(txn, table, problems)


def _name(event: Event) -> str:
    match event:
        case Replace(objects):
            return counted(len(objects), "object")
        case Upsert(row):
            return "/".join(part for part in row.key if part)
        case Delete(key):
            return "/".join(part for part in key if part)
