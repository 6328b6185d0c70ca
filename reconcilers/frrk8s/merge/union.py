"""The routers that objects without a conflict unite to, with their neighbours. Pure."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple

from reconcilers.frrk8s.field_values import Prefix
from reconcilers.frrk8s.unit_parts import (
    Compiled,
    NeighborKey,
    NeighborPart,
    RedistributedPart,
    RouterPart,
    Session,
    Unit,
)
from reconcilers.model import (
    Attributes,
    ObjectRef,
    PrefixRule,
    Problem,
)
from reconcilers.redistribution import Redistribution
from reconcilers.sliced_work import Pieces, Slices
from resources.secret_value import SecretValue
from speaker.api import BfdProfile

PIECES_OF_NEIGHBOR: Final = 5
"""Pieces of a slice for one neighbour."""
_allow_as_in: Final = operator.attrgetter("allow_as_in")


class MergedNeighbor(NamedTuple):
    """A neighbour, merged from all objects with it."""

    key: NeighborKey
    session: Session
    bfd: BfdProfile | None
    bfd_field: str
    """The field of the first of ``origins`` with the profile; empty if another object has it."""
    graceful_restart: bool
    families: frozenset[str]
    accept: frozenset[PrefixRule] | None
    """None accepts all."""
    accept_origins: tuple[ObjectRef, ...]
    """The objects that accept all, the oldest first."""
    exports: tuple[tuple[ObjectRef, Mapping[Prefix, Attributes]], ...]
    """The routes of each object for it."""
    rules: tuple[Any, ...]
    """Rules of feeding dialects."""
    origins: tuple[ObjectRef, ...]
    password: SecretValue | None
    """The password that is a field of an object."""
    allowas_in_origin: bool = False
    """Whether routes that end with the own AS are accepted."""
    allowas_in: int = 0
    """How often the own AS may be in the AS path of an accepted route."""
    redistributed: tuple[tuple[ObjectRef, RedistributedPart], ...] = ()
    """The routes of the kernel that each object advertises to it."""
    kernel_routes: tuple[tuple[ObjectRef, Mapping[Prefix, Attributes]], ...] = ()
    """Redistributed routes that the kernel has; filled in after the merge."""


class MergedRouter(NamedTuple):
    """The router of a VRF, merged from all objects with it."""

    vrf: str
    asn: int
    router_id: str | None
    imports: frozenset[str]
    neighbors: tuple[MergedNeighbor, ...]
    origins: tuple[ObjectRef, ...]
    vrf_field: str
    """The field of the first of ``origins`` with the VRF, for problems."""
    given: tuple[tuple[ObjectRef, frozenset[Prefix]], ...]
    """The prefixes of each object."""
    redistributions: tuple[tuple[ObjectRef, Redistribution], ...] = ()
    """The kernel's routes that each object redistributes."""
    kernel_routes: tuple[tuple[ObjectRef, frozenset[Prefix]], ...] = ()
    """Prefixes of these routes that the kernel has; filled in after the merge."""


class Merge(NamedTuple):
    """The result: routers by VRF, the default one first, and problems."""

    routers: tuple[MergedRouter, ...] | None
    """None while the objects as a whole have a conflict."""
    problems: tuple[Problem, ...]
    accepted: tuple[Unit, ...]
    """The units that the routers are merged from."""
    partial: tuple[tuple[ObjectRef, str], ...] = ()
    """Objects of which a part has no effect, with the reason: RawConfig, EVPN."""


def united(
    units: Sequence[Unit], compiled: Sequence[Compiled], pieces: Pieces
) -> Slices[tuple[MergedRouter, ...]]:
    """Unite units that do not contradict each other to routers by VRF, with merged neighbours."""
    profiles = {part.profile.name: part.profile for parts in compiled for part in parts.profiles}
    routers: dict[str, list[tuple[Unit, RouterPart]]] = {}
    for unit, parts in zip(units, compiled, strict=True):
        for router in parts.routers:
            routers.setdefault(router.vrf, []).append((unit, router))
    refs = _Refs(units)
    allowed = frozenset[tuple[str, str]]().union(*(parts.allowas_in_origin for parts in compiled))
    raw = _Raw(units, compiled)
    merged: list[MergedRouter] = []
    for vrf in sorted(routers):
        of_vrf = yield from _router(routers[vrf], profiles, refs, allowed, raw, pieces)
        merged.append(of_vrf)
    return tuple(merged)


class _Raw:
    """Redistribution in raw configuration, which may concern routers and neighbours of other units."""

    def __init__(self, units: Sequence[Unit], compiled: Sequence[Compiled]) -> None:
        self.routers: dict[str, list[tuple[ObjectRef, Redistribution]]] = {}
        self.neighbors: dict[tuple[str, str], list[tuple[ObjectRef, RedistributedPart]]] = {}
        for unit, parts in zip(units, compiled, strict=True):
            for vrf, redistribution in parts.raw_routes.redistributions:
                self.routers.setdefault(vrf, []).append((unit.ref, redistribution))
            for vrf, end, redistributed in parts.raw_routes.neighbors:
                self.neighbors.setdefault((vrf, end), []).append((unit.ref, redistributed))


