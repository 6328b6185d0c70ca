"""The valid objects of a node as rules of conflicts read them. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple

from reconcilers.metallb.bit_sets import bits_of, members, transposed
from reconcilers.metallb.objects import Objects
from reconcilers.metallb.pool_selection import PoolSelection
from reconcilers.model import ObjectRef, ref_to
from resources.kind import Kind
from resources.metallb import kinds
from resources.metallb.bgpadvertisement import BGPAdvertisement, aggregation_length
from resources.metallb.ipaddresspool import Block, IPAddressPool, blocks
from resources.metallb.objects import MetalLBObject

VERSIONS: Final = (4, 6)
MAX_COMPARED: Final = 100
"""Objects in conflict with one object that are looked for; more are not counted."""


class Span(NamedTuple):
    """Consecutive addresses of a pool, as numbers; of one version of IP."""

    first: int
    last: int
    pool: ObjectRef
    entry: Block


class ValidObjects:
    """Objects that are valid by themselves, and what follows from all of them.

    Pools and advertisements have numbers, in the order of their names, and a set of them has a bit for
    each (`bit_sets`): a thousand advertisements, each with its own selection of a thousand
    pools, are a thousand sets, and not a million pairs.
    """

    def __init__(self, objects: Objects, wrong: AbstractSet[ObjectRef] = frozenset()) -> None:
        sound = objects.without(wrong)
        self.rows: dict[ObjectRef, MetalLBObject] = dict(sound.refs())
        self.names = sound.aliases()
        self.pools = [ref_to(kinds.IP_ADDRESS_POOL, row) for row in sound.pools]
        self.advertisements = [ref_to(kinds.BGP_ADVERTISEMENT, row) for row in sound.advertisements]
        numbered = (*enumerate(self.pools), *enumerate(self.advertisements))
        self.number_of = {ref: number for number, ref in numbered}
        """The number of a pool among pools, of an advertisement among advertisements."""
        selection = PoolSelection(sound.pools)
        self.selected = [selection.bits(row) for row in sound.advertisements]
        """The pools that an advertisement selects, by its number."""
        self.selecting = transposed(self.selected, len(self.pools))
        """The advertisements that select a pool, by its number."""
        self._shortest = {
            (version, number): length
            for number, row in enumerate(sound.pools)
            for version in VERSIONS
            if (length := _shortest_length(row, version)) is not None
        }
        self.of_version = {
            version: bits_of(number for of, number in self._shortest if of == version)
            for version in VERSIONS
        }
        """The pools with addresses of a version of IP."""
        self._too_wide: dict[tuple[int, int], int] = {}
        spans = [
            (network.version, Span(int(network[0]), int(network[-1]), ref, entry))
            for ref, row in zip(self.pools, sound.pools, strict=True)
            for entry in blocks(row)
            for network in entry.networks
        ]
        self.spans: dict[int, list[Span]] = {
            version: sorted(
                (span for of, span in spans if of == version), key=lambda span: span[:3]
            )
            for version in VERSIONS
        }
        """By version of IP, in the order of their first addresses."""
        self.places: dict[ObjectRef, list[tuple[int, int]]] = defaultdict(list)
        """The spans of a pool: version, and the place in `spans`."""
        for version, of_version in self.spans.items():
            for i, span in enumerate(of_version):
                self.places[span.pool].append((version, i))
        for_all_services = {
            number: row
            for number, row in enumerate(sound.advertisements)
            if not row.spec.service_selectors
        }
        self.differing = {
            version: differing_preferences(for_all_services, version) for version in VERSIONS
        }
        """By version of IP and number: the advertisements with another local preference."""
        self.echoing = {row.metadata.name for row in sound.profiles if row.spec.echo_mode}
        """The names of BFD profiles with the echo mode."""

    def bits(self, refs: Iterable[ObjectRef], kind: Kind[Any]) -> int:
        """Return the valid objects of a kind among some references, as a set of bits."""
        of_kind = (self.number_of.get(ref) for ref in refs if ref.kind == kind.name)
        return bits_of(number for number in of_kind if number is not None)

    def shortest(self, version: int, pool: int) -> int:
        """Return the shortest length of an aggregate of a pool with addresses of a version."""
        return self._shortest[version, pool]

    def too_wide(self, version: int, length: int) -> int:
        """Return the pools of whose addresses an aggregate of some length has more."""
        too_wide = self._too_wide.get((version, length))
        if too_wide is None:
            too_wide = self._too_wide[version, length] = bits_of(
                number
                for (of, number), shortest in self._shortest.items()
                if of == version and length < shortest
            )
        return too_wide

    def sharing(self, advertisements: int, pools: int) -> int:
        """Return the advertisements that select any of these pools: all, or at least `MAX_COMPARED`."""
        sharing = 0
        if advertisements.bit_count() < pools.bit_count():
            for number in members(advertisements):
                if self.selected[number] & pools:
                    sharing |= 1 << number
                    if sharing.bit_count() >= MAX_COMPARED:
                        break
        elif advertisements:
            for pool in members(pools):
                sharing |= self.selecting[pool] & advertisements
                if sharing.bit_count() >= MAX_COMPARED:
                    break
        return sharing


def differing_preferences(rows: Mapping[int, BGPAdvertisement], version: int) -> dict[int, int]:
    """Return for each of the valid advertisements the others that give a prefix another preference.

    Of a version of IP. Two give a peer's prefix no second preference if their aggregates differ in
    length, nor if they name peers and have none in common. A set has the keys of ``rows``; empty
    sets are omitted.
    """
    if len({row.spec.local_pref for row in rows.values()}) < 2:
        return {}
    of_key: dict[tuple[int, str | None], int] = defaultdict(int)
    of_preference: dict[tuple[int, str | None, int], int] = defaultdict(int)
    for number, row in rows.items():
        length, preference = aggregation_length(row, version), row.spec.local_pref
        # Under "" without peers; under None all of them.
        for peer in (None, *(row.spec.peers or ("",))):
            of_key[length, peer] |= 1 << number
            of_preference[length, peer, preference] |= 1 << number
    firsts: dict[int, int] = {}
    for number, row in rows.items():
        length, preference = aggregation_length(row, version), row.spec.local_pref
        others = 0
        for peer in (*row.spec.peers, "") if row.spec.peers else (None,):
            same = of_preference.get((length, peer, preference), 0)
            others |= of_key.get((length, peer), 0) & ~same
        if others:
            firsts[number] = others
    return firsts


def _shortest_length(pool: IPAddressPool, version: int) -> int | None:
    """Return the shortest length that the pool's addresses may be aggregated to, or None.

    Each entry has a largest prefix; the smallest of these is returned.
    """
    lengths = [
        min(network.prefixlen for network in entry.networks)
        for entry in blocks(pool)
        if entry.networks[0].version == version
    ]
    return max(lengths, default=None)
