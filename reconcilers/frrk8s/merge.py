"""Merges the objects of a node to its routers, or returns the conflicts. Pure.

The result does not depend on the order of the objects. Every conflict is found, not the first alone.

Another dialect's objects are merged by the same code, so that a conflict names both. Such a dialect
declares ``feeds = "frrk8s"`` and returns in ``NodeIntent.fed`` a `reconcilers.dialect.Fed` for each of
its objects::

    Fed(
        origin=ref_to(BGP_PEER, row),  # named in conflicts, in place of the translated object
        row=FRRConfiguration(metadata=..., spec=...),  # its session, translated; one for each object
        fields={"spec.bgp.routers.neighbors.port": "spec.peerPort"},  # paths without indices
        rules=rules,  # of the feeding dialect's own routes for the neighbours of this row, or None
    )

* One ``Fed`` for each object that counts: a BGPPeer is a router with one neighbour, a BFDProfile
  a BFD profile. Several with one origin are several entries of that object.
* A local preference that is to be compared with those of others is a ``Fed`` of the object that sets
  it, with the prefix and ``withLocalPref``.
* The age of the object, for ``isolate``, is ``row.metadata.creation_timestamp``.
* The feeding dialect's route sources contribute to the route sets of the peers: ``contributions`` is
  called with `reconcilers.frrk8s.route_sets.RouteSet`, whose ``fed`` has the rules of its peers. Rules
  have a ``name``, which changes with them.
* Passwords: a field is a ``SecretValue`` in the row, at the path that ``fields`` gives; a Secret is a
  ``passwordSecret``, read in the namespace of ``row.metadata``.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple, TypeVar

from reconcilers.frrk8s.claim_table import ClaimTable, Slot, UnitClaims
from reconcilers.frrk8s.claims import Resolve, claims_of, own_problems, password_claims
from reconcilers.frrk8s.isolation import Isolated, Relations, isolated
from reconcilers.frrk8s.single import BFD, compile_unit, imported_elsewhere, routed_vrfs
from reconcilers.frrk8s.unit import (
    Compiled,
    NeighborKey,
    NeighborPart,
    NeighborSettings,
    RouterPart,
    Session,
    Unit,
    VrfPrefixes,
)
from reconcilers.frrk8s.values import Prefix
from reconcilers.model import Attributes, BfdProfile, ObjectRef, PrefixRule, Problem
from reconcilers.slices import Pieces, Slices, finish
from resources.frrk8s.frrconfiguration import FRRConfiguration
from resources.secret_value import SecretValue

T = TypeVar("T")

COMPILATIONS: Final = 8
"""Of one object that are remembered."""
SPARE_OBJECTS: Final = 64
"""Objects that are remembered beside those of the last merge."""
NODES: Final = 64
"""Nodes whose last merges are remembered: the operator's part merges nodes with different objects."""
SHARED_SETTINGS: Final = 4096
"""Different settings of neighbours that are shared; more are compiled without sharing from then on."""
FEW: Final = 8
"""Changed units up to which routers are taken over from the last merge."""


class MergedNeighbor(NamedTuple):
    """A neighbour, merged from all objects with it."""

    key: NeighborKey
    session: Session
    bfd: BfdProfile | None
    bfd_field: str
    """Where the first of ``origins`` refers to the profile; empty if another one does."""
    graceful_restart: bool
    families: frozenset[str]
    accept: frozenset[PrefixRule] | None
    """None accepts all."""
    accept_origins: tuple[ObjectRef, ...]
    """The objects that accept all, the oldest first."""
    exports: tuple[tuple[ObjectRef, Mapping[Prefix, Attributes]], ...]
    """What each object advertises to it."""
    rules: tuple[Any, ...]
    """Rules of feeding dialects."""
    origins: tuple[ObjectRef, ...]
    password: SecretValue | None
    """The password that is a field of an object."""


