"""Router IDs from a pool: one for each instance of each node, the same for as long as it is needed.

Pure. An override goes before the pool; one within the pool takes its address out of it, if nobody has
it. The whole pool is handed out, its first address included, the lowest free one first.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from reconcilers.model import ObjectRef, Problem
from resources.cilium.nodeconfig import CiliumBGPNodeConfig, NodeInstance

Holder = tuple[str, str]
"""Node and instance."""


class Allocated(NamedTuple):
    """NodeConfigs with router IDs, and who holds which address of the pool from now on."""

    node_configs: dict[str, CiliumBGPNodeConfig]
    held: dict[Holder, str]
    problems: list[Problem]


def allocate(
    node_configs: Mapping[str, CiliumBGPNodeConfig],
    present: Mapping[str, CiliumBGPNodeConfig],
    held: Mapping[Holder, str],
    pool: ipaddress.IPv4Network,
) -> Allocated:
    """Give every instance a router ID.

    ``node_configs`` have those of overrides only, ``present`` are those that are written, by us or
    by somebody else, and keep what they have; ``held`` is from the time before.
    """
    problems: list[Problem] = []
    wanted = {
        (node, instance.name): instance.router_id
        for node, config in sorted(node_configs.items())
        for instance in config.spec.bgp_instances
    }
    written = {
        (node, instance.name): instance.router_id
        for node, config in present.items()
        for instance in config.spec.bgp_instances
        if instance.router_id is not None
    }
    foreign = {holder: router_id for holder, router_id in written.items() if holder not in wanted}
    kept: dict[Holder, str] = {}
    taken: dict[str, Holder] = {}
    for holder, before in (*foreign.items(), *held.items(), *written.items()):
        # What an override replaces is free again; what it says as before is the holder's own. What
        # is written may be older than what is held.
        stays = holder in foreign or (holder in wanted and wanted[holder] in (None, before))
        if stays and holder not in kept and before not in taken and _within(before, pool):
            kept[holder] = before
            taken[before] = holder
    refused: set[Holder] = set()
    for holder, override in wanted.items():
        if override is None or not _within(override, pool):
            continue
        other = taken.get(override)
        if other is not None and other != holder:
            refused.add(holder)
            ref = ObjectRef("CiliumBGPNodeConfigOverride", "", holder[0])
            problems.append(
                Problem(
                    (ref,),
                    "spec.bgpInstances.routerID",
                    f"instance {holder[1]!r} is left without a router ID: {override} is that of "
                    f"instance {other[1]!r} of node {other[0]}",
                )
            )
            continue
        taken[override] = holder
        kept[holder] = override
    free = (str(address) for address in pool if str(address) not in taken)
    for holder, override in wanted.items():
        if override is not None or holder in kept:
            continue
        address = next(free, None)
        if address is None:
            problems.append(
                Problem(
                    (ObjectRef("CiliumBGPNodeConfig", "", holder[0]),),
                    "spec.bgpInstances.routerID",
                    f"instance {holder[1]!r} has no router ID: the pool {pool} is used up",
                )
            )
            continue
        kept[holder] = address

    def with_id(node: str, instance: NodeInstance) -> NodeInstance:
        holder = (node, instance.name)
        if holder in refused:
            return replace(instance, router_id=None)
        return replace(instance, router_id=kept.get(holder, instance.router_id))

    made = {
        node: replace(
            config,
            spec=replace(
                config.spec,
                bgp_instances=tuple(with_id(node, i) for i in config.spec.bgp_instances),
            ),
        )
        for node, config in node_configs.items()
    }
    return Allocated(made, kept, problems)


def _within(address: str, pool: ipaddress.IPv4Network) -> bool:
    return ipaddress.IPv4Address(address) in pool
