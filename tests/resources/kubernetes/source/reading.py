"""A source that reads from a scripted server, and the events it emits, with short timeouts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, Self

from msgspec.structs import replace

from resources.kind import Kind
from resources.kubernetes import Access, FeedStatus, KubernetesSource, Phase, Selection, Timeouts
from resources.kubernetes.reflector import Reflector
from resources.source import Delete, Event, Replace, SourceProblem, Upsert
from tests.support.apiserver import ApiServer
from tests.support.kinds import KINDS
from tests.support.wait import until

TIMEOUTS = Timeouts(
    page_size=2,
    connect=60.0,
    list_silence=60.0,
    watch_silence=60.0,
    first_retry=0.005,
    longest_retry=0.02,
    confirm_list=0.02,
    missing_kind=0.03,
    longest_missing=0.1,
    mass_withdraw_hold=0.1,
    forbidden_grace=0.1,
    stable_watch=0.05,
)
"""No request is silent for so long, however long the machine keeps both ends from running."""
SOON_SILENT = replace(TIMEOUTS, watch_silence=0.3)
"""For tests of watches that are silent."""
SECRETS = "kube-system"


class Reader:
    """Runs a source, and keeps what it observed."""

    def __init__(self, source: KubernetesSource, kinds: Iterable[Kind[Any]] = KINDS) -> None:
        self.source = source
        self.events: dict[str, list[Event]] = {kind.name: [] for kind in kinds}
        self.statuses: dict[str, FeedStatus] = {}
        self.messages: list[tuple[str, Phase, str]] = []
        self.problems: tuple[SourceProblem, ...] = ()
        for kind in kinds:
            source.events(kind).subscribe(self.events[kind.name].append)
        source.statuses.subscribe(self._statuses)
        source.problems.subscribe(self._problems)
        self._task: asyncio.Task[None] | None = None

    def _statuses(self, statuses: tuple[FeedStatus, ...]) -> None:
        for found in statuses:
            before = self.statuses.get(found.name)
            if before is None or (before.phase, before.message) != (found.phase, found.message):
                self.messages.append((found.name, found.phase, found.message))
            self.statuses[found.name] = found

    def _problems(self, problems: tuple[SourceProblem, ...]) -> None:
        self.problems = problems

    def names(self, kind: str = "Service") -> set[str]:
        """The objects of a subscriber that has followed the events."""
        found: dict[tuple[str, str], str] = {}
        for event in self.events[kind]:
            match event:
                case Replace(objects):
                    found = {row.key: row.metadata.name for row in objects}
                case Upsert(row):
                    found[row.key] = row.metadata.name
                case Delete(key):
                    del found[key]
        return set(found.values())

    def replacements(self, kind: str = "Service") -> int:
        return sum(isinstance(event, Replace) for event in self.events[kind])

    def phase(self, name: str = "Service") -> Phase:
        return self.statuses[name].phase

    async def fails_again(self, times: int = 3) -> None:
        """Wait until every feed that goes on to fail has failed some more times."""
        before = {feed: feed.failures for feed in self._failing()}

        def again() -> bool:
            failing = self._failing()
            return all(feed.failures >= n + times for feed, n in before.items() if feed in failing)

        await until(again)
        assert self._failing()

    def _failing(self) -> list[Reflector]:
        phases = (Phase.FAILING, Phase.FORBIDDEN)
        return [feed for feed in self.source.reflectors if feed.status.phase in phases]

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self.source.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        assert not self._task.done(), self._task.exception()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run a scenario in a loop of its own."""

    async def main() -> None:
        async with asyncio.timeout(200):
            await scenario()

    asyncio.run(main())


def reader(
    server: ApiServer,
    directory: Path,
    *,
    timeouts: Timeouts = TIMEOUTS,
    selections: dict[str, Selection] | None = None,
    kinds: Iterable[Kind[Any]] = KINDS,
    node: str | None = None,
) -> Reader:
    access = Access(str(server.kubeconfig(directory / "kubeconfig")))
    source = KubernetesSource(access, kinds, selections or {}, node=node, timeouts=timeouts)
    return Reader(source, source.kinds)
