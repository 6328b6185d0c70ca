"""One-shot watches: fire once when a row, a group of rows or a table may have changed.

A watch fires in the committing thread, after the commit is visible. It can be awaited or given
callbacks; it never blocks a writer and never raises into one.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

from statedb.state import Path

Place: TypeAlias = tuple[str, Path]
"""The name of an index and a key or a prefix of one; ``("", ())`` is the whole table."""

TABLE: Place = ("", ())


class Watch:
    """A watch: fires at most once."""

    __slots__ = ("__weakref__", "_callbacks", "_fired", "_lock")

    def __init__(self) -> None:
        self._fired = False
        self._callbacks: list[Callable[[], Any]] = []
        self._lock = threading.Lock()

    @property
    def fired(self) -> bool:
        """Whether the watched rows may have changed."""
        return self._fired

    def add_callback(self, callback: Callable[[], Any]) -> None:
        """Call back when the watch fires, or immediately if it has; the callback must not block."""
        with self._lock:
            if not self._fired:
                self._callbacks.append(callback)
                return
        callback()

    async def wait(self) -> None:
        """Wait until the watch fires, also by a commit in another thread."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def resolve() -> None:
            if not future.done():
                future.set_result(None)

        def wake() -> None:
            loop.call_soon_threadsafe(resolve)

        self.add_callback(wake)
        try:
            await future
        finally:
            with self._lock:
                if wake in self._callbacks:
                    self._callbacks.remove(wake)

    def _fire(self) -> list[Callable[[], Any]]:
        with self._lock:
            if self._fired:
                return []
            self._fired = True
            callbacks, self._callbacks = self._callbacks, []
        return callbacks


class WatchRegistry:
    """The watches of one table that have not fired."""

    def __init__(self, on_error: Callable[[BaseException], None]) -> None:
        self._lock = threading.Lock()
        self._watches: dict[Place, set[Watch]] = {}
        self._on_error = on_error

    def __bool__(self) -> bool:
        """Whether there are watches; a hint that saves writers work."""
        return bool(self._watches)

    def __len__(self) -> int:
        """Return the number of watches."""
        with self._lock:
            return sum(len(watches) for watches in self._watches.values())

    def add(self, place: Place) -> Watch:
        """Create a watch of a place."""
        watch = Watch()
        with self._lock:
            self._watches.setdefault(place, set()).add(watch)
        return watch

    def cancel(self, place: Place, watch: Watch) -> None:
        """Fire one watch now: a commit came before its registration."""
        with self._lock:
            watches = self._watches.get(place)
            if watches is not None:
                watches.discard(watch)
                if not watches:
                    del self._watches[place]
        self._run(watch)

    def fire(self, places: set[Place]) -> None:
        """Fire all watches of these places."""
        with self._lock:
            if len(places) <= len(self._watches):
                hit = [place for place in places if place in self._watches]
            else:
                hit = [place for place in self._watches if place in places]
            watches = [watch for place in hit for watch in self._watches.pop(place)]
        for watch in watches:
            self._run(watch)

    def _run(self, watch: Watch) -> None:
        for callback in watch._fire():  # noqa: SLF001  the registry fires its watches
            try:
                callback()
            except Exception as error:  # noqa: BLE001  a callback must not affect the writer
                self._on_error(error)
