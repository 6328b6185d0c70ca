"""One round of reporting: the status of this node's NodeConfig, from the tables and the speaker.

Level-triggered: it is worked out whole, and its row is written where it differs. The NodeConfig is
the one in the API server, or the one that was made here of ClusterConfigs in manifests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from reconcilers.model import ObjectRef
from reconcilers.report.errors import NODE_CONFIG, errors_of, reconcile_error
from reconcilers.report.node import node_status
from reconcilers.tables import KEY, IntentTables
from resources import kinds
from resources.cilium import CiliumBGPNodeConfig
from resources.cilium.status import NodeConfigStatus
from resources.tables import Tables
from speaker.api import PeerStatus
from statedb import Database, Index, Snapshot, Table


class NodeStatus(msgspec.Struct, frozen=True):
    """Row of the table ``node-statuses``: the status of this node's NodeConfig as it is now."""

    node: str
    uid: str
    """Of the NodeConfig in the API server; empty where it is only made here."""
    status: NodeConfigStatus


class ReportRound:
    """Works out the status."""

    def __init__(
        self,
        database: Database,
        resources: Tables,
        intent: IntentTables,
        node: str,
        sessions: Callable[[], Sequence[PeerStatus]],
    ) -> None:
        """``sessions`` tells all of them, as they are now."""
        self.table: Table[NodeStatus] = database.table(
            "node-statuses", Index(KEY, lambda row: row.node)
        )
        self._database = database
        self._resources = resources
        self._intent = intent
        self._node = node
        self._sessions = sessions

    @property
    def followed(self) -> tuple[Table[Any], ...]:
        """The tables whose changes make a round due; counts of routes change without any."""
        i = self._intent
        return (
            self._resources.cilium_node_configs,
            i.generated,
            i.problems,
            i.reconcile_statuses,
            i.peers,
        )

    def run(self, now: float) -> bool:
        """Do one round; ``now`` is Unix time. Tells whether the status is another than before."""
        snapshot = self._database.snapshot()
        before = self.table.get(snapshot, self._node)
        config = self._config(snapshot)
        if config is None:
            if before is None:
                return False
            with self._database.write(self.table) as txn:
                self.table.delete(txn, self._node)
            return True
        row = NodeStatus(
            self._node,
            config.metadata.uid,
            self._status(snapshot, config, before.status if before is not None else None, now),
        )
        if row == before:
            return False
        with self._database.write(self.table) as txn:
            self.table.upsert(txn, row)
        return True

    def _config(self, snapshot: Snapshot) -> CiliumBGPNodeConfig | None:
        there = self._resources.cilium_node_configs.get(snapshot, ("", self._node))
        if there is not None:
            return there
        made = self._intent.generated.get(snapshot, (NODE_CONFIG, self._node))
        return None if made is None else kinds.NODE_CONFIG.decode(made.content)

    def _status(
        self,
        snapshot: Snapshot,
        config: CiliumBGPNodeConfig,
        before: NodeConfigStatus | None,
        now: float,
    ) -> NodeConfigStatus:
        ref = ObjectRef(NODE_CONFIG, "", self._node)
        # A v1 policy that has the node may have named its sessions in the same way.
        ours = {
            (peer.instance, peer.name)
            for peer in self._intent.peers.all(snapshot)
            if peer.origin == ref
        }
        sessions = {
            (session.instance, session.name): session
            for session in self._sessions()
            if (session.instance, session.name) in ours
        }
        errors = errors_of(
            self._node,
            [instance.name for instance in config.spec.bgp_instances],
            self._intent.problems.all(snapshot),
            self._intent.reconcile_statuses.all(snapshot),
        )
        error = reconcile_error(ref, errors, config.metadata.generation or None)
        return node_status(config, sessions, error, before, now)
