"""The routes that shall be in the kernel: per table a dictionary from prefix to best paths. Pure.

A route is an entry of a dictionary and no row, as there may be as many as the Internet has. What the
best paths lead to is computed once per set of paths (`reconcilers.kernel.forwarding`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import repeat
from typing import Final, NamedTuple, TypeAlias, final

from reconcilers.kernel.forwarding import Forwarding, ForwardingClass, ForwardingRules
from reconcilers.kernel.martians import martian, suspects
from reconcilers.kernel.own_prefixes import OwnPrefixes
from reconcilers.kernel.reasons import NotInstalled, Reason
from reconcilers.kernel.routing import Routing
from reconcilers.kernel.writer.protocol_messages import NextHopSet
from speaker.api.best_paths import NO_PATHS, BestPath, BestPathChange, PathSet
from speaker.nlri import Family, prefix_to_text

DEFAULT_ROUTE: Final = b"\0"
"""The prefix of length 0 in wire form."""
PENDING: Final[NextHopSet] = ()
"""The next hops of a prefix are not known yet: it keeps its next hops."""

NamesDefaultRoute: TypeAlias = Callable[[BestPath, Family], bool]
"""True if a rule by which a path was accepted names the default route."""


class WantedRoute(NamedTuple):
    """One prefix: its best paths, and what they lead to."""

    paths: PathSet
    forwarding: Forwarding
    """`Forwarding.why_not` includes what is wrong with the prefix itself."""


@final
class InstanceRoutes:
    """The best paths of one instance, and what shall be in the kernel of them."""

    def __init__(
        self,
        vrf: str,
        routing: Routing,
        rules: ForwardingRules,
        names_default_route: NamesDefaultRoute,
        own: OwnPrefixes,
    ) -> None:
        """``vrf`` is that of the instance: its table has the routes; empty is the default VRF."""
        self._own = own
        self.vrf = vrf
        self._routing = routing
        self._rules = rules
        self._names_default_route = names_default_route
        self._paths: dict[Family, dict[bytes, PathSet]] = {}
        self._prefixes_of: dict[Family, dict[PathSet, int]] = {}
        """The number of prefixes of each path set."""
        self._rejected: dict[Family, dict[bytes, NotInstalled]] = {}
        """Prefixes that are not installed whatever their next hops."""

    @property
    def families(self) -> Sequence[Family]:
        """The families of an instance's wanted routes."""
        return [family for family, paths in self._paths.items() if paths]

    def apply(self, change: BestPathChange) -> None:
        """Follow a change of best paths, of which an instance's wanted routes are made."""
        self._set(change.family, change.prefixes, change.after)

    def withdraw(self, family: Family, prefixes: Collection[bytes]) -> None:
        """Forget some wanted routes of an instance."""
        self._set(family, prefixes, NO_PATHS)

    def _set(self, family: Family, prefixes: Collection[bytes], after: PathSet) -> None:
        paths = self._paths.setdefault(family, {})
        number_of = self._prefixes_of.setdefault(family, {})
        before: Counter[PathSet | None] = Counter()
        if after:
            if not paths.keys().isdisjoint(prefixes):
                before.update(map(paths.get, prefixes))
            paths.update(dict.fromkeys(prefixes, after))
            number_of[after] = number_of.get(after, 0) + len(prefixes)
            # At once: new next hops are looked up in the kernel.
            self._rules.class_of(after, family)
        else:
            before.update(map(paths.pop, prefixes, repeat(None)))
        for known, number in before.items():
            if known is None:
                continue
            number_of[known] -= number
            if not number_of[known]:
                del number_of[known]
                self._rules.forget(known, family)
        self._judge(family, prefixes)

    def copy_into(self, other: InstanceRoutes) -> None:
        """Copy an instance's wanted routes to another object, which follows best paths as well."""
        for family, paths in self._paths.items():
            other._paths[family] = dict(paths)
            other._prefixes_of[family] = dict(self._prefixes_of[family])
            for known in self._prefixes_of[family]:
                other._rules.class_of(known, family)
        other.judge_prefixes()

    def clear(self) -> None:
        """Forget all wanted routes of an instance, which is gone."""
        for family, known in self._prefixes_of.items():
            for paths in known:
                self._rules.forget(paths, family)
        self._paths.clear()
        self._prefixes_of.clear()
        self._rejected.clear()

    def judge_prefixes(self) -> None:
        """Judge again which of an instance's prefixes are wanted, as networks of the host changed."""
        for family, paths in self._paths.items():
            self._rejected[family] = {}
            self._judge(family, paths)

    def own_changed(self, family: Family, prefixes: Collection[bytes]) -> Collection[bytes]:
        """Judge again whether prefixes are wanted that the node advertises; returns the received."""
        concerned = self._paths.get(family, {}).keys() & prefixes
        if concerned:
            self._judge(family, concerned)
        return concerned

    def rejected(self, family: Family) -> Mapping[bytes, NotInstalled]:
        """Return the prefixes of an instance that are not wanted whatever their next hops."""
        return self._rejected.get(family, {})

    def having(
        self, family: Family, some: AbstractSet[ForwardingClass], prefixes: Iterable[bytes]
    ) -> list[bytes]:
        """Return which of an instance's wanted routes have path sets of some classes."""
        get, class_of = self._paths.get(family, {}).get, self._rules.classes_of(family).get
        return [
            nlri
            for nlri in prefixes
            if (paths := get(nlri)) is not None and class_of(paths) in some
        ]

    def _judge(self, family: Family, prefixes: Collection[bytes]) -> None:
        """Find the prefixes that are not installed whatever their next hops."""
        rejected = self._rejected.setdefault(family, {})
        paths = self._paths[family]
        some = {
            *suspects(family, prefixes),
            *self._connected(family, prefixes),
            *self._own_of_others(family, prefixes),
        }
        for nlri in (*some, *(rejected.keys() & prefixes if rejected else ())):
            known = paths.get(nlri)
            why = None if known is None else self._prefix_rejected(family, nlri, known)
            if why is None:
                rejected.pop(nlri, None)
            else:
                rejected[nlri] = why

    def _own_of_others(self, family: Family, prefixes: Collection[bytes]) -> Iterator[bytes]:
        """Iterate over the prefixes that the node advertises and whose best path is received."""
        get = self._paths[family].get
        for nlri in self._own.among(self.vrf, family, prefixes):
            if (known := get(nlri)) is not None and not known.paths[0].local:
                yield nlri

    def _connected(self, family: Family, prefixes: Collection[bytes]) -> Iterable[bytes]:
        networks = self._routing.networks(self.vrf, family)
        return networks.keys() & prefixes if networks else ()

    def _prefix_rejected(self, family: Family, nlri: bytes, paths: PathSet) -> NotInstalled | None:
        if (text := martian(family, nlri)) is not None:
            return NotInstalled(Reason.MARTIAN, text)
        device = self._routing.networks(self.vrf, family).get(nlri)
        if device is not None:
            return NotInstalled(Reason.LOCAL, f"it is the network of interface {device}")
        best = paths.paths[0]
        if not best.local and self._own.has(self.vrf, family, nlri):
            return NotInstalled(Reason.LOCAL, "this node advertises the prefix")
        if nlri == DEFAULT_ROUTE and not best.local and not self._names_default_route(best, family):
            text = prefix_to_text(family, nlri)
            return NotInstalled(
                Reason.DEFAULT_ROUTE,
                f"no import rule has the prefix {text}, and --fib-default-route is off",
            )
        return None

    def route(self, family: Family, nlri: bytes) -> WantedRoute | None:
        """Return the wanted route of a prefix of an instance; None without a best path."""
        paths = self._paths.get(family, {}).get(nlri)
        if paths is None:
            return None
        rejected = self._rejected.get(family, {}).get(nlri)
        if rejected is not None:
            return WantedRoute(paths, Forwarding(why_not=rejected))
        return WantedRoute(paths, self._rules.of(paths, family))

    def next_hops(self, family: Family, prefixes: Collection[bytes]) -> dict[bytes, NextHopSet]:
        """Return the next hops of an instance's wanted routes to prefixes, or `PENDING`."""
        paths, rejected = self._paths.get(family), self._rejected.get(family, {})
        if paths is None:
            return {}
        get, of = paths.get, self._rules.of

        def hops_of(known: PathSet) -> NextHopSet | None:
            forwarding = of(known, family)
            return PENDING if forwarding.pending else forwarding.next_hops

        if len(set(map(id, map(get, prefixes)))) == 1 and rejected.keys().isdisjoint(prefixes):
            # As of a session that begins: no step of the interpreter for each prefix.
            same = get(next(iter(prefixes)))
            hops = None if same is None else hops_of(same)
            return {} if hops is None else dict.fromkeys(prefixes, hops)
        next_hops_of: dict[bytes, NextHopSet] = {}
        last: PathSet | None = None
        hops = None
        for nlri in prefixes:
            known = get(nlri)
            if known is None or nlri in rejected:
                continue
            if known is not last:
                # Neighbours in a table have the same paths, mostly.
                last, hops = known, hops_of(known)
            if hops is not None:
                next_hops_of[nlri] = hops
        return next_hops_of

    def count(self, family: Family) -> int:
        """The number of prefixes of a family that are wanted or could be: with best paths."""
        return len(self._paths.get(family, ()))

    def prefixes(self, family: Family) -> Sequence[bytes]:
        """Return the prefixes of a family that are wanted or could be: with best paths; a copy."""
        return tuple(self._paths.get(family, ()))
