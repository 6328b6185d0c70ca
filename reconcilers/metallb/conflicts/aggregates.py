"""Aggregates that are wider than the addresses of a pool. Pure.

Source: MetalLB internal/config/config.go, validateBGPAdvPerPool.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconcilers.bit_sets import first, members
from reconcilers.metallb.conflicts.valid_objects import VERSIONS, ValidObjects
from reconcilers.metallb.objects import problem_of_objects
from reconcilers.model import ObjectRef, Problem
from resources.metallb.bgpadvertisement import BGPAdvertisement, aggregation_length
from resources.metallb.ipaddresspool import IPAddressPool
from resources.metallb.objects import MetalLBObject

LENGTH_FIELDS: Final = {4: "spec.aggregationLength", 6: "spec.aggregationLengthV6"}


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
