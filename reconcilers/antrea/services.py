"""The addresses of a Service, and why the node does not advertise one of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconcilers.antrea.route_sets import (
    CLUSTER_IP,
    EXTERNAL_IP,
    LOAD_BALANCER_IP,
    Reason,
    TypedCandidate,
)
from reconcilers.model import ObjectRef, ref_to
from reconcilers.prefixes import host_route
from resources.core import Endpoint, EndpointSlice, Service
from resources.core.kinds import SERVICE
from resources.core.service import EXTERNAL_IPS, INGRESS, LOAD_BALANCER


def of_service(
    service: Service, slices: Iterable[EndpointSlice], node: str, *, ready_only: bool
) -> Iterator[TypedCandidate]:
    """Yield the candidates of a Service for Antrea: one for each of its addresses."""
    spec, ref = service.spec, ref_to(SERVICE, service)
    local: Reason | None = None
    if "Local" in (spec.internal_traffic_policy, spec.external_traffic_policy):
        local = _without_local_endpoint(slices, node, ready_only=ready_only)
    inside = local if spec.internal_traffic_policy == "Local" else None
    outside = local if spec.external_traffic_policy == "Local" else None
    balancer = outside
    if spec.type != LOAD_BALANCER:
        balancer = Reason("NotLoadBalancer", f"it is of type {spec.type}")
    yield from _candidates(ref, CLUSTER_IP, service.cluster_addresses, inside, None)
    yield from _candidates(ref, EXTERNAL_IP, service.external_addresses, outside, EXTERNAL_IPS)
    addresses = service.load_balancer_addresses
    yield from _candidates(ref, LOAD_BALANCER_IP, addresses, balancer, INGRESS)


def _candidates(
    ref: ObjectRef,
    type_: str,
    texts: Iterable[str],
    withheld: Reason | None,
    field: str | None,
) -> Iterator[TypedCandidate]:
    # The same address in two spellings is one route.
    routes = dict.fromkeys(host_route(text) for text in texts)
    for family, nlri in routes:
        yield TypedCandidate(ref, type_, family, nlri, withheld, field)
    if not routes:
        missing = (
            withheld if withheld is not None and withheld.reason == "NotLoadBalancer" else None
        )
        yield TypedCandidate(ref, type_, withheld=missing or _no_address(type_))


def _no_address(type_: str) -> Reason:
    names = {
        CLUSTER_IP: "it has no cluster IP",
        EXTERNAL_IP: "spec.externalIPs is empty",
        LOAD_BALANCER_IP: "its status has no IP address of a load balancer",
    }
    return Reason("NoAddress", names[type_])


def _without_local_endpoint(
    slices: Iterable[EndpointSlice], node: str, *, ready_only: bool
) -> Reason | None:
    """Return why an address with traffic policy Local is withheld: no endpoint is on the node."""
    for piece in slices:
        for endpoint in piece.endpoints:
            if endpoint.node_name == node and (not ready_only or _serves(endpoint)):
                return None
    kind = "ready endpoint" if ready_only else "endpoint"
    text = f"its traffic policy is Local, and no {kind} is on node {node}"
    return Reason("NoLocalEndpoint", text)


def _serves(endpoint: Endpoint) -> bool:
    """True if an endpoint is ready (the default), or serves while it terminates."""
    state = endpoint.conditions
    return state.ready is not False or bool(state.serving and state.terminating)
