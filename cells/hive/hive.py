"""Compose cells into one object graph, start it, keep it running, stop it in order.

The graph is complete before anything starts: a missing or disabled provider is an error here and
never a surprise at run time. Constructors run in the order of dependency, and that is the order
of start. The hive knows no cell by name.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from cells.hive.cell import Cell, check_names
from cells.hive.composition import Composition
from cells.hive.errors import SettingError
from cells.hive.graph import Graph
from cells.hive.health import Health, HealthTree, Readiness
from cells.hive.jobs import Jobs, Supervisor
from cells.hive.lifecycle import Lifecycle
from cells.hive.option_loading import Settings

T = TypeVar("T")


class Shutdown:
    """Requests the orderly stop of the program; with an error, a stop with a non-zero status."""

    def __init__(self, request: Callable[[Exception | None], None]) -> None:
        self._request = request

    def __call__(self, error: Exception | None = None) -> None:
        """Request the stop; returns at once."""
        self._request(error)


class Hive:
    """One program: the enabled cells, constructed, with their lifecycle, jobs and health.

    Raises `CompositionError` for cells that do not fit, and `SettingError` for an option that a cell
    rejects.
    """

    def __init__(self, cells: Sequence[Cell], settings: Settings) -> None:
        check_names(cells)
        self.cells = tuple(cells)
        self.settings = settings
        self.lifecycle = Lifecycle()
        self.health = HealthTree()
        self.readiness = Readiness()
        self.supervisor = Supervisor(self.shutdown, random.Random())  # noqa: S311
        self.error: Exception | None = None
        """Why the program ends, if it does not end on request."""
        self._stop: asyncio.Event | None = None
        self._stop_requested = False
        self._graph = Graph(self.cells, settings.enabled, self._given)
        try:
            self._graph.construct()
        except SettingError as error:
            raise settings.located(error) from None

    def get(self, kind: type[T]) -> T:
        """Return what an enabled cell provides or invokes by this type: for programs and tests.

        Raises `CompositionError`.
        """
        value: T = self._graph.get(kind)
        return value

    def shutdown(self, error: Exception | None = None) -> None:
        """Request an orderly stop; with an error, the program exits with a non-zero status."""
        if error is not None and self.error is None:
            self.error = error
        self._stop_requested = True
        if self._stop is not None:
            self._stop.set()

    async def run(self, started: Callable[[], None] | None = None) -> None:
        """Start, wait for `shutdown`, stop. Raises what made the start fail, or the job's error."""
        self._stop = asyncio.Event()
        if self._stop_requested:
            self._stop.set()
        try:
            async with asyncio.TaskGroup() as group:
                self.supervisor.bind(group)
                try:
                    # A stop requested during the start (SIGTERM) must not wait for a slow start.
                    if await self._start_or_stop():
                        if started is not None:
                            started()
                        await self._stop.wait()
                finally:
                    await self.lifecycle.stop()
        except BaseExceptionGroup as group_error:
            # Jobs never raise into the group; what arrives here is the start's own failure.
            if len(group_error.exceptions) == 1:
                raise group_error.exceptions[0] from None
            raise
        if self.error is not None:
            raise self.error

    async def _start_or_stop(self) -> bool:
        assert self._stop is not None  # noqa: S101 - run() has just made it
        start = asyncio.ensure_future(self.lifecycle.start())
        stop = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({start, stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
            if not start.done():
                start.cancel()
                await asyncio.wait({start})
        if start.cancelled():
            return False
        start.result()
        return True

    def _given(self, cell: Cell) -> Mapping[Any, object]:
        """The values that every cell may refer to: its own, and the program's."""
        health = self.health.scope(cell.name)
        return {
            Health: health,
            HealthTree: self.health,
            Jobs: Jobs(cell.name, self.supervisor, self.lifecycle, health),
            Lifecycle: self.lifecycle,
            Readiness: self.readiness,
            Shutdown: Shutdown(self.shutdown),
            Supervisor: self.supervisor,
            Composition: Composition(self.cells, self.settings, self.health),
            cell.options: self.settings.options[cell.name],
        }
