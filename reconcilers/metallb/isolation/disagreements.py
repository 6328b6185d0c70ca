"""Which of MetalLB's objects disagree: each is compared with those that could contradict it. Pure.

Two objects disagree exactly where `reconcilers.metallb.check` has a finding about both.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Final, NamedTuple, Protocol, TypeAlias

from reconcilers.metallb.check import (
    MAX_COMPARED,
    aliases,
    by_name,
    end_of,
    for_all_services,
    pools_of,
    preferences_collide,
    shortest_length,
    vrf_of,
)
from reconcilers.metallb.objects import Objects
from reconcilers.model import ObjectRef, ref_to
from resources.metallb import kinds
from resources.metallb.bfdprofile import BFDProfile
from resources.metallb.bgpadvertisement import BGPAdvertisement
from resources.metallb.bgppeer import BGPPeer
from resources.metallb.community import Community
from resources.metallb.ipaddresspool import IPAddressPool, blocks
from resources.metallb.objects import MetalLBObject

Span: TypeAlias = tuple[int, int]
"""The first and the last address, as numbers."""
VERSIONS: Final = (4, 6)


class _Pool(NamedTuple):
    """What of a pool others may contradict."""

    spans: Mapping[int, Sequence[Span]]
    """By version of IP, sorted and apart from each other."""
    shortest: Mapping[int, int]
    """The shortest length of an aggregate, by version of its addresses."""
    advertisements: tuple[ObjectRef, ...]
    """Those that select it."""


class Facts:
    """What objects are to each other; those that are wrong alone are none."""

    def __init__(self, objects: Objects, wrong: AbstractSet[ObjectRef]) -> None:
        sound = objects.only(frozenset(ref for ref, _ in objects.refs()) - wrong)
        self.rows: dict[ObjectRef, MetalLBObject] = dict(sound.refs())
        self.names = aliases(sound)
        pool_refs = {row.metadata.name: ref_to(kinds.IP_ADDRESS_POOL, row) for row in sound.pools}
        selecting: dict[ObjectRef, list[ObjectRef]] = defaultdict(list)
        self.pools_of: dict[ObjectRef, tuple[ObjectRef, ...]] = {}
        """The pools that an advertisement selects."""
        pools = by_name(sound.pools)
        for row in sound.advertisements:
            ref = ref_to(kinds.BGP_ADVERTISEMENT, row)
            found = tuple(pool_refs[name] for name in pools_of(row, pools))
            self.pools_of[ref] = found
            for pool in found:
                selecting[pool].append(ref)
        self.pools = {
            ref: _pool(row, selecting[ref])
            for row, ref in zip(sound.pools, pool_refs.values(), strict=True)
        }
        self.echoing = {row.metadata.name for row in sound.profiles if row.spec.echo_mode}
        """The names of BFD profiles with the echo mode."""

    def advertisement(self, ref: ObjectRef) -> BGPAdvertisement:
        """Return a BGPAdvertisement."""
        row = self.rows[ref]
        assert isinstance(row, BGPAdvertisement)  # noqa: S101  for the type
        return row


def _pool(row: IPAddressPool, advertisements: Iterable[ObjectRef]) -> _Pool:
    spans: dict[int, list[Span]] = defaultdict(list)
    for entry in blocks(row):
        for network in entry.networks:
            span = (int(network.network_address), int(network.broadcast_address))
            spans[network.version].append(span)
    lengths = ((version, shortest_length(row, version)) for version in VERSIONS)
    return _Pool(
        {version: _apart(found) for version, found in spans.items()},
        {version: length for version, length in lengths if length is not None},
        tuple(advertisements),
    )


def _apart(spans: Iterable[Span]) -> list[Span]:
    """Unite spans that overlap."""
    found: list[Span] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found


class _Rule(Protocol):
    """One kind of disagreement among the objects that are taken."""

    def take(self, ref: ObjectRef, row: MetalLBObject) -> None: ...

    def against(self, ref: ObjectRef, row: MetalLBObject) -> Iterator[ObjectRef]: ...


class _Claims:
    """Names that one object has, and values that all objects have alike."""

    def __init__(self) -> None:
        self._taken: dict[Hashable, list[tuple[Hashable, ObjectRef]]] = defaultdict(list)

    def take(self, ref: ObjectRef, row: MetalLBObject) -> None:
        for key, value in _claims(ref, row):
            self._taken[key].append((value, ref))

    def against(self, ref: ObjectRef, row: MetalLBObject) -> Iterator[ObjectRef]:
        for key, value in _claims(ref, row):
            for taken, other in self._taken.get(key, ()):
                if taken != value:
                    yield other


def _claims(ref: ObjectRef, row: MetalLBObject) -> Iterator[tuple[Hashable, Hashable]]:
    if isinstance(row, Community):
        for alias in row.spec.communities:
            yield ("alias", alias.name), ref
    elif isinstance(row, BGPPeer):
        vrf = vrf_of(row)
        yield "routerID", row.spec.router_id
        yield ("myASN", vrf), row.spec.my_asn
        yield ("end", vrf, bool(row.spec.interface), end_of(row)), ref


class _Overlaps:
    """Pools with an address in common."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._taken: dict[int, list[tuple[int, int, ObjectRef]]] = {one: [] for one in VERSIONS}
        """Sorted, and apart from each other."""

    def take(self, ref: ObjectRef, row: MetalLBObject) -> None:
        if isinstance(row, IPAddressPool):
            for version, spans in self._facts.pools[ref].spans.items():
                for first, last in spans:
                    bisect.insort(self._taken[version], (first, last, ref))

    def against(self, ref: ObjectRef, row: MetalLBObject) -> Iterator[ObjectRef]:
        if not isinstance(row, IPAddressPool):
            return
        for version, spans in self._facts.pools[ref].spans.items():
            taken = self._taken[version]
            for first, last in spans:
                i = bisect.bisect_right(taken, last, key=lambda one: one[0])
                while i > 0 and taken[i - 1][1] >= first:
                    i -= 1
                    yield taken[i][2]


