"""Explains why a Service is advertised to a peer, or is not. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from reconcilers.dialect import Explanation, explanation_of
from reconcilers.frrk8s.route_sets import RouteSet
from reconcilers.metallb.candidates import ServiceCandidate, candidates
from reconcilers.metallb.route_sets import AdvertisementRule, PeerRules
from reconcilers.metallb.route_sources import rules_of
from reconcilers.metallb.services import (
    decide,
    excess_of_communities,
    too_many_communities,
)
from reconcilers.model import ObjectRef, Peer, RouteExplanation
from resources.enumeration import enumerate_objects
from resources.metallb.kinds import BGP_PEER, node_selectors
from speaker.nlri import aggregate

OF_CONFIGURATION: Final = frozenset(
    {"NoPool", "NoMatchingAdvertisement", "NoRule", "NotOwner", "PeerNotSelected"}
)
"""Reasons for which objects that are not in effect may be the cause."""


class _Answer(NamedTuple):
    reason: str
    message: str
    rule: ObjectRef | None
    advertised: tuple[bytes, ...] = ()


def explain(
    candidate: ServiceCandidate, peer: Peer, route_set: RouteSet | None
) -> RouteExplanation:
    """Explain what MetalLB advertises to a peer by the rules of its BGPPeer, if it has one."""
    rules = rules_of(route_set)
    answer = _answer(candidate, peer, rules)
    message = answer.message
    if candidate.note and answer.reason in OF_CONFIGURATION:
        message = f"{message}; {candidate.note}"
    return explanation_of(
        candidate, answer.reason, message, advertised=answer.advertised, rule=answer.rule
    )


def _answer(candidate: ServiceCandidate, peer: Peer, rules: PeerRules | None) -> _Answer:
    origin = next(iter(peer.origins), None)
    if rules is None:
        withheld = candidate.state.withheld
        if withheld is not None:
            return _Answer(*withheld, None)
        return _Answer("NoRule", "no BGPPeer configures the session", origin)
    decision = decide(candidate.state, rules.node)
    if decision.nearest:
        return _not_matching(candidate, decision.nearest)
    if decision.withheld is not None:
        if decision.withheld[0] == "NotOwner" and (nearest := _of_other_nodes(candidate, rules)):
            text, ref = nearest
            return _Answer("NotOwner", f"{decision.withheld[1]}; the nearest is {text}", ref)
        rule = decision.rule or next((a.ref for a in decision.advertisements), None)
        return _Answer(*decision.withheld, rule)
    for_peer = [
        advertisement
        for advertisement in decision.advertisements
        if advertisement.ref in rules.for_peer
    ]
    if not for_peer:
        first = decision.advertisements[0]
        names = enumerate_objects(first.row.spec.peers)
        text = f"the advertisements that select it are for other peers: {names}"
        return _Answer("PeerNotSelected", text, first.ref)
    family, nlri = candidate.family, candidate.nlri
    if family is None or nlri is None:
        return _Answer("NoAddress", "it has no address", None)
    if family not in rules.families:
        families = " and ".join(str(family) for family in rules.families)
        return _Answer("Family", f"the session carries {families} only", origin)
    prefixes = {
        aggregate(nlri, advertisement.length(family)): advertisement.ref
        for advertisement in for_peer
    }
    crowded = [
        entry
        for entry in too_many_communities(candidate.state, decision, rules)
        if entry.family == family and entry.nlri in prefixes
    ]
    for entry in crowded:
        del prefixes[entry.nlri]
    if not prefixes:
        text = "; ".join(map(excess_of_communities, crowded))
        return _Answer("TooManyCommunities", text, crowded[0].advertisements[0])
    advertised = tuple(sorted(prefixes, key=lambda prefix: -prefix[0]))
    message = "" if nlri in prefixes else f"as a part of an aggregate of length {advertised[0][0]}"
    return _Answer("Advertised", message, prefixes[advertised[0]], advertised)


def _of_other_nodes(candidate: ServiceCandidate, rules: PeerRules) -> tuple[str, ObjectRef] | None:
    """Return the BGPAdvertisement of the pool that comes nearest to selecting the node."""
    if candidate.others is None or candidate.family is None or candidate.nlri is None:
        return None
    pool = rules.node.pool_of(candidate.family, candidate.nlri)
    return None if pool is None else candidate.others.nearest(pool)


def _not_matching(
    candidate: ServiceCandidate, advertisements: Sequence[AdvertisementRule]
) -> _Answer:
    """Return the BGPAdvertisement of the pool whose service selectors are the closest to matching."""
    labels = candidate.state.service.metadata.labels
    mismatches = [
        (mismatch, advertisement.ref)
        for advertisement in advertisements
        for selector in advertisement.row.spec.service_selectors
        if (mismatch := selector.mismatch(labels)) is not None
    ]
    nearest, ref = min(mismatches, key=lambda pair: pair[0].requirements)
    text = f"{ref} selects {nearest.wanted}; {candidate.object} has {nearest.present}"
    return _Answer("NoMatchingAdvertisement", text, ref)


EXPLANATION: Final = Explanation(candidates, explain, selecting={BGP_PEER: node_selectors})
