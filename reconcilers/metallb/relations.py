"""The references and conflicts among MetalLB's objects, for the isolation of all. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Final

from msgspec.structs import replace

from reconcilers.age import Age, age_by_name
from reconcilers.dialect import Reasons
from reconcilers.metallb.bit_sets import members
from reconcilers.metallb.conflicts import PREFERENCE, ObjectsBeside, ValidObjects, conflicts
from reconcilers.metallb.findings import Secrets, findings
from reconcilers.metallb.objects import Objects
from reconcilers.model import ObjectRef, Problem
from resources.metallb import kinds
from resources.metallb.bfdprofile import BFDProfile
from resources.metallb.bgpadvertisement import BGPAdvertisement
from resources.metallb.bgppeer import BGPPeer
from resources.metallb.community import Community, is_literal
from resources.metallb.objects import MetalLBObject

COMPARED: Final = 8
"""Objects with which an object that is not in effect is compared in detail."""


class MetalLBRelations:
    """The references and conflicts among MetalLB's objects of a node, for the isolation of all."""

    def __init__(
        self, objects: Objects, problems: Iterable[Problem], secrets: Secrets, namespace: str
    ) -> None:
        """``found`` are the findings about all objects."""
        self._secrets = secrets
        self._namespace = namespace
        self._alone: dict[ObjectRef, list[Problem]] = defaultdict(list)
        for problem in (*problems, *_with_itself(objects)):
            if len(problem.objects) == 1 and problem not in self._alone[problem.objects[0]]:
                self._alone[problem.objects[0]].append(problem)
        self.wrong: frozenset[ObjectRef] = frozenset(r for r, own in self._alone.items() if own)
        self._valid = ValidObjects(objects, self.wrong)
        self.ages: Mapping[ObjectRef, Age] = {
            ref: age_by_name(row.metadata.creation_timestamp, ref) for ref, row in objects.refs()
        }
        self.references: dict[ObjectRef, frozenset[Hashable]] = {}
        self.referents: dict[ObjectRef, frozenset[Hashable]] = {}
        for ref, row in self._valid.rows.items():
            if references := frozenset(_references(row, self._valid.names)):
                self.references[ref] = references
            if referents := frozenset(_referents(row)):
                self.referents[ref] = referents

    def beside(self, environment: AbstractSet[ObjectRef]) -> ObjectsBeside:
        """Return an empty set of objects; ``environment`` has the valid pools."""
        return ObjectsBeside(self._valid, environment)

    def reasons(self, accepted: AbstractSet[ObjectRef]) -> Iterator[tuple[ObjectRef, Reasons]]:
        """Yield why objects are not in effect, as far as MetalLB's objects are the reason."""
        beside = self.beside(accepted)
        for ref in accepted:
            beside.accept(ref)
        providing: dict[Hashable, ObjectRef] = {
            referent: ref for ref in accepted for referent in self.referents.get(ref, ())
        }
        pools = self._valid.bits(accepted, kinds.IP_ADDRESS_POOL)
        for ref in self.ages:
            if ref in self.wrong:
                yield ref, Reasons(self._alone[ref])
            elif ref not in accepted:
                yield ref, self._of(ref, beside, providing, pools)

    def _of(
        self,
        ref: ObjectRef,
        beside: ObjectsBeside,
        providing: Mapping[Hashable, ObjectRef],
        pools: int,
    ) -> Reasons:
        others = set(beside.against(ref))
        needed = {providing[name] for name in self.references.get(ref, ()) if name in providing}
        needed |= self._pools(ref, others, pools)
        older = {other for other in others if self.ages[other] < self.ages[ref]}
        problems = self._about(ref, needed, older)
        return Reasons(problems, [] if problems else self._about(ref, needed, others))

    def _pools(self, ref: ObjectRef, others: AbstractSet[ObjectRef], pools: int) -> set[ObjectRef]:
        """Return pools in which an advertisement may disagree with others: some of very many."""
        valid = self._valid
        if ref.kind != kinds.BGP_ADVERTISEMENT.name:
            return set()
        own = valid.selected[valid.number_of[ref]] & pools
        beside_pools = set(
            islice(members(own & ~valid.bits(others, kinds.IP_ADDRESS_POOL)), COMPARED)
        )
        against = (other for other in sorted(others) if other.kind == kinds.BGP_ADVERTISEMENT.name)
        for other in islice(against, COMPARED):
            beside_pools.update(islice(members(own & valid.selected[valid.number_of[other]]), 1))
        return {valid.pools[number] for number in beside_pools}

    def _about(
        self, ref: ObjectRef, needed: AbstractSet[ObjectRef], against: AbstractSet[ObjectRef]
    ) -> list[Problem]:
        """Return the findings about an object among some others; of very many with their number."""
        rows = self._valid.rows
        others = {*needed, *sorted(against)[:COMPARED]}
        objects = Objects.of((each, rows[each]) for each in {ref, *others})
        about = findings(objects, self._secrets, self._namespace)
        if ref.kind == kinds.IP_ADDRESS_POOL.name:
            # Two preferences concern advertisements, which are accepted here; the pool is not.
            about = [
                replace(problem, objects=tuple(sorted((*problem.objects, ref))))
                if problem.field == PREFERENCE
                else problem
                for problem in about
            ]
        firsts: dict[str, Problem] = {}
        more = max(0, len(against) - COMPARED)
        for problem in about:
            if ref in problem.objects and firsts.setdefault(problem.field, problem) is not problem:
                more += 1
        own = list(firsts.values())
        if own and more:
            own[0] = replace(own[0], message=f"{own[0].message}; and {more} more")
        return own


def _with_itself(objects: Objects) -> Iterator[Problem]:
    """Yield the findings about each Community alone; among others it may be one of several."""
    for row in objects.communities:
        problems = conflicts(Objects(communities=(row,)))
        yield from (problem for problem in problems if problem is not None)


def _references(row: MetalLBObject, names: Mapping[str, str]) -> Iterator[Hashable]:
    if isinstance(row, BGPAdvertisement):
        for text in row.spec.communities:
            if text in names and not is_literal(text):
                yield "alias", text
    elif isinstance(row, BGPPeer) and row.spec.bfd_profile:
        yield "profile", row.spec.bfd_profile


def _referents(row: MetalLBObject) -> Iterator[Hashable]:
    if isinstance(row, Community):
        for alias in row.spec.communities:
            yield "alias", alias.name
    elif isinstance(row, BFDProfile):
        yield "profile", row.metadata.name