class _Advertised:
    """Aggregates that are wider than a pool, and different local preferences for one pool."""

    def __init__(self, facts: Facts, environment: AbstractSet[ObjectRef]) -> None:
        self._facts = facts
        self._environment = environment
        self._taken: set[ObjectRef] = set()
        self._given: set[int] = set()
        """The local preferences of `_preferences`: with a single one nothing collides."""
        self._preferences: dict[Hashable, dict[int, list[ObjectRef]]] = {}
        """Advertisements by pool, version and length of the aggregate, and by local preference."""

    def take(self, ref: ObjectRef, row: MetalLBObject) -> None:
        self._taken.add(ref)
        if isinstance(row, BGPAdvertisement) and for_all_services(row):
            self._given.add(row.spec.local_pref)
            for pool in self._facts.pools_of[ref]:
                for key in self._keys(pool, row):
                    found = self._preferences.setdefault(key, {})
                    found.setdefault(row.spec.local_pref, []).append(ref)

    def against(self, ref: ObjectRef, row: MetalLBObject) -> Iterator[ObjectRef]:
        if isinstance(row, BGPAdvertisement):
            for pool in self._facts.pools_of[ref]:
                if pool in self._taken and self._is_too_wide(row, pool):
                    yield pool
                if pool in self._environment and for_all_services(row):
                    yield from self._colliding(row, pool)
        elif isinstance(row, IPAddressPool):
            for one in self._taken_of(ref):
                if self._is_too_wide(self._facts.advertisement(one), ref):
                    yield one
            # Of the environment no two collide; without the pool in it they may have been taken.
            for one in self._taken_of(ref):
                row = self._facts.advertisement(one)
                if for_all_services(row):
                    yield from self._colliding(row, ref)

    def _taken_of(self, pool: ObjectRef) -> Iterator[ObjectRef]:
        return (one for one in self._facts.pools[pool].advertisements if one in self._taken)

    def _is_too_wide(self, row: BGPAdvertisement, pool: ObjectRef) -> bool:
        shortest = self._facts.pools[pool].shortest
        return any(_length(row, version) < limit for version, limit in shortest.items())

    def _colliding(self, row: BGPAdvertisement, pool: ObjectRef) -> Iterator[ObjectRef]:
        if self._given <= {row.spec.local_pref}:
            return
        for key in self._keys(pool, row):
            for preference, others in self._preferences.get(key, {}).items():
                if preference != row.spec.local_pref:
                    for other in others:
                        there = self._facts.advertisement(other)
                        if preferences_collide(row, there, (key[1],)):
                            yield other

    def _keys(self, pool: ObjectRef, row: BGPAdvertisement) -> list[tuple[ObjectRef, int, int]]:
        return [(pool, one, _length(row, one)) for one in self._facts.pools[pool].shortest]