class MergedRouter(NamedTuple):
    """The router of a VRF, merged from all objects with it."""

    vrf: str
    asn: int
    router_id: str | None
    imports: frozenset[str]
    neighbors: tuple[MergedNeighbor, ...]
    origins: tuple[ObjectRef, ...]
    vrf_field: str
    """Where the first of ``origins`` has the VRF, for problems."""
    given: tuple[tuple[ObjectRef, frozenset[Prefix]], ...]
    """The prefixes of each object."""


class Merge(NamedTuple):
    """The result: routers by VRF, the default one first, and problems."""

    routers: tuple[MergedRouter, ...] | None
    """None while the objects as a whole have a conflict."""
    problems: tuple[Problem, ...]
    accepted: tuple[Unit, ...]
    """The units that the routers are merged from."""
    partial: tuple[tuple[ObjectRef, str], ...] = ()
    """Objects of which a part has no effect, with the reason: RawConfig, EVPN, BFD."""


class _LastMerge:
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
        if len(compiled) != len(self.compiled) or not _identical(rules, self.rules):
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


def _identical(values: Sequence[Any], others: Sequence[Any]) -> bool:
    return len(values) == len(others) and all(map(operator.is_, values, others))


class Merger:
    """Merges units; only those that changed since the last time are compiled and compared again."""

    def __init__(self) -> None:
        self._compiled: dict[ObjectRef, list[tuple[FRRConfiguration, VrfPrefixes, Compiled]]] = {}
        """The last compilations of each object; several of one that is fed in parts."""
        self._used: set[ObjectRef] = set()
        """Objects that were merged since the last call of `forget_unused`."""
        self._settings: dict[NeighborSettings, NeighborSettings] = {}
        self._last: dict[str, _LastMerge] = {}
        """By node, the last one at the end."""

    def merge(self, units: Sequence[Unit], resolve: Resolve, node: str = "") -> Merge:
        """Merge all units, or none where one is invalid, unresolved or in conflict (``keep``).

        ``node``: the one whose last merge is the nearest; it has no effect on the result.
        """
        last = self._last.pop(node) if node in self._last else _LastMerge()
        self._last[node] = last
        if len(self._last) > NODES:
            del self._last[next(iter(self._last))]
        ordered = sorted(units, key=lambda unit: (unit.ref, unit.age))
        compiled = self._compile_all(ordered)
        problems: list[Problem] = []
        claims: dict[Slot, UnitClaims] = {}
        for unit, found in zip(ordered, compiled, strict=True):
            problems += own_problems(unit, found, resolve)
            number = 0
            while (unit.ref, number) in claims:
                number += 1
            passwords = tuple(password_claims(unit, found, resolve))
            claims[unit.ref, number] = UnitClaims(found, passwords)
        problems += last.claims.replace(claims)
        reported = tuple(sorted(dict.fromkeys(problems)))
        notes = tuple(unsupported(ordered, compiled))
        partial = _partial(ordered, compiled)
        if reported:
            return Merge(None, (*reported, *notes), (), partial)
        rules = [unit.rules for unit in ordered]
        if not (_identical(compiled, last.compiled) and _identical(rules, last.rules)):
            alone = (unit.ref for unit in ordered if (unit.ref, 1) not in claims)
            routers = last.with_other_prefixes(ordered, compiled, rules, frozenset(alone))
            last.routers = united(ordered, compiled) if routers is None else routers
            last.units, last.compiled, last.rules = ordered, compiled, rules
        return Merge(last.routers, notes, tuple(ordered), partial)

    def isolate(
        self,
        units: Sequence[Unit],
        resolve: Resolve,
        node: str = "",
        taken: frozenset[ObjectRef] | None = None,
    ) -> Merge:
        """Merge the units that go together, from the oldest to the youngest (``isolate``).

        ``taken`` are these objects, where a feeding dialect has isolated them with its own.
        """
        if taken is None or all(unit.ref in taken for unit in units):
            whole = self.merge(units, resolve, node)
            if whole.routers is not None:
                return whole
        found = isolated(units, self._compile, resolve, taken=taken)
        kept, compiled = found.taken, self._compile_all(found.taken)
        notes = unsupported(kept, compiled)
        reported = (*sorted(dict.fromkeys(found.problems)), *notes)
        return Merge(united(kept, compiled), reported, tuple(kept), _partial(kept, compiled))

    def isolated(self, units: Iterable[Unit], resolve: Resolve, relations: Relations) -> Isolated:
        """Take units in from the oldest to the youngest; `relations` are a feeding dialect's."""
        return isolated(units, self._compile, resolve, relations)

    def prepare(self, unit: Unit, pieces: Pieces) -> Slices[None]:
        """Compile a unit in slices before it is merged, unless it depends on other units."""
        if imported_elsewhere(unit):
            return
        for row, before, _ in self._compiled.get(unit.ref, ()):
            if (row is unit.row or row == unit.row) and not before:
                return
        yield from self._compile_anew(unit, {}, pieces)

    def forget_unused(self) -> None:
        """Forget the objects that were not merged since the last call, unless they are few."""
        used, self._used = self._used, set()
        if len(self._compiled) > 2 * len(used) + SPARE_OBJECTS:
            for ref in self._compiled.keys() - used:
                del self._compiled[ref]

    def _compile_all(self, units: Sequence[Unit]) -> list[Compiled]:
        elsewhere = _vrfs(units)
        return [self._compile(unit, elsewhere) for unit in units]

    def _compile(self, unit: Unit, elsewhere: VrfPrefixes) -> Compiled:
        needed: dict[str, frozenset[Prefix]] = {}
        if elsewhere:
            needed = {vrf: elsewhere[vrf] for vrf in imported_elsewhere(unit) if vrf in elsewhere}
        self._used.add(unit.ref)
        known = self._compiled.setdefault(unit.ref, [])
        for row, before, compiled in known:
            if (row is unit.row or row == unit.row) and before == needed:
                return compiled
        return finish(self._compile_anew(unit, needed, Pieces()))

    def _compile_anew(
        self, unit: Unit, needed: dict[str, frozenset[Prefix]], pieces: Pieces
    ) -> Slices[Compiled]:
        found = self._shared((yield from compile_unit(unit, needed, pieces)))
        claims = []
        for claim in claims_of(unit, found):
            claims.append(claim)
            if pieces.fill_slice():
                yield
        found = found._replace(claims=tuple(claims))
        known = self._compiled.setdefault(unit.ref, [])
        known.append((unit.row, needed, found))
        del known[:-COMPILATIONS]
        return found

    def _shared(self, compiled: Compiled) -> Compiled:
        """Return a compilation in which equal settings of neighbours are one value."""
        if len(self._settings) > SHARED_SETTINGS:
            self._settings.clear()
        known = self._settings
        routers = tuple(
            router._replace(
                neighbors=tuple(
                    part._replace(settings=known.setdefault(part.settings, part.settings))
                    for part in router.neighbors
                )
            )
            for router in compiled.routers
        )
        return compiled._replace(routers=routers)


