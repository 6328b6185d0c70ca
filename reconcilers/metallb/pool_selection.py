"""The pools that advertisements select, by name or by label, without a comparison of each pair. Pure.

A set of pools has a bit for each of them (`bit_sets`), so that a selector of labels costs a
few operations whatever the number of pools.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import final

from reconcilers.metallb.bit_sets import chosen
from resources.label_selectors import LabelSelector, LabelSelectorRequirement
from resources.metallb.bgpadvertisement import BGPAdvertisement
from resources.metallb.ipaddresspool import IPAddressPool


@final
class PoolSelection:
    """Pools by their names and labels."""

    def __init__(self, pools: Iterable[IPAddressPool]) -> None:
        self.rows: Mapping[str, IPAddressPool] = {row.metadata.name: row for row in pools}
        """By name."""
        self.names = tuple(self.rows)
        """The name of each bit."""
        self._all = (1 << len(self.names)) - 1
        self._bits = {name: 1 << number for number, name in enumerate(self.names)}
        self._with_key: dict[str, int] = {}
        self._with_label: dict[tuple[str, str], int] = {}
        for name, row in self.rows.items():
            for label in row.metadata.labels.items():
                bit = self._bits[name]
                self._with_key[label[0]] = self._with_key.get(label[0], 0) | bit
                self._with_label[label] = self._with_label.get(label, 0) | bit

    def of(self, advertisement: BGPAdvertisement) -> tuple[str, ...]:
        """Return the names of the pools that a BGPAdvertisement selects."""
        return tuple(chosen(self.names, self.bits(advertisement)))

    def bits(self, advertisement: BGPAdvertisement) -> int:
        """Return the pools that a BGPAdvertisement selects, a bit each.

        Without names and selectors it selects all; with selectors that match none it selects none.
        """
        spec = advertisement.spec
        if not (spec.ip_address_pools or spec.ip_address_pool_selectors):
            return self._all
        bits = 0
        for name in spec.ip_address_pools:
            bits |= self._bits.get(name, 0)
        for selector in spec.ip_address_pool_selectors:
            bits |= self._matching(selector)
        return bits

    def _matching(self, selector: LabelSelector) -> int:
        matching = self._all
        for label in selector.match_labels.items():
            matching &= self._with_label.get(label, 0)
        for requirement in selector.match_expressions:
            matching &= self._fulfilling(requirement)
        return matching

    def _fulfilling(self, requirement: LabelSelectorRequirement) -> int:
        with_key = self._with_key.get(requirement.key, 0)
        match requirement.operator:
            case "Exists":
                return with_key
            case "DoesNotExist":
                return self._all & ~with_key
        fulfilling = 0
        for value in requirement.values:
            fulfilling |= self._with_label.get((requirement.key, value), 0)
        return fulfilling if requirement.operator == "In" else self._all & ~fulfilling
