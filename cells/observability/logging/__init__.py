"""The logging cell: structlog and the standard library's loggers into one non-blocking sink.

Rooms below log with ``structlog.get_logger(name)`` or ``logging.getLogger(name)``; this cell
decides where the lines go and how they look. It is first to start and last to stop. Configuration
of logging is global to a process, so an agent that stops puts the defaults back.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from typing import Any

import structlog

from cells.api.resource import ApiAction, ApiResource
from cells.hive import Health, Wiring
from cells.hive.lifecycle import Lifecycle
from cells.observability.logging import lines
from cells.observability.logging.api import log_action, log_resource
from cells.observability.logging.levels import LEVELS, LogLevels
from cells.observability.logging.sink import Sink
from cells.options import LoggingOptions

STDERR = 2

NOISY = ("aiohttp.access", "opentelemetry", "urllib3")
"""Libraries that log what we report ourselves, or every request."""


class Logs:
    """The configured output of all loggers of the process, while it is started."""

    def __init__(
        self,
        lifecycle: Lifecycle,
        health: Health,
        options: LoggingOptions,
        sink: Sink | None = None,
    ) -> None:
        self._health = health
        self._render = lines.json if options.format == "json" else lines.logfmt
        self.levels = LogLevels(options.level, self._update)
        self._started = False
        self._sink = sink or Sink(STDERR, self._dropped)
        self._handler = _Handler(self)
        self._quieted: dict[str, int] = {}
        # Before what other cells reserve, so that their lines are in the format.
        lifecycle.append("logging", reserve=self.start, stop=self.stop)

    async def start(self) -> None:
        """Take over structlog and the root logger."""
        logging.getLogger().addHandler(self._handler)
        self._quieted = {name: logging.getLogger(name).level for name in ("", *NOISY)}
        self._sink.start()
        self._started = True
        self._apply()

    def override(self, by: str, level: str | None) -> None:
        """Set the level in place of the configured one; None: no longer.

        Of several the most verbose one is in effect.
        """
        self.levels.override(by, level)

    def configure(self, level: str) -> None:
        """Set the configured level; while objects set one, it takes effect after them."""
        self.levels.configure(level)

    def _update(self) -> None:
        if self._started:
            self._apply()

    def _apply(self) -> None:
        """Give the level to the loggers of both libraries."""
        level = LEVELS[self.levels.level]
        structlog.configure(
            processors=[self._process],
            wrapper_class=structlog.make_filtering_bound_logger(level),
            logger_factory=_Named,
            cache_logger_on_first_use=False,
        )
        logging.getLogger().setLevel(level)
        for name in NOISY:
            logging.getLogger(name).setLevel(max(level, logging.CRITICAL))
        by = self.levels.set_by
        self._health.ok(f"level {self.levels.level}" + (f", set by {', '.join(by)}" if by else ""))

    async def stop(self) -> None:
        """Write what is left and put the defaults back."""
        self._started = False
        structlog.reset_defaults()
        logging.getLogger().removeHandler(self._handler)
        for name, level in self._quieted.items():
            logging.getLogger(name).setLevel(level)
        await asyncio.to_thread(self._sink.stop, 1.0)

    def emit(self, level: str, logger: str, message: str, values: dict[str, Any]) -> None:
        """Write one event."""
        event = lines.event(
            when=time.time(), level=level, logger=logger, message=message, values=values
        )
        self._sink.write(self._render(event))

    def _process(self, logger: Any, method: str, values: Any) -> Any:  # noqa: ANN401 - structlog's
        message = values.pop("event", "")
        level = "error" if method == "exception" else method
        if values.get("exc_info") is True:
            values["exc_info"] = sys.exc_info()[1]
        # The jobs of `waggle router` have loggers without names.
        self.emit(level, getattr(logger, "name", "waggle"), message, values)
        raise structlog.DropEvent

    def _dropped(self, count: int) -> str:
        values = {"event_name": "logging.dropped", "lines": count}
        event = lines.event(
            when=time.time(),
            level="warning",
            logger="waggle.logging",
            message="log lines dropped: the reader is too slow",
            values=values,
        )
        return self._render(event)


class _Named:
    """The logger that structlog wraps: a name. The processor has written the line already."""

    def __init__(self, name: str = "waggle") -> None:
        self.name = name


class _Handler(logging.Handler):
    """Lines of libraries that use the standard library's logging."""

    def __init__(self, logs: Logs) -> None:
        super().__init__()
        self._logs = logs

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a record on in our form."""
        error = record.exc_info[1] if record.exc_info else None
        values = {"exc_info": error} if error is not None else {}
        try:
            message = record.getMessage()
        except (TypeError, ValueError):
            message = str(record.msg)
        self._logs.emit(record.levelname.lower(), record.name, message, values)


def level_resource(logs: Logs) -> ApiResource:
    """Return the path that reads the level."""
    return log_resource(logs.levels)


def level_action(logs: Logs) -> ApiAction:
    """Return the path that sets the level."""
    return log_action(logs.levels)


WIRING = Wiring(
    provides=(Logs,),
    invokes=(Logs,),
    contributes=(level_resource, level_action),
)
