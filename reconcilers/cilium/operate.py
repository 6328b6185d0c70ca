"""The operator's part of Cilium's API: NodeConfigs, objects of v2 for v1's policies, conditions.

Level-triggered: the result depends on the present objects, not on events. A NodeConfig that a
ClusterConfig owns and whose node is not selected is deleted; with its deleted ClusterConfig it is
garbage-collected by the API server; without our owner reference it is left unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reconcilers.cilium import node_configs, router_ids
from reconcilers.cilium.compile_node import Owners
from reconcilers.cilium.node_facts import known_nodes
from reconcilers.cilium.objects import Objects, objects_of, with_translated
from reconcilers.cilium.options import CiliumOperatorOptions, CiliumOptions
from reconcilers.cilium.v1 import in_effect
from reconcilers.cilium.v1.operate import translation
from reconcilers.cilium.v1.translation import ClusterView
from reconcilers.dialect import ClusterContext, ClusterIntent
from reconcilers.model import Condition, Delete, Generated, ObjectRef, Problem
from reconcilers.sliced_work import Pieces, Slices
from resources.cilium import CiliumBGPNodeConfig, CiliumBGPPeeringPolicy
from resources.cilium.kinds import (
    LOAD_BALANCER_IP_POOL,
    NODE_CONFIG,
    PEERING_POLICY,
)
from resources.core import Node
from resources.core.kinds import SECRET
from resources.tables import Tables
from statedb import Snapshot


class State(NamedTuple):
    """The memory between two plans."""

    owners: Owners = Owners()
    router_ids: Mapping[router_ids.Holder, str] = {}


@dataclass
class _Result:
    """A cluster's intent, filled while it is compiled."""

    state: State
    generated: list[Generated] = field(default_factory=list)
    outdated: set[ObjectRef] = field(default_factory=set)
    deletions: list[Delete] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


class ClusterConfiguration:
    """Generates NodeConfigs, and reports conditions, for all nodes."""

    def __init__(self, tables: Tables, options: CiliumOptions | CiliumOperatorOptions) -> None:
        self._tables = tables
        self._options = options
        self._pool = options.router_id_pool

    def operate(self, snapshot: Snapshot, context: ClusterContext) -> Slices[ClusterIntent]:
        """Compute the operator's NodeConfigs, conditions and problems of the whole cluster."""
        tables, pieces = self._tables, Pieces()
        nodes = known_nodes(tables, snapshot)
        stored = objects_of(tables, snapshot)
        policies = {row.metadata.name: row for row in tables.of(PEERING_POLICY).all(snapshot)}
        result = _Result(context.state or State())
        objects = stored
        if self._options.translates:
            pools = tuple(tables.of(LOAD_BALANCER_IP_POOL).all(snapshot))
            view = ClusterView(tuple(nodes.values()), pools)
            objects = _translate(stored, policies, view, result, in_cluster=context.stored)
        else:
            yield from self._select_policies(policies, nodes, result, pieces)
        configs = yield from self._node_configs(objects, nodes, result, pieces)
        if not context.stored:
            owners = result.state.owners._replace(cluster_configs=configs.owners)
            result.state = result.state._replace(owners=owners)
        secrets = self._secrets(snapshot, context)
        unread = {ref.name for ref in context.unread if ref.kind == SECRET.name}
        result.conditions.extend(
            node_configs.peer_config_conditions(objects.peer_configs.values(), secrets, unread)
        )
        result.generated.extend(node_configs.generated(configs))
        result.outdated.update(_outdated(configs.node_configs, stored))
        result.deletions.extend(_unselected(configs.node_configs, stored))
        return ClusterIntent(
            generated=tuple(result.generated),
            outdated=frozenset(result.outdated),
            deletions=tuple(result.deletions),
            conditions=tuple(result.conditions),
            problems=tuple(result.problems),
            state=result.state,
        )

    def _select_policies(
        self,
        policies: Mapping[str, CiliumBGPPeeringPolicy],
        nodes: Mapping[str, Node],
        result: _Result,
        pieces: Pieces,
    ) -> Slices[None]:
        """Report the conditions of v1's policies."""
        selected = yield from in_effect.select(
            policies.values(),
            nodes.values(),
            result.state.owners.policies,
            first_wins=getattr(self._options, "peering_policies", "") == "first",
            pieces=pieces,
        )
        owners = result.state.owners._replace(policies=selected.owners)
        result.state = result.state._replace(owners=owners)
        result.conditions.extend(selected.conditions)
        result.problems.extend(selected.problems)

    def _node_configs(
        self, objects: Objects, nodes: Mapping[str, Node], result: _Result, pieces: Pieces
    ) -> Slices[node_configs.NodeConfigs]:
        """Generate NodeConfigs, with router IDs from the pool if there is one."""
        configs = yield from node_configs.generate(
            objects, nodes.values(), result.state.owners.cluster_configs, pieces
        )
        if self._pool is not None:
            # Stored NodeConfigs have the router IDs of earlier processes.
            allocated = router_ids.allocate(
                configs.node_configs, objects.node_configs, result.state.router_ids, self._pool
            )
            configs = configs._replace(node_configs=allocated.node_configs)
            result.state = result.state._replace(router_ids=allocated.held)
            result.problems.extend(allocated.problems)
        result.problems.extend(configs.problems)
        result.conditions.extend(configs.conditions)
        return configs

    def _secrets(self, snapshot: Snapshot, context: ClusterContext) -> frozenset[str]:
        """Return the names of the Secrets that exist."""
        return frozenset(
            secret.metadata.name
            for secret in self._tables.in_namespace(snapshot, SECRET, context.secrets_namespace)
        )


def _translate(
    stored: Objects,
    policies: Mapping[str, CiliumBGPPeeringPolicy],
    view: ClusterView,
    result: _Result,
    *,
    in_cluster: bool,
) -> Objects:
    """Translate v1's policies; returns the objects from which NodeConfigs are generated.

    In a cluster these are the stored ones, as the translated ones are written and read back.
    """
    if in_cluster:
        translated = translation(stored, policies, view)
        result.generated.extend(translated.generated)
        result.outdated.update(translated.outdated)
        result.deletions.extend(translated.deletions)
        result.problems.extend(translated.problems)
        return stored
    objects, in_process = with_translated(stored, policies, view)
    result.generated.extend(in_process.generated)
    result.problems.extend(in_process.notes)
    return objects


def _outdated(wanted: Mapping[str, CiliumBGPNodeConfig], objects: Objects) -> set[ObjectRef]:
    """Return the NodeConfigs that are not stored, or stored with another spec or owner."""
    return {
        ObjectRef(NODE_CONFIG.name, "", name)
        for name, config in wanted.items()
        if (stored := objects.node_configs.get(name)) is None
        or stored.spec != config.spec
        or stored.metadata.owner_references != config.metadata.owner_references
    }


def _unselected(wanted: Mapping[str, CiliumBGPNodeConfig], objects: Objects) -> list[Delete]:
    """Return the stored NodeConfigs of a ClusterConfig whose node is not selected any more."""
    return [
        Delete(ObjectRef(NODE_CONFIG.name, "", name), stored.metadata.uid)
        for name, stored in sorted(objects.node_configs.items())
        if name not in wanted
        and node_configs.owner_name(stored, objects.cluster_configs) is not None
    ]
