"""The route source of FRR-k8s: the prefixes that its objects advertise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, cast

from reconcilers.dialect import Address, Contributed, NodeContext, SelectingRule
from reconcilers.frrk8s.field_values import Prefix
from reconcilers.frrk8s.route_sets import ADDRESS_TYPE, SOURCE, RouteSet
from reconcilers.model import Contribution, ObjectRef, Origin
from reconcilers.redistribution import KERNEL_ROUTE
from statedb import Change, Key, Snapshot, Table


class ConfiguredPrefixSource:
    """The prefixes that objects advertise, by object and type. Which ones is decided by `compile`."""

    name = SOURCE
    tables: tuple[Table[Any], ...] = ()

    def affected(self, _table: Table[Any], _changes: Sequence[Change[Any]], /) -> Iterable[Key]:
        """Return no keys: a compilation returns the FRRConfigurations that have changed."""
        return ()

    def keys(self, _snapshot: Snapshot, rules: Sequence[RouteSet], /) -> Iterable[Key]:
        """Return the keys of the FRRConfigurations, and other objects, that advertise something."""
        return list(dict.fromkeys(key for route_set in rules for key in route_set.exports))

    def object(self, context: NodeContext, key: Key) -> ObjectRef:
        """Return the FRRConfiguration of a key; of routes of the kernel it is the Node."""
        return _origin(context, key).object

    def contributions(
        self,
        _snapshot: Snapshot,
        context: NodeContext,
        key: Key,
        rules: Sequence[RouteSet],
        /,
    ) -> Iterator[Contributed]:
        """Yield the routes that one FRRConfiguration contributes to route sets."""
        origin = _origin(context, key)
        for route_set in rules:
            for routes in route_set.exports.get(key, ()):
                for (family, nlri), attributes in routes.items():
                    contribution = Contribution(origin, attributes)
                    yield Contributed(route_set.name, family, nlri, contribution)

    def contributions_to(
        self,
        _snapshot: Snapshot,
        context: NodeContext,
        key: Key,
        rules: Sequence[RouteSet],
        prefixes: AbstractSet[Prefix],
        /,
    ) -> Iterator[Contributed]:
        """Yield the routes to some prefixes that one FRRConfiguration contributes to route sets."""
        origin = _origin(context, key)
        for route_set in rules:
            for routes in route_set.exports.get(key, ()):
                for prefix in prefixes:
                    if prefix in routes:
                        contribution = Contribution(origin, routes[prefix])
                        yield Contributed(route_set.name, *prefix, contribution)


def _origin(context: NodeContext, key: Key) -> Origin:
    ref, type_ = _object(key)
    return Origin(node_ref(context.node) if type_ == KERNEL_ROUTE else ref, ref, type_)


def _object(key: Key) -> tuple[ObjectRef, str]:
    """Return the FRRConfiguration of a key, and the type of its addresses."""
    *parts, type_ = cast("tuple[str, str, str, str]", key)
    return ObjectRef(*parts), type_


def node_ref(node: str) -> ObjectRef:
    """Return the reference to a Node, which is the object of kernel routes in the route source."""
    return ObjectRef("Node", "", node)


def address_of(ref: ObjectRef, prefix: Prefix, type_: str = ADDRESS_TYPE) -> Address:
    """Return a prefix of FRR-k8s's route source as an address, with what selects it, to explain."""

    def select(rules: RouteSet) -> SelectingRule | None:
        for key, exports in rules.exports.items():
            rule, of_type = _object(key)
            for routes in exports if of_type == type_ else ():
                if prefix in routes:
                    return SelectingRule(rule, routes[prefix])
        return None

    return Address(ref, type_, *prefix, select=select)
