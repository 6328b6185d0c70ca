"""The jobs that feed the reconciler of kernel routes: best paths, the host, sessions, the deferral."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Sequence
from typing import Final

from opentelemetry import trace

from cells.hive import Health
from cells.hive.failing_job import Watch
from cells.hive.jobs import Jobs
from cells.hive.rounds import in_slices, run_rounds
from cells.hive.signal import Signal
from cells.speaker.events import SpeakerEvents
from reconcilers.intent_tables import IntentTables
from reconcilers.kernel.deferral import Deferral
from reconcilers.kernel.next_hop_metrics import Metrics
from reconcilers.kernel.options import FibOptions
from reconcilers.kernel.reconciler import KernelReconciler
from reconcilers.round_span import round_span
from resources.enumeration import counted
from resources.streams import guarded
from resources.tables import Tables
from resources.trace_links import UNSAMPLED
from resources.trace_sampling import ROOTS
from speaker.api import (
    ESTABLISHED,
    BestPathChange,
    BestPathItem,
    BestPathReader,
    Event,
    Multipath,
    SpeakerPort,
    StateChanged,
    UnknownName,
)
from statedb import Database

_tracer = trace.get_tracer("waggle.kernel")

DEFERRAL_POLL_SECONDS: Final = 1.0
MAX_PEERS: Final = 32
"""Peers that a span names."""


class BestPathFollower:
    """Reads the best paths of each instance whose routes are installed."""

    def __init__(
        self,
        database: Database,
        intent_tables: IntentTables,
        speaker: SpeakerPort,
        kernel: KernelReconciler,
        options: FibOptions,
        health: Health,
        jobs: Jobs,
    ) -> None:
        self._database = database
        self._intent = intent_tables
        self._speaker = speaker
        self._kernel = kernel
        self._multipath = Multipath(options.multipath, options.multipath_relax)
        self._health = health.scope("best paths")
        self._readers: dict[str, asyncio.Task[None]] = {}
        jobs.add("best-paths", self._run)

    async def _run(self) -> None:
        tables = (self._intent.instances, self._intent.peers)
        try:
            async with asyncio.TaskGroup() as group:

                async def follow(_: float | None) -> None:
                    self._kernel.configure(self._database.snapshot())
                    self._follow(group)

                await run_rounds(Signal(*(table.observable for table in tables)), follow)
        finally:
            self._readers.clear()

    def _follow(self, group: asyncio.TaskGroup) -> None:
        """Open streams of new instances, and close the streams of removed instances."""
        wanted = self._kernel.wanted_tables.instances
        for name in [name for name in self._readers if name not in wanted]:
            self._readers.pop(name).cancel()
        for name in wanted:
            if name not in self._readers:
                self._readers[name] = group.create_task(self._read(name))
        self._health.ok(counted(len(wanted), "instance"))

    async def _read(self, instance: str) -> None:
        reader = self._speaker.follow_best_paths(instance, self._multipath)
        take = functools.partial(self._take, instance, reader)

        async def read() -> None:
            while True:
                await reader.wait()
                take()

        watch = Watch(read)
        reader.on_few = guarded(take, watch.fail)
        try:
            await watch.run()
        finally:
            reader.close()

    def _take(
        self, instance: str, reader: BestPathReader, urgent: Sequence[BestPathItem] = ()
    ) -> None:
        causes = reader.take_causes()
        if not causes and ROOTS.share < 1.0:
            # Of UPDATEs whose trace is not begun: the rest of it would be one without its begin.
            causes = [UNSAMPLED]
        with round_span(_tracer, "bgp.best_paths", causes) as span:
            items = reader.take()
            if span.is_recording():
                _describe(span, instance, [i for i in items if isinstance(i, BestPathChange)])
            if self._kernel.best_paths(instance, items, urgent):
                self._kernel.causes.add([span.get_span_context()])


def _describe(span: trace.Span, instance: str, changes: Sequence[BestPathChange]) -> None:
    """Name the peers whose UPDATEs changed best paths, and count the prefixes."""
    span.set_attribute("bgp.instance", instance)
    span.set_attribute("bgp.prefix_count", sum(len(change.prefixes) for change in changes))
    # Equal sets of paths are one object: few for a whole table.
    pairs = {(id(c.before), id(c.after)): (c.before.paths, c.after.paths) for c in changes}
    changed = {
        path for pair in pairs.values() for path in set(pair[0]).symmetric_difference(pair[1])
    }
    peers = sorted({path.peer for path in changed if path.peer is not None})
    if peers:
        span.set_attribute("bgp.peers", peers[:MAX_PEERS])
        span.set_attribute("bgp.peer_count", len(peers))
    addresses = {path.address for path in changed if path.address is not None}
    if len(peers) == len(addresses) == 1:
        span.set_attribute("network.peer.address", *addresses)


class HostFollower:
    """Passes on the interfaces, addresses and VRFs of the host."""

    def __init__(
        self, database: Database, tables: Tables, kernel: KernelReconciler, jobs: Jobs
    ) -> None:
        self._database = database
        self._table = tables.host
        self._kernel = kernel
        jobs.add("host", self._run)

    async def _run(self) -> None:
        await run_rounds(Signal(self._table.observable), self._pass_on)

    async def _pass_on(self, _: float | None) -> None:
        self._kernel.host_changed(next(self._table.all(self._database.snapshot()), None))


class NextHopFollower:
    """Passes the reachability and the metrics of received next hops to route selection."""

    def __init__(
        self,
        database: Database,
        intent_tables: IntentTables,
        speaker: SpeakerPort,
        kernel: KernelReconciler,
        jobs: Jobs,
    ) -> None:
        self._database = database
        self._intent = intent_tables
        self._speaker = speaker
        self._kernel = kernel
        self._given: dict[str, dict[str, int]] = {}
        jobs.add("next-hops", self._run)

    async def _run(self) -> None:
        tables = (self._intent.next_hops, self._intent.instances)
        sources = (table.observable for table in tables)
        await run_rounds(Signal(*sources, self._kernel.metrics_due), self._select)

    async def _select(self, _: float | None) -> None:
        rows = self._intent.next_hops.all(self._database.snapshot())
        self._give(await in_slices(self._kernel.select(rows)))

    def _give(self, metrics: Metrics) -> None:
        # A new instance has no metrics, whatever one of its name had.
        self._given = {name: given for name, given in self._given.items() if name in metrics}
        for name, of_instance in metrics.items():
            if of_instance == self._given.get(name, {}):
                continue
            with contextlib.suppress(UnknownName):
                self._speaker.set_next_hop_metrics(name, of_instance)
                self._given[name] = of_instance


class SessionFollower:
    """Removes a peer whose session has ended from all next hops, before its routes are withdrawn."""

    def __init__(
        self,
        speaker: SpeakerPort,
        events: SpeakerEvents,
        kernel: KernelReconciler,
        jobs: Jobs,
    ) -> None:
        self._speaker = speaker
        self._kernel = kernel
        self._failed = asyncio.Event()
        self._error: BaseException | None = None
        events.observable.subscribe(guarded(self._handle, self._fail))
        jobs.add("sessions", self._run)

    async def _run(self) -> None:
        # Unlike `Watch`: no event is read again, so an error before a run is an error of it, too.
        await self._failed.wait()
        self._failed.clear()
        if self._error is not None:
            raise self._error

    def _fail(self, error: BaseException) -> None:
        self._error = error
        self._failed.set()

    def _handle(self, event: Event) -> None:
        if not isinstance(event, StateChanged):
            return
        if event.new == ESTABLISHED:
            self._kernel.session_restored(event.instance, event.peer)
        elif event.old == ESTABLISHED and not self._keeps_routes(event):
            self._kernel.session_lost(event.instance, event.peer)

    def _keeps_routes(self, event: StateChanged) -> bool:
        """Return whether routes of the session are kept while the peer restarts (RFC 4724)."""
        return any(
            family.stale
            for peer in self._speaker.peers()
            if (peer.instance, peer.name) == (event.instance, event.peer)
            for family in peer.families
        )


class DeferralJob:
    """Ends the deferral of stale routes once all peers have announced theirs."""

    def __init__(
        self,
        database: Database,
        intent_tables: IntentTables,
        speaker: SpeakerPort,
        kernel: KernelReconciler,
        jobs: Jobs,
    ) -> None:
        self._database = database
        self._intent = intent_tables
        self._speaker = speaker
        self._kernel = kernel
        jobs.add("deferral", self._run)

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        deferral: Deferral | None = None
        while self._kernel.deferred:
            await asyncio.sleep(DEFERRAL_POLL_SECONDS)
            pending = self._intent.pending_dialects.count(self._database.snapshot())
            kernel = self._kernel
            # Before the intent is compiled no peer is known that could announce them again, and before
            # the host is read no table of a VRF.
            is_known = kernel.compared and kernel.installed.listed and kernel.routing.host_known
            if pending or not is_known:
                continue
            deferral = deferral or Deferral(clock())
            if self._is_over(deferral, clock()):
                self._kernel.end_deferral()

    def _is_over(self, deferral: Deferral, now: float) -> bool:
        instances = self._kernel.wanted_tables.instances
        importing = {
            (row.instance, row.name)
            for row in self._intent.peers.all(self._database.snapshot())
            if row.instance in instances and (row.accept is None or row.accept)
        }
        selected = self._kernel.wanted_tables.selected
        return deferral.is_over(now, self._speaker.peers(), importing, selected=selected)
