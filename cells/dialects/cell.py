"""Makes the cell of an API dialect, for an agent and for an operator.

The cell contributes the dialect's kinds, so that tables and sources have them, and the dialect; in an
agent its paths of the local API and its metrics as well.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from prometheus_client.core import GaugeMetricFamily

from cells.api.resource import ApiResource, BadRequestError, NotFoundError, Query
from cells.hive import Cell, Composition, SettingError, provide
from cells.hive.cell import Constructor, Provider
from cells.metrics import MetricsCollector
from reconcilers.dialect import ApiPath, Dialect
from resources.kind import Kind
from resources.option_declarations import InvalidOption, Options
from resources.tables import Tables
from statedb import Database


class DialectKinds(msgspec.Struct, frozen=True):
    """The kinds of an enabled dialect."""

    kinds: tuple[Kind[Any], ...]
    """Those that an agent reads."""
    cluster_kinds: tuple[Kind[Any], ...]
    """Those that an operator reads."""


class DialectCell(Cell, frozen=True, kw_only=True):
    """The cell of an API dialect."""

    dialect: type[Dialect]


def agent_cell(dialect: type[Dialect], *, enabled: bool = False) -> DialectCell:
    """Return the cell of a dialect in an agent; ``enabled``: it is on by default."""
    views = (api_resources, provide(DialectMetrics, as_=MetricsCollector))
    return _cell(dialect, dialect.options_type, enabled, views)


def operator_cell(dialect: type[Dialect], *, enabled: bool = False) -> DialectCell:
    """Return the cell of a dialect in an operator; ``enabled``: it is on by default."""
    return _cell(dialect, dialect.operator_options_type, enabled, ())


def _cell(
    dialect: type[Dialect],
    options: type[Options],
    enabled: bool,
    views: tuple[Constructor | Provider, ...],
) -> DialectCell:
    make = _constructor(dialect)
    return DialectCell(
        name=dialect.name,
        description=f"The API dialect of {dialect.title}.",
        options=options,
        private=(make,),
        contributes=(_kinds(dialect), make, *views),
        on_by_default=enabled,
        dialect=dialect,
    )


def _kinds(dialect: type[Dialect]) -> Constructor:
    def kinds() -> DialectKinds:
        return DialectKinds(dialect.kinds, dialect.cluster_kinds)

    return kinds


def _constructor(dialect: type[Dialect]) -> Constructor:
    def make(tables: Tables, options: Options) -> Dialect:
        try:
            return dialect(tables, options)
        except InvalidOption as error:
            raise SettingError("", error.flag, error.message) from None

    return make


def api_resources(dialect: Dialect, database: Database) -> tuple[ApiResource, ...]:
    """Return the dialect's paths of the local API."""
    return tuple(
        ApiResource(
            path=path.path,
            kind=path.kind,
            parameters=path.parameters,
            read=functools.partial(_read, path, database),
        )
        for path in dialect.api_paths
    )


def _read(path: ApiPath, database: Database, query: Query) -> Sequence[Any]:
    try:
        return path.read(database.snapshot(), query)
    except LookupError as error:
        raise NotFoundError(str(error)) from None
    except ValueError as error:
        raise BadRequestError(str(error)) from None


class DialectMetrics:
    """The metrics of a dialect."""

    def __init__(self, dialect: Dialect, database: Database) -> None:
        self._dialect = dialect
        self._database = database

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metrics."""
        for gauge in self._dialect.metrics(self._database.snapshot()):
            family = GaugeMetricFamily(gauge.name, gauge.help, labels=gauge.labels)
            for labels, value in gauge.values.items():
                family.add_metric(labels, value)
            yield family


def disabled(composition: Composition) -> tuple[type[Dialect], ...]:
    """Return the dialects whose cells are off."""
    return tuple(cell.dialect for cell in composition.disabled() if isinstance(cell, DialectCell))
