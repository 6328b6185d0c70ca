"""Forwarding of a prefix by its best paths: the next hops of the kernel. Pure.

Prefixes have few different sets of best paths: each is resolved once, whatever the number of prefixes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple, final

from reconcilers.kernel.next_hops import Unresolved, resolve
from reconcilers.kernel.reasons import NotInstalled, Reason
from reconcilers.kernel.routing import DEFAULT_VRF, Hop, Routing
from reconcilers.kernel.writer.protocol_messages import BLACKHOLE, NextHop, NextHopSet
from speaker.api.best_paths import BestPath, PathSet
from speaker.iana import WELL_KNOWN_COMMUNITIES
from speaker.nlri import Family

BLACKHOLE_COMMUNITY: Final = WELL_KNOWN_COMMUNITIES["blackhole"]
"""RFC 7999."""


class Forwarding(NamedTuple):
    """The fate of packets: they are forwarded to ``hops``, or discarded, or there is no route."""

    hops: tuple[Hop, ...] = ()
    """Sorted, each once."""
    next_hops: NextHopSet | None = None
    """The same for the writer; `BLACKHOLE` discards packets, None is no route."""
    why_not: NotInstalled | None = None
    """Why there is no route."""
    unresolved: tuple[tuple[BestPath, Unresolved], ...] = ()
    """Paths that are not used, beside others or not."""

    @property
    def pending(self) -> bool:
        """True while packets have no route only because the host's routes are not known yet."""
        return self.next_hops is None and any(why.pending for _, why in self.unresolved)

    @property
    def blackhole(self) -> bool:
        """True if packets to the prefix are discarded."""
        return self.next_hops is BLACKHOLE


_LOST: Final = Forwarding()
"""Of a path set whose peers are all lost; why it has no route is resolved when it is read, as a table
has many path sets."""


class Refreshed(NamedTuple):
    """Best paths that lead to other next hops than before."""

    paths: PathSet
    family: Family
    before: NextHopSet | None
    after: NextHopSet | None


@final
class ForwardingRules:
    """Resolves the path sets of one instance."""

    def __init__(
        self,
        routing: Routing,
        vrfs: Mapping[str, str],
        *,
        maximum: int,
        blackhole: bool,
    ) -> None:
        """``vrfs``: the VRF of each instance by its name; ``maximum``: next hops of a route."""
        self._routing = routing
        self._vrfs = vrfs
        self._maximum = maximum
        self._blackhole = blackhole
        self._known: dict[tuple[PathSet, Family], Forwarding] = {}
        self._sets: dict[NextHopSet, NextHopSet] = {}
        """Equal sets of next hops are one object."""
        self._lost: set[tuple[str, str | None]] = set()
        """Instances and peers whose paths are not used any more."""

    def of(self, paths: PathSet, family: Family) -> Forwarding:
        """Return the forwarding that the best paths of a prefix lead to."""
        key = (paths, family)
        known = self._known.get(key)
        if known is None or known is _LOST:
            known = self._known[key] = self._resolved(paths, family)
        return known

    def __len__(self) -> int:
        """The number of path sets that are known."""
        return len(self._known)

    def forget_others(self, used: AbstractSet[PathSet]) -> None:
        """Forget the forwarding of path sets that no prefix has any more."""
        self._known = {key: value for key, value in self._known.items() if key[0] in used}
        sets = (rules_of.next_hops for rules_of in self._known.values())
        self._sets = {
            next_hop_set: next_hop_set for next_hop_set in sets if next_hop_set is not None
        }

    def use_vrfs(self, vrfs: Mapping[str, str]) -> None:
        """Resolve forwarding by other VRFs of the instances, from the next `refresh` on."""
        self._vrfs = vrfs

    def next_hop_sets(self) -> Iterator[NextHopSet]:
        """Iterate over the next hops of the forwarding that path sets lead to."""
        return (
            rules_of.next_hops
            for rules_of in self._known.values()
            if rules_of.next_hops is not None
        )

    def forwardings(self, used: AbstractSet[PathSet]) -> Iterator[Forwarding]:
        """Iterate over the forwarding that some path sets lead to."""
        return (self.of(*key) for key in list(self._known) if key[0] in used)

    def refresh(self) -> list[Refreshed]:
        """Resolve the forwarding of all path sets again; returns sets with other next hops."""
        before, self._known = self._known, {}
        changed = []
        for key, old in before.items():
            paths, family = key
            if self._lost and self._has_lost_all(paths, old):
                new = self._known[key] = _LOST
            else:
                new = self.of(paths, family)
            if new.next_hops != old.next_hops:
                changed.append(Refreshed(paths, family, old.next_hops, new.next_hops))
        return changed

    def _has_lost_all(self, paths: PathSet, before: Forwarding) -> bool:
        """Return whether no path of a set that had next hops is used any more."""
        if before is not _LOST and (not before.next_hops or before.next_hops == BLACKHOLE):
            return False
        lost = self._lost
        return all((path.instance, path.peer) in lost for path in paths.paths)

    def session_lost(self, instance: str, peer: str) -> list[Refreshed]:
        """Forward by no path of a peer whose routes are being withdrawn; returns what changes."""
        self._lost.add((instance, peer))
        return self.refresh()

    def session_restored(self, instance: str, peer: str) -> list[Refreshed]:
        """Forward by the paths of a peer again; returns what changes."""
        if (instance, peer) not in self._lost:
            return []
        self._lost.remove((instance, peer))
        return self.refresh()

    def _resolved(self, paths: PathSet, family: Family) -> Forwarding:
        best = paths.paths[0]
        if best.local:
            text = f"instance {best.instance} originates the prefix"
            return Forwarding(why_not=NotInstalled(Reason.LOCAL, text))
        if self._blackhole and BLACKHOLE_COMMUNITY in best.communities:
            return Forwarding(next_hops=BLACKHOLE)
        hops: dict[Hop, NextHop] = {}
        unresolved = []
        for path in paths.paths[: self._maximum]:
            if path.local:
                continue
            resolution = self._hops(path, family)
            if isinstance(resolution, Unresolved):
                unresolved.append((path, resolution))
            else:
                hops.update(resolution)
        why = tuple(unresolved)
        if not hops:
            return Forwarding(
                why_not=NotInstalled(Reason.NEXT_HOP, why[0][1].message), unresolved=why
            )
        some = sorted(list(hops.items())[: self._maximum], key=_hop_order)
        next_hops = tuple(next_hop for _, next_hop in some)
        shared = self._sets.setdefault(next_hops, next_hops)
        return Forwarding(tuple(hop for hop, _ in some), shared, unresolved=why)

    def _hops(self, path: BestPath, family: Family) -> dict[Hop, NextHop] | Unresolved:
        """Return the gateways of a path, with their interfaces."""
        if (path.instance, path.peer) in self._lost:
            return Unresolved(f"the session with {path.peer} has ended")
        vrf = self._vrfs.get(path.instance, DEFAULT_VRF)
        resolved = resolve(path, family, vrf, self._routing)
        if isinstance(resolved, Unresolved):
            return resolved
        hops: dict[Hop, NextHop] = {}
        for hop in resolved:
            index = self._routing.index_of(hop.device)
            if index is None:
                return Unresolved(f"interface {hop.device} is not known")
            hops[hop] = NextHop(hop.gateway, index)
        return hops


def _hop_order(hop: tuple[Hop, NextHop]) -> NextHop:
    return hop[1]
