"""Advertisements of one pool: too wide aggregates, and different local preferences. Pure.

Source: MetalLB internal/config/config.go, validateBGPAdvPerPool.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Final

from reconcilers.metallb.bit_sets import first, following, members
from reconcilers.metallb.conflicts.valid_objects import VERSIONS, ValidObjects
from reconcilers.metallb.objects import listed_values, others_beside, problem_of_objects
from reconcilers.model import ObjectRef, Problem
from resources.metallb.bgpadvertisement import BGPAdvertisement, aggregation_length
from resources.metallb.ipaddresspool import IPAddressPool
from resources.metallb.kinds import IP_ADDRESS_POOL
from resources.metallb.objects import MetalLBObject

LENGTH_FIELDS: Final = {4: "spec.aggregationLength", 6: "spec.aggregationLengthV6"}
PREFERENCE: Final = "spec.localPref"
"""The field of two local preferences for one pool."""


class Aggregates:
    """Advertisements whose aggregates are wider than the pools that they select."""

    def __init__(self, valid: ValidObjects) -> None:
        self._valid = valid
        self._pools = 0
        """Accepted pools."""
        self._advertisements: dict[tuple[int, int], int] = {}
        """Accepted advertisements, by the lengths of their aggregates."""
        self._named = dict.fromkeys(VERSIONS, 0)
        """Pools with a problem, by version of IP."""

    def accept(self, ref: ObjectRef, row: MetalLBObject) -> None:
        """Add a BGPAdvertisement with its aggregates, or an IPAddressPool."""
        if isinstance(row, BGPAdvertisement):
            lengths = (row.spec.aggregation_length, row.spec.aggregation_length_v6)
            of_lengths = self._advertisements.get(lengths, 0)
            self._advertisements[lengths] = of_lengths | 1 << self._valid.number_of[ref]
        elif isinstance(row, IPAddressPool):
            self._pools |= 1 << self._valid.number_of[ref]

    def against(self, ref: ObjectRef, row: MetalLBObject) -> Iterator[ObjectRef]:
        """Iterate over pools narrower than an aggregate, or over advertisements with a wider one."""
        valid = self._valid
        if isinstance(row, BGPAdvertisement):
            lengths = (row.spec.aggregation_length, row.spec.aggregation_length_v6)
            selected = valid.selected[valid.number_of[ref]] & self._pools
            for number in members(selected & self._too_wide(lengths)):
                yield valid.pools[number]
        elif isinstance(row, IPAddressPool):
            pool = valid.number_of[ref]
            for lengths, advertisements in self._advertisements.items():
                if self._too_wide(lengths) >> pool & 1:
                    for number in members(valid.selecting[pool] & advertisements):
                        yield valid.advertisements[number]

    def _too_wide(self, lengths: tuple[int, int]) -> int:
        four, six = lengths
        return self._valid.too_wide(4, four) | self._valid.too_wide(6, six)

    def problems(self, ref: ObjectRef, row: MetalLBObject) -> Iterator[Problem]:
        """Yield an advertisement's problems of too wide aggregates.

        With its first pool, and each pool that has none so far.
        """
        if not isinstance(row, BGPAdvertisement):
            return
        valid = self._valid
        selected = valid.selected[valid.number_of[ref]] & self._pools
        for version in VERSIONS:
            length = aggregation_length(row, version)
            wrong = selected & valid.too_wide(version, length)
            if not wrong:
                continue
            others = wrong.bit_count() - 1
            more = f", and than the addresses of {others} more" if others else ""
            for number in members(1 << first(wrong) | wrong & ~self._named[version]):
                pool = valid.pools[number]
                text = (
                    f"an aggregate of length {length} is wider than the addresses of pool "
                    f"{pool.name}, which allow {valid.shortest(version, number)} and longer"
                )
                yield problem_of_objects(
                    (ref, pool), LENGTH_FIELDS[version], text + more, "conflict"
                )
            self._named[version] |= wrong


class Preferences:
    """Advertisements that give the addresses of a pool different local preferences."""

    def __init__(self, valid: ValidObjects, environment: AbstractSet[ObjectRef]) -> None:
        """``environment`` has the pools for which two may be in conflict."""
        self._valid = valid
        self._differ = any(valid.differing.values())
        self._environment = valid.bits(environment, IP_ADDRESS_POOL) if self._differ else 0
        self._pools = 0
        """Accepted pools."""
        self._advertisements = 0
        """Accepted advertisements."""
        self._meeting = 0
        """Accepted advertisements that differ from another, whatever the pools of both."""

    def accept(self, ref: ObjectRef, row: MetalLBObject) -> None:
        """Add a BGPAdvertisement with its local preference, or a pool, to the rule of a conflict."""
        if isinstance(row, IPAddressPool):
            self._pools |= 1 << self._valid.number_of[ref]
        elif isinstance(row, BGPAdvertisement) and self._differ:
            number = self._valid.number_of[ref]
            for of_version in self._valid.differing.values():
                others = of_version.get(number, 0) & self._advertisements
                if others:
                    self._meeting |= others | 1 << number
            self._advertisements |= 1 << number

    def against(self, ref: ObjectRef, row: MetalLBObject) -> Iterator[ObjectRef]:
        """Iterate over advertisements of differing local preference; with a pool, among each other."""
        if not self._differ:
            return
        valid, against = self._valid, 0
        if isinstance(row, BGPAdvertisement):
            number = valid.number_of[ref]
            pools = valid.selected[number] & self._environment
            for version, of_version in valid.differing.items():
                others = of_version.get(number, 0) & self._advertisements
                against |= valid.sharing(others, pools & valid.of_version[version])
        elif isinstance(row, IPAddressPool):
            # No two differ for the pools of the environment; without the pool they may be accepted.
            against = self._colliding(valid.number_of[ref])
        for number in members(against):
            yield valid.advertisements[number]

    def _colliding(self, pool: int) -> int:
        """Return the accepted advertisements of a pool that differ from another advertisement of it."""
        selecting = self._valid.selecting[pool] & self._meeting
        colliding = 0
        for version, of_version in self._valid.differing.items():
            if self._valid.of_version[version] >> pool & 1:
                for number in members(selecting):
                    if of_version.get(number, 0) & selecting:
                        colliding |= 1 << number
        return colliding

    def problems(self, ref: ObjectRef, row: MetalLBObject) -> Iterator[Problem]:
        """Yield a problem of local preferences, with the next advertisement, for the first pool."""
        if not isinstance(row, BGPAdvertisement) or not self._differ:
            return
        valid, number = self._valid, self._valid.number_of[ref]
        selected = valid.selected[number] & self._pools
        others_of = {
            version: valid.differing[version].get(number, 0) & self._advertisements
            for version in VERSIONS
        }
        shared = 0
        for version, others in others_of.items():
            shared |= self._first_shared(others, selected & valid.of_version[version])
        if not shared:
            return
        pool = first(shared)
        others = 0
        for version, of_version in others_of.items():
            if valid.of_version[version] >> pool & 1:
                others |= of_version & valid.selecting[pool]
        other = valid.advertisements[following(others, number)]
        values = {
            either: advertisement.spec.local_pref
            for either in (ref, other)
            if isinstance(advertisement := valid.rows[either], BGPAdvertisement)
        }
        clause = others_beside(ref, others.bit_count() - 1)
        text = (
            f"localPref differs for pool {valid.pools[pool].name}: {listed_values(values)}{clause}"
        )
        yield problem_of_objects(values, PREFERENCE, text, "conflict")

    def _first_shared(self, advertisements: int, pools: int) -> int:
        """Return the first of some pools that one of some advertisements selects, as a set."""
        valid = self._valid
        if advertisements.bit_count() < pools.bit_count():
            shared = 0
            for number in members(advertisements):
                shared |= valid.selected[number]
                if shared & pools & -pools:
                    break
            shared &= pools
            return shared & -shared
        for pool in members(pools) if advertisements else ():
            if valid.selecting[pool] & advertisements:
                return 1 << pool
        return 0
