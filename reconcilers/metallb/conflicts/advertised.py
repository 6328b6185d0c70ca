"""Advertisements and the pools that they select: aggregates, and local preferences. Pure.

Source: MetalLB internal/config/config.go, validateBGPAdvPerPool.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from reconcilers.metallb.conflicts.facts import (
    MAX_COMPARED,
    VERSIONS,
    Facts,
    PoolClass,
    following,
    listed,
    others_beside,
)
from reconcilers.metallb.objects import finding
from reconcilers.model import ObjectRef, Problem, ref_to
from resources.metallb import kinds
from resources.metallb.bgpadvertisement import BGPAdvertisement
from resources.metallb.ipaddresspool import IPAddressPool
from resources.metallb.objects import MetalLBObject

PREFERENCE: Final = "spec.localPref"
"""The field of two local preferences for one pool."""
LENGTH_FIELDS: Final = {4: "spec.aggregationLength", 6: "spec.aggregationLengthV6"}


class Preferences:
    """Advertisements of one class of pools, by what two share that give a prefix two preferences.

    Two share none if their aggregates differ in length in each family of the pools, nor if they name
    peers and have none in common.
    """

    def __init__(self, versions: Sequence[int]) -> None:
        self._versions = versions
        self._of: dict[tuple[int, int, str | None], dict[int, list[BGPAdvertisement]]] = {}
        """By version, length of the aggregate, and peer ("" without peers, None all of them)."""

    def add(self, row: BGPAdvertisement) -> None:
        """Add an advertisement."""
        lengths = _lengths(row)
        for version in self._versions:
            for peer in (None, *(row.spec.peers or ("",))):
                of_key = self._of.setdefault((version, lengths[version], peer), {})
                of_key.setdefault(row.spec.local_pref, []).append(row)

    def against(self, row: BGPAdvertisement) -> list[ObjectRef]:
        """Return the advertisements with another local preference, by name; some of very many."""
        found: dict[str, BGPAdvertisement] = {}
        lengths = _lengths(row)
        for version in self._versions:
            for peer in (*row.spec.peers, "") if row.spec.peers else (None,):
                of_key = self._of.get((version, lengths[version], peer), {})
                for preference, others in of_key.items():
                    if len(found) >= MAX_COMPARED:
                        break
                    if preference != row.spec.local_pref:
                        room = MAX_COMPARED - len(found)
                        found.update((one.metadata.name, one) for one in others[:room])
        return [ref_to(kinds.BGP_ADVERTISEMENT, found[name]) for name in sorted(found)]


def _lengths(row: BGPAdvertisement) -> dict[int, int]:
    return {4: row.spec.aggregation_length, 6: row.spec.aggregation_length_v6}


def _for_all_services(row: BGPAdvertisement) -> bool:
    """True if an advertisement selects no Services by label."""
    return not row.spec.service_selectors


class _OfClass:
    """The advertisements of one class of pools, and the pools, as far as they are taken."""

    def __init__(self, versions: Sequence[int]) -> None:
        self.pools: dict[ObjectRef, None] = {}
        self.of_lengths: dict[tuple[int, ...], dict[ObjectRef, None]] = {}
        """Advertisements, by the lengths of their aggregates."""
        self.preferences = Preferences(versions)
        self.colliding: dict[ObjectRef, None] = {}
        """Advertisements with different local preferences: some of very many."""

    def compare(self, ref: ObjectRef, row: BGPAdvertisement) -> None:
        """Add an advertisement to those whose local preferences are compared."""
        if len(self.colliding) < MAX_COMPARED and (others := self.preferences.against(row)):
            self.colliding.update(dict.fromkeys((*others, ref)))
        self.preferences.add(row)


class Advertised:
    """Aggregates that are wider than a pool, and different local preferences for one pool."""

    def __init__(self, facts: Facts, environment: AbstractSet[ObjectRef]) -> None:
        self._facts = facts
        # Most objects have one local preference, and no two of them differ.
        rows = (row for row in facts.rows.values() if isinstance(row, BGPAdvertisement))
        preferences = {row.spec.local_pref for row in rows if _for_all_services(row)}
        self._compares = len(preferences) > 1
        self._environment = {facts.class_of[ref] for ref in environment if ref in facts.class_of}
        self._of_class: dict[PoolClass, _OfClass] = {}
        self._too_wide: dict[tuple[int, int, int], list[tuple[ObjectRef, int]]] = {}
        """Pools with the shortest length of each, by selection, version and length."""
        self._named: set[tuple[int, ObjectRef]] = set()
        """Pools with a problem, by version."""

    def take(self, ref: ObjectRef, row: MetalLBObject) -> None:
        """Add an advertisement, or a pool."""
        if isinstance(row, BGPAdvertisement):
            lengths = tuple(_lengths(row).values())
            compares = self._compares and _for_all_services(row)
            for one in self._facts.classes_of[ref]:
                of_class = self._of(one)
                of_class.of_lengths.setdefault(lengths, {})[ref] = None
                if compares:
                    of_class.compare(ref, row)
        elif isinstance(row, IPAddressPool):
            self._of(self._facts.class_of[ref]).pools[ref] = None

    def against(self, ref: ObjectRef, row: MetalLBObject) -> Iterator[ObjectRef]:
        """Iterate over pools and advertisements."""
        if isinstance(row, BGPAdvertisement):
            lengths = tuple(_lengths(row).values())
            for one in self._facts.classes_of[ref]:
                found = self._of_class.get(one)
                if found is None:
                    continue
                if _is_too_wide(lengths, one):
                    yield from found.pools
                if self._compares and one in self._environment and _for_all_services(row):
                    yield from found.preferences.against(row)
        elif isinstance(row, IPAddressPool):
            of_pool = self._facts.class_of[ref]
            found = self._of_class.get(of_pool)
            if found is not None:
                for lengths, advertisements in found.of_lengths.items():
                    if _is_too_wide(lengths, of_pool):
                        yield from advertisements
                # Of the environment no two collide; without the pool in it they may have been taken.
                yield from found.colliding

    def problems(self, ref: ObjectRef, row: MetalLBObject) -> Iterator[Problem]:
        """Yield those of an advertisement: a pool's are with its advertisements."""
        if isinstance(row, BGPAdvertisement):
            for version, length in _lengths(row).items():
                yield from self._of_aggregate(ref, version, length)
            if self._compares and _for_all_services(row):
                yield from self._of_preference(ref, row)

    def _of_aggregate(self, ref: ObjectRef, version: int, length: int) -> Iterator[Problem]:
        """Yield a problem of the advertisement, and one of each further pool that has none."""
        key = (self._facts.selection_of[ref], version, length)
        is_new = key not in self._too_wide
        if is_new:
            self._too_wide[key] = sorted(
                (pool, limit)
                for one in self._facts.classes_of[ref]
                for of, limit in one.shortest
                if of == version and length < limit
                for pool in self._of(one).pools
            )
        wrong = self._too_wide[key]
        further = [one for one in wrong[1:] if (version, one[0]) not in self._named]
        for pool, limit in (*wrong[:1], *(further if is_new else ())):
            self._named.add((version, pool))
            text = (
                f"an aggregate of length {length} is wider than the addresses of pool "
                f"{pool.name}, which allow {limit} and longer"
            )
            more = f", and than those of {len(wrong) - 1} more" if len(wrong) > 1 else ""
            yield finding((ref, pool), LENGTH_FIELDS[version], text + more, "conflict")

    def _of_preference(self, ref: ObjectRef, row: BGPAdvertisement) -> Iterator[Problem]:
        """Yield a problem with another advertisement, in the first pool with one."""
        for one in self._facts.classes_of[ref]:
            of_class = self._of(one)
            others = of_class.preferences.against(row) if of_class.pools else []
            if not others:
                continue
            other = following(others, ref.__lt__)
            rows = {ref: row, other: self._facts.rows[other]}
            values = {
                found: advertisement.spec.local_pref
                for found, advertisement in rows.items()
                if isinstance(advertisement, BGPAdvertisement)
            }
            pool = next(iter(of_class.pools)).name
            clause = others_beside(ref, len(others) - 1)
            text = f"localPref differs for pool {pool}: {listed(values)}{clause}"
            yield finding(values, PREFERENCE, text, "conflict")
            return

    def _of(self, one: PoolClass) -> _OfClass:
        found = self._of_class.get(one)
        if found is None:
            found = _OfClass([version for version, _ in one.shortest])
            self._of_class[one] = found
        return found


def _is_too_wide(lengths: Sequence[int], of_pools: PoolClass) -> bool:
    return any(lengths[VERSIONS.index(version)] < limit for version, limit in of_pools.shortest)
