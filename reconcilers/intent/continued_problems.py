"""Problems that go on while an object joins or leaves them. Pure.

A conflict has all of its objects and their number in its text: with each object that comes or goes it
is another row. For a log it is the same problem, which is neither solved nor new.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from itertools import chain, islice
from typing import Final

from reconcilers.model import ObjectRef, Problem

MAX_COMPARED: Final = 16
"""Solved problems that a new one is compared with: objects that join many conflicts at once."""


def without_continued(
    solved: Iterable[Problem], new: Iterable[Problem]
) -> tuple[list[Problem], list[Problem]]:
    """Return the solved and the new problems, without the conflicts that continue.

    A conflict goes on if the objects of one row are all among the objects of the other.
    """
    ended = dict.fromkeys(solved)
    by_object: dict[tuple[Hashable, ObjectRef], list[Problem]] = {}
    for problem in ended:
        for ref in problem.objects if len(problem.objects) > 1 else ():
            by_object.setdefault((_kind(problem), ref), []).append(problem)
    begun = []
    for problem in new:
        former = _former(problem, by_object, ended)
        if former is None:
            begun.append(problem)
        else:
            del ended[former]
    return list(ended), begun


def _former(
    problem: Problem,
    by_object: dict[tuple[Hashable, ObjectRef], list[Problem]],
    ended: dict[Problem, None],
) -> Problem | None:
    if len(problem.objects) < 2 or not by_object:
        return None
    objects = frozenset(problem.objects)
    for candidate in _candidates(problem, by_object):
        others = frozenset(candidate.objects)
        if candidate in ended and (objects <= others or others <= objects):
            return candidate
    return None


def _candidates(
    problem: Problem, by_object: dict[tuple[Hashable, ObjectRef], list[Problem]]
) -> Iterator[Problem]:
    kind = _kind(problem)
    lists = [by_object.get((kind, ref), []) for ref in problem.objects]
    distinct = dict.fromkeys(chain.from_iterable(map(_few, sorted(lists, key=len))))
    return islice(distinct, MAX_COMPARED)


def _few(problems: list[Problem]) -> Iterator[Problem]:
    return islice(problems, MAX_COMPARED)


def _kind(problem: Problem) -> Hashable:
    return problem.dialect, problem.by_operator, problem.category, problem.field
