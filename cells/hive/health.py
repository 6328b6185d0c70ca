"""The health tree: every part of the program reports its state in a scope of one tree.

A scope has a level, a message and the time of its last change, and may have scopes below it. People
and probes read the tree; no code decides by it, and it does no I/O.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from reactivex import Observable
    from reactivex.subject import Subject

MAX_MESSAGE = 512
"""Characters kept of a message, which may contain text of a peer or a file."""


class Level(enum.StrEnum):
    """The state of a scope, from best to worst; STOPPED is intended and does not degrade."""

    OK = "ok"
    DEGRADED = "degraded"
    STOPPED = "stopped"


class Status(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One line of the rendered tree. ``time`` is when level or message last changed, in UTC."""

    path: tuple[str, ...]
    level: Level
    message: str
    time: datetime


class HealthChanges:
    """Numbers of changes in a whole tree: equal ones are the same state."""

    __slots__ = ("_of_levels", "levels", "reports")

    def __init__(self) -> None:
        self.levels = 0
        """Of levels, and of scopes that come and go."""
        self.reports = 0
        """Of levels and messages."""
        self._of_levels: Subject[int] | None = None

    @property
    def of_levels(self) -> Observable[int]:
        """Emits ``levels`` after each change of it; messages change with the work, and emit nothing."""
        # Importing reactivex takes longer than all of this package; most programs only report.
        from reactivex.subject import Subject

        from resources.streams import isolated

        if self._of_levels is None:
            self._of_levels = Subject()
        return isolated(self._of_levels)

    def level_changed(self) -> None:
        """Count a change of a level, after it."""
        self.levels += 1
        if self._of_levels is not None:
            self._of_levels.on_next(self.levels)


class Health:
    """One scope of the tree. Call it from the loop's thread only.

    A scope without a report has no status of its own and is not reported.
    """

    __slots__ = ("_children", "_clock", "_siblings", "_status", "changes", "path")

    def __init__(
        self,
        path: tuple[str, ...] = (),
        clock: Callable[[], float] = time.time,
        siblings: dict[str, Health] | None = None,
        changes: HealthChanges | None = None,
    ) -> None:
        self.path = path
        self.changes = HealthChanges() if changes is None else changes
        """Of the whole tree."""
        self._clock = clock
        self._siblings = {} if siblings is None else siblings
        self._children: dict[str, Health] = {}
        self._status: Status | None = None

    def scope(self, name: str) -> Health:
        """Return the scope of that name below this one, the same object every time."""
        child = self._children.get(name)
        if child is None:
            child = self._children[name] = Health(
                (*self.path, name), self._clock, self._children, self.changes
            )
        return child

    def ok(self, message: str = "") -> None:
        """Report that this part works."""
        self._set(Level.OK, message)

    def degraded(self, message: str) -> None:
        """Report that this part does not work, or not in full."""
        self._set(Level.DEGRADED, message)

    def stopped(self, message: str = "") -> None:
        """Report that this part has ended as intended."""
        self._set(Level.STOPPED, message)

    def remove(self) -> None:
        """Remove this scope and all below it (the object that it reports on is deleted)."""
        if self.path and self._siblings.get(self.path[-1]) is self:
            del self._siblings[self.path[-1]]
        self._children.clear()
        self._status = None
        self.changes.reports += 1
        self.changes.level_changed()

    @property
    def status(self) -> Status | None:
        """The last report in this scope itself, or None."""
        return self._status

    def report(self) -> Iterator[Status]:
        """Yield the statuses of this scope and all below it, parents first, in order of creation."""
        if self._status is not None:
            yield self._status
        for child in list(self._children.values()):
            yield from child.report()

    def level(self) -> Level:
        """Aggregate: degraded if any scope is, stopped if all are, otherwise ok."""
        levels = {status.level for status in self.report()}
        if Level.DEGRADED in levels:
            return Level.DEGRADED
        return Level.STOPPED if levels == {Level.STOPPED} else Level.OK

    def _set(self, level: Level, message: str) -> None:
        if len(message) > MAX_MESSAGE:
            message = message[: MAX_MESSAGE - 1] + "…"
        old = self._status
        if old is not None and (old.level, old.message) == (level, message):
            return
        self.changes.reports += 1
        now = datetime.fromtimestamp(self._clock(), UTC)
        self._status = Status(path=self.path, level=level, message=message, time=now)
        if old is None or old.level is not level:
            self.changes.level_changed()


class HealthTree(Health):
    """The root of the tree, for its readers. Cells report in scopes below it."""

    __slots__ = ()


class Readiness:
    """The gates that have to open, each once, before the program is ready."""

    def __init__(self) -> None:
        self._gates: dict[str, str | None] = {}
        self._callbacks: list[Callable[[], None]] = []
        self._serving_callbacks: list[Callable[[], None]] | None = []
        """None once the program serves."""

    def gate(self, name: str, waiting_for: str) -> Callable[[], None]:
        """Add a gate and return the function that opens it for good."""
        self._gates[name] = waiting_for

        def passed() -> None:
            if self._gates[name] is not None:
                self._gates[name] = None
                self._notify()

        return passed

    def wait_for(self, name: str, what: str) -> None:
        """Replace the description of what a closed gate waits for."""
        if self._gates[name] is not None:
            self._gates[name] = what

    def when_ready(self, callback: Callable[[], None]) -> None:
        """Call back once, as soon as all gates are open."""
        self._callbacks.append(callback)
        self._notify()

    def serving(self) -> None:
        """Note that the first peer has its routes; the program need not be ready."""
        callbacks, self._serving_callbacks = self._serving_callbacks or [], None
        for callback in callbacks:
            callback()

    def when_serving(self, callback: Callable[[], None]) -> None:
        """Call back once, as soon as the first peer has its routes, or all gates are open."""
        if self._serving_callbacks is None:
            callback()
        else:
            self._serving_callbacks.append(callback)

    def waiting(self) -> dict[str, str]:
        """Return the closed gates and what each waits for."""
        return {name: what for name, what in self._gates.items() if what is not None}

    def gates(self) -> dict[str, bool]:
        """Return every gate with whether it is open."""
        return {name: what is None for name, what in self._gates.items()}

    @property
    def ready(self) -> bool:
        """Whether all gates are open."""
        return not self.waiting()

    def _notify(self) -> None:
        if self.ready:
            self.serving()
        while self.ready and self._callbacks:
            self._callbacks.pop(0)()
