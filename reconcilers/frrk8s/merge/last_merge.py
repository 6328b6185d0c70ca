"""The last merge of a node, from which the next one takes over what has not changed. Pure."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, TypeVar

from reconcilers.frrk8s.claim_table import ClaimTable
from reconcilers.frrk8s.merge.merged import MergedRouter
from reconcilers.frrk8s.unit import Compiled, RouterPart, Unit
from reconcilers.model import ObjectRef

T = TypeVar("T")

FEW: Final = 8
"""Changed units up to which routers are taken over from the last merge."""


class LastMerge:
    """The claims of the last merge of a node, and the last routers with what they are made of."""

    def __init__(self) -> None:
        self.claims = ClaimTable()
        self.units: list[Unit] = []
        self.compiled: list[Compiled] = []
        self.rules: list[Any] = []
        self.routers: tuple[MergedRouter, ...] = ()

    def with_other_prefixes(
        self,
        units: Sequence[Unit],
        compiled: Sequence[Compiled],
        rules: Sequence[Any],
        alone: AbstractSet[ObjectRef],
    ) -> tuple[MergedRouter, ...] | None:
        """Return the routers where a few units have other prefixes and routes, and nothing else.

        None otherwise: all are united again. ``alone`` are the objects with a single unit.
        """
        if len(compiled) != len(self.compiled) or not identical(rules, self.rules):
            return None
        changed = [i for i, one in enumerate(compiled) if one is not self.compiled[i]]
        if len(changed) > FEW:
            return None
        routers = {router.vrf: router for router in self.routers}
        for i in changed:
            unit, before = units[i], self.units[i]
            if unit.ref not in alone or unit.ref != before.ref or unit.age != before.age:
                return None
            if not _same_settings(self.compiled[i], compiled[i]):
                return None
            for router in compiled[i].routers:
                routers[router.vrf] = _with_part(routers[router.vrf], unit.ref, router)
        return tuple(routers.values())


def _same_settings(one: Compiled, other: Compiled) -> bool:
    """True if two compilations of a unit differ in prefixes and routes alone."""

    def settings(compiled: Compiled) -> tuple[Any, ...]:
        routers = [
            (
                *(router.vrf, router.path, router.asn, router.router_id, router.imports),
                [(one.key, one.path, id(one.settings), not one.routes) for one in router.neighbors],
            )
            for router in compiled.routers
        ]
        return compiled.profiles, routers

    if settings(one) != settings(other):
        return False
    vrfs = {router.vrf for router in other.routers}
    keys = {part.key for router in other.routers for part in router.neighbors}
    # No router or neighbour is there twice.
    return len(vrfs) == len(other.routers) and len(keys) == sum(
        len(router.neighbors) for router in other.routers
    )


def _with_part(merged: MergedRouter, ref: ObjectRef, part: RouterPart) -> MergedRouter:
    """Return a router with other prefixes and routes of one object."""
    neighbors = {neighbor.key: neighbor for neighbor in merged.neighbors}
    for one in part.neighbors:
        neighbor = neighbors[one.key]
        exports = _exchanged(neighbor.exports, ref, one.routes)
        neighbors[one.key] = neighbor._replace(exports=exports)
    return merged._replace(
        neighbors=tuple(neighbors.values()), given=_exchanged(merged.given, ref, part.prefixes)
    )


def _exchanged(
    of_objects: Sequence[tuple[ObjectRef, T]], ref: ObjectRef, value: T
) -> tuple[tuple[ObjectRef, T], ...]:
    """Return values of objects with that of one object exchanged, if it has one."""
    return tuple([(ref, value) if one[0] == ref else one for one in of_objects])


def identical(values: Sequence[Any], others: Sequence[Any]) -> bool:
    """Return whether both have the same objects in the same order."""
    return len(values) == len(others) and all(map(operator.is_, values, others))
