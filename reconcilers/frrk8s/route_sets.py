"""Route sets of FRR-k8s's neighbours, whose names stay while routes change. Pure.

A set is not named after its routes: a changed prefix is a change of the set, and costs what the objects
with it cost. Neighbours share a set while every object advertises the same to them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, NamedTuple, TypeAlias

from reconcilers.frrk8s.field_values import Prefix
from reconcilers.frrk8s.merge import MergedNeighbor, MergedRouter
from reconcilers.frrk8s.unit_parts import NeighborKey
from reconcilers.model import Attributes, ObjectRef
from reconcilers.redistribution import KERNEL_ROUTE
from reconcilers.sliced_work import Pieces, Slices, quick
from statedb import Key

Routes: TypeAlias = Mapping[Prefix, Attributes]
SOURCE = "frr-configuration"
"""The name of the route source."""
ADDRESS_TYPE: Final = "Prefix"
"""Of the addresses of an FRRConfiguration: they are prefixes of its routers."""


class RouteSet(NamedTuple):
    """The routes of neighbours that are advertised the same (`NodeIntent.route_sets`)."""

    name: str
    exports: Mapping[Key, tuple[Routes, ...]]
    """The routes of each object, by object and type of address (`source_key`)."""
    translated: tuple[Any, ...] = ()
    """Rules of feeding dialects, for their own route sources."""


class RouteSets(NamedTuple):
    """The route sets of a node, with names that stay over changes.

    A set is filled before a neighbour gets it, and changes while its neighbours have it. So a set
    changes only if all of its neighbours stay: where they part, unchanged neighbours
    keep it, and the others get sets of other names. No neighbour is advertised the routes of another.
    """

    by_name: Mapping[str, RouteSet] = {}
    names: Mapping[NeighborKey, str] = {}
    """Of each neighbour that is advertised something."""

    def of(self, key: NeighborKey) -> str | None:
        """Return the name of the route set of an FRR-k8s neighbour, or None."""
        return self.names.get(key)

    def after(self, routers: Iterable[MergedRouter]) -> RouteSets:
        """Return the route sets of FRR-k8s's merged routers, after these."""
        neighbors = [neighbor for router in routers for neighbor in router.neighbors]
        members: dict[str, set[NeighborKey]] = {}
        for key in (neighbor.key for neighbor in neighbors):
            if key in self.names:
                members.setdefault(self.names[key], set()).add(key)
        sets: dict[str, RouteSet] = {}
        names: dict[NeighborKey, str] = {}
        for group in _groups(neighbors):
            made = _route_set(group)
            keys = [neighbor.key for neighbor in group]
            name = self._kept_name(made, keys, members, sets)
            if name is None:
                name = made.name
                while name in self.by_name or name in sets:
                    name = f"{name}~"
            sets[name] = made._replace(name=name)
            names.update(dict.fromkeys(keys, name))
        return RouteSets(sets, names)

    def _kept_name(
        self,
        made: RouteSet,
        keys: Sequence[NeighborKey],
        members: Mapping[str, set[NeighborKey]],
        named: Mapping[str, RouteSet],
    ) -> str | None:
        """Return the name of a set that some of the neighbours have, and that becomes this one."""
        names = sorted({self.names[key] for key in keys if key in self.names})
        rules = [rule.name for rule in made.translated]
        possible = [
            name
            for name in names
            if name not in named and [rule.name for rule in self.by_name[name].translated] == rules
        ]
        for name in possible:
            if all(
                _same(self.by_name[name].exports.get(key, ()), made.exports.get(key, ()))
                for key in self.by_name[name].exports.keys() | made.exports.keys()
            ):
                return name
        staying = [name for name in possible if members[name].issubset(keys)]
        return max(staying, key=lambda name: len(members[name]), default=None)


