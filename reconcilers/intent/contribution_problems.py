"""Problems of single objects that contribute to one dialect's route sets.

An object fails as a whole, or some of its addresses are not advertised. A change of one object leaves
the problems of others unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from msgspec.structs import replace

from reconcilers.intent.object_problems import ObjectProblems, ProblemSource
from reconcilers.intent.rejections import Rejections
from reconcilers.model import Problem
from statedb import Key

SourceKey = tuple[str, Key]
"""An object: the name of its route source, and its key there."""


class ContributionProblems:
    """The failures and the rejected addresses of objects, by route set."""

    def __init__(self, dialect: str, node: str, problems: ObjectProblems) -> None:
        """``problems`` takes the problems of each object."""
        self._dialect = dialect
        self._node = node
        self._problems = problems
        self._rejections: dict[SourceKey, dict[str, Rejections]] = {}
        """By object and route set."""
        self._failures: dict[SourceKey, tuple[Problem, AbstractSet[str]]] = {}
        """Objects that failed to contribute, with the sets to which they did not."""
        self._noted: dict[SourceKey, ProblemSource] = {}
        """Objects with problems."""
        self.changed = False
        """True if problems have changed since the last time that they were written."""

    def failed(self, object_: SourceKey, problem: Problem, names: AbstractSet[str]) -> None:
        """Note the problem of an object that failed to contribute to some route sets."""
        before = self._failures.get(object_)
        self._failures[object_] = (problem, names if before is None else before[1] | names)
        self._note(object_)

    def contributed(
        self, object_: SourceKey, names: AbstractSet[str], rejected: Mapping[str, Rejections]
    ) -> None:
        """Note that an object contributed to route sets, and the rejected addresses of each."""
        former = self._rejections.get(object_, {})
        if not rejected and not former and object_ not in self._failures:
            return
        merged = {name: reasons for name, reasons in former.items() if name not in names}
        merged.update(rejected)
        if merged:
            self._rejections[object_] = merged
        else:
            self._rejections.pop(object_, None)
        failure = self._failures.pop(object_, None)
        if failure is not None and failure[1] - names:
            self._failures[object_] = (failure[0], failure[1] - names)
        if merged != former or failure is not None:
            self._note(object_)

    def drop(self, names: AbstractSet[str]) -> None:
        """Forget the problems of contributions to route sets that are gone."""
        for object_ in [*self._rejections, *self._failures]:
            self.contributed(object_, names, {})

    def _note(self, object_: SourceKey) -> None:
        """Write the problems of one object."""
        failure = self._failures.get(object_)
        of_sets = tuple(self._rejections.get(object_, {}).values())
        problems = [] if failure is None else [failure[0]]
        problems += self._of_rejections(of_sets) if of_sets else ()
        source = None
        if problems:
            ref = of_sets[0].object if of_sets else problems[0].objects[0]
            source = ProblemSource(ref, self._dialect, *object_)
        former = self._noted.pop(object_, None)
        if former is not None and former != source:
            self.changed |= self._problems.put(former, ())
        if source is not None:
            self._noted[object_] = source
            self.changed |= self._problems.put(source, problems)

    def _of_rejections(self, of_sets: tuple[Rejections, ...]) -> Iterable[Problem]:
        united = of_sets[0].united(of_sets[1:])
        yield from united.problems
        of_addresses = united.problem(self._node)
        if of_addresses is not None:
            yield replace(of_addresses, dialect=self._dialect)
