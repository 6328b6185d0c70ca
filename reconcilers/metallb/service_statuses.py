"""Services that MetalLB's objects select for advertisement, and advertised ones, by their statuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from reconcilers.dialect import ServiceStatuses
from reconcilers.metallb.objects import Objects
from reconcilers.metallb.pool_selection import PoolSelection
from reconcilers.metallb.route_sets import node_rules
from reconcilers.prefixes import host_route
from resources.core import EndpointSlice, Service
from resources.core.service import LOAD_BALANCER
from resources.kind import Kind
from resources.label_selectors import LabelSelector
from resources.meta import ObjectKey
from resources.metallb.bgpadvertisement import BGPAdvertisement
from resources.metallb.ipaddresspool import IPAddressPool
from resources.metallb.kinds import BGP_ADVERTISEMENT, IP_ADDRESS_POOL, SERVICE_BGP_STATUS
from resources.metallb.status import ServiceBGPStatusStatus
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.metallb.dialect import MetalLBDialect

R = TypeVar("R", IPAddressPool, BGPAdvertisement)


class PoolServiceStatuses:
    """The pools that BGPAdvertisements select, and the Services of ServiceBGPStatuses with peers."""

    def __init__(self, dialect: MetalLBDialect, snapshot: Snapshot) -> None:
        tables, namespace = dialect.tables, dialect.options.namespace

        def of_kind(kind: Kind[R]) -> list[R]:
            rows = tables.in_namespace(snapshot, kind, namespace)
            return [row for row in rows if not row.broken_rules]

        pools = of_kind(IP_ADDRESS_POOL)
        # Communities do not matter here, and an alias may be missing.
        self._pools = node_rules(Objects(pools=tuple(pools)), None)
        selection = PoolSelection(pools)
        self._selectors: dict[str, list[Sequence[LabelSelector]]] = {}
        """By pool: the Service selectors of each advertisement that selects it."""
        for row in of_kind(BGP_ADVERTISEMENT):
            for name in selection.of(row):
                self._selectors.setdefault(name, []).append(row.spec.service_selectors)
        self._advertised: set[ObjectKey] = set()

    def read(self, _kind: Kind[Any], value: Mapping[str, Any]) -> None:
        """Add a ServiceBGPStatus, for statuses of Services. Raises msgspec.ValidationError."""
        status = msgspec.convert(value.get("status") or {}, ServiceBGPStatusStatus)
        if status.peers:
            self._advertised.add((status.service_namespace, status.service_name))

    def selected(self, service: Service) -> tuple[str, ...]:
        """Return a Service's addresses that are in a pool which a BGPAdvertisement selects."""
        if service.spec.type != LOAD_BALANCER:
            return ()
        labels = service.metadata.labels
        return tuple(
            address for address in service.load_balancer_addresses if self._selects(address, labels)
        )

    def follows_endpoints(self, _service: Service) -> bool:
        """Return False: a ServiceBGPStatus is of one Service."""
        return False

    def advertised(self, service: Service, _slices: Sequence[EndpointSlice]) -> frozenset[str]:
        """Return all selected addresses of a Service, if a ServiceBGPStatus has it with peers."""
        return frozenset(self.selected(service) if service.key in self._advertised else ())

    def _selects(self, address: str, labels: Mapping[str, str]) -> bool:
        pool = self._pools.pool_of(*host_route(address))
        return any(
            not selectors or any(selector.matches(labels) for selector in selectors)
            for selectors in self._selectors.get(pool or "", ())
        )


SERVICE_STATUSES: Final = ServiceStatuses(
    PoolServiceStatuses, (SERVICE_BGP_STATUS,), lambda dialect: dialect.options.namespace
)
