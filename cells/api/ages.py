"""The time of the last change of each advertised route, for the AGE column.

The speaker keeps nothing per route and peer, so the time is that of the intent's row, recorded after
its commit. The cost is one number per route, and the changed routes per commit.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from reconcilers.model import Route
from speaker.nlri import Family
from statedb import Database, Table


class RouteAges:
    """Follows the routes table."""

    def __init__(
        self, database: Database, routes: Table[Route], clock: Callable[[], float] = time.time
    ) -> None:
        self._database = database
        self._changes = routes.changes(database)
        self._clock = clock
        self._since: dict[tuple[str, Family, bytes], float] = {}
        routes.observable.subscribe(lambda _: self._note())
        self._note()

    def _note(self) -> None:
        now = self._clock()
        for change in self._changes.next(self._database.snapshot()):
            row = change.row
            key = (row.route_set, row.family, row.nlri)
            if change.deleted:
                self._since.pop(key, None)
            else:
                self._since[key] = now

    def since(self, route_set: str, family: Family, nlri: bytes) -> float | None:
        """Return when a route changed last, as Unix time; None without the route."""
        return self._since.get((route_set, family, nlri))
