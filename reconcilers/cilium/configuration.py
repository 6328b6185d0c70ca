"""Compiles Cilium's configuration objects, v1 and v2, for one node: everything but the routes.

Compiled whole whenever some of it changed. Earlier compilations are remembered only for who has what
(a node, a router ID), so that the present owner keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from reconcilers.cilium import node as v2
from reconcilers.cilium import node_configs
from reconcilers.cilium.members import known_nodes
from reconcilers.cilium.objects import Objects, objects_of, with_translated
from reconcilers.cilium.options import CiliumOptions
from reconcilers.cilium.v1 import compile as v1
from reconcilers.cilium.v1 import selection
from reconcilers.cilium.v1.translate import Known
from reconcilers.dialect import NodeContext, NodeIntent
from reconcilers.model import Condition, Generated, ObjectRef, Problem
from reconcilers.tables import KEY
from resources.cilium import CiliumBGPNodeConfig, CiliumBGPPeeringPolicy
from resources.cilium.condition_types import CONFLICTING_PEERING_POLICY
from resources.cilium.kinds import (
    LOAD_BALANCER_IP_POOL,
    NODE_CONFIG,
    PEERING_POLICY,
)
from resources.core import Node, Secret
from resources.tables import Tables
from statedb import Snapshot


class _Found(NamedTuple):
    """What a compilation collects."""

    conditions: list[Condition]
    problems: list[Problem]
    generated: list[Generated]


class NodeConfiguration:
    """Compiles the configuration objects of a snapshot for one node."""

    def __init__(self, tables: Tables, options: CiliumOptions) -> None:
        self._tables = tables
        self._options = options
        self._owners: dict[str, str] = {}
        """Node to the ClusterConfig that has it."""
        self._policy_owners: dict[str, str] = {}
        """Node to the CiliumBGPPeeringPolicy that it follows."""

    def compile(self, snapshot: Snapshot, context: NodeContext) -> NodeIntent:
        """Compile the node's configuration."""
        t, name = self._tables, context.node
        found = _Found([], [], [])
        secrets = {
            secret.metadata.name: secret
            for secret in t.secrets.prefix(snapshot, KEY, (context.secrets_namespace,))
        }
        known = known_nodes(t, snapshot)
        objects = objects_of(t, snapshot)
        policies = {row.metadata.name: row for row in t.of(PEERING_POLICY).all(snapshot)}
        followed = None
        if self._options.translates:
            objects = self._translated(snapshot, context, objects, policies, known, found)
        else:
            followed = self._follow(policies, known, context, found)
        config = self._node_config(objects, known, context, found)
        compiled = None
        if followed is not None:
            # v1 precedes v2, as in Cilium: also where its policies contradict each other.
            if config is not None:
                text = "has no effect: a CiliumBGPPeeringPolicy selects the node"
                ref = ObjectRef(NODE_CONFIG.name, "", name)
                found.problems.append(Problem((ref,), "", text))
            for policy in followed:
                compiled = self._v1(snapshot, policy, known[name], secrets, context)
        elif config is not None:
            compiled = v2.compile_node(
                config,
                v2.Context(
                    node=known.get(name),
                    peer_configs=objects.peer_configs,
                    advertisements=tuple(objects.advertisements.values()),
                    secrets=secrets,
                    secrets_namespace=context.secrets_namespace,
                    host=context.host,
                    router_id_of_node=self._options.router_id_allocation_ip_pool is None,
                ),
            )
        if name not in known:
            ref = ObjectRef("Node", "", name)
            found.problems.append(Problem((ref,), "metadata.name", "there is no such node"))
        if compiled is None:
            compiled = v2.Compiled([], [], {}, [])
        return NodeIntent(
            instances=tuple(compiled.instances),
            peers=tuple(compiled.peers),
            route_sets=compiled.route_sets,
            conditions=tuple(found.conditions),
            problems=(*found.problems, *compiled.problems),
            generated=tuple(found.generated),
        )

    def _translated(
        self,
        snapshot: Snapshot,
        context: NodeContext,
        objects: Objects,
        policies: Mapping[str, CiliumBGPPeeringPolicy],
        known: Mapping[str, Node],
        found: _Found,
    ) -> Objects:
        """Return the objects of v2 with those that v1's policies are translated to."""
        pools = tuple(self._tables.of(LOAD_BALANCER_IP_POOL).all(snapshot))
        counting, made = with_translated(objects, policies, Known(tuple(known.values()), pools))
        if not context.operator_in_process:
            found.problems.extend(made.notes)
            found.generated.extend(made.generated)
        return counting

    def _node_config(
        self,
        objects: Objects,
        known: Mapping[str, Node],
        context: NodeContext,
        found: _Found,
    ) -> CiliumBGPNodeConfig | None:
        """Return the node's NodeConfig: the one that was written, or one of its ClusterConfig."""
        written = objects.node_configs.get(context.node)
        if context.operator_in_process:
            made = context.generated.get((NODE_CONFIG.name, "", context.node))
            if made is not None:
                return NODE_CONFIG.decode(made)
            ours = written is not None and node_configs.controller(written) is not None
            return None if ours else written
        result = node_configs.generate(
            objects.cluster_configs.values(),
            known.values(),
            objects.overrides,
            objects.peer_configs,
            objects.node_configs,
            self._owners,
        )
        self._owners = result.owners
        found.generated.extend(node_configs.generated(result))
        found.problems.extend(result.problems)
        return written if written is not None else result.node_configs.get(context.node)

    def _follow(
        self,
        policies: Mapping[str, CiliumBGPPeeringPolicy],
        known: Mapping[str, Node],
        context: NodeContext,
        found: _Found,
    ) -> list[CiliumBGPPeeringPolicy] | None:
        """Return the policy that the node follows: one or none; None where v2 has the node."""
        selected = selection.select(
            policies.values(),
            known.values(),
            self._policy_owners,
            first_wins=self._options.peering_policies == "first",
        )
        self._policy_owners = selected.owners
        if not context.operator_in_process:
            found.conditions.extend(
                condition
                for condition in selected.conditions
                if condition.type == CONFLICTING_PEERING_POLICY
                and condition.object.name in selected.at
            )
            found.problems.extend(selected.problems)
        if context.node not in selected.claimed:
            return None
        owner = selected.owners.get(context.node)
        return [policies[owner]] if owner is not None else []

    def _v1(
        self,
        snapshot: Snapshot,
        policy: CiliumBGPPeeringPolicy,
        node: Node,
        secrets: Mapping[str, Secret],
        context: NodeContext,
    ) -> v2.Compiled:
        return v1.compile_policy(
            policy,
            v1.Context(
                node=node,
                load_balancer_pools=tuple(self._tables.of(LOAD_BALANCER_IP_POOL).all(snapshot)),
                secrets=secrets,
                secrets_namespace=context.secrets_namespace,
            ),
        )
