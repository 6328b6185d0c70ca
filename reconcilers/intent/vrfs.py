"""Instances in a VRF that the node does not have, or that cannot be reached by any address. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconcilers.model import Instance, Problem
from resources.host.network import Host


def vrf_problems(instances: Iterable[Instance], host: Host, node: str) -> Iterator[Problem]:
    """Yield a problem for each instance whose VRF is not usable, where the node's VRFs are known.

    The instance is configured all the same: its sessions come up once the VRF is there, with an
    interface that has an address.
    """
    if host.vrfs is None:
        return
    there = {vrf.name for vrf in host.vrfs}
    with_address = {device.vrf or device.name for device in host.devices if device.addresses}
    for row in instances:
        if row.vrf is None or row.vrf in with_address & there:
            continue
        objects = () if row.origin is None else (row.origin,)
        sessions = f"the sessions of instance {row.name!r} wait for it"
        text = f"node {node} has no VRF {row.vrf!r}: {sessions}"
        if row.vrf in there:
            text = f"VRF {row.vrf!r} of node {node} has no interface with an address: {sessions}"
        yield Problem(objects, row.vrf_field, text, (), "unresolved", row.dialect)
