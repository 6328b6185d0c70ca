"""The operator's part of Cilium's API: NodeConfigs, objects of v2 for v1's policies, conditions.

Level-triggered: what is generated follows from the present objects, not from events. A NodeConfig
that a ClusterConfig owns and no node is selected for is deleted; one whose ClusterConfig is gone is
collected by the API server; one without our owner reference is left unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconcilers.cilium import node_configs, router_ids
from reconcilers.cilium.members import known_nodes
from reconcilers.cilium.objects import Objects, objects_of, with_translated
from reconcilers.cilium.options import CiliumOperatorOptions, CiliumOptions
from reconcilers.cilium.translation import translation
from reconcilers.cilium.v1 import selection
from reconcilers.cilium.v1.translate import Known
from reconcilers.dialect import ClusterContext, ClusterIntent, Delete
from reconcilers.model import Condition, Generated, ObjectRef, Problem
from reconcilers.tables import KEY
from resources.cilium import CiliumBGPNodeConfig
from resources.cilium.kinds import (
    LOAD_BALANCER_IP_POOL,
    NODE_CONFIG,
    PEERING_POLICY,
)
from resources.core import Secret
from resources.tables import Tables
from statedb import Snapshot


class ClusterConfiguration:
    """Generates and reports for all nodes."""

    def __init__(self, tables: Tables, options: CiliumOptions | CiliumOperatorOptions) -> None:
        self._tables = tables
        self._options = options
        self._pool = options.router_id_pool
        self._owners: dict[str, str] = {}
        """Node to the ClusterConfig that has it."""
        self._policy_owners: dict[str, str] = {}
        """Node to the CiliumBGPPeeringPolicy that it follows."""
        self._router_ids: dict[router_ids.Holder, str] = {}

    def operate(self, snapshot: Snapshot, context: ClusterContext) -> ClusterIntent:
        """Work out everything again."""
        t = self._tables
        known = known_nodes(t, snapshot)
        objects = objects_of(t, snapshot)
        policies = {row.metadata.name: row for row in t.of(PEERING_POLICY).all(snapshot)}
        problems: list[Problem] = []
        conditions: list[Condition] = []
        generated: list[Generated] = []
        outdated: set[ObjectRef] = set()
        deletions: list[Delete] = []
        counting = objects
        if self._options.translates:
            pools = tuple(t.of(LOAD_BALANCER_IP_POOL).all(snapshot))
            nodes = Known(tuple(known.values()), pools)
            if context.stored:
                made = translation(objects, policies, nodes)
                generated += made.generated
                outdated |= made.outdated
                deletions += made.deletions
                problems += made.problems
            else:
                counting, translated = with_translated(objects, policies, nodes)
                generated += translated.generated
                problems += translated.notes
        else:
            selected = selection.select(
                policies.values(),
                known.values(),
                self._policy_owners,
                first_wins=getattr(self._options, "peering_policies", "") == "first",
            )
            self._policy_owners = selected.owners
            conditions += selected.conditions
            problems += selected.problems
        result = node_configs.generate(
            counting.cluster_configs.values(),
            known.values(),
            counting.overrides,
            counting.peer_configs,
            counting.node_configs,
            self._owners,
        )
        self._owners = {} if context.stored else result.owners
        if self._pool is not None:
            # What was allocated before is in the NodeConfigs, whichever writer they have.
            given = router_ids.allocate(
                result.node_configs, counting.node_configs, self._router_ids, self._pool
            )
            result = result._replace(node_configs=given.node_configs)
            self._router_ids = given.held
            problems += given.problems
        problems += result.problems
        conditions += result.conditions
        conditions += node_configs.peer_config_conditions(
            counting.peer_configs.values(), self._secrets(snapshot, context)
        )
        generated += node_configs.generated(result)
        outdated |= _outdated(result.node_configs, objects)
        deletions += _unselected(result.node_configs, objects)
        return ClusterIntent(
            generated=tuple(generated),
            outdated=frozenset(outdated),
            deletions=tuple(deletions),
            conditions=tuple(conditions),
            reported=tuple(dict.fromkeys(condition.object for condition in conditions)),
            problems=tuple(problems),
        )

    def _secrets(self, snapshot: Snapshot, context: ClusterContext) -> dict[str, Secret]:
        return {
            secret.metadata.name: secret
            for secret in self._tables.secrets.prefix(snapshot, KEY, (context.secrets_namespace,))
        }


def _outdated(wanted: Mapping[str, CiliumBGPNodeConfig], objects: Objects) -> set[ObjectRef]:
    """Return the NodeConfigs that the API server lacks, or has with another spec or owner."""
    return {
        ObjectRef(NODE_CONFIG.name, "", name)
        for name, config in wanted.items()
        if (there := objects.node_configs.get(name)) is None
        or there.spec != config.spec
        or there.metadata.owner_references != config.metadata.owner_references
    }


def _unselected(wanted: Mapping[str, CiliumBGPNodeConfig], objects: Objects) -> list[Delete]:
    """Return the NodeConfigs of ours whose node is not selected any more."""
    return [
        Delete(ObjectRef(NODE_CONFIG.name, "", name), there.metadata.uid)
        for name, there in sorted(objects.node_configs.items())
        if name not in wanted
        and node_configs.owner_name(there, objects.cluster_configs) is not None
    ]
