"""Cilium's configuration objects, v1 and v2, to what one node does: all but the routes.

Small and worked out whole whenever some of it changed. What is remembered from one time to the next is
only who has what (a node, a router ID), so that the one that has it keeps it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from reconcilers.intent import drain
from reconcilers.intent.cilium import node as v2
from reconcilers.intent.cilium import operator, router_ids
from reconcilers.intent.cilium.members import known_nodes
from reconcilers.intent.cilium.objects import objects_of, with_translated
from reconcilers.intent.cilium.policy import RouteSet
from reconcilers.intent.cilium.v1 import compile as v1
from reconcilers.intent.cilium.v1 import selection
from reconcilers.intent.cilium.v1.translate import Known, as_object
from reconcilers.intent.options import IntentOptions
from reconcilers.model import Condition, Generated, Instance, ObjectRef, Peer, Problem
from reconcilers.tables import KEY
from resources.cilium import CiliumBGPNodeConfig, CiliumBGPPeeringPolicy
from resources.cilium.conditions import CONFLICTING_PEERING_POLICY
from resources.core import Node, Secret
from resources.host.facts import Host
from resources.tables import Tables
from statedb import Snapshot


class Configured(NamedTuple):
    """What a node does, and what is to be said about it."""

    instances: list[Instance]
    peers: list[Peer]
    route_sets: dict[str, RouteSet]
    conditions: list[Condition]
    problems: list[Problem]
    generated: list[Generated]


class Configuration:
    """Compiles the configuration objects of a snapshot for one node."""

    def __init__(self, resources: Tables, options: IntentOptions) -> None:
        self._resources = resources
        self._options = options
        self._owners: dict[str, str] = {}
        """Node to the ClusterConfig that has it."""
        self._policy_owners: dict[str, str] = {}
        """Node to the CiliumBGPPeeringPolicy that it follows."""
        pool = options.router_id_allocation_ip_pool
        self._router_id_pool = None if pool is None else ipaddress.IPv4Network(pool)
        self._router_ids: dict[router_ids.Holder, str] = {}

    def compile(self, snapshot: Snapshot, host: Host) -> Configured:
        """Work out everything."""
        r, name = self._resources, self._options.node
        made = Configured([], [], {}, [], [], [])
        secrets = {
            secret.metadata.name: secret
            for secret in r.secrets.prefix(snapshot, KEY, (self._options.secrets_namespace,))
        }
        known = known_nodes(r.nodes.all(snapshot), r.cilium_nodes.all(snapshot))
        objects = objects_of(r, snapshot)
        followed = None
        policies = {row.metadata.name: row for row in r.cilium_peering_policies.all(snapshot)}
        if self._options.peering_policies == "translate":
            pools = tuple(r.cilium_load_balancer_ip_pools.all(snapshot))
            given = Known(tuple(known.values()), pools)
            objects, translated = with_translated(objects, policies, given)
            made.problems.extend(translated.notes)
            for ref, row in translated.rows.items():
                origin = translated.origins[ref]
                made.generated.append(Generated(ref, origin, as_object(row)))
        else:
            followed = self._follow(policies, known, made)
        operated = operator.operate(
            objects.cluster_configs.values(),
            known.values(),
            objects.overrides,
            objects.peer_configs,
            objects.node_configs,
            self._owners,
        )
        self._owners = operated.owners
        if self._router_id_pool is not None and self._options.whole_cluster:
            allocated = router_ids.allocate(
                operated.node_configs, objects.node_configs, self._router_ids, self._router_id_pool
            )
            operated = operated._replace(node_configs=allocated.node_configs)
            self._router_ids = allocated.held
            made.problems.extend(allocated.problems)
        made.generated.extend(_node_configs(operated))
        if self._options.whole_cluster:
            made.conditions.extend(operated.conditions)
            made.conditions.extend(
                operator.peer_config_conditions(objects.peer_configs.values(), secrets)
            )
        made.problems.extend(operated.problems)
        config = self._node_config(objects.node_configs.get(name), operated.node_configs.get(name))
        compiled = None
        if followed is not None:
            # v1 goes before v2, as in Cilium: also where its policies contradict each other.
            if config is not None:
                text = "has no effect: a CiliumBGPPeeringPolicy selects the node"
                ref = ObjectRef(operator.NODE_CONFIG, "", name)
                made.problems.append(Problem((ref,), "", text))
            for policy in followed:
                compiled = self._v1(snapshot, policy, known[name], secrets)
        elif config is not None:
            context = v2.Context(
                node=known.get(name),
                peer_configs=objects.peer_configs,
                advertisements=tuple(objects.advertisements.values()),
                secrets=secrets,
                secrets_namespace=self._options.secrets_namespace,
                host=host,
                router_id_of_node=self._router_id_pool is None,
            )
            compiled = v2.compile_node(config, context)
        if compiled is not None:
            made.instances.extend(compiled.instances)
            why = drain.reason(known.get(name), self._options)
            peers = compiled.peers
            made.peers.extend(peers if why is None else drain.drained(peers, why, self._options))
            made.route_sets.update(compiled.route_sets)
            made.problems.extend(compiled.problems)
        if name not in known:
            ref = ObjectRef("Node", "", name)
            made.problems.append(Problem((ref,), "metadata.name", "there is no such node"))
        return made

    def _node_config(
        self, written: CiliumBGPNodeConfig | None, made: CiliumBGPNodeConfig | None
    ) -> CiliumBGPNodeConfig | None:
        """Choose the node's configuration: what is written, unless it is for us to write it."""
        if written is None:
            return made
        ours = self._options.whole_cluster and operator.controller(written) is not None
        return made if ours else written

    def _follow(
        self,
        policies: Mapping[str, CiliumBGPPeeringPolicy],
        known: Mapping[str, Node],
        made: Configured,
    ) -> list[CiliumBGPPeeringPolicy] | None:
        """Find the policy that the node follows: one or none; None where v2 has the node."""
        selected = selection.select(
            policies.values(),
            known.values(),
            self._policy_owners,
            first_wins=self._options.peering_policies == "first",
        )
        self._policy_owners = selected.owners
        made.conditions.extend(
            condition
            for condition in selected.conditions
            if self._options.whole_cluster
            or (
                condition.type == CONFLICTING_PEERING_POLICY
                and condition.object.name in selected.at
            )
        )
        made.problems.extend(selected.problems)
        if self._options.node not in selected.claimed:
            return None
        owner = selected.owners.get(self._options.node)
        return [policies[owner]] if owner is not None else []

    def _v1(
        self,
        snapshot: Snapshot,
        policy: CiliumBGPPeeringPolicy,
        node: Node,
        secrets: Mapping[str, Secret],
    ) -> v2.Compiled:
        context = v1.Context(
            node=node,
            load_balancer_pools=tuple(self._resources.cilium_load_balancer_ip_pools.all(snapshot)),
            secrets=secrets,
            secrets_namespace=self._options.secrets_namespace,
        )
        return v1.compile_policy(policy, context)


def _node_configs(operated: operator.Operated) -> Iterable[Generated]:
    for name, config in operated.node_configs.items():
        owner = ObjectRef(operator.CLUSTER_CONFIG, "", operated.owners[name])
        ref = ObjectRef(operator.NODE_CONFIG, "", name)
        yield Generated(ref, owner, operator.content(config))
