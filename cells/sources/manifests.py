"""The manifests cell: a watched directory of YAML and JSON files as the source of objects.

Health and log report an invalid file once. The source keeps the last valid version of its objects, and
nothing stops.
"""

from __future__ import annotations

import structlog

from cells.hive import Health, Wiring, provide
from cells.hive.failing_job import Watch
from cells.hive.jobs import Jobs
from cells.hive.lifecycle import Lifecycle
from cells.options import ManifestsOptions
from cells.sources.resources import EventTraceLinks, MassWithdrawHold
from cells.sources.unused_objects import UnusedObjectsLog
from cells.state.last_valid_manifests import LastValidObjects
from resources.enumeration import first_of
from resources.ingest import Ingest
from resources.manifests.source import ManifestsSource
from resources.source import Source, SourceProblem
from resources.streams import guarded
from resources.tables import Tables
from statedb import Database

log = structlog.get_logger("waggle.manifests")


class Manifests:
    """The source, its subscriber, and the reports of both."""

    def __init__(
        self,
        database: Database,
        tables: Tables,
        trace_links: EventTraceLinks,
        options: ManifestsOptions,
        source: ManifestsSource,
        last_valid: LastValidObjects,  # noqa: ARG002  restores them before the first reading
        unused: UnusedObjectsLog | None,
        health: Health,
        lifecycle: Lifecycle,
        jobs: Jobs,
    ) -> None:
        self._directories = options.directory or ()
        self.source = source
        self._health = health
        self._known: frozenset[SourceProblem] = frozenset()
        self._watch = Watch(self.source.run)
        fail = self._watch.fail
        ingest = Ingest(database, tables, self.source, trace_links, fail, tables.manifest_kinds)
        if unused is not None:
            self.source.unread.subscribe(guarded(unused.put_unread, fail), fail)
        self.source.problems.subscribe(guarded(self._problems, fail), fail)

        async def start() -> None:
            ingest.subscribe()

        lifecycle.append("manifests", start=start)
        jobs.add("watch", self._run)

    async def _run(self) -> None:
        if not self._known:
            self._health.ok(f"watching {', '.join(self._directories)}")
        await self._watch.run()

    def _problems(self, problems: tuple[SourceProblem, ...]) -> None:
        present = frozenset(problems)
        # A file with another problem than before is not valid.
        for file in sorted(
            {problem.file for problem in self._known} - {problem.file for problem in present}
        ):
            log.info("manifest is valid again", event_name="manifests.solved", file=file)
        for problem in sorted(present - self._known, key=str):
            log.warning(
                "invalid manifest",
                event_name="manifests.problem",
                file=problem.file,
                document=problem.document,
                line=problem.line or None,
                object=problem.object,
                field=problem.field or None,
                reason=problem.message,
            )
        self._known = present
        if present:
            self._health.degraded(first_of(min(map(str, present)), len(present)))
        else:
            self._health.ok(f"watching {', '.join(self._directories)}")


def make_source(
    options: ManifestsOptions, tables: Tables, hold: MassWithdrawHold
) -> ManifestsSource:
    """Return the source that reads the directories."""
    return ManifestsSource(options.directory or (), tables.manifest_kinds, hold=hold.seconds)


WIRING = Wiring(
    private=(LastValidObjects,),
    provides=(make_source,),
    invokes=(Manifests,),
    contributes=(provide(make_source, as_=Source),),
)