def _groups(neighbors: Iterable[MergedNeighbor]) -> list[list[MergedNeighbor]]:
    """Group the neighbours that are advertised the same; neighbours without routes are in no group."""
    groups: dict[tuple[Any, ...], list[MergedNeighbor]] = {}
    for neighbor in neighbors:
        if not neighbor.exports and not neighbor.rules and not neighbor.kernel_routes:
            continue
        # The routes of an object are one mapping for all neighbours that it advertises the same to.
        content = tuple([id(routes) for _, routes in (*neighbor.exports, *neighbor.kernel_routes)])
        names = tuple(sorted(rules.name for rules in neighbor.rules))
        groups.setdefault((content, names), []).append(neighbor)
    return list(groups.values())


def _route_set(group: Sequence[MergedNeighbor]) -> RouteSet:
    """Return the set of a group, with the name of a new one."""
    first = min(group, key=lambda neighbor: neighbor.key)
    exports: dict[Key, tuple[Routes, ...]] = {}
    for type_, of_objects in ((ADDRESS_TYPE, first.exports), (KERNEL_ROUTE, first.kernel_routes)):
        for ref, routes in of_objects:
            key = source_key(ref, type_)
            exports[key] = (*exports.get(key, ()), routes)
    rules = {rule.name: rule for rule in first.rules}
    names = sorted(rules)
    return RouteSet(_name(first.key, names), exports, tuple(rules[name] for name in names))


def _name(key: NeighborKey, rules: Sequence[str]) -> str:
    """Return the name of a set; the rules of feeding dialects change it, as their routes do not."""
    name = f"{key.vrf}/{key.end}" if key.vrf else key.end
    if not rules:
        return name
    digest = hashlib.sha256("\n".join(rules).encode()).hexdigest()
    return f"{name}-{digest[:12]}"


def changed_objects(
    before: Mapping[str, RouteSet], after: Mapping[str, RouteSet], pieces: Pieces
) -> Slices[dict[Key, AbstractSet[Prefix] | None]]:
    """Return objects that contribute otherwise to an FRR-k8s route set that stays, with prefixes.

    None is every prefix.
    """
    prefixes_of: dict[Key, AbstractSet[Prefix] | None] = {}
    for name, now in after.items():
        then = before.get(name)
        if then is None:
            continue
        for key in then.exports.keys() | now.exports.keys():
            was, is_now = then.exports.get(key, ()), now.exports.get(key, ())
            if _same(was, is_now):
                continue
            known = prefixes_of.get(key, frozenset())
            if known is None or len(was) != 1 or len(is_now) != 1:
                # Several entries of one object.
                prefixes_of[key] = None
                continue
            changed = yield from _changed_prefixes(was[0], is_now[0], pieces)
            prefixes_of[key] = known | changed if known else changed
    return prefixes_of


def _changed_prefixes(before: Routes, after: Routes, pieces: Pieces) -> Slices[set[Prefix]]:
    """Return the prefixes that have other attributes, or none any more."""
    changed: set[Prefix] = set()
    differ: dict[tuple[int, int], bool] = {}
    # Prefixes share their attributes: few pairs of very many prefixes are compared.
    for some in quick(after.items(), pieces):
        if some is None:
            yield
            continue
        for prefix, attributes in some:
            earlier = before.get(prefix)
            pair = (id(earlier), id(attributes))
            different = differ.get(pair)
            if different is None:
                different = differ[pair] = earlier != attributes
            if different:
                changed.add(prefix)
    for gone in quick(before, pieces):
        if gone is None:
            yield
        else:
            changed.update(prefix for prefix in gone if prefix not in after)
    return changed


def source_key(ref: ObjectRef, type_: str) -> Key:
    """Return the key by which an FRR-k8s route set has an object's addresses of a type."""
    return (ref.kind, ref.namespace, ref.name, type_)


def _same(one: Sequence[Routes], other: Sequence[Routes]) -> bool:
    """True if an object advertises the same twice; most objects do, with the same mappings."""
    if len(one) != len(other):
        return False
    return all(a is b or a == b for a, b in zip(one, other, strict=True))
