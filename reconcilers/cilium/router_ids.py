"""Allocates router IDs from a pool: one for each instance of each node, stable while it is needed.

Pure. An override precedes the pool; an override within the pool takes its address out of the pool,
unless another instance has it. All addresses of the pool are allocated, its first one included, in
ascending order.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from msgspec.structs import replace

from reconcilers.model import ObjectRef, Problem
from resources.cilium.nodeconfig import CiliumBGPNodeConfig, NodeInstance

Holder: TypeAlias = tuple[str, str]
"""Node and instance."""

FIELD = "spec.bgpInstances.routerID"


class Allocated(NamedTuple):
    """NodeConfigs with router IDs, and the addresses of the pool by holder."""

    node_configs: dict[str, CiliumBGPNodeConfig]
    held: dict[Holder, str]
    problems: list[Problem]


def allocate(
    node_configs: Mapping[str, CiliumBGPNodeConfig],
    present: Mapping[str, CiliumBGPNodeConfig],
    held: Mapping[Holder, str],
    pool: ipaddress.IPv4Network,
) -> Allocated:
    """Allocate a router ID from Cilium's pool for every instance of every node.

    ``node_configs`` have the router IDs of overrides only. ``present`` are the stored NodeConfigs, of
    the operator or of another writer; they keep theirs. ``held`` is the result of the last call.
    """
    allocation = _Allocation(node_configs, pool)
    allocation.keep(present, held)
    allocation.apply_overrides()
    allocation.fill()
    allocated = {
        node: replace(
            config,
            spec=replace(
                config.spec,
                bgp_instances=tuple(
                    allocation.with_router_id(node, instance)
                    for instance in config.spec.bgp_instances
                ),
            ),
        )
        for node, config in node_configs.items()
    }
    return Allocated(allocated, allocation.held, allocation.problems)


def _router_ids(node_configs: Mapping[str, CiliumBGPNodeConfig]) -> dict[Holder, str | None]:
    return {
        (node, instance.name): instance.router_id
        for node, config in sorted(node_configs.items())
        for instance in config.spec.bgp_instances
    }


class _Allocation:
    """One allocation: first what is kept, then overrides, then free addresses."""

    def __init__(
        self, node_configs: Mapping[str, CiliumBGPNodeConfig], pool: ipaddress.IPv4Network
    ) -> None:
        self._pool = pool
        self._overrides = _router_ids(node_configs)
        """The override of every instance, None without one."""
        self._holders: dict[str, Holder] = {}
        """The holder of each address."""
        self._rejected: set[Holder] = set()
        """Instances whose override is the router ID of another instance."""
        self.held: dict[Holder, str] = {}
        self.problems: list[Problem] = []

    def keep(self, present: Mapping[str, CiliumBGPNodeConfig], held: Mapping[Holder, str]) -> None:
        """Keep allocated addresses: of other writers' NodeConfigs, of the last call, of stored ones.

        A stored NodeConfig may be older than the last call.
        """
        stored = {
            holder: router_id
            for holder, router_id in _router_ids(present).items()
            if router_id is not None
        }
        foreign = {
            holder: router_id
            for holder, router_id in stored.items()
            if holder not in self._overrides
        }
        for holder, address in (*foreign.items(), *held.items(), *stored.items()):
            # An address that an override replaces is free again.
            is_kept = holder in foreign or (
                holder in self._overrides and self._overrides[holder] in (None, address)
            )
            is_new = holder not in self.held and address not in self._holders
            if is_kept and is_new and self._is_in_pool(address):
                self._allocate(holder, address)

    def apply_overrides(self) -> None:
        """Allocate the addresses of the pool that overrides set."""
        for holder, override in self._overrides.items():
            if override is None or not self._is_in_pool(override):
                continue
            other = self._holders.get(override)
            if other is None or other == holder:
                self._allocate(holder, override)
                continue
            self._rejected.add(holder)
            text = (
                f"instance {holder[1]!r} is left without a router ID: {override} is that of "
                f"instance {other[1]!r} of node {other[0]}"
            )
            ref = ObjectRef("CiliumBGPNodeConfigOverride", "", holder[0])
            self.problems.append(Problem((ref,), FIELD, text))

    def fill(self) -> None:
        """Allocate free addresses to the instances without an override and without an address."""
        free = (str(address) for address in self._pool if str(address) not in self._holders)
        for holder, override in self._overrides.items():
            if override is not None or holder in self.held:
                continue
            address = next(free, None)
            if address is not None:
                self.held[holder] = address
                continue
            text = f"instance {holder[1]!r} has no router ID: the pool {self._pool} is used up"
            ref = ObjectRef("CiliumBGPNodeConfig", "", holder[0])
            self.problems.append(Problem((ref,), FIELD, text))

    def with_router_id(self, node: str, instance: NodeInstance) -> NodeInstance:
        """Return an instance with its router ID; None if its override is rejected."""
        holder = (node, instance.name)
        if holder in self._rejected:
            return replace(instance, router_id=None)
        return replace(instance, router_id=self.held.get(holder, instance.router_id))

    def _allocate(self, holder: Holder, address: str) -> None:
        self.held[holder] = address
        self._holders[address] = holder

    def _is_in_pool(self, address: str) -> bool:
        return ipaddress.IPv4Address(address) in self._pool
