"""Instances in a VRF that the node does not have: a problem of each of them, and of no other. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconcilers.model import Instance, Problem
from resources.host.network import Host


def missing_vrfs(instances: Iterable[Instance], host: Host, node: str) -> Iterator[Problem]:
    """Yield a problem for each instance whose VRF is not there, where it is known which are.

    The instance is configured all the same: its sessions come up once the VRF is there.
    """
    if host.vrfs is None:
        return
    there = {vrf.name for vrf in host.vrfs}
    for row in instances:
        if row.vrf is not None and row.vrf not in there:
            objects = () if row.origin is None else (row.origin,)
            sessions = f"the sessions of instance {row.name!r} wait for it"
            text = f"node {node} has no VRF {row.vrf!r}: {sessions}"
            yield Problem(objects, row.vrf_field, text, (), "unresolved", row.dialect)
