"""The addresses of Services, Egresses and the Node, with reasons why one is not advertised. Pure.

A candidate is one address of one object. `route_sets.rejected_candidate` decides for routes and for
explanations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from reconcilers.antrea.node_facts import NodeFacts, node_facts
from reconcilers.antrea.route_sets import (
    EGRESS_IP,
    POD_CIDR,
    Reason,
    RouteSet,
    TypedCandidate,
    family_not_enabled,
)
from reconcilers.antrea.services import of_service
from reconcilers.dialect import NodeContext, Target
from reconcilers.model import ObjectRef, ref_to
from reconcilers.prefixes import host_route
from resources.antrea import Egress
from resources.antrea.kinds import EGRESS
from resources.core.kinds import BY_SERVICE, NODE, SERVICE
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.antrea.dialect import AntreaDialect


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
