"""The route source of FRR-k8s: the prefixes that its objects advertise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, cast

from reconcilers.dialect import Address, Contributed, NodeContext, Selection
from reconcilers.frrk8s.route_sets import ADDRESS_TYPE, SOURCE, RouteSet, object_key
from reconcilers.frrk8s.values import Prefix
from reconcilers.model import Contribution, ObjectRef, Origin
from statedb import Change, Key, Snapshot, Table


class ConfiguredPrefixes:
    """The prefixes that objects advertise; keys are objects. Which ones is decided by `compile`."""

    name = SOURCE
    tables: tuple[Table[Any], ...] = ()

    def affected(self, table: Table[Any], changes: Sequence[Change[Any]]) -> Iterable[Key]:  # noqa: ARG002
        """Return nothing: a compilation returns the objects that have changed."""
        return ()

    def keys(self, _snapshot: Snapshot, rules: Sequence[RouteSet], /) -> Iterable[Key]:
        """Return the objects that advertise something."""
        refs = dict.fromkeys(ref for route_set in rules for ref in route_set.exports)
        return [object_key(ref) for ref in refs]

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
        origin = Origin(ref, ref, ADDRESS_TYPE)
        for route_set in rules:
            for routes in route_set.exports.get(ref, ()):
                for (family, nlri), attributes in routes.items():
                    contribution = Contribution(origin, attributes)
                    yield Contributed(route_set.name, family, nlri, contribution)

    def contributions_to(
        self,
        snapshot: Snapshot,  # noqa: ARG002
        context: NodeContext,  # noqa: ARG002
        key: Key,
        rules: Sequence[RouteSet],
        prefixes: AbstractSet[Prefix],
    ) -> Iterator[Contributed]:
        """Yield what one object advertises of some prefixes."""
        ref = _ref(key)
        origin = Origin(ref, ref, ADDRESS_TYPE)
        for route_set in rules:
            for routes in route_set.exports.get(ref, ()):
                for prefix in prefixes:
                    if prefix in routes:
                        contribution = Contribution(origin, routes[prefix])
                        yield Contributed(route_set.name, *prefix, contribution)


def _ref(key: Key) -> ObjectRef:
    return ObjectRef(*cast("tuple[str, str, str]", key))


def address_of(ref: ObjectRef, prefix: Prefix) -> Address:
    """Return a prefix of an object, with what selects it, for explanations."""

    def select(rules: RouteSet) -> Selection | None:
        for rule, exports in rules.exports.items():
            for routes in exports:
                if prefix in routes:
                    return Selection(rule, routes[prefix])
        return None

    return Address(ref, ADDRESS_TYPE, *prefix, select=select)
