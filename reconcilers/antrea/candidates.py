"""The addresses of Services, Egresses and the Node, with reasons why one is not advertised. Pure.

A candidate is one address of one object. `rejected_candidate` decides for routes and for explanations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from reconcilers.antrea.node_facts import NodeFacts, node_facts
from reconcilers.antrea.route_sets import (
    CLUSTER_IP,
    EGRESS_IP,
    EXTERNAL_IP,
    LOAD_BALANCER_IP,
    POD_CIDR,
    RouteSet,
)
from reconcilers.dialect import Contributed, NodeContext, ServiceAddress, Target
from reconcilers.model import Attributes, Contribution, ObjectRef, Origin, ref_to
from reconcilers.prefixes import host_route
from resources.antrea import Egress
from resources.antrea.kinds import EGRESS
from resources.core import Endpoint, EndpointSlice, Service
from resources.core.kinds import BY_SERVICE, NODE, SERVICE
from resources.core.service import EXTERNAL_IPS, INGRESS, LOAD_BALANCER
from speaker.nlri import IPV4_UNICAST, Family
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.antrea.dialect import AntreaDialect

_ATTRIBUTES: Final = Attributes()
"""ORIGIN IGP, next hop self, nothing else."""


_MAPPED: Final = b"\x80" + bytes(10) + b"\xff\xff"
"""How host routes of IPv4-mapped addresses begin (RFC 4291 section 2.5.5.2)."""
FAMILY_NOT_ENABLED: Final = "FamilyNotEnabled"


class Reason(NamedTuple):
    """Why an address is not advertised: one word, and a sentence without its end."""

    reason: str
    message: str


def family_not_enabled(family: Family) -> Reason:
    """Return why no candidate of Antrea of this family is advertised: the node has not enabled it."""
    return Reason(FAMILY_NOT_ENABLED, f"the node has no pod CIDR and InternalIP of {family}")


class TypedCandidate(NamedTuple):
    """One address of one object, selected by its type; without one the object has none of the type."""

    object: ObjectRef
    type: str
    family: Family | None = None
    nlri: bytes | None = None
    withheld: Reason | None = None
    """Why it is advertised to no peer."""
    service_field: str | None = None
    in_pool: bool = False

    @property
    def peer_family(self) -> Family | None:
        """The family of the peers that this candidate of Antrea is for: IPv4 if IPv4-mapped, as in Go.

        The rules for addresses of Services reject it, with a problem.
        """
        if self.nlri is not None and self.nlri.startswith(_MAPPED):
            return IPV4_UNICAST
        return self.family


def rejected_candidate(candidate: TypedCandidate, route_set: RouteSet) -> Reason | None:
    """Return why a BGPPolicy's routes do not have a candidate, or None."""
    withheld = candidate.withheld
    if withheld is not None and withheld.reason == FAMILY_NOT_ENABLED:
        return withheld
    family = candidate.peer_family
    if family not in (None, route_set.family):
        return Reason("Family", f"its routes go to peers of {family}")
    if candidate.type not in route_set.types:
        named = ", ".join(sorted(route_set.types)) or "nothing"
        text = f"{route_set.policy} advertises {named}, and not {candidate.type}"
        return Reason("NotAdvertised", text)
    return withheld


def contributions(
    candidates: Iterable[TypedCandidate], rules: Sequence[RouteSet]
) -> Iterator[Contributed]:
    """Yield the candidates that the route sets of a BGPPolicy have."""
    for candidate in candidates:
        if candidate.family is None or candidate.nlri is None:
            continue
        named = (
            None
            if candidate.service_field is None
            else ServiceAddress(candidate.service_field, candidate.nlri)
        )
        for route_set in rules:
            if rejected_candidate(candidate, route_set) is None:
                origin = Origin(candidate.object, route_set.policy, candidate.type)
                contribution = Contribution(origin, _ATTRIBUTES)
                yield Contributed(
                    route_set.name, candidate.family, candidate.nlri, contribution, named
                )


# Services


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


# Pods and egress


def of_node(ref: ObjectRef, facts: NodeFacts) -> Iterator[TypedCandidate]:
    """Yield the candidates of a node for Antrea: its pod CIDRs."""
    for family, prefixes in facts.pod_cidrs.items():
        for nlri in prefixes:
            yield TypedCandidate(ref, POD_CIDR, family, nlri)


def of_egress(egress: Egress, node: str, *, enabled: bool) -> Iterator[TypedCandidate]:
    """Yield the candidate of an Egress: its address."""
    ref, status = ref_to(EGRESS, egress), egress.status
    withheld = None
    if not enabled:
        withheld = Reason("EgressOff", "egress IPs are not advertised: --antrea-egress=false")
    elif not status.egress_node:
        withheld = Reason("NotAssigned", "it is assigned to no node")
    elif status.egress_node != node:
        withheld = Reason("OtherNode", f"it is assigned to node {status.egress_node}")
    if not status.egress_ip:
        missing = Reason("NoAddress", "its status has no address")
        yield TypedCandidate(ref, EGRESS_IP, withheld=withheld or missing)
        return
    yield TypedCandidate(ref, EGRESS_IP, *host_route(status.egress_ip), withheld)


def candidates(
    dialect: AntreaDialect,
    snapshot: Snapshot,
    context: NodeContext,
    _rules: Mapping[str, RouteSet],
    target: Target | None,
) -> Iterator[TypedCandidate]:
    """Yield the candidates of Antrea: addresses of Services and Egresses, and the node's pod CIDRs."""
    node = dialect.tables.nodes.get(snapshot, ("", context.node))
    facts = NodeFacts({}, {}) if node is None else node_facts(node)
    for candidate in _of_objects(dialect, snapshot, context.node, facts, target):
        if candidate.family is None or candidate.family in facts.transport:
            yield candidate
        else:
            yield candidate._replace(withheld=family_not_enabled(candidate.family))


def _of_objects(
    dialect: AntreaDialect, snapshot: Snapshot, node: str, facts: NodeFacts, target: Target | None
) -> Iterator[TypedCandidate]:
    t, options = dialect.tables, dialect.of_node
    yield from of_node(ObjectRef(NODE.name, "", node), facts)
    for egress in t.of(EGRESS).all(snapshot):
        yield from of_egress(egress, node, enabled=options.egress)
    for service in t.services.all(snapshot):
        ref = ObjectRef(SERVICE.name, *service.key)
        if target is None or target.prefix is not None or target.names(ref):
            slices = t.endpoint_slices.find(snapshot, BY_SERVICE, service.key)
            yield from of_service(service, slices, node, ready_only=options.ready_endpoints)
