"""Reports the status of this node's CiliumBGPNodeConfig.

The NodeConfig is the one in the API server, or the one generated from ClusterConfigs in manifests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reconcilers.cilium.node_errors import errors_of, reconcile_error
from reconcilers.cilium.node_status import node_status
from reconcilers.dialect import ObjectStatus
from reconcilers.model import ObjectRef
from reconcilers.tables import IntentTables
from resources.cilium import CiliumBGPNodeConfig
from resources.cilium.kinds import NODE_CONFIG
from resources.tables import Tables
from speaker.api import PeerStatus
from statedb import Snapshot, Table


class NodeConfigReporter:
    """Reports one node's NodeConfig."""

    def __init__(self, tables: Tables, intent: IntentTables, node: str, dialect: str) -> None:
        """``dialect`` is the name that the rows of the intent have."""
        self._dialect = dialect
        self._tables = tables
        self._intent = intent
        self._ref = ObjectRef(NODE_CONFIG.name, "", node)

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """NodeConfigs and the intent; route counts change without any of them."""
        intent = self._intent
        return (
            self._tables.of(NODE_CONFIG),
            intent.generated,
            intent.problems,
            intent.reconcile_statuses,
            intent.instances,
            intent.peers,
        )

    def statuses(
        self,
        snapshot: Snapshot,
        sessions: Sequence[PeerStatus],
        before: Mapping[ObjectRef, ObjectStatus],
        now: float,
    ) -> Iterable[ObjectStatus]:
        """Return the status of the NodeConfig, or none if the node has no NodeConfig."""
        config = self._config(snapshot)
        if config is None:
            return ()
        # A v1 policy of the node may have the same names of instances and peers.
        peers = {
            (peer.instance, peer.name)
            for peer in self._intent.peers.all(snapshot)
            if peer.origins[:1] == (self._ref,)
        }
        instances = list(self._intent.instances.all(snapshot))
        names = {row.name: row.configured_name or row.name for row in instances}
        states = {
            (names.get(session.instance, session.instance), session.name): session
            for session in sessions
            if (session.instance, session.name) in peers
        }
        foreign = {row.name for row in instances if row.dialect != self._dialect}
        errors = errors_of(
            self._ref.name,
            [instance.name for instance in config.spec.bgp_instances],
            self._intent.problems.all(snapshot),
            (
                status
                for status in self._intent.reconcile_statuses.all(snapshot)
                if status.object.partition("/")[0] not in foreign
            ),
        )
        error = reconcile_error(self._ref, errors, config.metadata.generation or None)
        last = before.get(self._ref)
        status = node_status(config, states, error, None if last is None else last.status, now)
        return (ObjectStatus(self._ref, config.metadata.uid, status),)

    def _config(self, snapshot: Snapshot) -> CiliumBGPNodeConfig | None:
        ref = self._ref
        stored = self._tables.of(NODE_CONFIG).get(snapshot, (ref.namespace, ref.name))
        if stored is not None:
            return stored
        generated = self._intent.generated.get(snapshot, (ref.kind, ref.namespace, ref.name))
        return None if generated is None else NODE_CONFIG.decode(generated.content)
