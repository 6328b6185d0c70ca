"""Isolation of objects that do not go together: ``--on-conflict=isolate``. Pure.

Objects are taken in from the oldest to the youngest. One that is invalid or unresolved, or that differs
from an older one, is left out as a whole.

A reference to a VRF counts where any object of the node has a router of it, also a younger one: objects
may import each other's VRFs. What refers to an object that is left out is left out as well; what it had
displaced is tried again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from reconcilers.frrk8s.claims import (
    Claim,
    Resolve,
    Subject,
    conflicts,
    own_problems,
    password_claims,
)
from reconcilers.frrk8s.single import imported_elsewhere, routed_vrfs
from reconcilers.frrk8s.unit import Compiled, Unit, VrfPrefixes
from reconcilers.frrk8s.values import Prefix, shown_vrf, vrf_name
from reconcilers.model import ObjectRef, Problem

Compile: TypeAlias = Callable[[Unit, VrfPrefixes], Compiled]
"""Compiles a unit with the prefixes of the VRFs of others."""
Claims: TypeAlias = Sequence[tuple[Subject, Claim]]
MAX_LISTED: Final = 3
"""Objects of a VRF that a message names."""


class Isolated(NamedTuple):
    """The units that are taken in, the oldest first, and why the others are left out."""

    taken: list[Unit]
    problems: list[Problem]


def isolated(units: Iterable[Unit], compile_unit: Compile, resolve: Resolve) -> Isolated:
    """Take units in from the oldest to the youngest, those of one object together."""
    return _Isolation(units, compile_unit, resolve).result()


class _Object(NamedTuple):
    """An object with its units."""

    ref: ObjectRef
    units: Sequence[Unit]
    imported: frozenset[str]
    """VRFs that it has from other objects, or from another unit of its own."""
    routed: Mapping[str, frozenset[Prefix]]
    """The prefixes of its routers of VRFs that any object imports."""


class _Routers:
    """The routers of imported VRFs of a changing set of objects."""

    def __init__(self, objects: Iterable[_Object]) -> None:
        self._prefixes: dict[str, Counter[Prefix]] = {}
        self._count: Counter[str] = Counter()
        self._known: dict[str, frozenset[Prefix]] = {}
        for one in objects:
            for vrf, prefixes in one.routed.items():
                self._count[vrf] += 1
                self._prefixes.setdefault(vrf, Counter()).update(prefixes)

    def remove(self, one: _Object) -> None:
        for vrf, prefixes in one.routed.items():
            self._count[vrf] -= 1
            self._prefixes[vrf].subtract(prefixes)
            self._known.pop(vrf, None)

    def of(self, one: _Object) -> dict[str, frozenset[Prefix]]:
        """Return the prefixes of the VRFs that an object imports; without those that have no router."""
        return {vrf: self._of(vrf) for vrf in one.imported if self._count[vrf]}

    def _of(self, vrf: str) -> frozenset[Prefix]:
        found = self._known.get(vrf)
        if found is None:
            counts = self._prefixes[vrf].items()
            found = self._known[vrf] = frozenset(one for one, count in counts if count > 0)
        return found


class _Isolation:
    def __init__(self, units: Iterable[Unit], compile_unit: Compile, resolve: Resolve) -> None:
        self._compile = compile_unit
        self._resolve = resolve
        self._objects = _objects(units)
        everything = _Routers(self._objects)
        self._wrong: dict[ObjectRef, list[Problem]] = {}
        """The problems of objects that are left out whatever the others are."""
        self._claims: dict[ObjectRef, Claims] = {}
        for one in self._objects:
            given = self._compiled(one, everything)
            wrong = [p for unit, found in given for p in own_problems(unit, found, resolve)]
            if wrong:
                self._wrong[one.ref] = wrong
            else:
                self._claims[one.ref] = [pair for each in given for pair in self._of_unit(*each)]

    def _of_unit(self, unit: Unit, compiled: Compiled) -> Iterator[tuple[Subject, Claim]]:
        """Iterate over the claims of a unit."""
        yield from compiled.claims
        yield from password_claims(unit, compiled, self._resolve)

    def result(self) -> Isolated:
        """Take in objects until none of the others goes with those that are taken."""
        taken: dict[ObjectRef, _Object] = {}
        table: dict[Subject, list[Claim]] = {}
        waiting = [one for one in self._objects if one.ref not in self._wrong]
        while found := self._together(waiting, taken.values()):
            taken |= found
            for ref in found:
                for subject, claim in self._claims[ref]:
                    table.setdefault(subject, []).append(claim)
            values = {subject: claims[0].value for subject, claims in table.items()}
            rest = (one for one in waiting if one.ref not in taken)
            waiting = [one for one in rest if not _contradicts(self._claims[one.ref], values)]
        left_out = {one.ref: one for one in self._objects if one.ref not in taken}
        problems = [p for one in left_out.values() for p in self._problems(one, table, left_out)]
        return Isolated(
            [unit for one in self._objects if one.ref in taken for unit in one.units], problems
        )

    def _together(
        self, waiting: Iterable[_Object], taken: Iterable[_Object]
    ) -> dict[ObjectRef, _Object]:
        """Return the objects that go together, with each other and with those that are taken."""
        present = {one.ref: one for one in waiting}
        base = list(taken)
        while True:
            self._drop_unresolved(present, base)
            accepted = self._agreeing(present.values())
            kept = dict(accepted)
            self._drop_unresolved(kept, base)
            if len(kept) == len(accepted):
                return accepted
            for ref in accepted.keys() - kept.keys():
                del present[ref]

    def _agreeing(self, objects: Iterable[_Object]) -> dict[ObjectRef, _Object]:
        """Return the objects without those that differ from an earlier one."""
        values: dict[Subject, Any] = {}
        found: dict[ObjectRef, _Object] = {}
        for one in objects:
            claims = self._claims[one.ref]
            if not _contradicts(claims, values):
                found[one.ref] = one
                values.update((subject, claim.value) for subject, claim in claims)
        return found

    def _drop_unresolved(self, objects: dict[ObjectRef, _Object], taken: Iterable[_Object]) -> None:
        """Remove the objects with references to VRFs that neither they nor the others resolve."""
        importers: dict[str, list[_Object]] = {}
        for one in objects.values():
            for vrf in one.imported:
                importers.setdefault(vrf, []).append(one)
        if not importers:
            return
        routers = _Routers([*taken, *objects.values()])
        suspects = {one.ref: one for of_vrf in importers.values() for one in of_vrf}
        while suspects:
            dropped = [one for one in suspects.values() if not self._is_resolved(one, routers)]
            for one in dropped:
                del objects[one.ref]
                routers.remove(one)
            lost = {vrf for one in dropped for vrf in one.routed}
            suspects = {
                one.ref: one for vrf in lost for one in importers.get(vrf, ()) if one.ref in objects
            }

    def _is_resolved(self, one: _Object, routers: _Routers) -> bool:
        return not any(found.errors or found.missing for _, found in self._compiled(one, routers))

    def _compiled(self, one: _Object, routers: _Routers) -> list[tuple[Unit, Compiled]]:
        elsewhere = routers.of(one)
        return [(unit, self._compile(unit, elsewhere)) for unit in one.units]

    # Problems

    def _problems(
        self,
        one: _Object,
        table: Mapping[Subject, Sequence[Claim]],
        left_out: Mapping[ObjectRef, _Object],
    ) -> Iterable[Problem]:
        """Return why an object is left out."""
        wrong = self._wrong.get(one.ref)
        if wrong is not None:
            return wrong
        with_older, with_all = _disagreements(self._claims[one.ref], table)
        # An object that differs from younger ones alone had to wait for a VRF.
        return with_older or [*_left_out_vrfs(one, left_out), *with_all]


def _objects(units: Iterable[Unit]) -> list[_Object]:
    """Group units by their object, the oldest first."""
    found: dict[ObjectRef, list[Unit]] = {}
    for unit in sorted(units, key=lambda unit: unit.age):
        found.setdefault(unit.ref, []).append(unit)
    imported = {
        ref: frozenset[str]().union(*map(imported_elsewhere, of_object))
        for ref, of_object in found.items()
    }
    wanted = frozenset[str]().union(*imported.values())
    return [
        _Object(ref, of_object, imported[ref], _routed(of_object, wanted))
        for ref, of_object in found.items()
    ]


def _routed(units: Sequence[Unit], wanted: frozenset[str]) -> Mapping[str, frozenset[Prefix]]:
    """Return the prefixes of the routers of some VRFs."""
    found: dict[str, frozenset[Prefix]] = {}
    for unit in units if wanted else ():
        if any(vrf_name(router.vrf) in wanted for router in unit.row.spec.bgp.routers):
            for vrf, prefixes in routed_vrfs(unit).items():
                if vrf in wanted:
                    found[vrf] = found.get(vrf, frozenset()) | prefixes
    return found


def _contradicts(claims: Claims, taken: Mapping[Subject, Any]) -> bool:
    """True if claims differ from each other, or from the values that are taken."""
    own: dict[Subject, Any] = {}
    for subject, claim in claims:
        if own.setdefault(subject, claim.value) != claim.value:
            return True
        if subject in taken and taken[subject] != claim.value:
            return True
    return False


def _disagreements(
    claims: Claims, table: Mapping[Subject, Sequence[Claim]]
) -> tuple[list[Problem], list[Problem]]:
    """Return the conflicts of an object with itself and older ones that are taken, and with all."""
    own: dict[Subject, list[Claim]] = {}
    for subject, claim in claims:
        own.setdefault(subject, []).append(claim)
    with_older: list[Problem] = []
    with_all: list[Problem] = []
    for subject, of_object in own.items():
        first = of_object[0]
        others = [one for one in table.get(subject, ()) if one.value != first.value]
        older = [one for one in others if one.unit.age < first.unit.age]
        with_older += conflicts([*of_object, *older], subject)
        with_all += conflicts([*of_object, *others], subject)
    return with_older, with_all


def _left_out_vrfs(one: _Object, left_out: Mapping[ObjectRef, _Object]) -> Iterator[Problem]:
    """Yield a problem for each import from an object that is left out."""
    for unit in one.units:
        elsewhere = imported_elsewhere(unit)
        for i, router in enumerate(unit.row.spec.bgp.routers):
            for j, imported in enumerate(router.imports):
                vrf = vrf_name(imported.vrf)
                refs = [str(ref) for ref, other in left_out.items() if vrf in other.routed]
                if vrf not in elsewhere or not refs:
                    continue
                named = ", ".join(refs[:MAX_LISTED]) + (", ..." if len(refs) > MAX_LISTED else "")
                text = f"VRF {shown_vrf(vrf)}: its router in {named} is left out"
                path = unit.path(f"spec.bgp.routers[{i}].imports[{j}].vrf")
                yield Problem((unit.ref,), path, text, category="unresolved")
