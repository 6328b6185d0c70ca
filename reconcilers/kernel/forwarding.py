"""Forwarding of a prefix by its best paths: the next hops of the kernel. Pure.

A table has a set of best paths for each set of communities, ten thousands of them, and few forwarding
classes (RFC 3031 section 2.1): sets of best paths that lead to the same gateways whatever the host's
routes are. A class is resolved once, whatever the number of its path sets and prefixes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple, TypeAlias, final

import msgspec

from reconcilers.kernel.next_hops import Unresolved, resolve
from reconcilers.kernel.reasons import NotInstalled, Reason
from reconcilers.kernel.routing import Hop, Routing
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


ForwardingKey: TypeAlias = tuple[Family, bool, tuple[BestPath, ...]]
"""Whether packets are discarded (RFC 7999), and the paths without their communities."""


@final
class ForwardingClass:
    """Path sets that are forwarded alike."""

    __slots__ = ("family", "forwarding", "key", "path_sets")

    def __init__(self, key: ForwardingKey, forwarding: Forwarding) -> None:
        self.key = key
        self.family = key[0]
        self.forwarding = forwarding
        self.path_sets = 0
        """The number of path sets."""


@final
class NextHopSets:
    """The sets of next hops that were found since all classes began to be resolved again."""

    def __init__(self) -> None:
        self._former: dict[NextHopSet, NextHopSet] = {}
        self._sets: dict[NextHopSet, NextHopSet] = {}

    def begin(self) -> None:
        """Begin to collect the sets of next hops again: all classes are resolved again."""
        self._former, self._sets = self._sets, {}

    def shared(self, next_hops: NextHopSet) -> NextHopSet:
        """Note a set of next hops; equal ones are one object."""
        known = self._sets.get(next_hops)
        if known is None:
            known = self._former.get(next_hops, next_hops)
            self._sets[known] = known
        return known

    def __contains__(self, next_hops: object) -> bool:
        """True if a set of next hops was found since the begin."""
        return next_hops in self._sets


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
        lost: AbstractSet[tuple[str, str | None]] = frozenset(),
        sets: NextHopSets | None = None,
    ) -> None:
        """``vrfs``: the VRF of each instance by its name; ``maximum``: next hops of a route.

        ``lost``: instances and peers whose paths are not used any more; ``sets`` of all instances.
        """
        self._routing = routing
        self._vrfs = vrfs
        self._maximum = maximum
        self._blackhole = blackhole
        self._classes: dict[ForwardingKey, ForwardingClass] = {}
        self._class_of: dict[Family, dict[PathSet, ForwardingClass]] = {}
        self._lost = lost
        self._sets = sets or NextHopSets()
        self._hops_of: dict[tuple[BestPath, Family], dict[Hop, NextHop] | Unresolved] = {}
        """Next hops of each path since the last `forget_hops`: many classes share a path."""

    def of(self, paths: PathSet, family: Family) -> Forwarding:
        """Return the forwarding that the best paths of a prefix lead to."""
        return self.class_of(paths, family).forwarding

    def class_of(self, paths: PathSet, family: Family) -> ForwardingClass:
        """Return the forwarding class of the best paths of a prefix."""
        classes = self._class_of.setdefault(family, {})
        known = classes.get(paths)
        if known is None:
            discards = self._blackhole and BLACKHOLE_COMMUNITY in paths.paths[0].communities
            key = (family, discards, tuple(map(_without_communities, paths.paths)))
            known = self._classes.get(key)
            if known is None:
                known = self._classes[key] = ForwardingClass(key, self.resolved(key))
            known.path_sets += 1
            classes[paths] = known
        return known

    def classes_of(self, family: Family) -> Mapping[PathSet, ForwardingClass]:
        """Return the forwarding classes of the path sets of a family."""
        return self._class_of.get(family, {})

    def forget(self, paths: PathSet, family: Family) -> None:
        """Forget the forwarding of a path set that no prefix has any more."""
        known = self._class_of.get(family, {}).pop(paths, None)
        if known is not None:
            known.path_sets -= 1
            if not known.path_sets:
                del self._classes[known.key]

    @property
    def classes(self) -> Iterable[ForwardingClass]:
        """The forwarding classes of all path sets."""
        return self._classes.values()

    def use_vrfs(self, vrfs: Mapping[str, str]) -> None:
        """Resolve forwarding by other VRFs of the instances, from the next `forget_hops` on."""
        self._vrfs = vrfs

    def forget_hops(self) -> None:
        """Look the next hops of all paths up again: the host has changed, or a VRF."""
        self._hops_of = {}

    def resolved(self, key: ForwardingKey) -> Forwarding:
        """Return what the path sets of a class lead to now."""
        family, discards, paths = key
        best = paths[0]
        if best.local:
            text = f"instance {best.instance} originates the prefix"
            return Forwarding(why_not=NotInstalled(Reason.LOCAL, text))
        if discards:
            return Forwarding(next_hops=BLACKHOLE)
        hops: dict[Hop, NextHop] = {}
        unresolved = []
        for path in paths[: self._maximum]:
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
        shared = self._sets.shared(next_hops)
        return Forwarding(tuple(hop for hop, _ in some), shared, unresolved=why)

    def _hops(self, path: BestPath, family: Family) -> dict[Hop, NextHop] | Unresolved:
        """Return the gateways of a path, with their interfaces."""
        key = (path, family)
        hops = self._hops_of.get(key)
        if hops is None:
            hops = self._hops_of[key] = self._resolve(path, family)
        # The next hops of a lost peer are looked up, too: they are known when it is back.
        if (path.instance, path.peer) in self._lost:
            return Unresolved(f"the session with {path.peer} has ended")
        return hops

    def _resolve(self, path: BestPath, family: Family) -> dict[Hop, NextHop] | Unresolved:
        vrf = self._vrfs.get(path.instance)
        if vrf is None:
            # The instance is about to be removed with its routes, or its row is about to come.
            text = f"the VRF of instance {path.instance} is not known yet"
            return Unresolved(text, pending=True)
        resolved = resolve(path, family, vrf, self._routing)
        if isinstance(resolved, Unresolved):
            return resolved
        hops: dict[Hop, NextHop] = {}
        for hop in resolved:
            index = self._routing.index_of(hop.device)
            if index is None:
                return Unresolved(f"interface {hop.device} is not known yet", pending=True)
            hops[hop] = NextHop(hop.gateway, index)
        return hops


def _without_communities(path: BestPath) -> BestPath:
    return msgspec.structs.replace(path, communities=()) if path.communities else path


def _hop_order(hop: tuple[Hop, NextHop]) -> NextHop:
    return hop[1]
