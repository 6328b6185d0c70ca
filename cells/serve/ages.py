"""The time of the last change of each advertised route, for the AGE column.

The speaker keeps nothing per route and peer, so the time is that of the intent's row. The table has a
revision of each row; here are only the revisions of commits with their times, so that a commit costs
the same whatever the number of its routes, and a route costs nothing.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable
from typing import Final

from reconcilers.model import Route
from speaker.nlri import Family
from statedb import Database, Table

MIN_COMMITS: Final = 10_000
"""Commits above which commits without a present row are forgotten. With one for each second,
hours of changes."""


class RouteAges:
    """Follows the commits of the routes table."""

    def __init__(
        self, database: Database, routes: Table[Route], clock: Callable[[], float] = time.time
    ) -> None:
        self._database = database
        self._routes = routes
        self._clock = clock
        self._revisions: list[int] = []
        """The table's revision after each commit, or after the last one of a second."""
        self._times: list[float] = []
        """Of the commits, in Unix seconds."""
        self._forget_above = MIN_COMMITS
        routes.observable.subscribe(self._note)
        self._note(routes.revision(database.snapshot()))

    def _note(self, revision: int) -> None:
        now = self._clock()
        if self._times and int(self._times[-1]) == int(now):
            self._revisions[-1] = revision
            return
        self._revisions.append(revision)
        self._times.append(now)
        if len(self._times) > self._forget_above:
            self._forget()

    def _forget(self) -> None:
        """Forget the commits of which no row is left; the cost is shared by as many commits as rows."""
        revisions = self._routes.revisions(self._database.snapshot())
        kept = sorted({bisect_left(self._revisions, revision) for revision in revisions})
        self._revisions = [self._revisions[i] for i in kept]
        self._times = [self._times[i] for i in kept]
        self._forget_above = max(MIN_COMMITS, 2 * len(kept))

    def since(self, route_set: str, family: Family, nlri: bytes) -> float | None:
        """Return when a route changed last, as Unix time to the second; None without the route."""
        snapshot = self._database.snapshot()
        revision = self._routes.row_revision(snapshot, (route_set, family, nlri))
        if revision is None:
            return None
        return self._times[bisect_left(self._revisions, revision)]
