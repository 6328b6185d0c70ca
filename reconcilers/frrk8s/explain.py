"""Explains which object allows a prefix towards a neighbour, or why none does. Pure."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from reconcilers.dialect import Candidate, Explanation, explain_selected, explanation_of
from reconcilers.frrk8s.candidates import Withheld, candidates
from reconcilers.frrk8s.route_sets import RouteSet
from reconcilers.model import Peer, RouteExplanation
from resources.frrk8s.kinds import FRR_CONFIGURATION, node_selectors


def _explained(problem: RouteExplanation, candidate: Candidate, peer: Peer) -> RouteExplanation:
    """Return the explanation of a prefix that is not advertised in the words of the API."""
    if problem.reason == "Advertised":
        return problem
    if candidate.family not in peer.families:
        text = f"the session has no family {candidate.family}"
        return replace(problem, reason="FamilyNotConfigured", message=text)
    text = f"no object allows it towards {peer.address or peer.interface} (toAdvertise.allowed)"
    return replace(problem, reason="NotInAllowList", message=text)


def explain(candidate: Candidate, peer: Peer, rules: RouteSet | None) -> RouteExplanation:
    """Explain which FRRConfiguration allows a prefix towards a neighbour, or that none does."""
    if isinstance(candidate, Withheld):
        return explanation_of(candidate, candidate.reason, candidate.message, rule=candidate.rule)
    return _explained(explain_selected(candidate, peer, rules), candidate, peer)


EXPLANATION: Final = Explanation(
    candidates,
    explain,
    kinds={
        "frrconfiguration": FRR_CONFIGURATION.name,
        "frrconfigurations": FRR_CONFIGURATION.name,
    },
    selecting={FRR_CONFIGURATION: node_selectors},
)
