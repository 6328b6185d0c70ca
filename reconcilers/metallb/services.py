"""Whether this node advertises a Service, and as which prefixes. Pure.

The steps of MetalLB's speaker, in its order (speaker/main.go, speaker/bgp_controller.go).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from reconcilers.dialect import Contributed, Rejected, ServiceAddress
from reconcilers.metallb.bit_sets import first as first_of
from reconcilers.metallb.conflicts import differing_preferences
from reconcilers.metallb.route_sets import (
    AdvertisementRule,
    NodeRules,
    PeerRules,
    Withheld,
)
from reconcilers.model import Contribution, ObjectRef, Origin, Problem, ProblemCategory
from reconcilers.prefixes import host_route
from resources.core import EndpointSlice, Service
from resources.core.service import INGRESS, LOAD_BALANCER
from resources.frrk8s.communities import Community
from speaker.nlri import IPV6_UNICAST, Family, aggregate, prefix_to_text

MAX_COMMUNITIES: Final = 63
"""Of one prefix, large ones included: MetalLB's own limit, over which it advertises nothing."""


class HostRoute(NamedTuple):
    """One address of a Service."""

    family: Family
    nlri: bytes


class ServiceState(NamedTuple):
    """The state of a Service that does not depend on pools and advertisements."""

    service: Service
    addresses: tuple[HostRoute, ...]
    withheld: Withheld | None
    """Why it is not MetalLB's to advertise, or None."""
    endpoints: Withheld | None
    """Why its endpoints do not do, or None."""

    @property
    def ref(self) -> ObjectRef:
        """The reference to the Service."""
        return ObjectRef("Service", *self.service.key)


class Decision(NamedTuple):
    """The advertisements by which a node advertises a Service, or why it does not."""

    advertisements: tuple[AdvertisementRule, ...]
    withheld: Withheld | None
    rule: ObjectRef | None = None
    """The object that decides, where it is not advertised."""
    conflict: tuple[ObjectRef, ...] = ()
    """Advertisements with different local preferences for it."""
    nearest: tuple[AdvertisementRule, ...] = ()
    """Of the pool, where the service selectors of none match."""


def service_state(
    service: Service, slices: Iterable[EndpointSlice], node: str, load_balancer_class: str
) -> ServiceState:
    """Return the state of a Service for MetalLB's decision; ``slices`` are its EndpointSlices."""
    addresses = tuple(HostRoute(*host_route(text)) for text in service.load_balancer_addresses)
    withheld = _not_ours(service, load_balancer_class)
    return ServiceState(service, addresses, withheld, _endpoints(service, slices, node))


def _not_ours(service: Service, load_balancer_class: str) -> Withheld | None:
    spec, ingress = service.spec, service.status.load_balancer.ingress
    if spec.type != LOAD_BALANCER:
        return ("NotLoadBalancer", f"it is of type {spec.type}")
    if (spec.load_balancer_class or "") != load_balancer_class:
        given, wanted = spec.load_balancer_class or "none", load_balancer_class or "none"
        return ("LoadBalancerClass", f"its class is {given}, and --metallb-class is {wanted}")
    if not ingress:
        return ("NoAddress", "it has no address of a load balancer (yet)")
    names = [item.hostname for item in ingress if not item.ip]
    if names:
        return ("NoAddress", f"its load balancer {names[0] or '(without a name)'} has no address")
    return None


def _endpoints(service: Service, slices: Iterable[EndpointSlice], node: str) -> Withheld | None:
    local, elsewhere = service.spec.external_traffic_policy == "Local", False
    for piece in slices:
        for endpoint in piece.endpoints:
            if endpoint.usable:
                if not local or endpoint.node_name == node:
                    return None
                elsewhere = True
    if not elsewhere:
        return ("NoEndpoint", "it has no endpoint that is ready or serving")
    text = "its traffic policy is Local, and no endpoint on this node is ready or serving"
    return ("NoLocalEndpoint", text)


def decide(state: ServiceState, rules: NodeRules) -> Decision:
    """Decide by which BGPAdvertisements this node advertises a Service, or why it does not."""
    if state.withheld is not None:
        return Decision((), state.withheld)
    pools = {rules.pool_of(*address) for address in state.addresses}
    pool = next(iter(pools)) if len(pools) == 1 else None
    if pool is None:
        text = "no pool has its address" if pools == {None} else "no pool has all its addresses"
        return Decision((), ("NoPool", text))
    of_pool = rules.of_pool(pool)
    if not of_pool:
        text = f"no BGPAdvertisement for this node selects pool {pool}"
        return Decision((), ("NotOwner", text))
    matching = tuple(
        advertisement
        for advertisement in of_pool
        if advertisement.selects(state.service.metadata.labels)
    )
    if not matching:
        text = f"the service selectors of no BGPAdvertisement for pool {pool} match its labels"
        withheld = ("NoMatchingAdvertisement", text)
        return Decision((), withheld, of_pool[0].ref, nearest=of_pool)
    colliding = _colliding(matching, state.addresses)
    if colliding:
        first, second = colliding[:2]
        text = _preferences_text(first, second)
        refs = tuple(sorted({advertisement.ref for advertisement in colliding}))
        return Decision((), ("LocalPreferenceConflict", text), first.ref, refs)
    if rules.withheld is not None:
        return Decision((), rules.withheld)
    return Decision(matching, state.endpoints)


