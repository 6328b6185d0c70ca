"""Isolates the collectors of a scrape: an exception costs the metrics of one collector."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import structlog

from cells.hive import Health
from cells.observability.exposition import Collected

log = structlog.get_logger("waggle.metrics")


class CollectorGuard:
    """Ends a collector that raises; health names it until it works again, the log once."""

    def __init__(self, health: Health) -> None:
        self._health = health
        self._failed: set[str] = set()

    def collect(self, name: str, collect: Callable[[], Iterable[Collected]]) -> Iterator[Collected]:
        """Yield what a collector yields, up to its error; ``name`` is the collector's in health."""
        try:
            yield from collect()
        except Exception as error:
            self._health.scope(name).degraded(
                f"its metrics are missing: {type(error).__name__}: {error}"
            )
            if name not in self._failed:
                self._failed.add(name)
                log.exception(
                    "metrics are missing: their collector failed",
                    event_name="metrics.collector_failed",
                    collector=name,
                )
        else:
            if name in self._failed:
                self._failed.remove(name)
                self._health.scope(name).remove()
                log.info(
                    "metrics are collected again",
                    event_name="metrics.collector_recovered",
                    collector=name,
                )
