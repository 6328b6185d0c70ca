"""``/v1/watch``: the changes of the objects that this agent reads, as they happen.

A watch subscribes to the streams of its kinds, beside the subscriber that fills the tables. It names
objects and never shows their content, so that no Secret leaves the agent.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import reactivex

from cells.api.model import WatchItem
from cells.api.resource import ApiStream, BadRequestError, NotFoundError, Query
from cells.hive import Group, suggestion
from resources.kind import Kind
from resources.source import Source
from resources.streams import Backlog, KnownObjects, ObjectChange, object_changes
from resources.tables import Tables
from statedb import Database

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
    found = known.get(word.lower())
    if found is None:
        names = [name for name in known if "." not in name]
        raise NotFoundError(f"there is no kind {word}{suggestion(word.lower(), names)}")
    return found


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
        snapshot = database.snapshot()

        def known(kind: Kind[Any]) -> KnownObjects:
            return KnownObjects(kind, tables.of(kind), snapshot)

        changes = reactivex.merge(
            *(
                object_changes(known(kind), source.events(kind))
                for kind in kinds
                for source in sources
                if kind in source.kinds
            )
        )
        # Subscribed in the turn of the snapshot: nothing is between the two.
        backlog = Backlog(changes)
        try:
            for kind in kinds if with_present else ():
                present = known(kind).present()
                while found := list(itertools.islice(present, SLICE)):
                    yield _items(found)
            async for changed in backlog.read():
                for start in range(0, len(changed), SLICE):
                    yield _items(changed[start : start + SLICE])
        finally:
            backlog.close()

    return ApiStream(path="/v1/watch", parameters=("kind", "changesOnly"), read=read)


def _items(changes: Sequence[ObjectChange]) -> list[WatchItem]:
    now = datetime.now(UTC)
    now = now.replace(microsecond=now.microsecond // 1000 * 1000)
    return [
        WatchItem(
            event_time=now,
            type=change.type,
            kind=change.kind,
            namespace=change.namespace or None,
            name=change.name,
        )
        for change in changes
    ]