def _colliding(
    given: Sequence[AdvertisementRule], addresses: Iterable[HostRoute]
) -> Sequence[AdvertisementRule]:
    """Return the advertisements that give an address two local preferences, two that do so first."""
    if len({advertisement.row.spec.local_pref for advertisement in given}) < 2:
        return ()
    rows = {number: advertisement.row for number, advertisement in enumerate(given)}
    others: dict[int, int] = defaultdict(int)
    for version in {6 if address.family == IPV6_UNICAST else 4 for address in addresses}:
        for number, differing_with in differing_preferences(rows, version).items():
            others[number] |= differing_with
    numbers = sorted(others)
    if numbers:
        # The second one is the first with which the first one is in conflict.
        second = first_of(others[numbers[0]])
        numbers.insert(1, numbers.pop(numbers.index(second)))
    return [given[number] for number in numbers]


def _preferences_text(first: AdvertisementRule, second: AdvertisementRule) -> str:
    own, other = first.row, second.row
    return (
        f"{own.metadata.name} gives it local preference {own.spec.local_pref}, "
        f"and {other.metadata.name} {other.spec.local_pref}"
    )


def contributions(
    state: ServiceState, rules: Iterable[tuple[str, PeerRules]]
) -> Iterator[Contributed | Rejected]:
    """Yield the prefixes of a MetalLB Service in each route set, given as its name and its rules.

    A Service with two local preferences is a problem of its own, and is not advertised.
    """
    decisions: dict[int, Decision] = {}
    for route_set, rule in rules:
        decision = decisions.get(id(rule.node))
        if decision is None:
            decision = decisions[id(rule.node)] = decide(state, rule.node)
        if decision.conflict:
            yield Rejected(route_set, _conflict(state, decision))
        if decision.withheld is None:
            crowded = too_many_communities(state, decision, rule)
            for entry in crowded:
                yield Rejected(route_set, _too_many(state, entry))
            left_out = {(entry.family, entry.nlri) for entry in crowded}
            yield from _prefixes(state, decision, route_set, rule, left_out)


def _conflict(state: ServiceState, decision: Decision) -> Problem:
    text = "" if decision.withheld is None else decision.withheld[1]
    objects = (*decision.conflict, state.ref)
    message = f"{state.ref} is not advertised: {text}"
    return Problem(tuple(sorted(objects)), "spec.localPref", message, category="conflict")


class Crowded(NamedTuple):
    """A prefix of a Service with more than `MAX_COMMUNITIES`."""

    family: Family
    nlri: bytes
    advertisements: tuple[ObjectRef, ...]
    """The advertisements that give it communities."""
    communities: int


def too_many_communities(
    state: ServiceState, decision: Decision, rules: PeerRules
) -> tuple[Crowded, ...]:
    """Return a Service's prefixes with too many communities for MetalLB. Source: internal/bgp."""
    if sum([rule.community_count for rule in decision.advertisements]) <= MAX_COMMUNITIES:
        return ()
    given = [
        advertisement
        for advertisement in decision.advertisements
        if advertisement.ref in rules.for_peer
    ]
    by_prefix: dict[tuple[Family, bytes], list[AdvertisementRule]] = {}
    for family, nlri in state.addresses:
        for advertisement in given if family in rules.families else ():
            by_prefix.setdefault(
                (family, aggregate(nlri, advertisement.length(family))), []
            ).append(advertisement)
    crowded_prefixes = (
        Crowded(
            *prefix,
            tuple(
                sorted(
                    {
                        advertisement.ref
                        for advertisement in of_prefix
                        if advertisement.community_count
                    }
                )
            ),
            len(
                frozenset[Community]().union(
                    *(advertisement.communities for advertisement in of_prefix)
                )
            ),
        )
        for prefix, of_prefix in by_prefix.items()
    )
    return tuple(crowded for crowded in crowded_prefixes if crowded.communities > MAX_COMMUNITIES)


def excess_of_communities(entry: Crowded) -> str:
    """Return why MetalLB does not advertise a Service's prefix: the communities it has."""
    prefix = prefix_to_text(entry.family, entry.nlri)
    return (
        f"{prefix} has {entry.communities} communities, and at most {MAX_COMMUNITIES} are possible"
    )


def _too_many(state: ServiceState, entry: Crowded) -> Problem:
    message = f"{state.ref} is not advertised: {excess_of_communities(entry)}"
    objects = tuple(sorted((*entry.advertisements, state.ref)))
    category: ProblemCategory = "conflict" if len(entry.advertisements) > 1 else "invalid"
    return Problem(objects, "spec.communities", message, category=category)


def _prefixes(
    state: ServiceState,
    decision: Decision,
    route_set: str,
    rules: PeerRules,
    left_out: Container[tuple[Family, bytes]],
) -> Iterator[Contributed]:
    for advertisement in decision.advertisements:
        if advertisement.ref not in rules.for_peer:
            continue
        origin = Origin(state.ref, advertisement.ref, "LoadBalancerIP")
        contribution = Contribution(origin, advertisement.attributes)
        for family, nlri in state.addresses:
            if family in rules.families:
                prefix = aggregate(nlri, advertisement.length(family))
                if (family, prefix) in left_out:
                    continue
                named = ServiceAddress(INGRESS, nlri, in_pool=True)
                yield Contributed(route_set, family, prefix, contribution, named)
