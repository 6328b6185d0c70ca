"""The base of route sources of Services with their EndpointSlices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from reconcilers.dialect.compilation import NodeContext
from reconcilers.dialect.route_source import Contributed, Rejected
from reconcilers.model import ObjectRef
from resources.core import EndpointSlice, Service
from resources.core.kinds import BY_SERVICE
from resources.meta import ObjectKey
from resources.tables import Tables
from statedb import Change, Key, Snapshot, Table


class ServiceSource(ABC):
    """A `RouteSource` of Services; keys are namespace and name.

    A changed EndpointSlice affects the Services that its label names and named before.
    """

    name = "service"

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._owners: dict[str, dict[str, str]] = {}
        """The Service of each EndpointSlice by namespace and name, for when its label changes."""

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """The tables of a source of Services: Services and EndpointSlices."""
        return (self._tables.services, self._tables.endpoint_slices)

    def affected(self, table: Table[Any], changes: Sequence[Change[Any]]) -> Iterable[Key]:
        """Return the Services, and the Services of EndpointSlices, that changes affect."""
        if table is self._tables.services:
            return [change.row.key for change in changes]
        keys: list[Key] = []
        for change in changes:
            (namespace, name), owner = change.row.key, change.row.service_key
            owners = self._owners.setdefault(namespace, {})
            before = owners.pop(name, None)
            if before is not None:
                keys.append((namespace, before))
            if owner is not None:
                keys.append(owner)
                if not change.deleted:
                    owners[name] = owner[1]
            if not owners:
                del self._owners[namespace]
        return keys

    def keys(self, snapshot: Snapshot, _rules: Sequence[Any], /) -> Iterable[Key]:
        """Return the keys of all Services of the source."""
        return (service.key for service in self._tables.services.all(snapshot))

    def object(self, _context: NodeContext, key: Key, /) -> ObjectRef:
        """Return the Service of the source."""
        namespace, name = cast("ObjectKey", key)
        return ObjectRef("Service", namespace, name)

    def contributions(
        self, snapshot: Snapshot, context: NodeContext, key: Key, rules: Sequence[Any]
    ) -> Iterator[Contributed | Rejected]:
        """Iterate over what one Service of any dialect's source contributes; nothing if gone."""
        service = self._tables.services.get(snapshot, key)
        if service is None:
            return iter(())
        slices = self._tables.endpoint_slices.find(snapshot, BY_SERVICE, key)
        return self.of_service(service, slices, snapshot, context, rules)

    @abstractmethod
    def of_service(
        self,
        service: Service,
        slices: Iterable[EndpointSlice],
        snapshot: Snapshot,
        context: NodeContext,
        rules: Sequence[Any],
        /,
    ) -> Iterator[Contributed | Rejected]:
        """Iterate over what one Service contributes to route sets with any dialect's rules."""
