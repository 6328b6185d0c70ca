"""One round of the operator: everything is worked out again from one snapshot.

Level-triggered: what is written follows from what is there, and not from what happened. A NodeConfig
that a ClusterConfig owns and no node is selected for is deleted; one whose ClusterConfig is gone is
the API server's to collect; one that nobody owns is somebody else's.
"""

from __future__ import annotations

import ipaddress
from typing import Any

import msgspec

from reconcilers.intent.cilium import operator
from reconcilers.intent.cilium import router_ids as allocation
from reconcilers.intent.cilium.members import known_nodes
from reconcilers.intent.cilium.objects import objects_of
from reconcilers.intent.cilium.v1.translate import Known
from reconcilers.model import Condition, ObjectRef, Problem
from reconcilers.operator.translation import translation
from reconcilers.operator.writes import Apply, Delete, Write
from resources.cilium import CiliumBGPNodeConfig
from resources.tables import Tables
from statedb import Database, Snapshot, Table


class Plan(msgspec.Struct, frozen=True):
    """What a round came to."""

    objects: tuple[Write, ...]
    """What v1's policies are translated to, and NodeConfigs: to be written or deleted."""
    conditions: dict[ObjectRef, tuple[Condition, ...]]
    """The conditions that each object has to have."""
    problems: tuple[Problem, ...]


class OperatorRound:
    """Works out what the operator has to write."""

    def __init__(
        self,
        db: Database,
        tables: Tables,
        secrets_namespace: str,
        *,
        router_ids: ipaddress.IPv4Network | None = None,
        report: bool = True,
        translate: bool = False,
    ) -> None:
        """``router_ids`` is the pool that router IDs come from, None leaves them to the nodes.

        Without ``report`` objects shall have none of our conditions. With ``translate`` objects of
        v2 are written for v1's policies; what follows from them follows once they are there.
        """
        self._translate = translate
        self._pool = router_ids
        self._router_ids: dict[allocation.Holder, str] = {}
        self._db = db
        self._report = report
        self._tables = tables
        self._secrets_namespace = secrets_namespace

    @property
    def followed(self) -> tuple[Table[Any], ...]:
        """The tables whose changes make a round due."""
        t = self._tables
        of_v1: tuple[Table[Any], ...] = ()
        if self._translate:
            of_v1 = (
                t.cilium_peering_policies,
                t.cilium_load_balancer_ip_pools,
                t.cilium_advertisements,
            )
        return (
            *of_v1,
            t.nodes,
            t.secrets,
            t.cilium_nodes,
            t.cilium_cluster_configs,
            t.cilium_peer_configs,
            t.cilium_node_configs,
            t.cilium_node_config_overrides,
        )

    def run(self) -> Plan | None:
        """Return what is to be written; None before every source has told everything once."""
        snapshot = self._db.snapshot()
        if not all(table.initialized(snapshot) for table in self.followed):
            return None
        t = self._tables
        present = {row.metadata.name: row for row in t.cilium_node_configs.all(snapshot)}
        peer_configs = {row.metadata.name: row for row in t.cilium_peer_configs.all(snapshot)}
        nodes = known_nodes(t.nodes.all(snapshot), t.cilium_nodes.all(snapshot))
        operated = operator.operate(
            t.cilium_cluster_configs.all(snapshot),
            nodes.values(),
            {row.metadata.name: row for row in t.cilium_node_config_overrides.all(snapshot)},
            peer_configs,
            present,
            {},
        )
        wanted = operated.node_configs
        problems = operated.problems
        if self._pool is not None:
            # What was given before is in the NodeConfigs that there are, whoever wrote them.
            given = allocation.allocate(wanted, present, self._router_ids, self._pool)
            wanted, self._router_ids = given.node_configs, given.held
            problems = [*problems, *given.problems]
        conditions: dict[ObjectRef, tuple[Condition, ...]] = {}
        for condition in (
            *operated.conditions,
            *operator.peer_config_conditions(peer_configs.values(), self._secrets(snapshot)),
        ):
            there = conditions.setdefault(condition.object, ())
            if self._report:
                conditions[condition.object] = (*there, condition)
        writes = self._objects(snapshot, wanted, present)
        if self._translate:
            translated, notes = translation(
                objects_of(t, snapshot),
                {row.metadata.name: row for row in t.cilium_peering_policies.all(snapshot)},
                Known(tuple(nodes.values()), tuple(t.cilium_load_balancer_ip_pools.all(snapshot))),
            )
            writes, problems = [*translated, *writes], [*problems, *notes]
        return Plan(tuple(writes), conditions, tuple(problems))

    def _secrets(self, snapshot: Snapshot) -> dict[str, Any]:
        return {
            secret.metadata.name: secret
            for secret in self._tables.secrets.all(snapshot)
            if secret.metadata.namespace == self._secrets_namespace
        }

    def _objects(
        self,
        snapshot: Snapshot,
        wanted: dict[str, CiliumBGPNodeConfig],
        present: dict[str, CiliumBGPNodeConfig],
    ) -> list[Write]:
        configs = {c.metadata.name: c for c in self._tables.cilium_cluster_configs.all(snapshot)}
        writes: list[Write] = []
        for name, config in sorted(wanted.items()):
            there = present.get(name)
            if there is None or not same(there, config):
                writes.append(Apply(_ref(name), operator.content(config)))
        for name, there in sorted(present.items()):
            if name not in wanted and operator.owner_name(there, configs) is not None:
                writes.append(Delete(_ref(name), there.metadata.uid))
        return writes


def same(there: CiliumBGPNodeConfig, wanted: CiliumBGPNodeConfig) -> bool:
    """Tell whether a NodeConfig is as it should be: its specification and its owner."""
    return (
        there.spec == wanted.spec
        and there.metadata.owner_references == wanted.metadata.owner_references
    )


def _ref(name: str) -> ObjectRef:
    return ObjectRef(operator.NODE_CONFIG, "", name)
