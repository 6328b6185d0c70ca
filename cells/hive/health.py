"""The health tree: every part of the agent says how it is, in one place that can be read whole.

A scope has a level, a message and the time of its last change, and may have scopes below it. The
tree is a value that people and probes read; nothing is ever *decided* by it, and it does no I/O.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import msgspec

MAX_MESSAGE = 512
"""Characters kept of a message; errors of peers and files end up here."""


class Level(enum.StrEnum):
    """How a scope is, from best to worst; STOPPED is on purpose and does not count as bad."""

    OK = "ok"
    DEGRADED = "degraded"
    STOPPED = "stopped"


class Status(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One line of the rendered tree. ``time`` is when level or message last changed, in UTC."""

    path: tuple[str, ...]
    level: Level
    message: str
    time: datetime


class Health:
    """One scope of the tree. Call it from the loop's thread only.

    A scope nobody has reported in yet has no status of its own and is left out of the report.
    """

    __slots__ = ("_children", "_clock", "_siblings", "_status", "path")

    def __init__(
        self,
        path: tuple[str, ...] = (),
        clock: Callable[[], float] = time.time,
        siblings: dict[str, Health] | None = None,
    ) -> None:
        self.path = path
        self._clock = clock
        self._siblings = {} if siblings is None else siblings
        self._children: dict[str, Health] = {}
        self._status: Status | None = None

    def scope(self, name: str) -> Health:
        """Return the scope of that name below this one, the same object every time."""
        child = self._children.get(name)
        if child is None:
            child = self._children[name] = Health((*self.path, name), self._clock, self._children)
        return child

    def ok(self, message: str = "") -> None:
        """Report that all is well."""
        self._set(Level.OK, message)

    def degraded(self, message: str) -> None:
        """Report that this part does not do its work, or not all of it."""
        self._set(Level.DEGRADED, message)

    def stopped(self, message: str = "") -> None:
        """Report that this part has ended on purpose."""
        self._set(Level.STOPPED, message)

    def remove(self) -> None:
        """Take this scope and all below it out of the tree (its subject is gone)."""
        if self.path and self._siblings.get(self.path[-1]) is self:
            del self._siblings[self.path[-1]]
        self._children.clear()
        self._status = None

    @property
    def status(self) -> Status | None:
        """What was last reported in this very scope, or None."""
        return self._status

    def report(self) -> Iterator[Status]:
        """Yield this scope and all below it, parents first, in the order of first mention."""
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
        now = datetime.fromtimestamp(self._clock(), UTC)
        self._status = Status(path=self.path, level=level, message=message, time=now)


class HealthTree(Health):
    """The whole tree: what probes and people read. Cells report in scopes below it."""

    __slots__ = ()


class Readiness:
    """The named things that have to have happened once before the agent calls itself ready."""

    def __init__(self) -> None:
        self._gates: dict[str, str | None] = {}
        self._callbacks: list[Callable[[], None]] = []

    def gate(self, name: str, waiting_for: str) -> Callable[[], None]:
        """Add a gate and return the function that opens it for good."""
        self._gates[name] = waiting_for

        def passed() -> None:
            if self._gates[name] is not None:
                self._gates[name] = None
                self._tell()

        return passed

    def wait_for(self, name: str, what: str) -> None:
        """Say more exactly what a gate waits for, as long as it does."""
        if self._gates[name] is not None:
            self._gates[name] = what

    def when_ready(self, callback: Callable[[], None]) -> None:
        """Call back once, as soon as all gates have been passed."""
        self._callbacks.append(callback)
        self._tell()

    def waiting(self) -> dict[str, str]:
        """Name the gates that are still closed and what each waits for."""
        return {name: what for name, what in self._gates.items() if what is not None}

    def gates(self) -> dict[str, bool]:
        """Return every gate with whether it has been passed."""
        return {name: what is None for name, what in self._gates.items()}

    @property
    def ready(self) -> bool:
        """Whether all gates have been passed."""
        return not self.waiting()

    def _tell(self) -> None:
        while self.ready and self._callbacks:
            self._callbacks.pop(0)()
