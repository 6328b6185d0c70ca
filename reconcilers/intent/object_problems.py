"""The problems of single objects, a bounded number of which is listed.

Users of a namespace can make thousands of objects with problems. The first `LISTED_OBJECTS` are listed,
the problems of tenants apart, and the number of the rest.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import Final, NamedTuple

from msgspec.structs import replace

from reconcilers.model import ObjectRef, Problem
from resources.enumeration import counted
from resources.kind import Kinds
from statedb import Key

LISTED_OBJECTS: Final = 100


class ProblemSource(NamedTuple):
    """The source of problems: an object, the dialect, and the route source with its key."""

    object: ObjectRef
    dialect: str
    source: str
    key: Key


class _Listing:
    """Problems by object, in the order of the objects."""

    def __init__(self) -> None:
        self._problems: dict[ProblemSource, tuple[Problem, ...]] = {}
        self._order: list[ProblemSource] = []

    def put(self, source: ProblemSource, problems: tuple[Problem, ...]) -> bool:
        """Exchange the problems of an object; True if they differ."""
        before = self._problems.get(source, ())
        if before == problems:
            return False
        if not before:
            insort(self._order, source)
        if problems:
            self._problems[source] = problems
        else:
            del self._problems[source]
            del self._order[bisect_left(self._order, source)]
        return True

    def rows(self) -> list[Problem]:
        """Return the problems that are listed, and one for all others."""
        listed = [
            problem for source in self._order[:LISTED_OBJECTS] for problem in self._problems[source]
        ]
        hidden = len(self._order) - LISTED_OBJECTS
        if hidden <= 0:
            return listed
        kind = ObjectRef(self._order[LISTED_OBJECTS].object.kind, "", "")
        verb = "has" if hidden == 1 else "have"
        text = f"{counted(hidden, 'more object')} {verb} problems: `waggle explain` shows them"
        return [*listed, Problem((kind,), "", text, count=hidden)]


class ObjectProblems:
    """The problems of all objects, of tenants apart. A change costs no pass over the others."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._of_tenants = _Listing()
        self._of_administrators = _Listing()

    def put(self, source: ProblemSource, problems: Iterable[Problem]) -> bool:
        """Exchange the problems of a single object; True if they differ."""
        present = tuple(problems)
        of_tenants = tuple(problem for problem in present if self.is_of_tenant(problem))
        others = tuple(problem for problem in present if problem not in of_tenants)
        return self._of_tenants.put(source, of_tenants) | self._of_administrators.put(
            source, others
        )

    def is_of_tenant(self, problem: Problem) -> bool:
        """True if an object's problem is one of tenants: they cause it, or wrote the objects."""
        if problem.of_tenant:
            return True
        kinds = (self._kinds.named(ref.kind) for ref in problem.objects)
        return bool(problem.objects) and all(kind is not None and kind.of_tenants for kind in kinds)

    def rows(self) -> list[Problem]:
        """Return the listed problems of single objects, a bounded number."""
        tenants = (replace(problem, of_tenant=True) for problem in self._of_tenants.rows())
        return [*tenants, *self._of_administrators.rows()]
