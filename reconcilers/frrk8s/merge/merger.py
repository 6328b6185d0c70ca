"""Merges units; takes over what has not changed since the last compilation and the last merge. Pure."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple, TypeVar

from reconcilers.frrk8s.claim_table import ClaimTable, Slot, UnitClaims
from reconcilers.frrk8s.claims import (
    Claim,
    Subject,
    claims_of,
    own_problems,
    password_claims,
)
from reconcilers.frrk8s.field_values import Prefix
from reconcilers.frrk8s.merge.union import Merge, MergedRouter, united
from reconcilers.frrk8s.one_object import compile_unit, imported_elsewhere, routed_vrfs
from reconcilers.frrk8s.passwords import Resolve, unresolved_passwords
from reconcilers.frrk8s.unit_parts import (
    Compiled,
    NeighborKey,
    NeighborSettings,
    RouterPart,
    Unit,
    VrfPrefixes,
    is_same_unit,
)
from reconcilers.model import ObjectRef, Problem
from reconcilers.sliced_work import Pieces, Slices, finish

T = TypeVar("T")

FEW: Final = 8
"""Changed units up to which routers are taken over from the last merge."""
COMPILATIONS: Final = 8
"""Compilations of one object, at most, that are remembered before `Merger.forget_unused` is called."""
SPARE_OBJECTS: Final = 64
"""Objects that are remembered beside the last merge's."""
NODES: Final = 64
"""Nodes whose last merges are remembered: the operator's part merges nodes with different objects."""
SHARED_SETTINGS: Final = 4096
"""Different settings of neighbours that are shared; more are compiled without sharing from then on."""
PIECES_OF_UNIT: Final = 20
"""Pieces of a slice for the compilation of a small unit."""


class LastMerge:
    """The claims of the last merge of a node, and the last routers with their parts."""

    def __init__(self) -> None:
        self.claims = ClaimTable()
        self.units: list[Unit] = []
        self.compiled: list[Compiled] = []
        self.rules: list[Any] = []
        self.routers: tuple[MergedRouter, ...] = ()
        self.given: list[Unit] | None = None
        """The units of the last merge, whose result depends on them alone; None where it does not."""
        self.named: bool | None = None
        """Whether problems of that result name the node; None without any."""
        self.effective: AbstractSet[str] = frozenset()
        """Reasons for which fields have an effect in that result, and not everywhere."""
        self.result: Merge | None = None

    def same(
        self, units: Sequence[Unit], effective: AbstractSet[str], *, named: bool
    ) -> Merge | None:
        """Return the result of the last merge, if it was of the same rows."""
        if self.given is None or self.named not in (None, named) or self.effective != effective:
            return None
        if not identical(list(map(_row, units)), list(map(_row, self.given))):
            return None
        # Equal, or not: the operator's part and the compiler of a process make units of their own.
        same_origins = all(map(operator.eq, map(_origin, units), map(_origin, self.given)))
        return self.result if same_origins else None

    def with_other_prefixes(
        self,
        units: Sequence[Unit],
        compiled: Sequence[Compiled],
        rules: Sequence[Any],
        alone: AbstractSet[ObjectRef],
    ) -> tuple[MergedRouter, ...] | None:
        """Return the last merge's routers, with other prefixes and routes of a few units.

        None otherwise: all are united again. ``alone`` are the objects with a single unit.
        """
        if len(compiled) != len(self.compiled) or not identical(rules, self.rules):
            return None
        changed = [i for i, current in enumerate(compiled) if current is not self.compiled[i]]
        if len(changed) > FEW:
            return None
        routers = {router.vrf: router for router in self.routers}
        for i in changed:
            unit, before = units[i], self.units[i]
            if unit.ref not in alone or unit.ref != before.ref:
                return None
            created = unit.row.metadata.creation_timestamp
            if created != before.row.metadata.creation_timestamp:
                return None
            if not _same_settings(self.compiled[i], compiled[i]):
                return None
            for router in compiled[i].routers:
                routers[router.vrf] = _with_part(routers[router.vrf], unit.ref, router)
        return tuple(routers.values())


