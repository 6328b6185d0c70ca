"""Explains why a candidate is advertised to a peer, or is not, and which policy decides. Pure."""

from __future__ import annotations

from typing import Final

from reconcilers.antrea.candidates import candidates
from reconcilers.antrea.route_sets import Reason, RouteSet, TypedCandidate, rejected_candidate
from reconcilers.dialect import Explanation, explanation_of
from reconcilers.model import ObjectRef, Peer, RouteExplanation
from resources.antrea.kinds import BGP_POLICY, EGRESS


def explain(candidate: TypedCandidate, peer: Peer, route_set: RouteSet | None) -> RouteExplanation:
    """Explain by which BGPPolicy a candidate is advertised to a peer, or why it is not."""
    policy = peer.origins[0] if peer.origins else None
    decided: tuple[Reason, ObjectRef | None] | None = _suppressed(candidate, peer)
    if decided is None:
        nothing = Reason("NoRoutes", "the peer is advertised nothing")
        reason = nothing if route_set is None else rejected_candidate(candidate, route_set)
        decided = None if reason is None else (reason, policy)
    if decided is not None:
        (word, message), rule = decided
        return explanation_of(candidate, word, message, rule=rule)
    advertised = () if candidate.nlri is None else (candidate.nlri,)
    return explanation_of(candidate, "Advertised", advertised=advertised, rule=policy)


def _suppressed(candidate: TypedCandidate, peer: Peer) -> tuple[Reason, ObjectRef | None] | None:
    """Return why the peer is sent nothing, as the node is drained."""
    for family in peer.suppressed:
        if candidate.family in (None, family.family):
            return Reason(family.reason, family.message), family.rule
    return None


EXPLANATION: Final = Explanation(
    candidates,
    explain,
    kinds={"egress": EGRESS.name, "egresses": EGRESS.name},
    selecting={BGP_POLICY: lambda row: (row.spec.node_selector,)},
)
