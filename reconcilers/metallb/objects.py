"""MetalLB's objects of one node, and their problems. Pure data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from reconcilers.model import ObjectRef, Problem, ProblemCategory, ref_to
from resources.kind import Kind
from resources.metallb import kinds
from resources.metallb.bfdprofile import BFDProfile
from resources.metallb.bgpadvertisement import BGPAdvertisement
from resources.metallb.bgppeer import BGPPeer
from resources.metallb.community import Community
from resources.metallb.ipaddresspool import IPAddressPool
from resources.metallb.objects import MetalLBObject


class Finding(NamedTuple):
    """A problem of one object, or a conflict between several."""

    objects: tuple[ObjectRef, ...]
    """All objects that it concerns, sorted."""
    field: str
    """A path in the first of the objects."""
    message: str
    category: ProblemCategory

    @property
    def problem(self) -> Problem:
        """The finding as a problem."""
        return Problem(self.objects, self.field, self.message, category=self.category)


def finding(
    refs: Iterable[ObjectRef], field: str, message: str, category: ProblemCategory
) -> Finding:
    """Return a finding with its objects sorted, each once."""
    return Finding(tuple(sorted(set(refs))), field, message, category)


class Objects(NamedTuple):
    """The objects that concern one node, each kind sorted by name."""

    peers: tuple[BGPPeer, ...] = ()
    advertisements: tuple[BGPAdvertisement, ...] = ()
    pools: tuple[IPAddressPool, ...] = ()
    communities: tuple[Community, ...] = ()
    profiles: tuple[BFDProfile, ...] = ()

    @classmethod
    def of(cls, rows: Iterable[tuple[ObjectRef, MetalLBObject]]) -> Objects:
        """Return objects by kind; they are given with their references."""
        found: dict[str, list[MetalLBObject]] = {kind.name: [] for kind in kinds.CONFIGURATION}
        for ref, row in sorted(rows, key=lambda item: item[0]):
            found[ref.kind].append(row)
        given: Any = (tuple(of_kind) for of_kind in found.values())
        return cls(*given)

    def of_kind(self) -> Iterator[tuple[Kind[Any], tuple[MetalLBObject, ...]]]:
        """Yield each kind with its rows."""
        yield from zip(kinds.CONFIGURATION, self, strict=True)

    def refs(self) -> Iterator[tuple[ObjectRef, MetalLBObject]]:
        """Yield the reference and the row of each object."""
        for kind, rows in self.of_kind():
            for row in rows:
                yield ref_to(kind, row), row

    def only(self, refs: frozenset[ObjectRef]) -> Objects:
        """Return those that are among the references."""
        kept: Any = (
            tuple(row for row in rows if ref_to(kind, row) in refs) for kind, rows in self.of_kind()
        )
        return Objects(*kept)
