"""Looks for the wanted routes of forwarding classes that lead to other next hops, in slices. Pure.

No list of the routes of a class is kept, which would cost more than the search: a table has many
routes, and classes change only with a peer or the host. One search follows the other: classes that are
added during a search have the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import islice
from typing import Final, TypeAlias, final

from reconcilers.kernel.forwarding import ForwardingClass
from reconcilers.kernel.instance_routes import InstanceRoutes
from speaker.nlri import Family

LOOKED_AT: Final = 5000
"""Prefixes of a slice that looks for the routes of classes: about two milliseconds."""
Note: TypeAlias = Callable[[InstanceRoutes, Family, Collection[bytes]], None]


@final
class RoutesOfClasses:
    """Classes whose wanted routes are looked for, and classes whose routes will be."""

    def __init__(self, note: Note) -> None:
        """``note`` is given the prefixes that are found."""
        self._note = note
        self._added: dict[tuple[InstanceRoutes, Family], set[ForwardingClass]] = {}
        """Classes of the next search."""
        self._present: dict[tuple[InstanceRoutes, Family], set[ForwardingClass]] = {}
        """Classes of the present search, whose routes are not all found."""
        self._rest: Iterator[bytes] = iter(())
        """The prefixes of the first of them that the search still comes to."""

    def add(self, routes: InstanceRoutes, some: Iterable[ForwardingClass]) -> None:
        """Look for the wanted routes of some classes of an instance in the next search."""
        for each in some:
            self._added.setdefault((routes, each.family), set()).add(each)

    def begin(self) -> None:
        """Begin the next search for wanted routes, unless one is under way."""
        if not self._present:
            self._present, self._added = self._added, {}
            self._open_next()

    def _open_next(self) -> None:
        for routes, family in self._present:
            self._rest = iter(routes.prefixes(family))
            break

    def step(self) -> None:
        """Do a slice of the search for wanted routes that is under way."""
        for key, some in self._present.items():
            routes, family = key
            piece = list(islice(self._rest, LOOKED_AT))
            self._note(routes, family, routes.having(family, some, piece))
            if len(piece) < LOOKED_AT:
                del self._present[key]
                self._open_next()
            break

    @property
    def searching(self) -> bool:
        """Whether a search for wanted routes is under way."""
        return bool(self._present)

    def __bool__(self) -> bool:
        """Whether some wanted routes are not found yet."""
        return bool(self._present or self._added)

    def without(
        self, routes: InstanceRoutes, family: Family, prefixes: Collection[bytes]
    ) -> Collection[bytes]:
        """Return prefixes without wanted routes that are found, or will be, before the search ends."""
        for classes in (self._present, self._added):
            if some := classes.get((routes, family)):
                later = set(routes.having(family, some, prefixes))
                prefixes = [nlri for nlri in prefixes if nlri not in later]
        return prefixes
