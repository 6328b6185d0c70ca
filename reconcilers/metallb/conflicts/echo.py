"""BFD with the echo mode, which is for IPv4 only, towards a peer with IPv6 pools. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from reconcilers.metallb.conflicts.facts import Facts, PoolClass
from reconcilers.metallb.objects import finding
from reconcilers.model import ObjectRef, Problem
from resources.metallb.bfdprofile import BFDProfile
from resources.metallb.bgpadvertisement import BGPAdvertisement
from resources.metallb.bgppeer import BGPPeer
from resources.metallb.ipaddresspool import IPAddressPool
from resources.metallb.objects import MetalLBObject


class Echo:
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

        self._left: dict[str, tuple[ObjectRef, ObjectRef]] | None = None
        """As `_complete`: those without a problem."""

    def take(self, ref: ObjectRef, row: MetalLBObject) -> None:
        """Add an object."""
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
            case IPAddressPool() if self._facts.echoing and self._facts.has_ipv6(ref):
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
        """Iterate over the other parties."""
        match row:
            case BFDProfile() if row.spec.echo_mode:
                for name, peer in self._peers[row.metadata.name].items():
                    yield from self._with(self._live_for(name), (peer,))
            case BGPPeer() if row.spec.bfd_profile in self._profiles:
                profile = self._profiles[row.spec.bfd_profile]
                yield from self._with(self._live_for(row.metadata.name), (profile,))
            case IPAddressPool() if self._complete and self._facts.has_ipv6(ref):
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

    def problems(self, ref: ObjectRef, row: MetalLBObject) -> Iterator[Problem]:
        """Yield a problem of each peer, with the first advertisement and pool."""
        if not isinstance(row, BGPAdvertisement) or not self._complete:
            return
        if self._left is None:
            self._left = dict(self._complete)
        left = self._left
        names = [name for name in dict.fromkeys(row.spec.peers or left) if name in left]
        pools = sorted(self._pools_of(ref)) if names else []
        more = f" (and {len(pools) - 1} more pools)" if len(pools) > 1 else ""
        for name in names if pools else ():
            text = (
                f"pool {pools[0].name}{more} has IPv6 addresses and is advertised to {name}, "
                "whose BFD profile has the echo mode, which is for IPv4 only"
            )
            yield finding((ref, pools[0], *left.pop(name)), "spec.echoMode", text, "conflict")
