"""BFD with the echo mode, which is for IPv4 only, towards a peer with IPv6 pools. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from reconcilers.metallb.bit_sets import first, members
from reconcilers.metallb.conflicts.valid_objects import ValidObjects
from reconcilers.metallb.objects import problem_of_objects
from reconcilers.model import ObjectRef, Problem
from resources.enumeration import counted
from resources.metallb.bfdprofile import BFDProfile
from resources.metallb.bgpadvertisement import BGPAdvertisement
from resources.metallb.bgppeer import BGPPeer
from resources.metallb.ipaddresspool import IPAddressPool
from resources.metallb.objects import MetalLBObject


class Echo:
    """BFD with the echo mode towards a peer to which a pool with IPv6 addresses is advertised.

    Four objects disagree together: a profile, a peer, an advertisement and a pool.
    """

    def __init__(self, valid: ValidObjects) -> None:
        self._valid = valid
        self._profiles: dict[str, ObjectRef] = {}
        """Profiles that echo, by their name."""
        self._peers: dict[str, dict[str, ObjectRef]] = defaultdict(dict)
        """Peers by their profile, which echoes, and by their name."""
        self._complete: dict[str, tuple[ObjectRef, ObjectRef]] = {}
        """Peers whose profile is accepted, by their name, with it."""
        self._six = valid.of_version[6] if valid.echoing else 0
        """The pools with IPv6 addresses."""
        self._pools = 0
        """Accepted pools with IPv6 addresses."""
        self._of_peer: dict[str, int] = defaultdict(int)
        """Advertisements that select such a pool, accepted or not, by the names of their peers.

        Under "" are objects that name none.
        """
        self._live = 0
        """Advertisements, accepted or not, of which a pool with IPv6 addresses is accepted."""
        self._to_complete = 0
        """Advertisements to a peer of `_complete`."""
        self._left: dict[str, tuple[ObjectRef, ObjectRef]] | None = None
        """As `_complete`: entries without a problem."""

    def accept(self, ref: ObjectRef, row: MetalLBObject) -> None:
        """Add a profile, peer, advertisement or pool to the rule of BFD's echo mode."""
        match row:
            case BFDProfile() if row.spec.echo_mode:
                self._profiles[row.metadata.name] = ref
                for name, peer in self._peers[row.metadata.name].items():
                    self._completed(name, peer, ref)
            case BGPPeer() if row.spec.bfd_profile in self._valid.echoing:
                name = row.metadata.name
                self._peers[row.spec.bfd_profile][name] = ref
                profile = self._profiles.get(row.spec.bfd_profile)
                if profile is not None:
                    self._completed(name, ref, profile)
            case IPAddressPool() if self._six >> self._valid.number_of[ref] & 1:
                number = self._valid.number_of[ref]
                self._pools |= 1 << number
                self._live |= self._valid.selecting[number]
            case BGPAdvertisement() if self._valid.selected[self._valid.number_of[ref]] & self._six:
                bit = 1 << self._valid.number_of[ref]
                for name in row.spec.peers or ("",):
                    self._of_peer[name] |= bit
                if next(self._peers_of(row), None) is not None:
                    self._to_complete |= bit

    def _completed(self, name: str, peer: ObjectRef, profile: ObjectRef) -> None:
        self._to_complete |= self._of_peer.get(name, 0)
        if not self._complete:
            self._to_complete |= self._of_peer.get("", 0)
        self._complete[name] = (peer, profile)

    def _peers_of(self, row: BGPAdvertisement) -> Iterator[tuple[ObjectRef, ObjectRef]]:
        """Iterate over accepted peers and profiles, to which an advertisement goes."""
        names = row.spec.peers or self._complete
        return (self._complete[name] for name in names if name in self._complete)

    def _pools_of(self, number: int) -> Iterator[ObjectRef]:
        """Iterate over the accepted pools with IPv6 addresses of an advertisement."""
        for pool in members(self._valid.selected[number] & self._pools):
            yield self._valid.pools[pool]

    def _live_for(self, name: str) -> Iterator[ObjectRef]:
        """Iterate over the advertisements and pools that are advertised to a peer."""
        of_peer = self._of_peer.get(name, 0) | self._of_peer.get("", 0)
        for number in members(of_peer & self._live):
            yield self._valid.advertisements[number]
            yield from self._pools_of(number)

    def against(self, ref: ObjectRef, row: MetalLBObject) -> Iterator[ObjectRef]:
        """Iterate over the objects with which one is in conflict for echo mode and an IPv6 pool."""
        match row:
            case BFDProfile() if row.spec.echo_mode:
                for name, peer in self._peers[row.metadata.name].items():
                    yield from self._with(self._live_for(name), (peer,))
            case BGPPeer() if row.spec.bfd_profile in self._profiles:
                profile = self._profiles[row.spec.bfd_profile]
                yield from self._with(self._live_for(row.metadata.name), (profile,))
            case IPAddressPool() if self._complete and self._six >> self._valid.number_of[ref] & 1:
                selecting = self._valid.selecting[self._valid.number_of[ref]]
                for number in members(selecting & self._to_complete):
                    incomplete = self._valid.advertisements[number]
                    advertisement = self._valid.rows[incomplete]
                    yield incomplete
                    if isinstance(advertisement, BGPAdvertisement):
                        for watched in self._peers_of(advertisement):
                            yield from watched
            case BGPAdvertisement() if self._complete:
                peers = (peer for named in self._peers_of(row) for peer in named)
                one_peer = next(peers, None)
                if one_peer is not None:
                    pools = self._pools_of(self._valid.number_of[ref])
                    yield from self._with(pools, (one_peer,), peers)

    def _with(
        self, echoes: Iterator[ObjectRef], *others: Iterable[ObjectRef]
    ) -> Iterator[ObjectRef]:
        """Iterate over others and what is found, if anything is."""
        first = next(echoes, None)
        if first is not None:
            for some in others:
                yield from some
            yield first
            yield from echoes

    def problems(self, ref: ObjectRef, row: MetalLBObject) -> Iterator[Problem]:
        """Yield a problem of each peer with echo mode, with the first advertisement and IPv6 pool."""
        if not isinstance(row, BGPAdvertisement) or not self._complete:
            return
        if self._left is None:
            self._left = dict(self._complete)
        selected = self._valid.selected[self._valid.number_of[ref]] & self._pools
        left = self._left
        if not selected or not left:
            return
        pool = self._valid.pools[first(selected)]
        others = selected.bit_count() - 1
        more = f" (and {counted(others, 'more pool')})" if others else ""
        for name in dict.fromkeys(row.spec.peers or left):
            if name not in left:
                continue
            text = (
                f"pool {pool.name}{more} has IPv6 addresses and is advertised to {name}, "
                "whose BFD profile has the echo mode, which is for IPv4 only"
            )
            yield problem_of_objects(
                (ref, pool, *left.pop(name)), "spec.echoMode", text, "conflict"
            )
