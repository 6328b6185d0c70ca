"""The cluster IPs of all Services, by address: another Service may not have one as external IP."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, final

from reconcilers.model import ObjectRef
from reconcilers.prefixes import host_route
from resources.core import Service
from resources.meta import ObjectKey
from statedb import Change

_Routes: TypeAlias = bytes | tuple[bytes, ...]
"""Host routes; a single one is not in a tuple, of which there would be as many as Services."""


@final
class ClusterIPs:
    """Kept up to date by the changes of the table of Services."""

    def __init__(self) -> None:
        self._of_service: dict[ObjectKey, _Routes] = {}
        self._owners: dict[bytes, ObjectKey] = {}
        """The Service of each host route, the first one of several."""
        self._others: dict[bytes, tuple[ObjectKey, ...]] = {}
        """The further ones: it takes a moment until one of them has another address."""

    def __contains__(self, nlri: bytes) -> bool:
        """True if a host route is the cluster IP of a Service."""
        return nlri in self._owners

    def other_owner(self, nlri: bytes, service: ObjectRef) -> ObjectRef | None:
        """Return another Service that has a host route as cluster IP; None if this one has it."""
        if nlri not in self._owners:
            return None
        owners = self._owners_of(nlri)
        if (service.namespace, service.name) in owners:
            return None
        return ObjectRef("Service", *min(owners))

    def _owners_of(self, nlri: bytes) -> tuple[ObjectKey, ...]:
        return (self._owners[nlri], *self._others.get(nlri, ()))

    def update(self, changes: Iterable[Change[Service]]) -> set[bytes]:
        """Take changes of Services; returns cluster IPs, as host routes, with other owners now."""
        changed: set[bytes] = set()
        of_service, owners = self._of_service, self._owners
        for service, _, deleted in changes:
            key = service.key
            routes: _Routes = () if deleted else _routes(service)
            before = of_service.get(key)
            if routes == (before or ()):
                continue
            if before is not None:
                former = _each(before)
                self._release(key, former)
                changed.update(former)
            if not routes:
                del of_service[key]
                continue
            of_service[key] = routes
            for nlri in _each(routes):
                if owners.setdefault(nlri, key) is not key:
                    self._others[nlri] = (*self._others.get(nlri, ()), key)
                changed.add(nlri)
        return changed

    def _release(self, key: ObjectKey, routes: Iterable[bytes]) -> None:
        """Take host routes from a Service that has them; the next one of several has each then."""
        for nlri in routes:
            rest = [owner for owner in self._owners_of(nlri) if owner != key]
            self._others.pop(nlri, None)
            if not rest:
                del self._owners[nlri]
                continue
            self._owners[nlri] = rest[0]
            if len(rest) > 1:
                self._others[nlri] = tuple(rest[1:])


def _routes(service: Service) -> _Routes:
    """Return the cluster IPs as host routes, each once; a single one alone, as most Services have."""
    routes = [host_route(text)[1] for text in service.cluster_addresses]
    if len(routes) == 1:
        return routes[0]
    return tuple(dict.fromkeys(routes))


def _each(routes: _Routes) -> tuple[bytes, ...]:
    return (routes,) if isinstance(routes, bytes) else routes
