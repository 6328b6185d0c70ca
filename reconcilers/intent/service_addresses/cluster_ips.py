"""The cluster IPs of all Services, by address: another Service may not have one as external IP."""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

from reconcilers.model import ObjectRef
from reconcilers.prefixes import host_route
from resources.core import Service
from resources.meta import ObjectKey
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family
from statedb import Change


@final
class ClusterIPs:
    """Kept up to date by the changes of the table of Services."""

    def __init__(self) -> None:
        self._of_service: dict[ObjectKey, tuple[bytes, ...]] = {}
        self._owners: dict[bytes, tuple[ObjectKey, ...]] = {}

    def other_owner(self, nlri: bytes, service: ObjectRef) -> ObjectRef | None:
        """Return a Service whose cluster IP this host route is; None if the given one is one."""
        owners = self._owners.get(nlri, ())
        if not owners or (service.namespace, service.name) in owners:
            return None
        return ObjectRef("Service", *min(owners))

    def update(self, changes: Iterable[Change[Service]]) -> set[tuple[Family, bytes]]:
        """Take changes of Services; returns the host routes that have other owners than before."""
        changed: set[tuple[Family, bytes]] = set()
        for change in changes:
            key = change.row.key
            routes = () if change.deleted else tuple(_routes(change.row))
            wire = tuple(nlri for _, nlri in routes)
            before = self._of_service.get(key, ())
            if wire == before:
                continue
            for nlri in before:
                self._set(nlri, tuple(owner for owner in self._owners[nlri] if owner != key))
            for nlri in wire:
                self._set(nlri, (*self._owners.get(nlri, ()), key))
            if wire:
                self._of_service[key] = wire
            else:
                self._of_service.pop(key, None)
            changed.update((_family(nlri), nlri) for nlri in (*before, *wire))
        return changed

    def _set(self, nlri: bytes, owners: tuple[ObjectKey, ...]) -> None:
        if owners:
            self._owners[nlri] = owners
        else:
            self._owners.pop(nlri, None)


def _routes(service: Service) -> Iterable[tuple[Family, bytes]]:
    return dict.fromkeys(host_route(text) for text in service.cluster_addresses)


def _family(nlri: bytes) -> Family:
    return IPV4_UNICAST if nlri[0] == 32 else IPV6_UNICAST
