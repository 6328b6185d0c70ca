"""Which of MetalLB's objects disagree: each is compared with those that could contradict it. Pure.

Two objects disagree exactly where `reconcilers.metallb.check` has a finding about both.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Final, NamedTuple, Protocol, TypeAlias

from reconcilers.metallb.check import (
    MAX_COMPARED,
    Preferences,
    aliases,
    by_name,
    end_of,
    for_all_services,
    pools_of,
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


class PoolClass(NamedTuple):
    """Pools that the same advertisements select and that allow the same aggregates.

    What an advertisement contradicts is the same for all of them: a thousand pools that a thousand
    advertisements select are one class, and not a million pairs.
    """

    selections: tuple[int, ...]
    """The selections of which the pools are part."""
    shortest: tuple[tuple[int, int], ...]
    """The shortest length of an aggregate, by version of the addresses: pairs of both."""


class Facts:
    """What objects are to each other; those that are wrong alone are none."""

    def __init__(self, objects: Objects, wrong: AbstractSet[ObjectRef]) -> None:
        sound = objects.only(frozenset(ref for ref, _ in objects.refs()) - wrong)
        self.rows: dict[ObjectRef, MetalLBObject] = dict(sound.refs())
        self.names = aliases(sound)
        pools = by_name(sound.pools)
        pool_refs = {name: ref_to(kinds.IP_ADDRESS_POOL, row) for name, row in pools.items()}
        selections: dict[tuple[str, ...], int] = {}
        selected: list[frozenset[ObjectRef]] = []
        numbers: dict[ObjectRef, int] = {}
        of_pool: dict[str, list[int]] = {name: [] for name in pools}
        for row in sound.advertisements:
            names = pools_of(row, pools)
            number = selections.setdefault(names, len(selections))
            numbers[ref_to(kinds.BGP_ADVERTISEMENT, row)] = number
            if number == len(selected):
                selected.append(frozenset(pool_refs[name] for name in names))
                for name in names:
                    of_pool[name].append(number)
        self.pools_of = {ref: selected[number] for ref, number in numbers.items()}
        """The pools that an advertisement selects; one set for equal selections."""
        self.spans = {ref: _spans(pools[name]) for name, ref in pool_refs.items()}
        """The addresses of a pool by version of IP, sorted and apart from each other."""
        self.class_of = {
            ref: PoolClass(tuple(of_pool[name]), _shortest(pools[name]))
            for name, ref in pool_refs.items()
        }
        classes: list[list[PoolClass]] = [[] for _ in selected]
        for one in dict.fromkeys(self.class_of.values()):
            for number in one.selections:
                classes[number].append(one)
        self.classes_of = {ref: classes[number] for ref, number in numbers.items()}
        """The classes of the pools that an advertisement selects."""
        self.echoing = {row.metadata.name for row in sound.profiles if row.spec.echo_mode}
        """The names of BFD profiles with the echo mode."""

    def advertisement(self, ref: ObjectRef) -> BGPAdvertisement:
        """Return a BGPAdvertisement."""
        row = self.rows[ref]
        assert isinstance(row, BGPAdvertisement)  # noqa: S101  for the type
        return row


def _spans(row: IPAddressPool) -> dict[int, list[Span]]:
    spans: dict[int, list[Span]] = defaultdict(list)
    for entry in blocks(row):
        for network in entry.networks:
            span = (int(network.network_address), int(network.broadcast_address))
            spans[network.version].append(span)
    return {version: _apart(found) for version, found in spans.items()}


def _shortest(row: IPAddressPool) -> tuple[tuple[int, int], ...]:
    lengths = ((version, shortest_length(row, version)) for version in VERSIONS)
    return tuple((version, length) for version, length in lengths if length is not None)


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
        self._taken: dict[Hashable, dict[Hashable, list[ObjectRef]]] = {}
        """By name, and by value."""

    def take(self, ref: ObjectRef, row: MetalLBObject) -> None:
        for key, value in _claims(ref, row):
            self._taken.setdefault(key, {}).setdefault(value, []).append(ref)

    def against(self, ref: ObjectRef, row: MetalLBObject) -> Iterator[ObjectRef]:
        for key, value in _claims(ref, row):
            for taken, others in self._taken.get(key, {}).items():
                if taken != value:
                    yield from others


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
            for version, spans in self._facts.spans[ref].items():
                for first, last in spans:
                    bisect.insort(self._taken[version], (first, last, ref))

    def against(self, ref: ObjectRef, row: MetalLBObject) -> Iterator[ObjectRef]:
        if not isinstance(row, IPAddressPool):
            return
        for version, spans in self._facts.spans[ref].items():
            taken = self._taken[version]
            for first, last in spans:
                i = bisect.bisect_right(taken, last, key=lambda one: one[0])
                while i > 0 and taken[i - 1][1] >= first:
                    i -= 1
                    yield taken[i][2]


class _ClassAdvertised:
    """The advertisements of one class of pools, and the pools, as far as they are taken."""

    def __init__(self, versions: Sequence[int]) -> None:
        self.pools: dict[ObjectRef, None] = {}
        self.of_lengths: dict[tuple[int, int], dict[ObjectRef, None]] = {}
        """Advertisements, by the lengths of their aggregates."""
        self.preferences = Preferences((), versions)
        self.colliding: dict[ObjectRef, None] = {}
        """Advertisements with different local preferences: some of very many."""

    def take(self, ref: ObjectRef, row: BGPAdvertisement) -> None:
        self.of_lengths.setdefault(_lengths(row), {})[ref] = None
        if not for_all_services(row):
            return
        if len(self.colliding) < MAX_COMPARED and (others := self.collisions(row)):
            self.colliding.update(dict.fromkeys((*others, ref)))
        self.preferences.add(row)

    def collisions(self, row: BGPAdvertisement) -> list[ObjectRef]:
        return [ref_to(kinds.BGP_ADVERTISEMENT, one) for one in self.preferences.against(row)]


class _Advertised:
    """Aggregates that are wider than a pool, and different local preferences for one pool."""

    def __init__(self, facts: Facts, environment: AbstractSet[ObjectRef]) -> None:
        self._facts = facts
        self._environment = {facts.class_of[ref] for ref in environment if ref in facts.class_of}
        self._of_class: dict[PoolClass, _ClassAdvertised] = {}

    def take(self, ref: ObjectRef, row: MetalLBObject) -> None:
        if isinstance(row, BGPAdvertisement):
            for one in self._facts.classes_of[ref]:
                self._of(one).take(ref, row)
        elif isinstance(row, IPAddressPool):
            self._of(self._facts.class_of[ref]).pools[ref] = None

    def against(self, ref: ObjectRef, row: MetalLBObject) -> Iterator[ObjectRef]:
        if isinstance(row, BGPAdvertisement):
            for one in self._facts.classes_of[ref]:
                found = self._of_class.get(one)
                if found is None:
                    continue
                if _is_too_wide(_lengths(row), one):
                    yield from found.pools
                if one in self._environment and for_all_services(row):
                    yield from found.collisions(row)
        elif isinstance(row, IPAddressPool):
            of_pool = self._facts.class_of[ref]
            found = self._of_class.get(of_pool)
            if found is not None:
                for lengths, advertisements in found.of_lengths.items():
                    if _is_too_wide(lengths, of_pool):
                        yield from advertisements
                # Of the environment no two collide; without the pool in it they may have been taken.
                yield from found.colliding

    def _of(self, one: PoolClass) -> _ClassAdvertised:
        found = self._of_class.get(one)
        if found is None:
            found = _ClassAdvertised([version for version, _ in one.shortest])
            self._of_class[one] = found
        return found


def _lengths(row: BGPAdvertisement) -> tuple[int, int]:
    return row.spec.aggregation_length, row.spec.aggregation_length_v6


def _is_too_wide(lengths: tuple[int, int], of_pools: PoolClass) -> bool:
    return any(lengths[VERSIONS.index(version)] < limit for version, limit in of_pools.shortest)


class _Echo:
    """BFD with the echo mode towards a peer to which a pool with IPv6 addresses is advertised.

    Four objects disagree together: a profile, a peer, an advertisement and a pool.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._profiles: dict[str, ObjectRef] = {}
        """Profiles that echo, by their name."""
        self._peers: dict[str, dict[str, ObjectRef]] = defaultdict(dict)
        """Peers by their profile, which echoes, and by their name."""
        self._complete: dict[str, tuple[ObjectRef, ObjectRef]] = {}
        """Peers whose profile is taken, by their name, with it."""
        self._advertisements: dict[ObjectRef, BGPAdvertisement] = {}
        """Those that select a pool with IPv6 addresses, taken or not."""
        self._of_peer: dict[str, dict[ObjectRef, None]] = defaultdict(dict)
        """Advertisements by the names of their peers; "" where they name none."""
        self._live: dict[str, dict[ObjectRef, None]] = defaultdict(dict)
        """As `_of_peer`: those of which a pool with IPv6 addresses is taken."""
        self._pools: dict[PoolClass, dict[ObjectRef, None]] = defaultdict(dict)
        """Those with IPv6 addresses."""
        self._of_class: dict[PoolClass, dict[ObjectRef, None]] = defaultdict(dict)
        """Advertisements by the classes of their pools."""
        self._to_complete: dict[PoolClass, dict[ObjectRef, None]] = defaultdict(dict)
        """As `_of_class`: those to a peer of `_complete`."""

    def take(self, ref: ObjectRef, row: MetalLBObject) -> None:
        match row:
            case BFDProfile() if row.spec.echo_mode:
                self._profiles[row.metadata.name] = ref
                for name, peer in self._peers[row.metadata.name].items():
                    self._completed(name, peer, ref)
            case BGPPeer() if row.spec.bfd_profile in self._facts.echoing:
                name = row.metadata.name
                self._peers[row.spec.bfd_profile][name] = ref
                profile = self._profiles.get(row.spec.bfd_profile)
                if profile is not None:
                    self._completed(name, ref, profile)
            case IPAddressPool() if self._facts.echoing and 6 in self._facts.spans[ref]:
                of_class = self._facts.class_of[ref]
                if not self._pools[of_class]:
                    for one in self._of_class[of_class]:
                        self._add(self._live, one)
                self._pools[of_class][ref] = None
            case BGPAdvertisement() if self._facts.echoing:
                self._take_advertisement(ref, row)

    def _take_advertisement(self, ref: ObjectRef, row: BGPAdvertisement) -> None:
        classes = self._six(ref)
        if not classes:
            return
        self._advertisements[ref] = row
        self._add(self._of_peer, ref)
        for one in classes:
            self._of_class[one][ref] = None
        if any(self._pools.get(one) for one in classes):
            self._add(self._live, ref)
        if next(self._peers_of(row), None) is not None:
            self._reaches_peer(ref)

    def _add(self, by_peer: dict[str, dict[ObjectRef, None]], ref: ObjectRef) -> None:
        for name in self._advertisements[ref].spec.peers or ("",):
            by_peer[name][ref] = None

    def _completed(self, name: str, peer: ObjectRef, profile: ObjectRef) -> None:
        named = list(self._of_peer.get(name, ()))
        if not self._complete:
            named += self._of_peer.get("", ())
        self._complete[name] = (peer, profile)
        for ref in named:
            self._reaches_peer(ref)

    def _reaches_peer(self, ref: ObjectRef) -> None:
        for one in self._six(ref):
            self._to_complete[one][ref] = None

    def _six(self, ref: ObjectRef) -> list[PoolClass]:
        """Return the classes with IPv6 addresses that an advertisement selects."""
        return [one for one in self._facts.classes_of[ref] if 6 in dict(one.shortest)]

    def _peers_of(self, row: BGPAdvertisement) -> Iterator[tuple[ObjectRef, ObjectRef]]:
        """Iterate over peers and profiles that are taken, to which an advertisement goes."""
        names = row.spec.peers or self._complete
        return (self._complete[name] for name in names if name in self._complete)

    def _pools_of(self, ref: ObjectRef) -> Iterator[ObjectRef]:
        return (pool for one in self._six(ref) for pool in self._pools.get(one, ()))

    def _live_for(self, name: str) -> Iterator[ObjectRef]:
        """Iterate over the advertisements and pools that are advertised to a peer."""
        for one in (*self._live.get(name, ()), *self._live.get("", ())):
            yield one
            yield from self._pools_of(one)

    def against(self, ref: ObjectRef, row: MetalLBObject) -> Iterator[ObjectRef]:
        match row:
            case BFDProfile() if row.spec.echo_mode:
                for name, peer in self._peers[row.metadata.name].items():
                    yield from self._with(self._live_for(name), (peer,))
            case BGPPeer() if row.spec.bfd_profile in self._profiles:
                profile = self._profiles[row.spec.bfd_profile]
                yield from self._with(self._live_for(row.metadata.name), (profile,))
            case IPAddressPool() if self._complete and 6 in self._facts.spans[ref]:
                for one in self._to_complete.get(self._facts.class_of[ref], ()):
                    yield one
                    for found in self._peers_of(self._advertisements[one]):
                        yield from found
            case BGPAdvertisement() if self._complete:
                peers = (one for found in self._peers_of(row) for one in found)
                first = next(peers, None)
                if first is not None:
                    yield from self._with(self._pools_of(ref), (first,), peers)

    def _with(
        self, found: Iterator[ObjectRef], *others: Iterable[ObjectRef]
    ) -> Iterator[ObjectRef]:
        """Iterate over others and what is found, if anything is."""
        first = next(found, None)
        if first is not None:
            for some in others:
                yield from some
            yield first
            yield from found


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
