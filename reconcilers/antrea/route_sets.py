"""Route sets: what a policy advertises to the peers of one family. Pure.

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
from speaker.nlri import Family

CLUSTER_IP: Final = "ServiceClusterIP"
EXTERNAL_IP: Final = "ServiceExternalIP"
LOAD_BALANCER_IP: Final = "ServiceLoadBalancerIP"
EGRESS_IP: Final = "EgressIP"
POD_CIDR: Final = "NodeIPAMPodCIDR"
ROUTE_TYPES: Final = (EGRESS_IP, LOAD_BALANCER_IP, EXTERNAL_IP, CLUSTER_IP, POD_CIDR)
"""The types of routes, in Antrea's words."""


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
