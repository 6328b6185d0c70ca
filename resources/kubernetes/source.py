"""A Kubernetes API server as a source: one feed per kind and namespace, merged to events per kind.

A kind that is read in several namespaces emits its first event when all of them have been listed. Of
a kind that is read by name (Secrets) each object that `KubernetesSource.follow` names has a feed.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from reactivex import Observable
from reactivex.subject import Subject

from resources.core.kinds import NODE
from resources.kind import Kind
from resources.kubernetes.connection import Access, Connection
from resources.kubernetes.discovery import Discovery
from resources.kubernetes.errors import KubernetesError
from resources.kubernetes.feed import SOURCE, Feed
from resources.kubernetes.feed_status import FeedStatus, Phase
from resources.kubernetes.named_feeds import Emit, NamedFeeds, Start
from resources.kubernetes.recovery import Recovery
from resources.kubernetes.reflector import Reflector
from resources.kubernetes.selection import EVERYTHING, Selection
from resources.kubernetes.timeouts import Timeouts
from resources.kubernetes.writer import Writer
from resources.meta import ObjectKey, Resource
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
        node: str | None = None,
        timeouts: Timeouts = Timeouts(),  # noqa: B008  frozen
    ) -> None:
        """``node``: objects that concern other nodes alone are not stored; None stores all."""
        self._access = access
        self._node = node
        self._node_known = asyncio.Event()
        """Set once the labels of the node are known, or nothing depends on them."""
        self._timeouts = timeouts
        self._rng = random.SystemRandom()
        self.kinds = tuple(kinds)
        self._selections = {kind.name: selections.get(kind.name, EVERYTHING) for kind in self.kinds}
        self._events: dict[str, Subject[Event]] = {kind.name: Subject() for kind in self.kinds}
        self._problems: Subject[tuple[SourceProblem, ...]] = Subject()
        self._statuses: Subject[tuple[FeedStatus, ...]] = Subject()
        self._last_problems: tuple[SourceProblem, ...] = ()
        self._restored: Mapping[str, Sequence[Resource]] = {}
        self._named = {
            kind.name: NamedFeeds(
                kind,
                self._selections[kind.name],
                hold=timeouts.mass_withdraw_hold,
                emit=self._events[kind.name].on_next,
                emit_states=self._emit_states,
            )
            for kind in self.kinds
            if self._selections[kind.name].by_name
        }
        self._of_kinds: tuple[Reflector, ...] = ()
        self._connection: Connection | None = None

    @property
    def server(self) -> str:
        """The URL of the API server of the source; empty before the first connection."""
        text = "" if self._connection is None else self._connection.server
        return text if "://" in text else ""

    @property
    def certificate_ends(self) -> Mapping[str, float]:
        """When the certificates end by which the source connects to its API server."""
        return {} if self._connection is None else self._connection.certificate_ends

    @property
    def reflectors(self) -> tuple[Reflector, ...]:
        """The loops of all feeds of the source."""
        of_objects = (reflector for named in self._named.values() for reflector in named.reflectors)
        return (*self._of_kinds, *of_objects)

    def follow(self, kind: Kind[Any], keys: Iterable[ObjectKey]) -> None:
        """Read these objects of a kind that the source selects by name, and no others.

        Until the first call the kind is not read.
        """
        self._named[kind.name].follow(frozenset(keys))

    def restore(self, rows: Mapping[str, Sequence[Resource]]) -> None:
        """Provide rows from before the start, for the source's feeds without a complete list.

        They are used from `use_restored` on. Lists are compared with them: a list that lacks many has
        to be confirmed.
        """
        self._restored = rows
        for reflector in self.reflectors:
            if not reflector.feed.synced:
                reflector.feed.restore(rows.get(reflector.feed.kind.name, ()))

    def use_restored(self) -> tuple[str, ...]:
        """Use restored rows of the source's feeds without a complete list; returns their names."""
        waiting = [reflector for reflector in self.reflectors if not reflector.feed.synced]
        for reflector in waiting:
            reflector.use_restored()
        for named in self._named.values():
            named.use_restored()
        return tuple(reflector.status.name for reflector in waiting)

    @property
    def current(self) -> bool:
        """True if all feeds of the source follow the API server, except missing kinds."""
        return bool(self.reflectors) and not self.behind

    @property
    def behind(self) -> tuple[str, ...]:
        """The names of the source's feeds that do not follow the API server."""
        behind = (Phase.WAITING, Phase.HOLDING, Phase.FAILING)
        statuses = [reflector.status for reflector in self.reflectors]
        return tuple(status.name for status in statuses if status.phase in behind)

    def events(self, kind: Kind[T]) -> Observable[Event]:
        """Return the events of one of the kinds that the Kubernetes source reads.

        Subscribers are isolated from each other.
        """
        return isolated(self._events[kind.name])

    @property
    def problems(self) -> Observable[tuple[SourceProblem, ...]]:
        """Emit the problems of all objects of the Kubernetes source whenever they change."""
        return isolated(self._problems)

    @property
    def statuses(self) -> Observable[tuple[FeedStatus, ...]]:
        """Emit the states of all feeds of the Kubernetes source whenever one changes."""
        return isolated(self._statuses)

    async def run(self) -> None:
        """List and watch all kinds of the source until cancelled; may be run again."""
        if self._of_kinds:
            # The first lists are compared with the present rows, as if the last run went on.
            self._restored = self._known()
        self._node_known.clear()
        connection = self._connection = Connection(self._access, self._timeouts.connect)
        timeouts = self._timeouts
        discovery = Discovery(connection, timeouts.list_silence)
        recovery = Recovery(self._rng, timeouts.first_retry, timeouts.longest_retry)

        def start(
            feed: Feed[Any], selection: Selection, on_list: Callable[[], None], emit: Emit
        ) -> Reflector:
            return Reflector(
                feed,
                connection,
                discovery,
                recovery,
                selection,
                self._timeouts,
                self._rng,
                on_list=on_list,
                on_event=emit,
                on_status=self._emit_states,
            )

        self._of_kinds = tuple(
            reflector
            for kind in self.kinds
            if kind.name not in self._named
            for reflector in self._reflectors(kind, start)
        )
        try:
            async with asyncio.TaskGroup() as group:
                for reflector in self._of_kinds:
                    group.create_task(
                        self._run_one(reflector), name=f"reflector {reflector.status.name}"
                    )
                for name, named in self._named.items():
                    group.create_task(named.run(start), name=f"objects of {name}")
                if NODE in self.kinds:
                    group.create_task(self._measure_cluster(connection, recovery), name="nodes")
        except BaseExceptionGroup as failed:
            # A reflector ends only by a programming error; the first one is reported.
            raise failed.exceptions[0] from None
        finally:
            await connection.close()

    async def _run_one(self, reflector: Reflector) -> None:
        if reflector.feed.by_labels and NODE in self.kinds:
            # Without the labels of the node every object of other nodes would be a candidate.
            await self._node_known.wait()
        await reflector.run()

    def _set_labels(self, nodes: Feed[Any]) -> None:
        """Let the feeds that depend on them have the labels of the node."""
        row = nodes.rows.get(("", self._node or ""))
        labels = {} if row is None else row.metadata.labels
        self._node_known.set()
        for reflector in self._of_kinds:
            if reflector.feed.by_labels and reflector.feed.labels != labels:
                reflector.set_labels(labels)

    async def _measure_cluster(self, connection: Connection, recovery: Recovery) -> None:
        """Count the nodes once in a while: a list of one object, whatever this agent reads."""
        writer = Writer(connection, SOURCE)
        while True:
            await asyncio.sleep(self._timeouts.count_nodes * (0.5 + self._rng.random()))
            with contextlib.suppress(KubernetesError):
                recovery.nodes = await writer.count(NODE.path(NODE.versions[0]))

    def _known(self) -> dict[str, list[Resource]]:
        rows: dict[str, list[Resource]] = {}
        for reflector in self.reflectors:
            rows.setdefault(reflector.feed.kind.name, []).extend(reflector.feed.rows.values())
        return rows

    def _reflectors(self, kind: Kind[Any], start: Start) -> list[Reflector]:
        selection = self._selections[kind.name]
        hold = self._timeouts.mass_withdraw_hold
        namespaces = selection.namespaces or ("",)
        others = selection.other_nodes
        feeds = [
            Feed(kind, name, hold=hold, node=self._node, other_nodes=others) for name in namespaces
        ]
        for feed in feeds:
            feed.restore(self._restored.get(kind.name, ()))
        subject = self._events[kind.name]

        def is_synced() -> bool:
            return all(feed.synced for feed in feeds)

        def emit_all() -> None:
            if is_synced():
                rows = (tuple(feed.rows.values()) for feed in feeds)
                subject.on_next(Replace(sum(rows, ())))
                if kind is NODE:
                    self._set_labels(feeds[0])
            self._emit_states()

        def emit(event: Event) -> None:
            # Earlier events are contained in the first Replace.
            if is_synced():
                subject.on_next(event)
                if kind is NODE:
                    self._set_labels(feeds[0])

        return [start(feed, selection, emit_all, emit) for feed in feeds]

    def _emit_states(self) -> None:
        self._statuses.on_next(tuple(reflector.status for reflector in self.reflectors))
        problems = tuple(
            problem
            for reflector in self.reflectors
            for key in sorted(reflector.feed.problems)
            for problem in reflector.feed.problems[key]
        )
        if problems != self._last_problems:
            self._last_problems = problems
            self._problems.on_next(problems)
