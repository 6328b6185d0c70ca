"""MetalLB's objects of one node, and their problems. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple, TypeVar

from reconcilers.model import ObjectRef, Problem, ProblemCategory, ref_to
from resources.enumeration import counted
from resources.kind import Kind
from resources.metallb import kinds
from resources.metallb.bfdprofile import BFDProfile
from resources.metallb.bgpadvertisement import BGPAdvertisement
from resources.metallb.bgppeer import BGPPeer
from resources.metallb.community import Community
from resources.metallb.ipaddresspool import IPAddressPool
from resources.metallb.objects import MetalLBObject

T = TypeVar("T")

MAX_LISTED_OBJECTS: Final = 8
"""Objects that a message names; of the others it has the number."""


def problem_of_objects(
    refs: Iterable[ObjectRef], field: str, message: str, category: ProblemCategory
) -> Problem:
    """Return a problem of MetalLB's objects, which are sorted; the field is in the first one."""
    return Problem(tuple(sorted(set(refs))), field, message, category=category)


def listed_values(values: Mapping[ObjectRef, object]) -> str:
    """Return the text of the values in a problem, each with the objects that have it, at most eight."""
    objects: dict[object, list[str]] = {}
    for ref, value in itertools.islice(sorted(values.items()), MAX_LISTED_OBJECTS):
        objects.setdefault(value, []).append(str(ref))
    more = len(values) - MAX_LISTED_OBJECTS
    parts = [f"{value} in {', '.join(refs)}" for value, refs in objects.items()]
    return "; ".join(parts) + (f"; and {counted(more, 'more object')}" if more > 0 else "")


def others_beside(ref: ObjectRef, number: int, *, at_least: bool = False) -> str:
    """Return the text of a problem about others in conflict with an object; empty without any."""
    if number <= 0:
        return ""
    count = f"at least {number}" if at_least else str(number)
    return f"; {ref} is in conflict with {count} more"


def named_other(others: Iterable[T], is_later: Callable[[T], bool]) -> T:
    """Return the object that the text of a problem names: the first that is later, else the first.

    Of objects that are all in conflict, each then names another object.
    """
    ordered: Sequence[T] = list(others)
    return next(filter(is_later, ordered), ordered[0])


class Objects(NamedTuple):
    """The objects that concern one node, each kind sorted by name."""

    peers: tuple[BGPPeer, ...] = ()
    advertisements: tuple[BGPAdvertisement, ...] = ()
    pools: tuple[IPAddressPool, ...] = ()
    communities: tuple[Community, ...] = ()
    profiles: tuple[BFDProfile, ...] = ()

    @classmethod
    def of(cls, rows: Iterable[tuple[ObjectRef, MetalLBObject]]) -> Objects:
        """Return MetalLB's objects of a node by kind; they are given with their references."""
        of_kinds: dict[str, list[MetalLBObject]] = {kind.name: [] for kind in kinds.CONFIGURATION}
        for ref, row in sorted(rows, key=lambda item: item[0]):
            of_kinds[ref.kind].append(row)
        given: Any = (tuple(of_kind) for of_kind in of_kinds.values())
        return cls(*given)

    def of_kind(self) -> Iterator[tuple[Kind[Any], tuple[MetalLBObject, ...]]]:
        """Return an iterator over MetalLB's kinds, each with the node's objects."""
        return zip(kinds.CONFIGURATION, self, strict=True)

    def refs(self) -> Iterator[tuple[ObjectRef, MetalLBObject]]:
        """Yield the reference and the row of each of MetalLB's objects of a node."""
        for kind, rows in self.of_kind():
            for row in rows:
                yield ref_to(kind, row), row

    def without(self, refs: AbstractSet[ObjectRef]) -> Objects:
        """Return all of MetalLB's objects of a node but these."""
        if not refs:
            return self
        kept: Any = (
            tuple(row for row in rows if ref_to(kind, row) not in refs)
            for kind, rows in self.of_kind()
        )
        return Objects(*kept)

    def aliases(self) -> dict[str, str]:
        """Return the values of communities by their names, of MetalLB's Community objects of a node."""
        return {a.name: a.value for row in self.communities for a in row.spec.communities}
