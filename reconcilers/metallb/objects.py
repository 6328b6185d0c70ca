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


def finding(
    refs: Iterable[ObjectRef], field: str, message: str, category: ProblemCategory
) -> Problem:
    """Return a problem of objects, which are sorted; the field is in the first one."""
    return Problem(tuple(sorted(set(refs))), field, message, category=category)


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
