"""Dialects that fail while another part of the agent goes on: named in health, logged once each."""

from __future__ import annotations

from collections.abc import Mapping

import structlog

from cells.hive import Health


class DialectFailures:
    """The failures of the last run, by dialect."""

    def __init__(
        self, health: Health, log: structlog.stdlib.BoundLogger, message: str, event_name: str
    ) -> None:
        """``message`` and ``event_name`` are fields of the log line."""
        self._health = health
        self._log = log
        self._message = message
        self._event_name = event_name
        self._known: dict[str, str] = {}

    def report(self, failures: Mapping[str, Exception], degraded: str, ok: str) -> None:
        """Set the health, and log an error that the run before did not have."""
        texts = {name: f"{type(error).__name__}: {error}" for name, error in failures.items()}
        for name, text in texts.items():
            if self._known.get(name) != text:
                self._log.error(
                    self._message,
                    event_name=self._event_name,
                    dialect=name,
                    exc_info=failures[name],
                )
        self._known = texts
        if texts:
            named = "; ".join(f"{name}: {text}" for name, text in texts.items())
            self._health.degraded(f"{degraded}: {named}")
        else:
            self._health.ok(ok)
