"""Compiles Cilium's configuration objects, v1 and v2, for one node: everything but the routes.

A change compiles the whole configuration. The ownership of nodes alone goes from one compilation to the
next, so that the present owner keeps a node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reconcilers.cilium import instances as v2
from reconcilers.cilium import node_configs
from reconcilers.cilium.bfd import IGNORED, bfd_profile
from reconcilers.cilium.node_facts import addresses_of, known_nodes, preferring
from reconcilers.cilium.objects import Objects, controller_of, objects_of, with_translated
from reconcilers.cilium.options import CiliumOptions
from reconcilers.cilium.v1 import compile_node as v1
from reconcilers.cilium.v1 import in_effect
from reconcilers.cilium.v1.translation import ClusterView
from reconcilers.dialect import NodeContext, NodeIntent
from reconcilers.model import Condition, Generated, ObjectRef, Problem
from reconcilers.sliced_work import Pieces, Slices
from resources.cilium import CiliumBGPNodeConfig, CiliumBGPPeeringPolicy
from resources.cilium.condition_types import CONFLICTING_PEERING_POLICY
from resources.cilium.kinds import (
    CILIUM_NODE,
    CLUSTER_CONFIG,
    LOAD_BALANCER_IP_POOL,
    NODE_CONFIG,
    NODE_CONFIG_OVERRIDE,
    PEER_CONFIG,
    PEERING_POLICY,
)
from resources.core import Node, Secret
from resources.core.kinds import SECRET
from resources.tables import Tables
from statedb import Snapshot


class Owners(NamedTuple):
    """The object that owns each node, by the node's name."""

    cluster_configs: Mapping[str, str] = {}
    policies: Mapping[str, str] = {}
    """CiliumBGPPeeringPolicies."""


@dataclass
class _Result:
    """The conditions, problems and generated objects, filled while they are compiled."""

    owners: Owners
    conditions: list[Condition] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    generated: list[Generated] = field(default_factory=list)


