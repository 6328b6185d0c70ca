"""The routes of all instances, by the tables of the kernel in which they shall stand. Pure.

Follows the best paths of each instance whose routes are installed, and resolves their next hops again
when the host changes. What has changed since the last question is known by prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias, final

from reconcilers.kernel.forwarding import Forwarding, ForwardingRules, NextHopSets
from reconcilers.kernel.instance_routes import InstanceRoutes, NamesDefaultRoute, WantedRoute
from reconcilers.kernel.options import FibOptions
from reconcilers.kernel.own_prefixes import OwnPrefixes, Prefixes
from reconcilers.kernel.reasons import shared_table
from reconcilers.kernel.resolution import ChangedClass, Moves, Resolution
from reconcilers.kernel.routes_of_classes import RoutesOfClasses
from reconcilers.kernel.routing import DEFAULT_VRF, Routing
from reconcilers.kernel.waiting import take_some
from reconcilers.kernel.writer.protocol_messages import (
    IPV4,
    IPV6,
    NextHopSet,
    RouteTable,
)
from reconcilers.sliced_work import Slices
from speaker.api import (
    FEW_PREFIXES,
    BestPath,
    BestPathChange,
    BestPathItem,
    InstanceRemoved,
    SelectionEnd,
    TableBegin,
)
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family

FAMILIES: Final = {IPV4: IPV4_UNICAST, IPV6: IPV6_UNICAST}
"""The families of the kernel, and of BGP."""
TAKEN: Final = 1000
"""Changed prefixes that are taken at a time: a round of one slice, about a millisecond, for which a
change of another peer waits. With 500 a table takes a tenth more processor time."""
FEW: Final = 100
"""Changed prefixes of a peer that are taken although the writer has enough to do."""
Changes: TypeAlias = dict[RouteTable, dict[bytes, None] | None]
"""Prefixes that changed, in an order; None is a whole table."""


class InstanceTable(NamedTuple):
    """An instance whose routes are installed."""

    name: str
    vrf: str
    """Empty is the default VRF."""


class _Instance:
    """The routes of one instance."""

    def __init__(self, routes: InstanceRoutes, rules: ForwardingRules) -> None:
        self.routes = routes
        self.rules = rules
        self.selected = False
        """Whether route selection after the start is complete."""
        self.unseen: dict[Family, set[bytes]] = {}
        """Prefixes of before the present `TableBegin` that no change has named since."""


@final
class WantedTables:
    """The routes that belong into the kernel."""

    def __init__(
        self,
        routing: Routing,
        options: FibOptions,
        on_moves: Callable[[Moves], None],
        on_resolved: Callable[[], None],
    ) -> None:
        """``on_moves`` gets the sets of next hops whose wanted routes all use new ones.

        At once, before the routes are looked for. ``on_resolved`` is called whenever the next hops of
        all wanted routes were resolved again.
        """
        self._on_moves = on_moves
        self._routing = routing
        self._options = options
        self.own = OwnPrefixes()
        self._instances: dict[str, _Instance] = {}
        self._configuration: tuple[object, ...] = ()
        self._vrfs: dict[str, str] = {}
        self._names_default_route: NamesDefaultRoute = lambda _path, _family: False
        self._tables: dict[RouteTable, list[_Instance]] = {}
        self._changed: dict[tuple[RouteTable, str], dict[bytes, None]] = {}
        """Prefixes in the order of their changes, by table and peer; without a peer the empty name."""
        self._lost: set[tuple[str, str | None]] = set()
        """Instances and peers whose paths are not used any more."""
        self._sets = NextHopSets()
        self._resolution = Resolution(routing, self._sets, self._publish, on_resolved)
        self._refreshed = RoutesOfClasses(self._note)
        """The routes of classes with other next hops."""
        self._whole: set[RouteTable] = set()
        """Tables that are compared whole."""

    # ------------------------------------------------------------ configuration

    def configure(
        self,
        instances: Sequence[InstanceTable],
        vrfs: Mapping[str, str],
        names_default_route: NamesDefaultRoute,
    ) -> None:
        """Want the routes of these instances in their tables; ``vrfs``: the VRF of each.

        Routes are judged again if one of the three differs: an instance changes with each
        prefix that it originates.
        """
        configuration = (tuple(instances), dict(vrfs), names_default_route)
        if configuration == self._configuration:
            return
        self._configuration = configuration
        self._names_default_route = names_default_route
        if vrfs != self._vrfs:
            # Rules read the VRFs of other instances, for imports.
            self._vrfs = dict(vrfs)
            for name, known in self._instances.items():
                self._instances[name] = self._with_rules(known, vrfs.get(name, DEFAULT_VRF))
        wanted = {instance.name: instance for instance in instances}
        for name in [name for name in self._instances if name not in wanted]:
            del self._instances[name]
        for instance in instances:
            if instance.name not in self._instances:
                self._instances[instance.name] = self._instance(instance.vrf)
        self.host_changed(networks=True)

    def _instance(self, vrf: str) -> _Instance:
        rules = ForwardingRules(
            self._routing,
            self._vrfs,
            maximum=self._options.multipath,
            blackhole=self._options.blackhole,
            lost=self._lost,
            sets=self._sets,
        )

        def names(path: BestPath, family: Family) -> bool:
            return self._names_default_route(path, family)

        return _Instance(InstanceRoutes(vrf, self._routing, rules, names, self.own), rules)

    def _with_rules(self, known: _Instance, vrf: str) -> _Instance:
        if known.routes.vrf == vrf:
            known.rules.use_vrfs(self._vrfs)
            return known
        moved = self._instance(vrf)
        known.routes.copy_into(moved.routes)
        moved.selected = known.selected
        return moved

    def _assign_tables(self) -> None:
        """Find the tables of all instances again: VRFs came, went, or got another table."""
        tables: dict[RouteTable, list[_Instance]] = {}
        for _, instance in sorted(self._instances.items()):
            number = self._routing.table_of(instance.routes.vrf)
            if number is not None:
                for family in FAMILIES:
                    table = RouteTable(number, family, self._options.metric)
                    tables.setdefault(table, []).append(instance)
        for table in tables.keys() | self._tables.keys():
            if tables.get(table) != self._tables.get(table):
                self._whole.add(table)
                for key in [key for key in self._changed if key[0] == table]:
                    del self._changed[key]
        self._tables = tables

    @property
    def instances(self) -> Sequence[str]:
        """The names of the instances whose routes are wanted in tables."""
        return list(self._instances)

    @property
    def vrfs(self) -> Mapping[str, str]:
        """The VRF of each instance whose routes are wanted; empty is the default one."""
        return {name: instance.routes.vrf for name, instance in self._instances.items()}

    @property
    def tables(self) -> Sequence[RouteTable]:
        """The tables of the kernel in which routes of instances are wanted, or may be."""
        return list(self._tables)

    def problems(self) -> list[str]:
        """Return why instances have no table of the kernel, though the node has their VRF."""
        return [
            shared_table(vrf, holder)
            for vrf in sorted(set(self.vrfs.values()))
            if (holder := self._routing.table_holder(vrf)) is not None
        ]

    def instances_of(self, table: RouteTable) -> list[str]:
        """Return the names of the instances whose routes are wanted in a table."""
        some = self._tables.get(table, ())
        return [name for name, instance in self._instances.items() if instance in some]

    def forwardings(self) -> Iterator[tuple[str, Forwarding]]:
        """Yield the forwarding of each instance with wanted routes, with its name.

        Wanted routes may change meanwhile.
        """
        for name, instance in tuple(self._instances.items()):
            yield from ((name, each.forwarding) for each in tuple(instance.rules.classes))

    @property
    def selected(self) -> bool:
        """Whether route selection of all instances with wanted routes is complete."""
        return all(instance.selected for instance in self._instances.values())

    # ------------------------------------------------------------------ changes

    def apply(self, name: str, items: Iterable[BestPathItem]) -> None:
        """Follow the best paths of an instance, by the tables of the kernel."""
        instance = self._instances.get(name)
        if instance is None:
            return
        for item in items:
            match item:
                case BestPathChange(family=family, prefixes=prefixes):
                    instance.routes.apply(item)
                    peers = (path.peer for path in (item.after or item.before).paths)
                    self._note(instance.routes, family, prefixes, next(peers, None) or "")
                    if instance.unseen:
                        instance.unseen.get(family, set()).difference_update(prefixes)
                case TableBegin():
                    instance.selected = False
                    routes = instance.routes
                    instance.unseen = {f: set(routes.prefixes(f)) for f in routes.families}
                case SelectionEnd():
                    self._forget_unseen(instance)
                    instance.selected = True
                case InstanceRemoved():
                    for family in instance.routes.families:
                        self._note(instance.routes, family, instance.routes.prefixes(family))
                    instance.routes.clear()
                    instance.unseen = {}
                    instance.selected = True
                case _:
                    pass

    def _forget_unseen(self, instance: _Instance) -> None:
        """Forget the routes of before a restart that were not announced again."""
        for family, prefixes in instance.unseen.items():
            if prefixes:
                instance.routes.withdraw(family, prefixes)
                self._note(instance.routes, family, prefixes)
        instance.unseen = {}

    def _note(
        self, routes: InstanceRoutes, family: Family, prefixes: Collection[bytes], peer: str = ""
    ) -> None:
        number = self._routing.table_of(routes.vrf)
        for kernel_family, known in FAMILIES.items():
            if number is not None and known == family:
                table = RouteTable(number, kernel_family, self._options.metric)
                if not prefixes or table in self._whole:
                    continue
                parts = self._changed.setdefault((table, peer), {})
                if not parts.keys().isdisjoint(prefixes):
                    # The newest change is the last one.
                    for nlri in parts.keys() & prefixes:
                        del parts[nlri]
                parts.update(dict.fromkeys(prefixes))

    def host_changed(self, *, networks: bool) -> None:
        """Resolve the wanted routes' next hops again; ``networks``: links or addresses have changed."""
        if networks:
            self._assign_tables()
            for instance in self._instances.values():
                routes = instance.routes
                rejected = {family: routes.rejected(family) for family in routes.families}
                routes.judge_prefixes()
                for family, before in rejected.items():
                    self._note(
                        instance.routes, family, before.keys() ^ routes.rejected(family).keys()
                    )
        self._refresh()

    def own_changed(self, changed: Mapping[str, Prefixes]) -> None:
        """Follow changes of the prefixes that the node advertises itself, which no table gets."""
        for instance in self._instances.values():
            routes = instance.routes
            for family, prefixes in changed.get(routes.vrf, {}).items():
                self._note(instance.routes, family, routes.own_changed(family, prefixes))

    def session_lost(self, name: str, peer: str) -> None:
        """Want no route by a peer any more: its routes are being withdrawn."""
        if (name, peer) not in self._lost:
            self._lost.add((name, peer))
            self._refresh()

    def session_restored(self, name: str, peer: str) -> None:
        """Want routes by the paths of a peer again, if its session was lost."""
        if (name, peer) in self._lost:
            self._lost.remove((name, peer))
            self._refresh()

    def _refresh(self) -> None:
        """Resolve the next hops of all wanted routes again; the first slice at once, mostly all."""
        self._resolution.refresh(instance.rules for instance in self._instances.values())
        next(self.find_refreshed(), None)

    def _publish(self, changed: Sequence[ChangedClass], moves: Moves) -> None:
        """Have the next hops of classes that have changed, and look for their wanted routes."""
        if moves:
            self._on_moves(moves)
        routes_of = {instance.rules: instance.routes for instance in self._instances.values()}
        for rules, some in groupby(changed, attrgetter("rules")):
            if rules in routes_of:
                self._refreshed.add(routes_of[rules], (change.of for change in some))

    def find_refreshed(self) -> Slices[None]:
        """Resolve next hops, and note the wanted routes of changed classes, in slices.

        It ends with the pass that is under way, or due; `has_changed` is true while another is due.
        """
        passes = self._resolution.passes + self._resolution.resolving
        while self._resolution.passes < passes:
            self._resolution.step()
            if self._resolution.passes < passes:
                yield
        self._refreshed.begin()
        while self._refreshed.searching:
            self._refreshed.step()
            if self._refreshed.searching:
                yield

    @property
    def has_refreshed(self) -> bool:
        """Whether some wanted routes of changed classes are not found yet."""
        return bool(self._refreshed)

    def take_changed(self, *, only_few: bool = False) -> Changes:
        """Return some prefixes whose wanted next hops may have changed, by table.

        The newest change of a peer is its last one, and peers with the fewest are behind others.
        ``only_few``: none of peers with many changes, and no whole table.
        """
        waiting = self._changed
        if only_few:
            waiting = {key: part for key, part in waiting.items() if len(part) <= FEW}
            for key in waiting:
                del self._changed[key]
        parts: dict[RouteTable, dict[bytes, None]] = {}
        for (table, _), some in reversed(take_some(waiting, TAKEN).items()):
            parts.setdefault(table, {}).update(reversed(some.items()))
        if only_few:
            self._changed.update(waiting)
            return {**parts}
        whole, self._whole = self._whole, set()
        return {**parts, **dict.fromkeys(whole)}

    def single_changes(
        self, name: str, items: Sequence[BestPathItem]
    ) -> dict[RouteTable, list[bytes]]:
        """Return the prefixes of an instance's changes, by table, where they are few.

        Not of a table that is to be compared whole.
        """
        changes = [item for item in items if isinstance(item, BestPathChange)]
        instance = self._instances.get(name)
        if instance is None or sum(len(change.prefixes) for change in changes) > FEW_PREFIXES:
            return {}
        single: dict[RouteTable, list[bytes]] = {}
        for change in changes:
            for table, holders in self._tables.items():
                if (
                    FAMILIES[table.family] == change.family
                    and instance in holders
                    and table not in self._whole
                ):
                    single.setdefault(table, []).extend(change.prefixes)
        return single

    def reconciled(self, table: RouteTable, prefixes: Iterable[bytes]) -> None:
        """Forget that wanted prefixes have changed: `take_changed` does not return them."""
        for key in [key for key in self._changed if key[0] == table]:
            part = self._changed[key]
            for nlri in prefixes:
                part.pop(nlri, None)
            if not part:
                del self._changed[key]

    def settled(self, table: RouteTable, prefixes: Collection[bytes]) -> Collection[bytes]:
        """Return prefixes whose wanted routes have not changed: `take_changed` returns others."""
        if table in self._whole:
            return ()
        if self._refreshed:
            for instance in self._tables.get(table, ()):
                family = FAMILIES[table.family]
                prefixes = self._refreshed.without(instance.routes, family, prefixes)
        for (of_table, _), part in self._changed.items():
            if of_table == table and not part.keys().isdisjoint(prefixes):
                prefixes = [nlri for nlri in prefixes if nlri not in part]
        return prefixes

    @property
    def has_changed(self) -> bool:
        """Whether `take_changed` has wanted routes, or will have after `find_refreshed`."""
        return bool(self._changed or self._whole or self._refreshed or self._resolution.resolving)

    # ------------------------------------------------------------------ reading

    def next_hops(self, table: RouteTable, prefixes: Sequence[bytes]) -> dict[bytes, NextHopSet]:
        """Return the next hops of prefixes that are wanted in a table."""
        next_hops_of: dict[bytes, NextHopSet] = {}
        # Of several instances with a prefix in one table the first one by name has it.
        for instance in reversed(self._tables.get(table, ())):
            next_hops_of.update(instance.routes.next_hops(FAMILIES[table.family], prefixes))
        return next_hops_of

    def count(self, table: RouteTable) -> int:
        """The number of best paths of all instances that have a table."""
        family = FAMILIES[table.family]
        return sum(routes.routes.count(family) for routes in self._tables.get(table, ()))

    def prefixes(self, table: RouteTable) -> Iterator[bytes]:
        """Iterate over the prefixes of a table that instances have best paths of."""
        for instance in self._tables.get(table, ()):
            yield from instance.routes.prefixes(FAMILIES[table.family])

    def route(self, table: RouteTable, nlri: bytes) -> tuple[str, WantedRoute] | None:
        """Return the instance with the wanted route of a prefix in a table, and the route."""
        names = {id(instance): name for name, instance in self._instances.items()}
        for instance in self._tables.get(table, ()):
            route = instance.routes.route(FAMILIES[table.family], nlri)
            if route is not None:
                return names[id(instance)], route
        return None
