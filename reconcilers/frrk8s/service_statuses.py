"""Services with an address in a prefix of FRRConfigurations, and neighbors with a session.

An FRRConfiguration names prefixes, not Services: an address of a load balancer within one, but for a
default route, is to be advertised. It is where the session of a neighbor that is allowed the prefix is
established by the BGPSessionStates.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from reconcilers.dialect import ServiceStatuses
from reconcilers.frrk8s.field_values import Prefix, address, prefix, shown_vrf, vrf_name
from reconcilers.frrk8s.reported_sessions import reported
from reconcilers.prefixes import host_route
from resources.core import EndpointSlice, Service
from resources.core.service import LOAD_BALANCER
from resources.frrk8s.frrconfiguration import FRRConfiguration, Router
from resources.frrk8s.kinds import BGP_SESSION_STATE
from resources.frrk8s.neighbor import Neighbor
from resources.kind import Kind
from resources.meta import ObjectKey
from speaker.api import ESTABLISHED
from speaker.nlri import covering_prefixes
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.frrk8s.dialect import Frrk8sDialect


class PrefixServiceStatuses:
    """The prefixes of the objects of each node, and the established sessions."""

    def __init__(self, dialect: Frrk8sDialect, snapshot: Snapshot) -> None:
        selection = dialect.selections.of(snapshot, dialect.options.namespace)
        self._nodes: dict[ObjectKey, tuple[FRRConfiguration, list[str]]] = {}
        """The objects, each with the nodes that it selects."""
        for node in dialect.tables.nodes.all(snapshot):
            for row in selection.of(node.metadata.labels).objects:
                self._nodes.setdefault(row.key, (row, []))[1].append(node.metadata.name)
        self._established: dict[tuple[str, str], set[str]] = {}
        """The nodes, by VRF and neighbor."""
        self._advertised: frozenset[Prefix] | None = None
        rows = [row for row, _ in self._nodes.values() if not row.broken_rules]
        self._selected = frozenset(
            route for row in rows for router in row.spec.bgp.routers for route in _own(router)
        )

    def read(self, _kind: Kind[Any], value: Mapping[str, Any]) -> None:
        """Add a BGPSessionState, for statuses of Services. Raises msgspec.ValidationError."""
        for session in reported(value):
            if session.state == ESTABLISHED:
                key = (session.instance, session.name)
                self._established.setdefault(key, set()).add(session.node)

    def selected(self, service: Service) -> tuple[str, ...]:
        """Return a Service's addresses in a prefix of an FRRConfiguration that selects a node."""
        return tuple(_within(service, self._selected))

    def follows_endpoints(self, _service: Service) -> bool:
        """Return False: FRRConfigurations advertise a Service whatever its endpoints are."""
        return False

    def advertised(self, service: Service, _slices: Sequence[EndpointSlice]) -> frozenset[str]:
        """Return a Service's addresses in a prefix that a node with an FRR-k8s session advertises."""
        if self._advertised is None:
            self._advertised = frozenset(self._allowed())
        return frozenset(_within(service, self._advertised))

    def _allowed(self) -> Iterator[Prefix]:
        for row, nodes in self._nodes.values():
            routers = () if row.broken_rules else row.spec.bgp.routers
            of_vrf = {vrf_name(router.vrf): router for router in routers}
            for router in routers:
                imports = [of_vrf.get(vrf_name(given.vrf)) for given in router.imports]
                own = {route for given in (router, *filter(None, imports)) for route in _own(given)}
                for neighbor in router.neighbors:
                    key = (shown_vrf(vrf_name(router.vrf)), _end(neighbor))
                    if not self._established.get(key, set()).isdisjoint(nodes):
                        yield from _to_neighbor(neighbor, own)


def _to_neighbor(neighbor: Neighbor, own: set[Prefix]) -> Iterator[Prefix]:
    """Yield the prefixes of an object that a neighbor is allowed."""
    allowed = neighbor.to_advertise.allowed
    both = neighbor.dual_stack_address_family or not neighbor.address
    family = None if both else host_route(_end(neighbor))[0]
    for route in own if allowed.mode == "all" else own.intersection(_parsed(allowed.prefixes)):
        if family in (None, route[0]):
            yield route


def _own(router: Router) -> Iterator[Prefix]:
    return _parsed(router.prefixes)


def _parsed(texts: Iterable[str]) -> Iterator[Prefix]:
    """Yield valid prefixes, but for default routes."""
    for text in texts:
        with contextlib.suppress(ValueError):
            parsed = prefix(text)
            if parsed[1] != b"\0":
                yield parsed


def _end(neighbor: Neighbor) -> str:
    """Return the neighbor as `reported` names it."""
    with contextlib.suppress(ValueError):
        return address(neighbor.address)
    return neighbor.interface


def _within(service: Service, prefixes: frozenset[Prefix]) -> Iterator[str]:
    if service.spec.type != LOAD_BALANCER:
        return
    for text in service.load_balancer_addresses:
        family, route = host_route(text)
        if any((family, covering) in prefixes for covering in covering_prefixes(route)):
            yield text


SERVICE_STATUSES: Final = ServiceStatuses(
    PrefixServiceStatuses, (BGP_SESSION_STATE,), lambda dialect: dialect.options.namespace
)