def _same_settings(one: Compiled, other: Compiled) -> bool:
    """True if two compilations of a unit differ in prefixes and routes alone."""
    if one.profiles != other.profiles or len(one.routers) != len(other.routers):
        return False
    if one.allowas_in_origin != other.allowas_in_origin or one.raw_routes != other.raw_routes:
        return False
    vrfs, keys, number = set[str](), set[NeighborKey](), 0
    for old, new in zip(one.routers, other.routers, strict=True):
        if old._replace(prefixes=new.prefixes, neighbors=new.neighbors) != new:
            return False
        if len(old.neighbors) != len(new.neighbors):
            return False
        vrfs.add(new.vrf)
        number += len(new.neighbors)
        for was, now in zip(old.neighbors, new.neighbors, strict=True):
            if (was.key, was.path, not was.routes) != (now.key, now.path, not now.routes):
                return False
            if was.settings is not now.settings or was.redistributed != now.redistributed:
                return False
            keys.add(now.key)
    # No router or neighbour has two entries.
    return len(vrfs) == len(other.routers) and len(keys) == number


def _with_part(merged: MergedRouter, ref: ObjectRef, part: RouterPart) -> MergedRouter:
    """Return a router with other prefixes and routes of one object."""
    neighbors = {neighbor.key: neighbor for neighbor in merged.neighbors}
    for own_part in part.neighbors:
        neighbor = neighbors[own_part.key]
        exports = _exchanged(neighbor.exports, ref, own_part.routes)
        neighbors[own_part.key] = neighbor._replace(exports=exports)
    return merged._replace(
        neighbors=tuple(neighbors.values()), given=_exchanged(merged.given, ref, part.prefixes)
    )


def _exchanged(
    of_objects: Sequence[tuple[ObjectRef, T]], ref: ObjectRef, value: T
) -> tuple[tuple[ObjectRef, T], ...]:
    """Return values of objects with that of one object exchanged, if it has one."""
    return tuple([(ref, value) if pair[0] == ref else pair for pair in of_objects])


def identical(values: Sequence[Any], others: Sequence[Any]) -> bool:
    """Return whether two merges are given the same objects in the same order."""
    return len(values) == len(others) and all(map(operator.is_, values, others))


_ref: Final = operator.attrgetter("ref")
_row: Final = operator.attrgetter("row")
_origin: Final = operator.attrgetter("ref", "rules", "is_quiet")


class _Known(NamedTuple):
    unit: Unit
    needed: VrfPrefixes
    """The prefixes of the VRFs of other units."""
    compiled: Compiled


