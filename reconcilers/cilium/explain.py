"""Why a peer is told a prefix, or is not: the rules asked again, one candidate at a time.

Pure. It asks what the rounds ask (`services`, `pod_ip_pools`, `policy`), and says which rule was the
first to say no, or, of several that could have said yes, the one that came closest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from reconcilers.cilium import interfaces, pod_ip_pools, services
from reconcilers.cilium.candidates import POD_CIDR, Candidate
from reconcilers.cilium.route_sets import Entry, RouteSet
from reconcilers.model import ObjectRef, Peer, RouteExplanation
from reconcilers.prefixes import aggregate, covered

ADVERTISED = "Advertised"


class Refusal(NamedTuple):
    """One rule's no; the further it went, the closer it came."""

    step: int
    reason: str
    message: str
    rule: ObjectRef | None


def explain(candidate: Candidate, peer: Peer, route_set: RouteSet | None) -> RouteExplanation:
    """Explain what is advertised to a peer for a candidate, and which rule decides."""
    refusal = _refused_by_family(candidate, peer)
    if refusal is None:
        found = _asked(candidate, route_set)
        if isinstance(found, RouteExplanation):
            return _at(peer, found)
        refusal = found
    return _at(peer, _verdict(candidate, refusal))


def _at(peer: Peer, verdict: RouteExplanation) -> RouteExplanation:
    return replace(verdict, instance=peer.instance, peer=peer.name)


def _of(
    candidate: Candidate,
    told: tuple[bytes, ...],
    reason: str,
    message: str,
    rule: ObjectRef | None,
) -> RouteExplanation:
    """Return a verdict on a candidate, whoever the peer is."""
    return RouteExplanation(
        None,
        None,
        candidate.object,
        candidate.type,
        candidate.family,
        candidate.nlri,
        told,
        reason,
        message,
        rule,
    )


def _verdict(candidate: Candidate, refusal: Refusal) -> RouteExplanation:
    return _of(candidate, (), refusal.reason, refusal.message, refusal.rule)


def _refused_by_family(candidate: Candidate, peer: Peer) -> Refusal | None:
    if candidate.family is None:
        # No address: that is what is to be said, unless the peer is told nothing whatsoever.
        suppressed = {entry.family: entry for entry in peer.suppressed}
        if peer.families and all(family in suppressed for family in peer.families):
            first = suppressed[peer.families[0]]
            return Refusal(0, first.reason, first.message, first.rule)
        return None
    if candidate.family not in peer.families:
        spoken = " and ".join(str(family) for family in peer.families) or "no family"
        rule = peer.origins[0] if peer.origins else None
        return Refusal(0, "Family", f"only {spoken} is spoken with the peer", rule)
    for entry in peer.suppressed:
        if entry.family == candidate.family:
            return Refusal(0, entry.reason, entry.message, entry.rule)
    return None


def _asked(candidate: Candidate, route_set: RouteSet | None) -> RouteExplanation | Refusal:
    entries = [] if route_set is None else list(_entries(candidate, route_set))
    told: dict[bytes, ObjectRef] = {}
    refusals: list[Refusal] = []
    for entry in entries:
        refusal = _refused(candidate, entry)
        if refusal is not None:
            refusals.append(refusal)
        elif candidate.nlri is not None and _within(candidate.nlri, entry):
            told.setdefault(_aggregated(candidate, candidate.nlri, entry), entry.rule)
    if told:
        return _told(candidate, told)
    if refusals:
        return max(refusals, key=lambda refusal: refusal.step)
    rules = sorted({str(e.rule) for e in (_all(candidate, route_set) if route_set else ())})
    where = f"; what is told is in {', '.join(rules)}" if rules else ""
    return Refusal(0, "NoRule", f"no rule for the peer is about {candidate.entry}{where}", None)


def _told(candidate: Candidate, told: dict[bytes, ObjectRef]) -> RouteExplanation:
    prefixes = tuple(sorted(told, key=lambda nlri: -nlri[0]))
    exact = candidate.nlri in told
    message = "" if exact else f"as a part of an aggregate of length {prefixes[0][0]}"
    return _of(candidate, prefixes, ADVERTISED, message, told[prefixes[0]])


def _all(candidate: Candidate, route_set: RouteSet) -> Iterator[Entry]:
    for family, entries in route_set.entries.items():
        if candidate.family in (None, family):
            yield from entries


def _entries(candidate: Candidate, route_set: RouteSet) -> Iterator[Entry]:
    for entry in _all(candidate, route_set):
        if entry.type == candidate.entry:
            yield entry


def _within(nlri: bytes, entry: Entry) -> bool:
    return entry.within is None or covered(nlri, entry.within)


def _aggregated(candidate: Candidate, nlri: bytes, entry: Entry) -> bytes:
    if entry.aggregation_length is None or candidate.local:
        return nlri
    return aggregate(nlri, entry.aggregation_length)


def _refused(candidate: Candidate, entry: Entry) -> Refusal | None:
    """Say why an entry of the right type does not tell a candidate; None where it does."""
    if candidate.entry == interfaces.ENTRY:
        if entry.interface != candidate.labels["name"]:
            text = f"{entry.rule} is about interface {entry.interface}"
            return Refusal(1, "NotSelected", text, entry.rule)
    elif candidate.entry != POD_CIDR:
        refusal = _refused_by_selector(candidate, entry)
        if refusal is not None:
            return refusal
    if candidate.entry == services.ENTRY and candidate.type not in entry.addresses:
        text = f"{entry.rule} tells {', '.join(sorted(entry.addresses))} of the object only"
        return Refusal(3, "AddressType", text, entry.rule)
    obstacle = candidate.obstacle
    if obstacle is None and entry.needs_endpoint and not candidate.reachable:
        obstacle = services.NO_ENDPOINT
    if obstacle is not None:
        return Refusal(4, *obstacle, entry.rule)
    return None


def _refused_by_selector(candidate: Candidate, entry: Entry) -> Refusal | None:
    if candidate.entry == pod_ip_pools.ENTRY and candidate.obstacle is not None:
        # There is nothing with labels.
        return Refusal(4, *candidate.obstacle, entry.rule)
    if entry.selector is None:
        text = f"{entry.rule} has no selector, which selects nothing"
        return Refusal(1, "NoSelector", text, entry.rule)
    if not entry.selector.matches(candidate.labels):
        text = f"its labels are not what {entry.rule} selects: {entry.selector.text}"
        return Refusal(2, "NotSelected", text, entry.rule)
    return None
