"""``/v1/watch``: the changes of the objects that this agent reads, as they happen.

A watch follows the tables of its kinds with StateDB's change iterators: a client that reads slowly gets
the last change of each object. It names objects and never shows their content, so that no Secret leaves
the agent.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from cells.api.model import WatchItem
from cells.api.resource import ApiStream, BadRequestError, NotFoundError, Query
from cells.hive import Group, suggestion
from cells.hive.signal import Signal
from resources.kind import Kind
from resources.meta import ObjectKey
from resources.source import Source
from resources.tables import Tables
from statedb import Change, Database, Snapshot, Table

SLICE = 200
"""Objects that are read and encoded between two turns of the loop: less than 2 ms."""


def find_kind(word: str, kinds: Iterable[Kind[Any]]) -> Kind[Any]:
    """Find a kind by plural, singular or kind, in any case, with or without its API group.

    Raises `NotFoundError` with the nearest spelling.
    """
    known: dict[str, Kind[Any]] = {}
    for kind in kinds:
        for name in (kind.plural, kind.name.lower()):
            known[name] = known[f"{name}.{kind.group}"] = kind
    named = known.get(word.lower())
    if named is None:
        names = [name for name in known if "." not in name]
        raise NotFoundError(f"there is no kind {word}{suggestion(word.lower(), names)}")
    return named


def watch_stream(sources: Group[Source], database: Database, tables: Tables) -> ApiStream:
    """Return the stream of changed objects."""

    def read(query: Query) -> AsyncGenerator[Sequence[WatchItem]]:
        words = [word for word in query.get("kind", "").split(",") if word]
        if not words:
            raise BadRequestError("name a kind, for example services")
        changes_only = query.get("changesOnly", "false")
        if changes_only not in ("true", "false"):
            raise BadRequestError(f"changesOnly is neither true nor false: {changes_only}")
        kinds = list(dict.fromkeys(find_kind(word, tables.kinds) for word in words))
        for kind in kinds:
            if not any(kind in source.kinds for source in sources):
                raise NotFoundError(f"this agent does not read {kind.name} objects")
        return _follow(kinds, with_present=changes_only == "false")

    async def _follow(
        kinds: Sequence[Kind[Any]], *, with_present: bool
    ) -> AsyncGenerator[Sequence[WatchItem]]:
        followed = {kind.name: tables.of(kind) for kind in kinds}
        with ExitStack() as stack:
            changes = {
                name: stack.enter_context(closing(table.changes(database)))
                for name, table in followed.items()
            }
            signal = stack.enter_context(Signal(*(t.observable for t in followed.values())))
            before = database.snapshot()
            for iterator in changes.values():
                iterator.skip(before)
            for name, table in followed.items() if with_present else ():
                present = (_item("ADDED", name, row.key) for row in table.all(before))
                while items := list(islice(present, SLICE)):
                    yield items
            while True:
                await signal.wait()
                after = database.snapshot()
                for name, table in followed.items():
                    listed = _items(name, table, before, changes[name].next(after))
                    while items := list(islice(listed, SLICE)):
                        yield items
                before = after

    return ApiStream(path="/v1/watch", parameters=("kind", "changesOnly"), read=read)


def _items(
    kind: str, table: Table[Any], before: Snapshot, changes: Iterable[Change[Any]]
) -> Iterator[WatchItem]:
    """Yield the changes of a table since a snapshot; an object that came and went is none."""
    for change in changes:
        existed = table.get(before, change.row.key) is not None
        if change.deleted:
            if existed:
                yield _item("DELETED", kind, change.row.key)
        else:
            yield _item("MODIFIED" if existed else "ADDED", kind, change.row.key)


def _item(change_type: str, kind: str, key: ObjectKey) -> WatchItem:
    now = datetime.now(UTC)
    namespace, name = key
    return WatchItem(
        event_time=now.replace(microsecond=now.microsecond // 1000 * 1000),
        type=change_type,
        kind=kind,
        namespace=namespace or None,
        name=name,
    )
