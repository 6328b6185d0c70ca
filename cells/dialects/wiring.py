"""The wiring of the cells of API dialects: imports a dialect, in a program in which it is on.

The cell contributes the dialect's kinds, so that tables and sources have them, and the dialect; in an
agent its paths of the local API as well.
"""

from __future__ import annotations

import functools
from typing import Any

import msgspec
import structlog

from cells.api.resource import ApiPlain, PlainError, Query
from cells.hive import CompositionError, Health, SettingError, Wiring
from cells.hive.cell import Constructor
from cells.hive.jobs import Jobs
from cells.hive.rounds import run_rounds
from cells.hive.signal import Signal
from cells.observability.logging import Logs
from reconcilers.dialect import (
    ApiPath,
    Dialect,
    LogLevelObject,
    OptionalKinds,
    RefusedError,
    ViewContext,
)
from reconcilers.dialect_entry import DialectEntry
from reconcilers.intent_tables import IntentTables
from resources.kind import Kind
from resources.option_declarations import InvalidOption, Options
from resources.tables import Tables
from speaker.api import SpeakerPort
from statedb import Database

log = structlog.get_logger("waggle.dialects")


class DialectKinds(msgspec.Struct, frozen=True):
    """The kinds of an enabled dialect."""

    kinds: tuple[Kind[Any], ...]
    """Kinds that an agent may read."""
    cluster_kinds: tuple[Kind[Any], ...]
    """Kinds that an operator reads."""
    read: tuple[Kind[Any], ...] = ()
    """Kinds that an agent reads of an API server, with its options."""
    of_all_nodes: tuple[Kind[Any], ...] = ()
    """Kinds of which it has the objects of other nodes, too."""


@functools.cache
def wiring_of(entry: DialectEntry, *, in_operator: bool) -> Wiring:
    """Import a dialect and return its constructors. Raises `CompositionError`."""
    dialect = entry.load()
    for field, declared, own in (
        ("name", entry.name, dialect.name),
        ("title", entry.title, dialect.title),
        ("options", entry.options, dialect.options_type),
        ("operator_options", entry.operator_options, dialect.operator_options_type),
        ("installs_routes", entry.installs_routes, dialect.installs_routes),
        ("feeds", entry.feeds, dialect.feeds),
    ):
        if declared != own:
            wrong = f"{field} is {declared!r} in its entry, and {own!r} in {dialect.__qualname__}"
            raise CompositionError(f"dialect {entry.name}: {wrong}")
    make = _constructor(dialect)
    follow = (LogLevel,) if dialect.each(LogLevelObject) else ()
    views = () if in_operator else (local_api_paths,)
    return Wiring(private=(make,), invokes=follow, contributes=(_kinds(dialect), make, *views))


def _kinds(dialect: type[Dialect]) -> Constructor:
    def kinds(options: Options) -> DialectKinds:
        return DialectKinds(
            dialect.kinds,
            dialect.cluster_kinds,
            dialect.read(options, operator=False),
            tuple(
                kind
                for optional in dialect.each(OptionalKinds)
                if not optional.operator and optional.when(options)
                for kind in optional.of_all_nodes
            ),
        )

    return kinds


def _constructor(dialect: type[Dialect]) -> Constructor:
    def make(tables: Tables, options: Options) -> Dialect:
        try:
            return dialect(tables, options)
        except InvalidOption as error:
            raise SettingError("", error.flag, error.message) from None

    return make


class LogLevel:
    """The job that gives the level which an object sets to the log."""

    def __init__(
        self, dialect: Dialect, database: Database, logs: Logs | None, health: Health, jobs: Jobs
    ) -> None:
        self._dialect = dialect
        self._database = database
        self._health = health.scope("log-level")
        self._level: str | None = None
        if logs is not None:
            self._logs = logs
            (self._object,) = dialect.each(LogLevelObject)
            self._table = dialect.tables.of(self._object.kind)
            jobs.add("log-level", self._run)

    async def _run(self) -> None:
        await run_rounds(Signal(self._table.observable), self._set)

    async def _set(self, _: float | None) -> None:
        try:
            level = self._object.level(self._dialect, self._database.snapshot())
        except Exception as error:  # noqa: BLE001  one dialect's error is that dialect's
            text = f"{type(error).__name__}: {error}"
            self._health.degraded(f"the level cannot be found, and stays as it is: {text}")
            return
        self._health.ok(level or "as configured")
        if level == self._level:
            return
        self._level = level
        # Logged in the more talkative of the two.
        if level is not None:
            self._logs.override(self._dialect.name, level)
        log.info(
            "log level",
            event_name="logging.level",
            level=level or "as configured",
            dialect=self._dialect.name,
        )
        if level is None:
            self._logs.override(self._dialect.name, None)


def local_api_paths(
    dialect: Dialect,
    tables: Tables,
    database: Database,
    intent: IntentTables | None = None,
    speaker: SpeakerPort | None = None,
) -> tuple[ApiPlain, ...]:
    """Return the dialect's paths of the local API; none without a speaker."""
    if intent is None or speaker is None:
        return ()

    def read(path: ApiPath, query: Query) -> Any:  # noqa: ANN401  JSON
        context = ViewContext(tables, database.snapshot(), intent, dialect.name, speaker.peers())
        try:
            return path.read(context, query)
        except RefusedError as error:
            raise PlainError(error.status, str(error)) from None

    return tuple(
        ApiPlain(path=path.path, read=functools.partial(read, path))
        for path in dialect.each(ApiPath)
    )
