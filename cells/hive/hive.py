"""Compose cells into one object graph, start it, keep it running, stop it in order.

The graph is complete before anything starts: a missing or disabled provider is an error here and
never a surprise at run time. Constructors run in the order of dependency, and that is the order
of start. The hive knows no cell by name.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import structlog
from dependency_injector import errors, providers
from dependency_injector.containers import DynamicContainer

from cells.hive.cell import GIVEN, INVOKES, Cell
from cells.hive.errors import CompositionError, DisabledCellError
from cells.hive.health import Health, Readiness
from cells.hive.jobs import Jobs, Supervisor
from cells.hive.lifecycle import Lifecycle
from cells.hive.settings import Settings

T = TypeVar("T")

log = structlog.get_logger("waggle.hive")


class Hive:
    """One agent: the enabled cells, built, with their lifecycle, jobs and health.

    Building raises `CompositionError`. ``clock`` is wall time in seconds, for people's eyes
    only; delays are taken from the loop's clock.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        settings: Settings,
        *,
        clock: Callable[[], float] = time.time,
        rng: random.Random | None = None,
    ) -> None:
        self.cells = tuple(cells)
        self.settings = settings
        self.lifecycle = Lifecycle()
        self.health = Health(clock=clock)
        self.readiness = Readiness()
        self.supervisor = Supervisor(self.shutdown, rng or random.Random())  # noqa: S311
        self.error: Exception | None = None
        """Why the agent ends, if it does not end on request."""
        self._stop: asyncio.Event | None = None
        self._stop_asked = False
        self.order = _order(self.cells, settings)
        self.root = DynamicContainer()
        self._containers: dict[str, Any] = {}
        self._compose()
        self.check()
        for cell in self.order:
            container = self._containers[cell.name]
            if INVOKES in container.providers:
                container.providers[INVOKES]()

    def check(self) -> None:
        """Raise `CompositionError` unless every declared input has a provider."""
        try:
            self.root.check_dependencies()
        except errors.Error as error:
            raise CompositionError(str(error)) from error

    def get(self, output: str, kind: type[T]) -> T:
        """Return what a cell provides under that name: the typed exit from the containers."""
        for cell in self.order:
            if output in cell.outputs:
                found = self._containers[cell.name].providers[output]()
                if not isinstance(found, kind):
                    raise CompositionError(f"{output} is a {type(found).__name__}")
                return found
        raise CompositionError(f"no enabled cell provides {output}")

    def shutdown(self, error: Exception | None = None) -> None:
        """Ask for an orderly stop; with an error, the agent ends with a non-zero status."""
        if error is not None and self.error is None:
            self.error = error
        self._stop_asked = True
        if self._stop is not None:
            self._stop.set()

    async def run(self, started: Callable[[], None] | None = None) -> None:
        """Start, wait for `shutdown`, stop. Raises what made the start fail, or the job's error."""
        self._stop = asyncio.Event()
        if self._stop_asked:
            self._stop.set()
        try:
            async with asyncio.TaskGroup() as group:
                self.supervisor.bind(group)
                try:
                    # A stop asked for while starting (SIGTERM) must not wait for a slow start.
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

    def _compose(self) -> None:
        outputs: dict[str, Any] = {}
        for cell in self.order:
            given = self._given(cell)
            declared = cell.container.providers
            overrides = {name: given[name] for name in GIVEN if name in declared}
            for name, accepted in cell.inputs.items():
                overrides[name] = outputs[name]
                _check_type(cell, name, accepted, outputs[name])
            provider: Any = providers.Container(cell.container, **overrides)
            self.root.set_provider(cell.name, provider)
            self._containers[cell.name] = provider.container
            for name in cell.outputs:
                outputs[name] = provider.container.providers[name]

    def _given(self, cell: Cell) -> dict[str, Any]:
        health = self.health.scope(cell.name)
        values = {
            "lifecycle": self.lifecycle,
            "jobs": Jobs(cell.name, self.supervisor, self.lifecycle, health),
            "health": health,
            "readiness": self.readiness,
            "options": self.settings.options[cell.name],
            "hive": self,
        }
        return {name: providers.Object(value) for name, value in values.items()}


def _order(cells: Sequence[Cell], settings: Settings) -> tuple[Cell, ...]:
    """Sort the enabled cells so that providers come first, otherwise as they were listed."""
    owners: dict[str, Cell] = {}
    for cell in cells:
        for name in cell.outputs:
            if name in owners:
                both = f"{owners[name].name} and {cell.name}"
                raise CompositionError(f"cells {both} both provide {name}")
            owners[name] = cell
    done: dict[str, Cell] = {}
    path: list[str] = []

    def visit(cell: Cell) -> None:
        if cell.name in done:
            return
        if cell.name in path:
            raise CompositionError("cells need each other: " + " -> ".join([*path, cell.name]))
        path.append(cell.name)
        for name in cell.inputs:
            owner = owners.get(name)
            if owner is None:
                raise CompositionError(f"cell {cell.name} needs {name}, which no cell provides")
            if not settings.enabled[owner.name]:
                raise DisabledCellError(cell.name, name, owner.name)
            visit(owner)
        path.pop()
        done[cell.name] = cell

    for cell in cells:
        if settings.enabled[cell.name]:
            visit(cell)
    return tuple(done.values())


def _check_type(cell: Cell, name: str, accepted: type, provider: object) -> None:
    made = getattr(provider, "cls", None)
    if isinstance(made, type) and not issubclass(made, accepted):
        raise CompositionError(
            f"cell {cell.name} needs {name} to be a {accepted.__name__}, not a {made.__name__}"
        )
