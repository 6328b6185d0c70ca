"""The union of objects that do not contradict each other. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reconcilers.frrk8s.merge.merged import MergedNeighbor, MergedRouter
from reconcilers.frrk8s.unit import Compiled, NeighborKey, NeighborPart, RouterPart, Unit
from reconcilers.model import BfdProfile, ObjectRef, PrefixRule


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
