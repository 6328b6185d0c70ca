"""Reports the status of this node's CiliumBGPNodeConfig.

The NodeConfig is the one in the API server, or the one generated from ClusterConfigs in manifests.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from reconcilers.cilium.conditions import (
    errors_of,
    listener_errors,
    reconcile_error,
    sessions_down,
)
from reconcilers.cilium.node_status import node_status
from reconcilers.dialect import Dialect, ObjectStatus, ReportContext, ReportedStatuses
from reconcilers.model import ObjectRef
from reconcilers.overdue import describe_overdue, is_overdue
from resources.cilium import CiliumBGPNodeConfig
from resources.cilium.kinds import NODE_CONFIG
from resources.tables import Tables
from statedb import Snapshot

COUNTS: Final = frozenset({"routeCount"})
"""Members of the status that change with every Service."""


def report_status(
    dialect: Dialect, snapshot: Snapshot, context: ReportContext
) -> Iterable[ObjectStatus]:
    """Report the status of this node's CiliumBGPNodeConfig; nothing where the node has none."""
    intent, ref = context.intent, ObjectRef(NODE_CONFIG.name, "", context.node)
    config = _config(dialect.tables, snapshot, context, ref)
    if config is None:
        return ()
    # A v1 policy that selects the node may use the same names of instances and peers.
    ours = {
        (peer.instance, peer.name)
        for peer in intent.peers.all(snapshot)
        if peer.origins[:1] == (ref,)
    }
    instances = list(intent.instances.all(snapshot))
    names = {row.name: row.configured_name or row.name for row in instances}
    states = {
        (names.get(session.instance, session.instance), session.name): session
        for session in context.sessions
        if (session.instance, session.name) in ours
    }
    foreign = {row.name for row in instances if row.dialect != context.dialect}
    errors = errors_of(
        ref.name,
        [instance.name for instance in config.spec.bgp_instances],
        intent.problems.all(snapshot),
        (
            status
            for status in intent.reconcile_statuses.all(snapshot)
            if status.object.partition("/")[0] not in foreign
        ),
    )
    errors += listener_errors(
        [instance.name for instance in config.spec.bgp_instances],
        {
            names.get(present.name, present.name): present.listen_error
            for present in context.instances
            if present.name not in foreign
        },
    )
    generation = config.metadata.generation or None
    conditions = [reconcile_error(ref, errors, generation)]
    overdue = [
        (key, describe_overdue(session))
        for key, session in sorted(states.items())
        if is_overdue(session, context.now)
    ]
    if overdue:
        conditions.append(sessions_down(ref, overdue, generation))
    last = context.before.get(ref)
    before = None if last is None else last.status
    return (
        ObjectStatus(
            ref,
            config.metadata.uid,
            node_status(config, states, conditions, before, context.now),
            counts=COUNTS,
        ),
    )


def _config(
    tables: Tables, snapshot: Snapshot, context: ReportContext, ref: ObjectRef
) -> CiliumBGPNodeConfig | None:
    stored = tables.of(NODE_CONFIG).get(snapshot, (ref.namespace, ref.name))
    if stored is not None:
        return stored
    generated = context.intent.generated.get(snapshot, (ref.kind, ref.namespace, ref.name))
    return None if generated is None else NODE_CONFIG.decode(generated.content)


def _of_node(dialect: Dialect, snapshot: Snapshot, node: str) -> ObjectRef | None:
    stored = dialect.tables.of(NODE_CONFIG).get(snapshot, ("", node))
    return None if stored is None else ObjectRef(NODE_CONFIG.name, "", node)


STATUSES: Final = ReportedStatuses((NODE_CONFIG,), report_status, _of_node)