def unsupported(units: Sequence[Unit], compiled: Sequence[Compiled]) -> list[Problem]:
    """Return the fields without effect; the middle reports BFD for every dialect."""
    return [
        Problem((unit.ref,), unit.path(error.path), error.message, category="unsupported")
        for unit, found in zip(units, compiled, strict=True)
        for reason, error in found.unsupported
        if reason != BFD
    ]


def _partial(
    units: Sequence[Unit], compiled: Sequence[Compiled]
) -> tuple[tuple[ObjectRef, str], ...]:
    return tuple(
        (unit.ref, reason)
        for unit, found in zip(units, compiled, strict=True)
        for reason, _ in found.unsupported
    )


def _vrfs(units: Iterable[Unit]) -> dict[str, frozenset[Prefix]]:
    """Return the prefixes of each VRF that a unit imports and has no router of."""
    given = list(units)
    imported = frozenset[str]().union(*(imported_elsewhere(unit) for unit in given))
    found: dict[str, frozenset[Prefix]] = {}
    for unit in given if imported else ():
        for vrf, prefixes in routed_vrfs(unit).items():
            if vrf in imported:
                found[vrf] = found.get(vrf, frozenset()) | prefixes
    return found


def united(units: Sequence[Unit], compiled: Sequence[Compiled]) -> tuple[MergedRouter, ...]:
    """Unite units that do not contradict each other."""
    profiles = {part.profile.name: part.profile for found in compiled for part in found.profiles}
    routers: dict[str, list[tuple[Unit, RouterPart]]] = {}
    for unit, found in zip(units, compiled, strict=True):
        for router in found.routers:
            routers.setdefault(router.vrf, []).append((unit, router))
    refs = _Refs(units)
    return tuple(_router(routers[vrf], profiles, refs) for vrf in sorted(routers))