def _length(row: BGPAdvertisement, version: int) -> int:
    return row.spec.aggregation_length if version == 4 else row.spec.aggregation_length_v6


class _Echo:
    """BFD with the echo mode towards a peer to which a pool with IPv6 addresses is advertised."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._peers: dict[str, ObjectRef] = {}
        """Peers with a profile that echoes, by their name."""
        self._profiles: dict[str, ObjectRef] = {}
        """Profiles that echo, by their name."""
        self._pools: dict[ObjectRef, None] = {}
        """Those with IPv6 addresses."""
        self._advertisements: dict[ObjectRef, BGPAdvertisement] = {}

    def take(self, ref: ObjectRef, row: MetalLBObject) -> None:
        match row:
            case BFDProfile() if row.spec.echo_mode:
                self._profiles[row.metadata.name] = ref
            case BGPPeer() if row.spec.bfd_profile in self._facts.echoing:
                self._peers[row.metadata.name] = ref
            case IPAddressPool() if 6 in self._facts.pools[ref].spans:
                self._pools[ref] = None
            case BGPAdvertisement() if self._facts.echoing:
                self._advertisements[ref] = row

    def against(self, ref: ObjectRef, row: MetalLBObject) -> Iterator[ObjectRef]:
        if not self._facts.echoing:
            return
        profiles, peers = self._profiles, self._peers
        pools, advertisements = self._pools, self._advertisements
        match row:
            case BFDProfile() if row.spec.echo_mode:
                profiles = {row.metadata.name: ref}
            case BGPPeer() if row.spec.bfd_profile in self._facts.echoing:
                peers = {row.metadata.name: ref}
            case IPAddressPool() if 6 in self._facts.pools[ref].spans:
                pools = {ref: None}
            case BGPAdvertisement():
                advertisements = {ref: row}
            case _:
                return
        echoing = {
            name: (peer, profiles[self._profile_of(peer)])
            for name, peer in peers.items()
            if self._profile_of(peer) in profiles
        }
        for advertisement, spec in ((one, row.spec) for one, row in advertisements.items()):
            six = [one for one in self._facts.pools_of[advertisement] if one in pools]
            names = [one for one in (spec.peers or echoing) if one in echoing] if six else ()
            for name in names:
                found = (*echoing[name], advertisement, *six)
                yield from (one for one in found if one != ref)

    def _profile_of(self, peer: ObjectRef) -> str:
        row = self._facts.rows[peer]
        assert isinstance(row, BGPPeer)  # noqa: S101  for the type
        return row.spec.bfd_profile


class ObjectsBeside:
    """The objects that are taken."""

    def __init__(self, facts: Facts, environment: AbstractSet[ObjectRef]) -> None:
        self._rows = facts.rows
        self._rules: Sequence[_Rule] = (
            _Claims(),
            _Overlaps(facts),
            _Advertised(facts, environment),
            _Echo(facts),
        )

    def take(self, ref: ObjectRef) -> None:
        """Add an object; one of another dialect has no effect."""
        row = self._rows.get(ref)
        if row is not None:
            for rule in self._rules:
                rule.take(ref, row)

    def against(self, ref: ObjectRef) -> Iterator[ObjectRef]:
        """Iterate over the objects with which another one disagrees; over some of very many."""
        row = self._rows.get(ref)
        if row is not None:
            for rule in self._rules:
                yield from islice(rule.against(ref, row), MAX_COMPARED)
