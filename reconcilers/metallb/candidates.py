"""The addresses that MetalLB's Services could advertise, for ``waggle explain``. Pure."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from reconcilers.dialect import NodeContext, Target
from reconcilers.metallb.pool_selection import PoolSelection
from reconcilers.metallb.services import ServiceState, service_state
from reconcilers.model import ObjectRef, ref_to
from resources.core.kinds import BY_SERVICE, SERVICE
from resources.core.service import INGRESS, LOAD_BALANCER
from resources.label_selectors import Mismatch, nearest_mismatch
from resources.metallb.kinds import BGP_ADVERTISEMENT, IP_ADDRESS_POOL, node_selectors
from resources.tables import Tables
from speaker.nlri import Family
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.metallb.dialect import MetalLBDialect

TYPE = "LoadBalancerIP"


class ServiceCandidate(NamedTuple):
    """One address of a Service; family and prefix are None where it has none."""

    object: ObjectRef
    type: str
    family: Family | None
    nlri: bytes | None
    state: ServiceState
    note: str = ""
    """Why objects of the cluster may not be in effect, as a clause."""
    service_field: str | None = INGRESS
    in_pool: bool = True
    others: AdvertisementsOfOthers | None = None
    """The BGPAdvertisements that do not select the node."""


class AdvertisementsOfOthers:
    """The BGPAdvertisements that do not select a node, by the pools that they select."""

    def __init__(self, tables: Tables, snapshot: Snapshot, namespace: str, node: str) -> None:
        self._tables = tables
        self._snapshot = snapshot
        self._namespace = namespace
        self._node = node

    @functools.cached_property
    def _misses(self) -> list[tuple[tuple[str, ...], Mismatch, ObjectRef]]:
        row = self._tables.nodes.get(self._snapshot, ("", self._node))
        labels = {} if row is None else row.metadata.labels
        tables, snapshot, namespace = self._tables, self._snapshot, self._namespace
        pools = PoolSelection(tables.in_namespace(snapshot, IP_ADDRESS_POOL, namespace))
        misses = (
            (row, nearest_mismatch(node_selectors(row), labels))
            for row in tables.in_namespace(snapshot, BGP_ADVERTISEMENT, namespace)
        )
        return [
            (pools.of(row), mismatch, ref_to(BGP_ADVERTISEMENT, row))
            for row, mismatch in misses
            if mismatch is not None
        ]

    def nearest(self, pool: str) -> tuple[str, ObjectRef] | None:
        """Return the nearest BGPAdvertisement of a candidate's pool, and its mismatch, in words."""
        misses = [miss for miss in self._misses if pool in miss[0]]
        if not misses:
            return None
        _, mismatch, ref = min(misses, key=lambda miss: (miss[1].requirements, miss[2]))
        text = f"nodeSelectors {mismatch.wanted} of {ref}; node {self._node} has {mismatch.present}"
        return text, ref


def candidates_of_service(
    state: ServiceState, note: str, others: AdvertisementsOfOthers
) -> Iterator[ServiceCandidate]:
    """Yield candidates: the addresses of a MetalLB Service, or one without an address."""
    for family, nlri in state.addresses:
        yield ServiceCandidate(state.ref, TYPE, family, nlri, state, note, others=others)
    if not state.addresses:
        yield ServiceCandidate(state.ref, TYPE, None, None, state, note, None)


def candidates(
    dialect: MetalLBDialect,
    snapshot: Snapshot,
    context: NodeContext,
    _rules: Mapping[str, Any],
    target: Target | None,
) -> Iterator[ServiceCandidate]:
    """Yield MetalLB's candidates: addresses of Services of type LoadBalancer, and of the target."""
    t = dialect.tables
    note = context.state.note if context.state is not None else ""
    others = AdvertisementsOfOthers(t, snapshot, dialect.of_node.namespace, context.node)
    for service in t.services.all(snapshot):
        named = target is not None and target.names(ObjectRef(SERVICE.name, *service.key))
        if named or (
            service.spec.type == LOAD_BALANCER and (target is None or target.prefix is not None)
        ):
            slices = t.endpoint_slices.find(snapshot, BY_SERVICE, service.key)
            load_balancer_class = dialect.of_node.load_balancer_class
            state = service_state(service, slices, context.node, load_balancer_class)
            yield from candidates_of_service(state, note, others)