class _Refs:
    """The objects of units, the oldest first; computed once for neighbours of the same units."""

    def __init__(self, units: Sequence[Unit]) -> None:
        aged = sorted(units, key=lambda unit: unit.age)
        self._rank = {id(unit): rank for rank, unit in enumerate(aged)}
        self._refs = [unit.ref for unit in aged]
        self._known: dict[tuple[int, ...], tuple[ObjectRef, ...]] = {}

    def __call__(self, parts: Iterable[tuple[Unit, Any]]) -> tuple[ObjectRef, ...]:
        ranks = tuple([self._rank[id(unit)] for unit, _ in parts])
        found = self._known.get(ranks)
        if found is None:
            found = tuple(dict.fromkeys(self._refs[rank] for rank in sorted(ranks)))
            self._known[ranks] = found
        return found


def _router(
    parts: Sequence[tuple[Unit, RouterPart]], profiles: Mapping[str, BfdProfile], refs: _Refs
) -> MergedRouter:
    neighbors: dict[NeighborKey, list[tuple[Unit, NeighborPart]]] = {}
    for unit, router in parts:
        for neighbor in router.neighbors:
            neighbors.setdefault(neighbor.key, []).append((unit, neighbor))
    first = parts[0][1]
    origins = refs(parts)
    fields = (unit.path(f"{router.path}.vrf") for unit, router in parts if unit.ref == origins[0])
    return MergedRouter(
        first.vrf,
        first.asn,
        next((router.router_id for _, router in parts if router.router_id is not None), None),
        frozenset[str]().union(*(router.imports for _, router in parts)),
        tuple(_neighbor(neighbors[key], profiles, refs) for key in sorted(neighbors)),
        origins,
        next(fields),
        tuple((unit.ref, router.prefixes) for unit, router in parts),
    )


def _neighbor(
    parts: Sequence[tuple[Unit, NeighborPart]], profiles: Mapping[str, BfdProfile], refs: _Refs
) -> MergedNeighbor:
    first = parts[0][1]
    different = list({id(part.settings): part.settings for _, part in parts}.values())
    sessions = [settings.session for settings in different]

    def filled(field: str) -> Any:  # noqa: ANN401  the value of a field of a session
        return next((value for one in sessions if (value := getattr(one, field)) is not None), None)

    session = first.session._replace(
        bfd_profile=filled("bfd_profile"),
        next_hop_ipv4=filled("next_hop_ipv4"),
        next_hop_ipv6=filled("next_hop_ipv6"),
    )
    accepts = [one.accept for one in different if one.accept is not None]
    accepts_all = len(accepts) < len(different)
    families = frozenset[str]().union(*(settings.families for settings in different))
    exporting = parts if "unicast" in families else ()
    origins = refs(parts)
    return MergedNeighbor(
        first.key,
        session,
        None if session.bfd_profile is None else profiles.get(session.bfd_profile),
        _bfd_field(parts, origins[0]),
        any(settings.graceful_restart for settings in different),
        families,
        None if accepts_all else frozenset[PrefixRule]().union(*accepts),
        refs(one for one in parts if one[1].settings.accept is None) if accepts_all else (),
        tuple([(unit.ref, part.routes) for unit, part in exporting if part.routes]),
        tuple([unit.rules for unit, _ in parts if unit.rules is not None]),
        origins,
        first.settings.password,
    )


def _bfd_field(parts: Sequence[tuple[Unit, NeighborPart]], first: ObjectRef) -> str:
    for unit, part in parts:
        if unit.ref == first and part.session.bfd_profile is not None:
            return unit.path(f"{part.path}.bfdProfile")
    return ""