class _Refs:
    """The objects of units, the oldest first; computed once for neighbours of the same units."""

    def __init__(self, units: Sequence[Unit]) -> None:
        aged = sorted(units, key=lambda unit: unit.age)
        self._rank = {id(unit): rank for rank, unit in enumerate(aged)}
        self._refs = [unit.ref for unit in aged]
        self._known: dict[tuple[int, ...], tuple[ObjectRef, ...]] = {}

    def __call__(self, parts: Iterable[tuple[Unit, Any]]) -> tuple[ObjectRef, ...]:
        ranks = tuple([self._rank[id(unit)] for unit, _ in parts])
        refs = self._known.get(ranks)
        if refs is None:
            refs = tuple(dict.fromkeys(self._refs[rank] for rank in sorted(ranks)))
            self._known[ranks] = refs
        return refs


def _router(
    parts: Sequence[tuple[Unit, RouterPart]],
    profiles: Mapping[str, BfdProfile],
    refs: _Refs,
    allowed: AbstractSet[tuple[str, str]],
    raw: _Raw,
    pieces: Pieces,
) -> Slices[MergedRouter]:
    neighbors: dict[NeighborKey, list[tuple[Unit, NeighborPart]]] = {}
    for unit, router in parts:
        for neighbor in router.neighbors:
            neighbors.setdefault(neighbor.key, []).append((unit, neighbor))
    merged: list[MergedNeighbor] = []
    for key in sorted(neighbors):
        is_allowed = (key.vrf, key.end) in allowed
        merged.append(_neighbor(neighbors[key], profiles, refs, is_allowed, raw))
        if pieces.fill_slice(PIECES_OF_NEIGHBOR):
            yield
    first = parts[0][1]
    origins = refs(parts)
    fields = (unit.path(f"{router.path}.vrf") for unit, router in parts if unit.ref == origins[0])
    return MergedRouter(
        first.vrf,
        first.asn,
        next((router.router_id for _, router in parts if router.router_id is not None), None),
        frozenset[str]().union(*(router.imports for _, router in parts)),
        tuple(merged),
        origins,
        next(fields),
        tuple((unit.ref, router.prefixes) for unit, router in parts),
        (
            *((unit.ref, given) for unit, router in parts for given in router.redistributions),
            *raw.routers.get(first.vrf, ()),
        ),
    )


def _neighbor(
    parts: Sequence[tuple[Unit, NeighborPart]],
    profiles: Mapping[str, BfdProfile],
    refs: _Refs,
    allowas_in_origin: bool,
    raw: _Raw,
) -> MergedNeighbor:
    first = parts[0][1]
    different = list({id(part.settings): part.settings for _, part in parts}.values())
    sessions = [settings.session for settings in different]

    def filled(field: str) -> Any:  # noqa: ANN401  the value of a field of a session
        return next(
            (value for session in sessions if (value := getattr(session, field)) is not None), None
        )

    session = first.session._replace(
        bfd_profile=filled("bfd_profile"),
        next_hop_ipv4=filled("next_hop_ipv4"),
        next_hop_ipv6=filled("next_hop_ipv6"),
    )
    accepts = [values.accept for values in different if values.accept is not None]
    accepts_all = len(accepts) < len(different)
    families = frozenset[str]().union(*(settings.families for settings in different))
    exporting = parts if "unicast" in families else ()
    origins = refs(parts)
    own_as: set[str] = set(map(_allow_as_in, different))
    allowas_in = max(map(int, filter(str.isdecimal, own_as)), default=0)
    return MergedNeighbor(
        first.key,
        session,
        None if session.bfd_profile is None else profiles.get(session.bfd_profile),
        _bfd_field(parts, origins[0]),
        any(settings.graceful_restart for settings in different),
        families,
        None if accepts_all else frozenset[PrefixRule]().union(*accepts),
        refs(part for part in parts if part[1].settings.accept is None) if accepts_all else (),
        tuple([(unit.ref, part.routes) for unit, part in exporting if part.routes]),
        tuple([unit.rules for unit, _ in parts if unit.rules is not None]),
        origins,
        first.settings.password,
        allowas_in_origin or ("origin" in own_as and not allowas_in),
        allowas_in,
        (
            *(
                (unit.ref, part.redistributed)
                for unit, part in exporting
                if part.redistributed is not None
            ),
            *(raw.neighbors.get((first.key.vrf, first.key.end), ()) if exporting else ()),
        ),
    )


def _bfd_field(parts: Sequence[tuple[Unit, NeighborPart]], first: ObjectRef) -> str:
    for unit, part in parts:
        if unit.ref == first and part.session.bfd_profile is not None:
            return unit.path(f"{part.path}.bfdProfile")
    return ""