class NodeConfiguration:
    """Compiles the configuration objects of a snapshot for one node."""

    def __init__(self, tables: Tables, options: CiliumOptions) -> None:
        self._tables = tables
        self._options = options

    def compile(self, snapshot: Snapshot, context: NodeContext) -> Slices[NodeIntent]:
        """Compile Cilium's configuration of a node, v1 or v2; a thousand objects may select it."""
        pieces = Pieces()
        tables, name = self._tables, context.node
        result = _Result(context.state or Owners())
        secrets = {
            secret.metadata.name: secret
            for secret in tables.in_namespace(snapshot, SECRET, context.secrets_namespace)
        }
        nodes = known_nodes(tables, snapshot)
        if name in nodes:
            nodes[name] = preferring(nodes[name], self._options.node_address)
        objects = objects_of(tables, snapshot)
        policies = {row.metadata.name: row for row in tables.of(PEERING_POLICY).all(snapshot)}
        applied = None
        if self._options.translates:
            objects = self._translated(snapshot, context, objects, policies, nodes, result)
        else:
            applied = yield from self._applied_policies(policies, nodes, context, result, pieces)
        config = yield from self._node_config(objects, nodes, context, result, pieces)
        compiled = None
        if applied is not None:
            # v1 precedes v2, as in Cilium, also on a node whose policies conflict and do not apply.
            if config is not None:
                text = "has no effect: a CiliumBGPPeeringPolicy selects the node"
                ref = ObjectRef(NODE_CONFIG.name, "", name)
                result.problems.append(Problem((ref,), "", text))
            for policy in applied:
                compiled = self._compile_policy(snapshot, policy, nodes[name], secrets, context)
        elif config is not None:
            next_fields = self._options.next_fields
            result.problems.extend(_without_effect(objects, name, next_fields=next_fields))
            compiled = v2.compile_instances(
                config,
                v2.Context(
                    node=nodes.get(name),
                    peer_configs=objects.peer_configs,
                    advertisements=tuple(objects.advertisements.values()),
                    secrets=secrets,
                    secrets_namespace=context.secrets_namespace,
                    host=context.host,
                    router_id_of_node=self._options.router_id_allocation_ip_pool is None,
                    next_fields=next_fields,
                ),
            )
        if name not in nodes:
            ref = ObjectRef("Node", "", name)
            result.problems.append(Problem((ref,), "metadata.name", "there is no such node"))
        if compiled is None:
            compiled = v2.CompiledNode([], [], {}, [])
        return NodeIntent(
            instances=tuple(compiled.instances),
            peers=tuple(compiled.peers),
            route_sets=compiled.route_sets,
            addresses=addresses_of(tables.of(CILIUM_NODE).get(snapshot, ("", name))),
            conditions=tuple(result.conditions),
            problems=(*result.problems, *compiled.problems),
            generated=tuple(result.generated),
            state=result.owners,
        )

    def _translated(
        self,
        snapshot: Snapshot,
        context: NodeContext,
        objects: Objects,
        policies: Mapping[str, CiliumBGPPeeringPolicy],
        nodes: Mapping[str, Node],
        result: _Result,
    ) -> Objects:
        """Return the objects of v2, including the translations of v1's policies."""
        pools = tuple(self._tables.of(LOAD_BALANCER_IP_POOL).all(snapshot))
        united, translated = with_translated(
            objects, policies, ClusterView(tuple(nodes.values()), pools)
        )
        if not context.operator_in_process:
            result.problems.extend(translated.notes)
            result.generated.extend(translated.generated)
        return united

    def _node_config(
        self,
        objects: Objects,
        nodes: Mapping[str, Node],
        context: NodeContext,
        result: _Result,
        pieces: Pieces,
    ) -> Slices[CiliumBGPNodeConfig | None]:
        """Return the node's NodeConfig: the stored one, or the one generated from a ClusterConfig."""
        stored = objects.node_configs.get(context.node)
        if context.operator_in_process:
            content = context.generated.get((NODE_CONFIG.name, "", context.node))
            if content is not None:
                return NODE_CONFIG.decode(content)
            is_owned = stored is not None and controller_of(stored, CLUSTER_CONFIG.name) is not None
            return None if is_owned else stored
        configs = yield from node_configs.generate(
            objects, nodes.values(), result.owners.cluster_configs, pieces
        )
        result.owners = result.owners._replace(cluster_configs=configs.owners)
        result.generated.extend(node_configs.generated(configs))
        result.problems.extend(configs.problems)
        return stored if stored is not None else configs.node_configs.get(context.node)

    def _applied_policies(
        self,
        policies: Mapping[str, CiliumBGPPeeringPolicy],
        nodes: Mapping[str, Node],
        context: NodeContext,
        result: _Result,
        pieces: Pieces,
    ) -> Slices[list[CiliumBGPPeeringPolicy] | None]:
        """Return the node's policy, no policy on a conflict, or None if no policy selects it."""
        selected = yield from in_effect.select(
            policies.values(),
            nodes.values(),
            result.owners.policies,
            first_wins=self._options.peering_policies == "first",
            pieces=pieces,
        )
        result.owners = result.owners._replace(policies=selected.owners)
        if not context.operator_in_process:
            result.conditions.extend(
                condition
                for condition in selected.conditions
                if condition.type == CONFLICTING_PEERING_POLICY
                and condition.object.name in selected.matching
            )
            result.problems.extend(selected.problems)
        if context.node not in selected.claimed:
            return None
        owner = selected.owners.get(context.node)
        return [policies[owner]] if owner is not None else []

    def _compile_policy(
        self,
        snapshot: Snapshot,
        policy: CiliumBGPPeeringPolicy,
        node: Node,
        secrets: Mapping[str, Secret],
        context: NodeContext,
    ) -> v2.CompiledNode:
        return v1.compile_policy(
            policy,
            v1.Context(
                node=node,
                load_balancer_pools=tuple(self._tables.of(LOAD_BALANCER_IP_POOL).all(snapshot)),
                secrets=secrets,
                secrets_namespace=context.secrets_namespace,
            ),
        )


def _without_effect(objects: Objects, node: str, *, next_fields: bool) -> Iterator[Problem]:
    """Yield a problem for each field that is accepted and has no effect, as in Cilium."""
    text = "has no effect"
    for name, config in objects.peer_configs.items():
        if config.spec.transport.local_port:
            ref = ObjectRef(PEER_CONFIG.name, "", name)
            yield Problem((ref,), "spec.transport.localPort", text, category="unsupported")
        if not next_fields and bfd_profile(config.spec.bfd) is not None:
            ref = ObjectRef(PEER_CONFIG.name, "", name)
            yield Problem((ref,), "spec.bfd", IGNORED, category="unsupported")
    override = objects.overrides.get(node)
    if override is None:
        return
    ref = ObjectRef(NODE_CONFIG_OVERRIDE.name, "", node)
    for i, instance in enumerate(override.spec.bgp_instances):
        for j, peer in enumerate(instance.peers):
            if peer.local_port:
                field = f"spec.bgpInstances[{i}].peers[{j}].localPort"
                yield Problem((ref,), field, text, category="unsupported")
