"""The log of an API server's feeds: one line for one cause, however many kinds have it.

Compares the present state with what was logged last, after it has settled: an outage makes every feed
fail at about the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

import structlog

from resources.enumeration import enumerate_some
from resources.kubernetes import FeedStatus, Phase

SETTLE_SECONDS = 0.5
NAMED_FEEDS = 3
"""Feeds that a line names."""

log = structlog.get_logger("waggle.kubernetes")


class FeedLog:
    """Writes the lines; `run` is its job."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """``clock`` is Unix time."""
        self._clock = clock
        self._changed = asyncio.Event()
        self._statuses: dict[str, FeedStatus] = {}
        self._away_since = 0.0
        self._away_reason = ""
        self._logged_away_since = 0.0
        self._logged: dict[str, tuple[Phase, str]] = {}
        """By feed: the phase that the log has, and the reason."""

    def report(self, statuses: Iterable[FeedStatus], away_since: float, reason: str) -> None:
        """Take the present state; ``away_since`` is 0 while the API server answers."""
        self._statuses = {status.name: status for status in statuses}
        self._away_since, self._away_reason = away_since, reason
        self._changed.set()

    async def run(self) -> None:
        """Write lines until cancelled."""
        while True:
            await self._changed.wait()
            await asyncio.sleep(SETTLE_SECONDS)
            self._changed.clear()
            self.write()

    def write(self) -> None:
        """Write what has changed since the last call."""
        if self._away_since:
            if not self._logged_away_since:
                self._logged_away_since = self._away_since
                log.warning(
                    "the API server cannot be read",
                    event_name="kubernetes.away",
                    reason=self._away_reason,
                )
            return
        if self._logged_away_since:
            log.info(
                "the API server can be read again",
                event_name="kubernetes.back",
                away=round(self._clock() - self._logged_away_since, 1),
            )
            self._logged_away_since = 0.0
        lines: dict[tuple[Phase, str], list[str]] = {}
        for name, status in self._statuses.items():
            state = (status.phase, status.cause or status.message)
            before = self._logged.get(name, (Phase.WAITING, ""))
            if state == before or status.phase is Phase.WAITING:
                continue
            self._logged[name] = state
            if status.phase is not Phase.FOLLOWING:
                lines.setdefault(state, []).append(name)
            elif before[0] is not Phase.WAITING:
                lines.setdefault((status.phase, ""), []).append(name)
        for (phase, reason), feeds in lines.items():
            _write(phase, reason, feeds)


def _write(phase: Phase, reason: str, feeds: Sequence[str]) -> None:
    names = _names(feeds)
    match phase:
        case Phase.FORBIDDEN | Phase.FAILING | Phase.REMOVED:
            log.warning(
                "objects cannot be read",
                event_name="kubernetes.failing",
                feeds=names,
                reason=reason,
            )
        case Phase.HOLDING:
            log.warning(
                "objects are missing from a list",
                event_name="kubernetes.holding",
                feeds=names,
                reason=reason,
            )
        case Phase.MISSING:
            log.info(
                "the API server does not have the kind",
                event_name="kubernetes.missing",
                feeds=names,
                reason=reason,
            )
        case _:
            log.info("objects are read", event_name="kubernetes.following", feeds=names)


def _names(feeds: Sequence[str]) -> str:
    return enumerate_some(feeds, NAMED_FEEDS)