class Merger:
    """Merges units; only units that changed since the last time are compiled and compared again."""

    def __init__(self) -> None:
        self._compiled: dict[ObjectRef, list[_Known]] = {}
        """The last compilations of each object; several if it is fed in parts."""
        self._used: dict[ObjectRef, list[_Known]] = {}
        """Objects merged since the last call of `forget_unused`, with their compilations."""
        self._compilations = 0
        """The number of compilations so far."""
        self._settings: dict[NeighborSettings, NeighborSettings] = {}
        self._last: dict[str, LastMerge] = {}
        """By node, the last one at the end."""

    def merge(
        self,
        units: Sequence[Unit],
        resolve: Resolve,
        pieces: Pieces,
        node: str = "",
        *,
        named: bool = False,
        effective: AbstractSet[str] = frozenset(),
    ) -> Slices[Merge]:
        """Merge all units, or none where one is invalid, unresolved or in conflict (``keep``).

        ``node`` has the nearest last merge; it has no effect on the result but for
        the problems, which name it if it is ``named``. ``effective`` are reasons for which fields are
        without effect elsewhere, and have one here.
        """
        # Taken out until it is complete: the operator's part of this process may merge the same node
        # between two slices, and a merge may end early.
        last = self._last.pop(node, None) or LastMerge()
        if (result := last.same(units, effective, named=named)) is not None:
            for unit in units:
                self._used.setdefault(unit.ref, [])
        else:
            result = yield from self._merged(
                units, resolve, pieces, node, last, effective, named=named
            )
        self._last[node] = last
        if len(self._last) > NODES:
            del self._last[next(iter(self._last))]
        return result

    def _merged(
        self,
        units: Sequence[Unit],
        resolve: Resolve,
        pieces: Pieces,
        node: str,
        last: LastMerge,
        effective: AbstractSet[str],
        *,
        named: bool,
    ) -> Slices[Merge]:
        last.given, last.effective = None, effective
        # Units of one object are of one age.
        ordered = sorted(units, key=_ref)
        compiled = yield from self._compile_all(ordered, pieces)
        problems: list[Problem] = []
        claims: dict[Slot, UnitClaims] = {}
        for unit, parts in zip(ordered, compiled, strict=True):
            number = 0
            while (unit.ref, number) in claims:
                number += 1
            if parts.errors or parts.missing or parts.passwords:
                problems += own_problems(unit, parts, resolve, node if named else "")
            passwords = tuple(password_claims(unit, parts, resolve)) if parts.passwords else ()
            claims[unit.ref, number] = UnitClaims(parts, passwords)
        problems += yield from last.claims.replace(claims, pieces)
        reported = tuple(sorted(dict.fromkeys(problems)))
        notes = tuple(_unsupported(ordered, compiled, effective))
        partial = _partial(ordered, compiled, effective)
        # Passwords follow Secrets, all else depends on the units alone.
        given = None if [parts for parts in compiled if parts.passwords] else list(units)
        last.named = named if [parts for parts in compiled if parts.missing] else None
        if reported:
            last.given, last.result = given, Merge(None, (*reported, *notes), (), partial)
            return last.result
        rules = [unit.rules for unit in ordered]
        if not (identical(compiled, last.compiled) and identical(rules, last.rules)):
            alone = (unit.ref for unit in ordered if (unit.ref, 1) not in claims)
            routers = last.with_other_prefixes(ordered, compiled, rules, frozenset(alone))
            if routers is None:
                routers = yield from united(ordered, compiled, pieces)
            last.routers = routers
            last.units, last.compiled, last.rules = ordered, compiled, rules
        last.given, last.result = given, Merge(last.routers, notes, tuple(ordered), partial)
        return last.result

    def united(
        self,
        units: Sequence[Unit],
        problems: Iterable[Problem],
        pieces: Pieces,
        effective: AbstractSet[str] = frozenset(),
    ) -> Slices[Merge]:
        """Unite the units that isolation accepts; ``problems`` concern the others."""
        compiled = yield from self._compile_all(units, pieces)
        unsupported = _unsupported(units, compiled, effective)
        reported = (*sorted(dict.fromkeys(problems)), *unsupported)
        partial = _partial(units, compiled, effective)
        routers = yield from united(units, compiled, pieces)
        return Merge(routers, reported, tuple(units), partial)

    def without_password(
        self, units: Sequence[Unit], resolve: Resolve
    ) -> tuple[set[NeighborKey], list[Unit]]:
        """Return the neighbours whose passwords are not known, and the units that refer to them."""
        keys: set[NeighborKey] = set()
        without = []
        for unit, compiled in zip(units, finish(self._compile_all(units, Pieces())), strict=True):
            missing = unresolved_passwords(compiled, resolve)
            keys.update(part.key for part, _ in missing)
            if missing:
                without.append(unit)
        return keys, without

    def prepare(self, unit: Unit, pieces: Pieces) -> Slices[None]:
        """Compile a unit in slices before it is merged, unless it depends on other units."""
        if imported_elsewhere(unit):
            return
        if _known(self._compiled.get(unit.ref, ()), unit, {}) is None:
            yield from self._compile_anew(unit, {}, pieces)

    def forget_unused(self, in_effect: Iterable[Unit] = ()) -> None:
        """Forget what was not used since the last call.

        Of an object remain its present compilation, and that of its unit ``in_effect``, if they
        differ; of objects that were not merged a few.
        """
        used, self._used = self._used, {}
        if len(self._compiled) > 2 * len(used) + SPARE_OBJECTS:
            for ref in self._compiled.keys() - used.keys():
                del self._compiled[ref]
        others = {
            ref: of_object
            for ref, of_object in used.items()
            if len(self._compiled.get(ref, ())) > len(of_object) > 0
        }
        for unit in in_effect if others else ():
            if unit.ref in others:
                known = self._compiled[unit.ref]
                kept = set(map(id, others[unit.ref]))
                others[unit.ref] = [k for k in known if id(k) in kept or is_same_unit(k.unit, unit)]
        self._compiled.update(others)

    def _compile_all(self, units: Sequence[Unit], pieces: Pieces) -> Slices[list[Compiled]]:
        elsewhere = _vrfs(units)
        compiled: list[Compiled] = []
        for unit in units:
            number = self._compilations
            compiled.append(self.compile(unit, elsewhere))
            if number != self._compilations and pieces.fill_slice(PIECES_OF_UNIT):
                yield
        return compiled

    def compile(self, unit: Unit, elsewhere: VrfPrefixes) -> Compiled:
        """Compile a unit alone, with the prefixes of VRFs of other units; or return it from before."""
        needed: dict[str, frozenset[Prefix]] = {}
        if elsewhere:
            needed = {vrf: elsewhere[vrf] for vrf in imported_elsewhere(unit) if vrf in elsewhere}
        remembered = _known(self._compiled.get(unit.ref, ()), unit, needed)
        if remembered is None:
            finish(self._compile_anew(unit, needed, Pieces()))
            remembered = self._compiled[unit.ref][-1]
        used = self._used.setdefault(unit.ref, [])
        if not used or used[-1] is not remembered:
            used.append(remembered)
        return remembered.compiled

    def _compile_anew(
        self, unit: Unit, needed: dict[str, frozenset[Prefix]], pieces: Pieces
    ) -> Slices[None]:
        self._compilations += 1
        result = self._shared((yield from compile_unit(unit, needed, pieces)))
        claims: list[tuple[Subject, Claim]] = []
        for some in claims_of(unit, result):
            claims += some
            if pieces.fill_slice(len(some)):
                yield
        result = result._replace(claims=tuple(claims))
        known = self._compiled.setdefault(unit.ref, [])
        known.append(_Known(unit, needed, result))
        del known[:-COMPILATIONS]

    def _shared(self, compiled: Compiled) -> Compiled:
        """Return a compilation in which equal settings of neighbours are one value."""
        if len(self._settings) > SHARED_SETTINGS:
            self._settings.clear()
        known = self._settings
        routers = []
        for router in compiled.routers:
            neighbors = [
                part._replace(settings=known.setdefault(part.settings, part.settings))
                for part in router.neighbors
            ]
            routers.append(router._replace(neighbors=tuple(neighbors)))
        return compiled._replace(routers=tuple(routers))


