"""The cluster IPs of all Services, by address: another Service may not have one as external IP."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from reconcilers.model import ObjectRef
from reconcilers.prefixes import host_route
from resources.core import Service
from resources.meta import ObjectKey
from statedb import Change


@final
class ClusterIPs:
    """Kept up to date by the changes of the table of Services."""

    def __init__(self) -> None:
        self._of_service: dict[ObjectKey, tuple[bytes, ...]] = {}
        self._owners: dict[bytes, tuple[ObjectKey, ...]] = {}

    def __contains__(self, nlri: bytes) -> bool:
        """True if a host route is the cluster IP of a Service."""
        return nlri in self._owners

    def other_owner(self, nlri: bytes, service: ObjectRef) -> ObjectRef | None:
        """Return a Service whose cluster IP this host route is; None if the given one is one."""
        owners = self._owners.get(nlri, ())
        if not owners or (service.namespace, service.name) in owners:
            return None
        return ObjectRef("Service", *min(owners))

    def update(self, changes: Iterable[Change[Service]]) -> set[bytes]:
        """Take changes of Services; returns the host routes that have other owners than before."""
        changed: set[bytes] = set()
        owners, of_service = self._owners, self._of_service
        for service, _, deleted in changes:
            key = service.key
            routes = () if deleted else _routes(service)
            before = of_service.get(key, ())
            if routes == before:
                continue
            for nlri in before:
                others = tuple([owner for owner in owners[nlri] if owner != key])
                if others:
                    owners[nlri] = others
                else:
                    del owners[nlri]
            for nlri in routes:
                owners[nlri] = (*owners.get(nlri, ()), key)
            if routes:
                of_service[key] = routes
            else:
                del of_service[key]
            changed.update(before, routes)
        return changed


def _routes(service: Service) -> tuple[bytes, ...]:
    """Return the cluster IPs as host routes, each once."""
    routes = [host_route(text)[1] for text in service.cluster_addresses]
    return tuple(routes if len(routes) < 2 else dict.fromkeys(routes))
