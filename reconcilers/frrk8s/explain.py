"""Explains which object allows a prefix towards a neighbour, or why none does. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from reconcilers.dialect import Candidate
from reconcilers.frrk8s.in_effect import InEffect
from reconcilers.frrk8s.merge import MergedRouter
from reconcilers.frrk8s.one_object import routed_vrfs
from reconcilers.frrk8s.options import OnConflict
from reconcilers.frrk8s.route_sets import ADDRESS_TYPE
from reconcilers.model import ObjectRef, Peer, RouteExplanation
from speaker.nlri import Family


class Withheld(NamedTuple):
    """A prefix of an object that is not in effect (a `Candidate`)."""

    object: ObjectRef
    type: str
    family: Family
    nlri: bytes
    reason: str
    message: str
    service_field: str | None = None
    in_pool: bool = False


def withheld(
    effect: InEffect, routers: Iterable[MergedRouter], mode: OnConflict
) -> Iterator[Withheld]:
    """Yield the prefixes of units that are not among those of ``routers``, which are in effect."""
    merge, units = effect.merge, effect.units
    taken = {unit.ref for unit in merge.accepted}
    if taken.issuperset(unit.ref for unit in units):
        return
    in_effect = {
        (ref, router.vrf, nlri)
        for router in routers
        for ref, given in router.given
        for nlri in given
    }
    problems = [problem for problem in merge.problems if problem.category != "unsupported"]
    for unit in units:
        if unit.ref in taken:
            continue
        own = [problem.message for problem in problems if unit.ref in problem.objects]
        if mode == "isolate":
            reason, head = "LeftOut", "the object is left out"
        else:
            reason, head = "NotInEffect", "the objects of the node do not go together"
            own = own or [problem.message for problem in problems[:1]]
        message = "; ".join((head, *own))
        for vrf, prefixes in routed_vrfs(unit).items():
            for prefix in prefixes:
                if (unit.ref, vrf, prefix) not in in_effect:
                    yield Withheld(unit.ref, ADDRESS_TYPE, *prefix, reason, message)


def explained(problem: RouteExplanation, candidate: Candidate, peer: Peer) -> RouteExplanation:
    """Return the explanation of a prefix that is not advertised in the words of the API."""
    if problem.reason == "Advertised":
        return problem
    if candidate.family not in peer.families:
        text = f"the session has no family {candidate.family}"
        return replace(problem, reason="FamilyNotConfigured", message=text)
    text = f"no object allows it towards {peer.address or peer.interface} (toAdvertise.allowed)"
    return replace(problem, reason="NotInAllowList", message=text)
