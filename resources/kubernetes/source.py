"""The source: one feed per kind and namespace, told as the events of each kind.

A kind that is read in several namespaces is told when all of them have been read.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from reactivex import Observable
from reactivex.subject import Subject

from resources.kind import Kind
from resources.kubernetes.connection import Access, Connection
from resources.kubernetes.feed import SOURCE, Feed
from resources.kubernetes.feed_status import FeedStatus, Phase
from resources.kubernetes.reflector import Reflector
from resources.kubernetes.selection import EVERYTHING, Selection
from resources.kubernetes.timeouts import Timeouts
from resources.meta import Resource
from resources.source import Event, Replace, SourceProblem
from resources.streams import isolated

T = TypeVar("T", bound=Resource)


class KubernetesSource:
    """Lists and watches an API server."""

    name = SOURCE

    def __init__(
        self,
        access: Access,
        kinds: Iterable[Kind[Any]],
        selections: Mapping[str, Selection],
        *,
        timeouts: Timeouts = Timeouts(),  # noqa: B008  frozen
        rng: random.Random | None = None,
    ) -> None:
        self._access = access
        self._timeouts = timeouts
        self._rng = rng or random.SystemRandom()
        self.kinds = tuple(kinds)
        self._selections = {kind.name: selections.get(kind.name, EVERYTHING) for kind in self.kinds}
        self._events: dict[str, Subject[Event]] = {kind.name: Subject() for kind in self.kinds}
        self._problems: Subject[tuple[SourceProblem, ...]] = Subject()
        self._statuses: Subject[tuple[FeedStatus, ...]] = Subject()
        self._told: tuple[SourceProblem, ...] = ()
        self._recalled: Mapping[str, Sequence[Resource]] = {}
        self.reflectors: tuple[Reflector, ...] = ()

    def recall(self, rows: Mapping[str, Sequence[Resource]]) -> None:
        """Remember what was known before the start, by kind; no more use once all has been read.

        It counts from `resume` on, or not at all where lists come first. What lists say is compared
        with it, as with anything known: one that is empty has to be confirmed.
        """
        self._recalled = rows
        for reflector in self.reflectors:
            if not reflector.feed.settled:
                reflector.feed.recall(rows.get(reflector.feed.kind.name, ()))

    def resume(self) -> tuple[str, ...]:
        """Let what was remembered count for the feeds that were not read yet; name these."""
        waiting = [one for one in self.reflectors if not one.feed.settled]
        for reflector in waiting:
            reflector.resume()
        return tuple(reflector.status.name for reflector in waiting)

    @property
    def current(self) -> bool:
        """Whether what is known is what the API server says now, as far as it may be asked."""
        behind = (Phase.WAITING, Phase.FAILING)
        phases = [reflector.status.phase for reflector in self.reflectors]
        return bool(phases) and not any(phase in behind for phase in phases)

    def events(self, kind: Kind[T]) -> Observable[Event]:
        """Return the events of one of its kinds; subscribers are isolated from each other."""
        return isolated(self._events[kind.name])

    @property
    def problems(self) -> Observable[tuple[SourceProblem, ...]]:
        """Tell all objects that break rules, anew whenever that changes."""
        return isolated(self._problems)

    @property
    def statuses(self) -> Observable[tuple[FeedStatus, ...]]:
        """Tell how all feeds are, anew whenever that changes."""
        return isolated(self._statuses)

    async def run(self) -> None:
        """Read everything, then what changes, until cancelled; may be run again."""
        if self.reflectors:
            # What is known already is held against the lists, as it would be without an end.
            self._recalled = self._known()
        connection = Connection(self._access, self._timeouts.connect)
        self.reflectors = tuple(
            reflector for kind in self.kinds for reflector in self._reflectors(kind, connection)
        )
        try:
            async with asyncio.TaskGroup() as group:
                for reflector in self.reflectors:
                    group.create_task(reflector.run(), name=f"reflector {reflector.status.name}")
        except BaseExceptionGroup as failed:
            # A reflector ends by a defect only; the first one says it all.
            raise failed.exceptions[0] from None
        finally:
            await connection.close()

    def _known(self) -> dict[str, list[Resource]]:
        found: dict[str, list[Resource]] = {}
        for reflector in self.reflectors:
            found.setdefault(reflector.feed.kind.name, []).extend(reflector.feed.rows.values())
        return found

    def _reflectors(self, kind: Kind[Any], connection: Connection) -> list[Reflector]:
        selection = self._selections[kind.name]
        feeds = [Feed(kind, namespace) for namespace in selection.namespaces or ("",)]
        for feed in feeds:
            feed.recall(self._recalled.get(kind.name, ()))
        subject = self._events[kind.name]

        def settled() -> bool:
            return all(feed.settled for feed in feeds)

        def tell_all() -> None:
            if settled():
                rows = (tuple(feed.rows.values()) for feed in feeds)
                subject.on_next(Replace(sum(rows, ())))
            self._tell_state()

        def tell(event: Event) -> None:
            # What comes before all have been read is within the first replacement.
            if settled():
                subject.on_next(event)

        return [
            Reflector(
                feed,
                connection,
                selection,
                self._timeouts,
                self._rng,
                on_list=tell_all,
                on_event=tell,
                on_status=self._tell_state,
            )
            for feed in feeds
        ]

    def _tell_state(self) -> None:
        self._statuses.on_next(tuple(reflector.status for reflector in self.reflectors))
        problems = tuple(
            problem
            for reflector in self.reflectors
            for key in sorted(reflector.feed.problems)
            for problem in reflector.feed.problems[key]
        )
        if problems != self._told:
            self._told = problems
            self._problems.on_next(problems)