def _known(known: Sequence[_Known], unit: Unit, needed: VrfPrefixes) -> _Known | None:
    """Return the compilation of the unit with these prefixes of other VRFs."""
    for candidate in known:
        if candidate.unit.row is unit.row and candidate.needed == needed:
            return candidate
    for candidate in known:
        if is_same_unit(candidate.unit, unit) and candidate.needed == needed:
            return candidate
    return None


def _vrfs(units: Iterable[Unit]) -> dict[str, frozenset[Prefix]]:
    """Return the prefixes of each VRF that a unit imports and has no router of."""
    given = list(units)
    imported = frozenset[str]().union(*[imported_elsewhere(unit) for unit in given])
    vrfs: dict[str, frozenset[Prefix]] = {}
    for unit in given if imported else ():
        for vrf, prefixes in routed_vrfs(unit).items():
            if vrf in imported:
                vrfs[vrf] = vrfs.get(vrf, frozenset()) | prefixes
    return vrfs


def _unsupported(
    units: Sequence[Unit], compiled: Sequence[Compiled], effective: AbstractSet[str]
) -> list[Problem]:
    """Return the fields without effect."""
    return [
        Problem((unit.ref,), unit.path(error.path), error.message, category="unsupported")
        for unit, parts in zip(units, compiled, strict=True)
        for reason, error in parts.unsupported
        if not unit.is_quiet and reason not in effective
    ]


def _partial(
    units: Sequence[Unit], compiled: Sequence[Compiled], effective: AbstractSet[str]
) -> tuple[tuple[ObjectRef, str], ...]:
    return tuple(
        (unit.ref, reason)
        for unit, parts in zip(units, compiled, strict=True)
        for reason, _ in parts.unsupported
        if reason not in effective
    )
