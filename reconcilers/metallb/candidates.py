"""The addresses that MetalLB's Services could advertise, for ``waggle explain``. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from reconcilers.dialect import NodeContext, Target
from reconcilers.metallb.services import ServiceState, service_state
from reconcilers.model import ObjectRef
from resources.core.kinds import BY_SERVICE, SERVICE
from resources.core.service import INGRESS, LOAD_BALANCER
from speaker.nlri import Family
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.metallb.dialect import MetalLBDialect

TYPE = "LoadBalancerIP"


class Candidate(NamedTuple):
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


def of_service(state: ServiceState, note: str) -> Iterator[Candidate]:
    """Yield the addresses of a Service, or one candidate without an address."""
    for family, nlri in state.addresses:
        yield Candidate(state.ref, TYPE, family, nlri, state, note)
    if not state.addresses:
        yield Candidate(state.ref, TYPE, None, None, state, note, None)


def candidates(
    dialect: MetalLBDialect,
    snapshot: Snapshot,
    context: NodeContext,
    _rules: Mapping[str, Any],
    target: Target | None,
) -> Iterator[Candidate]:
    """Yield the addresses of Services of type LoadBalancer, and of the target."""
    t = dialect.tables
    note = context.state.note if context.state is not None else ""
    for service in t.services.all(snapshot):
        named = target is not None and target.names(ObjectRef(SERVICE.name, *service.key))
        if named or (
            service.spec.type == LOAD_BALANCER and (target is None or target.prefix is not None)
        ):
            slices = t.endpoint_slices.find(snapshot, BY_SERVICE, service.key)
            load_balancer_class = dialect.of_node.load_balancer_class
            state = service_state(service, slices, context.node, load_balancer_class)
            yield from of_service(state, note)
