"""Route sets of neighbours, and the route source of configured prefixes.

A set is named after the first of the neighbours that share it, and not after its routes: a changed
prefix is then a change of the set, and costs what the objects with it cost. Neighbours share a set
while every object advertises the same to them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

from reconcilers.dialect import Address, Contributed, NodeContext, Selection
from reconcilers.frrk8s.merge import MergedNeighbor, MergedRouter
from reconcilers.frrk8s.unit import NeighborKey
from reconcilers.frrk8s.values import Prefix
from reconcilers.model import Attributes, Contribution, ObjectRef, Origin
from statedb import Change, Key, Snapshot, Table

Routes: TypeAlias = Mapping[Prefix, Attributes]
SOURCE = "frr-configuration"
"""The name of the route source."""


class RouteSet(NamedTuple):
    """The routes of neighbours that are advertised the same (`reconcilers.dialect.RouteSetRules`)."""

    name: str
    exports: Mapping[ObjectRef, tuple[Routes, ...]]
    """What each object advertises."""
    fed: tuple[Any, ...] = ()
    """Rules of feeding dialects, for their own route sources."""


def route_sets(routers: Iterable[MergedRouter]) -> dict[NeighborKey, RouteSet]:
    """Return the route set of each neighbour that is advertised something."""
    groups: dict[tuple[Any, ...], list[MergedNeighbor]] = {}
    for router in routers:
        for neighbor in router.neighbors:
            if not neighbor.exports and not neighbor.rules:
                continue
            content = tuple((ref, id(routes)) for ref, routes in neighbor.exports)
            names = tuple(sorted(rules.name for rules in neighbor.rules))
            groups.setdefault((content, names), []).append(neighbor)
    found: dict[NeighborKey, RouteSet] = {}
    for (_, names), neighbors in groups.items():
        first = min(neighbors, key=lambda neighbor: neighbor.key)
        exports: dict[ObjectRef, tuple[Routes, ...]] = {}
        for ref, routes in first.exports:
            exports[ref] = (*exports.get(ref, ()), routes)
        rules = {one.name: one for one in first.rules}
        made = RouteSet(
            _name(first.key, names), exports, tuple(rules[name] for name in sorted(rules))
        )
        found.update((neighbor.key, made) for neighbor in neighbors)
    return found


def _name(key: NeighborKey, rules: Sequence[str]) -> str:
    """Return the name of a set; the rules of feeding dialects change it, as their routes do not."""
    name = f"{key.vrf}/{key.end}" if key.vrf else key.end
    if not rules:
        return name
    digest = hashlib.sha256("\n".join(rules).encode()).hexdigest()
    return f"{name}-{digest[:12]}"


def changed_objects(
    before: Mapping[str, RouteSet], after: Mapping[str, RouteSet]
) -> frozenset[Key]:
    """Return the objects that contribute something else to a set that stays."""
    found: set[Key] = set()
    for name, now in after.items():
        then = before.get(name)
        if then is None:
            continue
        for ref in then.exports.keys() | now.exports.keys():
            old, new = then.exports.get(ref, ()), now.exports.get(ref, ())
            same = len(old) == len(new) and all(map(_is, old, new))
            if not same and old != new:
                found.add(object_key(ref))
    return frozenset(found)


def object_key(ref: ObjectRef) -> Key:
    """Return the key of an object in the route source."""
    return (ref.kind, ref.namespace, ref.name)


def _ref(key: Key) -> ObjectRef:
    return ObjectRef(*cast("tuple[str, str, str]", key))


def _is(one: object, other: object) -> bool:
    return one is other


class ConfiguredPrefixes:
    """The prefixes that objects advertise; keys are objects. Which ones is decided by `compile`."""

    name = SOURCE
    tables: tuple[Table[Any], ...] = ()

    def __init__(self) -> None:
        self.objects: tuple[ObjectRef, ...] = ()
        """The objects of the last compilation."""

    def affected(self, table: Table[Any], changes: Sequence[Change[Any]]) -> Iterable[Key]:  # noqa: ARG002
        """Return nothing: a compilation returns the objects that have changed."""
        return ()

    def keys(self, snapshot: Snapshot) -> Iterable[Key]:  # noqa: ARG002
        """Return all objects."""
        return [object_key(ref) for ref in self.objects]

    def object(self, context: NodeContext, key: Key) -> ObjectRef:  # noqa: ARG002
        """Return the object."""
        return _ref(key)

    def contributions(
        self,
        snapshot: Snapshot,  # noqa: ARG002
        context: NodeContext,  # noqa: ARG002
        key: Key,
        rules: Sequence[RouteSet],
    ) -> Iterator[Contributed]:
        """Yield what one object advertises."""
        ref = _ref(key)
        origin = Origin(ref, ref)
        for route_set in rules:
            for routes in route_set.exports.get(ref, ()):
                for (family, nlri), attributes in routes.items():
                    contribution = Contribution(origin, attributes)
                    yield Contributed(route_set.name, family, nlri, contribution)


def candidates(routers: Iterable[MergedRouter]) -> Iterator[Address]:
    """Yield every prefix that an object gives a router, for explanations."""
    for ref, one in dict.fromkeys(
        (ref, one) for router in routers for ref, prefixes in router.given for one in prefixes
    ):
        yield _candidate(ref, one)


def _candidate(ref: ObjectRef, one: Prefix) -> Address:
    def select(rules: RouteSet) -> Selection | None:
        for rule, exports in rules.exports.items():
            for routes in exports:
                if one in routes:
                    return Selection(rule, routes[one])
        return None

    return Address(ref, "Prefix", *one, select=select)
