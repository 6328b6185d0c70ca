"""The objects that isolation accepts or rejects, each with all of its units. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

from reconcilers.age import Age
from reconcilers.frrk8s.field_values import Prefix, vrf_name
from reconcilers.frrk8s.isolation.joint_relations import JointRelations
from reconcilers.frrk8s.one_object import imported_elsewhere, routed_vrfs
from reconcilers.frrk8s.unit_parts import Unit
from reconcilers.model import ObjectRef


class IsolatedObject(NamedTuple):
    """An object with its units."""

    ref: ObjectRef
    age: Age
    units: Sequence[Unit]
    imported: frozenset[str]
    """VRFs that it has from other objects, or from another unit of its own."""
    routed: Mapping[str, frozenset[Prefix]]
    """The prefixes of its routers of VRFs that any object imports."""
    references: frozenset[Hashable]
    referents: frozenset[Hashable]

    @property
    def wanted(self) -> Iterable[Hashable]:
        """The VRFs and referents that other objects have to provide in isolation."""
        return (*self.imported, *self.references)

    @property
    def provided(self) -> Iterable[Hashable]:
        """The VRFs and referents that the object provides to others in isolation."""
        return (*self.routed, *self.referents)


def isolated_objects(units: Iterable[Unit], relations: JointRelations) -> list[IsolatedObject]:
    """Group units by their object for isolation, the oldest first."""
    of_object: dict[ObjectRef, list[Unit]] = {ref: [] for ref in relations.ages}
    ages: dict[ObjectRef, Age] = dict(relations.ages)
    for unit in sorted(units, key=lambda unit: unit.age):
        of_object.setdefault(unit.ref, []).append(unit)
        ages.setdefault(unit.ref, unit.age)
    imported = {
        ref: frozenset[str]().union(*map(imported_elsewhere, own)) for ref, own in of_object.items()
    }
    wanted = frozenset[str]().union(*imported.values())
    nothing = frozenset[Hashable]()
    return [
        IsolatedObject(
            ref,
            ages[ref],
            own,
            imported[ref],
            _routed(own, wanted),
            relations.references.get(ref, nothing),
            relations.referents.get(ref, nothing),
        )
        for ref, own in sorted(of_object.items(), key=lambda item: ages[item[0]])
    ]


def _routed(units: Sequence[Unit], wanted: frozenset[str]) -> Mapping[str, frozenset[Prefix]]:
    """Return the prefixes of the routers of some VRFs."""
    routed: dict[str, frozenset[Prefix]] = {}
    for unit in units if wanted else ():
        if any(vrf_name(router.vrf) in wanted for router in unit.row.spec.bgp.routers):
            for vrf, prefixes in routed_vrfs(unit).items():
                if vrf in wanted:
                    routed[vrf] = routed.get(vrf, frozenset()) | prefixes
    return routed
