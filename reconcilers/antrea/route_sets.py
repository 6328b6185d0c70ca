"""Route sets: what a policy advertises to the peers of one family, and what it rejects. Pure.

All peers of a family are advertised the same, so a node has one set per enabled family. The name of a
set is a hash of its rules: another policy gives another set, which is filled before the peers are moved
to it, and they are sent the differences.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from reconcilers.model import ObjectRef, ref_to
from resources.antrea.bgppolicy import BGPPolicy
from resources.antrea.kinds import BGP_POLICY
from speaker.nlri import IPV4_UNICAST, Family

CLUSTER_IP: Final = "ServiceClusterIP"
EXTERNAL_IP: Final = "ServiceExternalIP"
LOAD_BALANCER_IP: Final = "ServiceLoadBalancerIP"
EGRESS_IP: Final = "EgressIP"
POD_CIDR: Final = "NodeIPAMPodCIDR"
ROUTE_TYPES: Final = (EGRESS_IP, LOAD_BALANCER_IP, EXTERNAL_IP, CLUSTER_IP, POD_CIDR)
"""The types of routes, in Antrea's words."""


_MAPPED: Final = b"\x80" + bytes(10) + b"\xff\xff"
"""How host routes of IPv4-mapped addresses begin (RFC 4291 section 2.5.5.2)."""
FAMILY_NOT_ENABLED: Final = "FamilyNotEnabled"


class RouteSet(NamedTuple):
    """The rules of one set."""

    name: str
    family: Family
    policy: ObjectRef
    types: frozenset[str]
    """The types of routes that are advertised."""


def route_sets(policy: BGPPolicy, families: Iterable[Family]) -> dict[Family, RouteSet]:
    """Return the route sets of a BGPPolicy: one for the peers of each family."""
    wanted = policy.spec.advertisements
    types = {f"Service{kind}" for kind in (wanted.service.ip_types if wanted.service else ())}
    if wanted.pod is not None:
        types.add(POD_CIDR)
    if wanted.egress is not None:
        types.add(EGRESS_IP)
    ref = ref_to(BGP_POLICY, policy)
    return {family: _named(family, ref, frozenset(types)) for family in families}


def _named(family: Family, policy: ObjectRef, types: frozenset[str]) -> RouteSet:
    content = msgspec.json.encode([str(family), policy.name, sorted(types)])
    return RouteSet(hashlib.sha256(content).hexdigest()[:12], family, policy, types)


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
