"""Explains why a candidate is advertised to a peer, or is not, and which rule decides.

Pure. The rules come from the route sources (`services`, `pod_ip_pools`, `interfaces`) and the route
set. Of several entries that reject a candidate, the entry that checks the latest condition is named:
it is the closest to advertising it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from reconcilers.cilium import interfaces, pod_ip_pools, services
from reconcilers.cilium.candidates import POD_CIDR, LabelledCandidate
from reconcilers.cilium.route_sets import AdvertisementEntry, RouteSet
from reconcilers.dialect import explanation_of
from reconcilers.model import ObjectRef, Peer, RouteExplanation
from reconcilers.prefixes import aggregate, covered

ADVERTISED = "Advertised"


class Rejection(NamedTuple):
    """A failed condition; ``step`` is its position in the order of the conditions.

    ``parts`` are the failing parts of the condition: of two at one step that with fewer is closer.
    """

    step: int
    reason: str
    message: str
    rule: ObjectRef | None
    parts: int = 1


def explain(
    candidate: LabelledCandidate, peer: Peer, route_set: RouteSet | None
) -> RouteExplanation:
    """Explain what Cilium's rules advertise to a peer for a candidate, and which rule decides."""
    result = _rejected_by_family(candidate, peer) or _match(candidate, route_set)
    if isinstance(result, Rejection):
        return explanation_of(candidate, result.reason, result.message, rule=result.rule)
    return result


def _rejected_by_family(candidate: LabelledCandidate, peer: Peer) -> Rejection | None:
    if candidate.family is None:
        # Without an address the missing address is the reason, unless the peer receives no routes.
        suppressed = {entry.family: entry for entry in peer.suppressed}
        if peer.families and all(family in suppressed for family in peer.families):
            first = suppressed[peer.families[0]]
            return Rejection(0, first.reason, first.message, first.rule)
        return None
    if candidate.family not in peer.families:
        families = " and ".join(str(family) for family in peer.families) or "no family"
        rule = peer.origins[0] if peer.origins else None
        return Rejection(0, "Family", f"the peer is configured for {families} only", rule)
    for entry in peer.suppressed:
        if entry.family == candidate.family:
            return Rejection(0, entry.reason, entry.message, entry.rule)
    return None


def _match(
    candidate: LabelledCandidate, route_set: RouteSet | None
) -> RouteExplanation | Rejection:
    """Match a candidate with the entries of its type."""
    entries = [] if route_set is None else list(_entries_of_family(candidate, route_set))
    advertised: dict[bytes, ObjectRef] = {}
    rejections: list[Rejection] = []
    for entry in entries:
        if entry.type != candidate.advertisement_type:
            continue
        rejection = _rejected_by_entry(candidate, entry)
        if rejection is not None:
            rejections.append(rejection)
        elif candidate.nlri is not None and _is_within(candidate.nlri, entry):
            prefix = _aggregated(candidate, candidate.nlri, entry)
            advertised.setdefault(prefix, entry.rule)
    if advertised:
        return _advertised(candidate, advertised)
    if rejections:
        return max(rejections, key=lambda rejection: (rejection.step, -rejection.parts))
    rules = sorted({str(entry.rule) for entry in entries})
    others = f"; its rules are in {', '.join(rules)}" if rules else ""
    text = f"no rule for the peer selects {candidate.advertisement_type}{others}"
    return Rejection(0, "NoRule", text, None)


def _advertised(
    candidate: LabelledCandidate, advertised: dict[bytes, ObjectRef]
) -> RouteExplanation:
    prefixes = tuple(sorted(advertised, key=lambda nlri: -nlri[0]))
    is_exact = candidate.nlri in advertised
    message = "" if is_exact else f"as a part of an aggregate of length {prefixes[0][0]}"
    rule = advertised[prefixes[0]]
    return explanation_of(candidate, ADVERTISED, message, advertised=prefixes, rule=rule)


def _entries_of_family(
    candidate: LabelledCandidate, route_set: RouteSet
) -> Iterator[AdvertisementEntry]:
    for family, entries in route_set.entries.items():
        if candidate.family in (None, family):
            yield from entries


def _is_within(nlri: bytes, entry: AdvertisementEntry) -> bool:
    return entry.within is None or covered(nlri, entry.within)


def _aggregated(candidate: LabelledCandidate, nlri: bytes, entry: AdvertisementEntry) -> bytes:
    if entry.aggregation_length is None or candidate.local:
        return nlri
    return aggregate(nlri, entry.aggregation_length)


def _rejected_by_entry(candidate: LabelledCandidate, entry: AdvertisementEntry) -> Rejection | None:
    """Return the condition of an entry of the candidate's type that fails; None if none does."""
    type_ = candidate.advertisement_type
    if type_ == interfaces.ADVERTISEMENT_TYPE:
        if entry.interface != candidate.labels["name"]:
            text = f"{entry.rule} selects interface {entry.interface}"
            return Rejection(1, "NotSelected", text, entry.rule)
    elif type_ != POD_CIDR:
        rejection = _rejected_by_selector(candidate, entry)
        if rejection is not None:
            return rejection
    if type_ == services.ADVERTISEMENT_TYPE and candidate.type not in entry.addresses:
        text = f"{entry.rule} advertises {', '.join(sorted(entry.addresses))} of the object only"
        return Rejection(3, "AddressType", text, entry.rule)
    withheld = candidate.withheld
    if withheld is None and entry.needs_endpoint and not candidate.reachable:
        withheld = services.NO_ENDPOINT
    if withheld is not None:
        return Rejection(4, *withheld, entry.rule)
    return None


def _rejected_by_selector(
    candidate: LabelledCandidate, entry: AdvertisementEntry
) -> Rejection | None:
    is_pool = candidate.advertisement_type == pod_ip_pools.ADVERTISEMENT_TYPE
    if is_pool and candidate.withheld is not None:
        # The pool does not exist, and has no labels.
        return Rejection(4, *candidate.withheld, entry.rule)
    if entry.selector is None:
        text = f"{entry.rule} has no selector, which selects nothing"
        return Rejection(1, "NoSelector", text, entry.rule)
    mismatch = entry.selector.mismatch(candidate.labels)
    if mismatch is not None:
        text = f"{entry.rule} selects {mismatch.wanted}; {candidate.object} has {mismatch.present}"
        return Rejection(2, "NotSelected", text, entry.rule, mismatch.requirements)
    return None
