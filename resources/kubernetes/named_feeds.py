"""The feeds of single objects of one kind: they start and end as the objects are named.

An agent reads the Secrets that its objects refer to and no others; RBAC cannot follow names, requests
can. The rows of an object that is no longer named are forgotten.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec.structs import replace

from resources.kind import Kind
from resources.kubernetes.feed import Feed
from resources.kubernetes.reflector import Reflector
from resources.kubernetes.selection import Selection
from resources.meta import ObjectKey, Resource
from resources.source import Event, Replace

Emit: TypeAlias = Callable[[Event], None]
Start: TypeAlias = Callable[[Feed[Any], Selection, Callable[[], None], Emit], Reflector]
"""Makes the loop of a feed: the feed, its selection, and what to call after a list and an event."""


class NamedFeeds:
    """The feeds of one kind; `follow` names the objects, `run` reads them."""

    def __init__(
        self,
        kind: Kind[Any],
        selection: Selection,
        *,
        hold: float,
        emit: Emit,
        emit_states: Callable[[], None],
    ) -> None:
        self._kind = kind
        self._selection = selection
        self._hold = hold
        self._emit = emit
        self._emit_states = emit_states
        self._wanted: frozenset[ObjectKey] | None = None
        self._changed = asyncio.Event()
        self._running: dict[ObjectKey, tuple[Reflector, asyncio.Task[None]]] = {}
        self._has_emitted = False
        self._last_rows: dict[ObjectKey, list[Resource]] = {}
        """Of the run before this one."""

    @property
    def reflectors(self) -> tuple[Reflector, ...]:
        """The loops of the feeds of named objects, by namespace and name."""
        return tuple(self._running[key][0] for key in sorted(self._running))

    def follow(self, keys: frozenset[ObjectKey]) -> None:
        """Set which objects have a feed by name: these and no others; empty parts are no names."""
        self._wanted = frozenset(key for key in keys if all(key))
        self._changed.set()

    def use_restored(self) -> None:
        """Treat named objects as read, as the API server does not answer: the rest must not wait."""
        if not self._has_emitted:
            self._has_emitted = True
            self._emit_all()

    async def run(self, start: Start) -> None:
        """Start and end the feeds of named objects until cancelled; may be run again."""
        async with asyncio.TaskGroup() as group:
            try:
                while True:
                    self._changed.clear()
                    if self._wanted is not None:
                        self._adjust(self._wanted, group, start)
                    await self._changed.wait()
            finally:
                self._last_rows = {
                    key: list(reflector.feed.rows.values())
                    for key, (reflector, _) in self._running.items()
                }
                self._running = {}

    def _adjust(self, wanted: frozenset[ObjectKey], group: asyncio.TaskGroup, start: Start) -> None:
        for key in self._running.keys() - wanted:
            self._running.pop(key)[1].cancel()
        for namespace, name in sorted(wanted - self._running.keys()):
            metadata_only = self._selection.metadata_only
            feed: Feed[Any] = Feed(
                self._kind, namespace, name, hold=self._hold, metadata_only=metadata_only
            )
            feed.restore(self._last_rows.pop((namespace, name), ()))
            selection = replace(self._selection, fields=f"metadata.name={name}")
            reflector = start(feed, selection, self._emit_all, self._emit_event)
            task = group.create_task(reflector.run(), name=f"reflector {reflector.status.name}")
            self._running[namespace, name] = (reflector, task)
        self._emit_all()

    def _emit_all(self) -> None:
        feeds = [reflector.feed for reflector in self.reflectors]
        if self._has_emitted or all(feed.synced for feed in feeds):
            self._has_emitted = True
            self._emit(Replace(tuple(row for feed in feeds for row in feed.rows.values())))
        self._emit_states()

    def _emit_event(self, event: Event) -> None:
        # Earlier events are contained in the first Replace.
        if self._has_emitted:
            self._emit(event)
