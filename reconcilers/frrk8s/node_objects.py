"""Objects that a node writes: its FRRNodeState, and a BGPSessionState for each session.

Source: FRR-k8s internal/controller (frr_state_controller.go, bgpsessionstate_controller.go). The states
that a session passes in each attempt are all Active: a dead router must not cost a write for each one.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, final

from reconcilers import bfd_session
from reconcilers.bfd_session import BfdSession
from reconcilers.dialect import NodeObject, NodeObjectContext, NodeObjectKind, WrittenObjects
from reconcilers.frrk8s.configuration_text import desired_text, kernel_lines, running_text
from reconcilers.model import Instance, Peer
from reconcilers.overdue import is_tried
from resources.enumeration import bounded
from resources.frrk8s.kinds import BGP_SESSION_STATE, FRR_NODE_STATE
from resources.frrk8s.status import (
    NODE_LABEL,
    PEER_LABEL,
    VRF_LABEL,
    BGPSessionStateStatus,
    FRRNodeStateStatus,
)
from resources.label_selectors import label_value
from speaker.api import ESTABLISHED, PeerStatus
from statedb import Snapshot

if TYPE_CHECKING:
    from reconcilers.frrk8s.dialect import Frrk8sDialect

NODE_STATE: Final = NodeObjectKind(FRR_NODE_STATE, name="{node}")
SESSION_STATE: Final = NodeObjectKind(
    BGP_SESSION_STATE,
    option="namespace",
    generate_name="{node}-",
    node_label=NODE_LABEL,
    identity=(PEER_LABEL, VRF_LABEL),
    owned_by_pod=True,
)
SUCCESS: Final = "success"
NO_BFD: Final = "N/A"
IDLE, ACTIVE = "Idle", "Active"
"""Objects that a reason names."""
MAX_REASONS: Final = 3
"""Problems that a result names; the others are counted."""


@final
class NodeStateObject:
    """Computes the FRRNodeState; the texts stay while nothing has changed."""

    def __init__(self) -> None:
        self._desired: tuple[object, str] = (None, "")
        self._running: tuple[object, str] = (None, "")

    def row(self, snapshot: Snapshot, context: NodeObjectContext) -> NodeObject:
        """Return the node's FRRNodeState object."""
        intent = context.intent
        instances = [r for r in intent.instances.all(snapshot) if r.dialect == context.dialect]
        peers = [r for r in intent.peers.all(snapshot) if r.dialect == context.dialect]
        others = {r.name for r in intent.instances.all(snapshot)} - {r.name for r in instances}
        running = {
            name: instance for name, instance in context.running().items() if name not in others
        }
        if self._desired[0] != (instances, peers):
            self._desired = ((instances, peers), desired_text(instances, peers))
        tables = sorted(intent.kernel_tables.all(snapshot))
        next_hops = sorted(intent.kernel_next_hops.all(snapshot))
        settings = next(intent.kernel_settings.all(snapshot), None)
        of_kernel = {
            name: list(kernel_lines(name, tables, next_hops, settings)) for name in running
        }
        redistributed = {row.name: row.redistributes for row in instances}
        of_running = (running, of_kernel, redistributed)
        if self._running[0] != of_running:
            self._running = (of_running, running_text(*of_running))
        problems = (
            problem
            for problem in intent.problems.all(snapshot)
            if problem.dialect == context.dialect and problem.category != "unsupported"
        )
        errors = (
            f"{status.object}: {status.error}"
            for status in intent.reconcile_statuses.all(snapshot)
            if status.error and status.object.partition("/")[0] not in others
        )
        conversion = _result("failed: ", map(str, sorted(problems)))
        reload = _result("", sorted(errors))
        status = FRRNodeStateStatus(
            desired_config=self._desired[1],
            running_config=self._running[1],
            last_conversion_result=conversion,
            last_reload_result=reload,
        )
        return NodeObject(FRR_NODE_STATE.name, status, prompt=(conversion, reload))


@final
class SessionStateObjects:
    """Computes the BGPSessionStates; while a session is as before, its object is that of before."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], tuple[Instance, Peer, tuple[str, str], NodeObject]] = {}

    def rows(self, snapshot: Snapshot, context: NodeObjectContext) -> Iterator[NodeObject]:
        """Yield the node's BGPSessionState objects: one for each session of FRR-k8s's dialect."""
        sessions = {(session.instance, session.name): session for session in context.sessions}
        instances = {instance.name: instance for instance in context.intent.instances.all(snapshot)}
        last, self._last = self._last, {}
        for peer in context.intent.peers.all(snapshot):
            instance = instances.get(peer.instance)
            if peer.dialect != context.dialect or instance is None:
                continue
            key = (peer.instance, peer.name)
            bfd = context.intent.bfd_sessions.get(snapshot, key)
            states = (_state(sessions.get(key)), _bfd_state(bfd))
            entry = last.get(key)
            if (
                entry is None
                or entry[0] is not instance
                or entry[1] is not peer
                or entry[2] != states
            ):
                row = _session_state(context.node, instance, peer, *states)
                entry = (instance, peer, states, row)
            self._last[key] = entry
            yield entry[3]


def _session_state(
    node: str, instance: Instance, peer: Peer, state: str, bfd_state: str
) -> NodeObject:
    name, vrf = peer_name(peer), instance.vrf or ""
    status = BGPSessionStateStatus(
        node=node, peer=name, vrf=vrf, bgp_status=state, bfd_status=bfd_state
    )
    labels = {PEER_LABEL: label_value(name), VRF_LABEL: label_value(vrf)}
    return NodeObject(BGP_SESSION_STATE.name, status, labels)


def peer_name(peer: Peer) -> str:
    """Return a peer as node objects of FRR-k8s name it: IPv6 in full, with hyphens for colons."""
    if peer.address is None:
        return peer.interface or peer.name
    return ipaddress.ip_address(peer.address).exploded.replace(":", "-")


def _state(session: PeerStatus | None) -> str:
    if session is None:
        return IDLE
    if session.established:
        return ESTABLISHED
    return ACTIVE if is_tried(session) else IDLE


def _bfd_state(session: BfdSession | None) -> str:
    """Return the state of a BFD session in FRR-k8s's words; N/A where there is none."""
    if session is None:
        return NO_BFD
    if session.state == bfd_session.UNKNOWN:
        return bfd_session.UNKNOWN
    return bfd_session.UP if session.up else bfd_session.DOWN


def _result(prefix: str, conversion: Iterator[str] | list[str]) -> str:
    texts = list(conversion)
    if not texts:
        return SUCCESS
    more = f" (and {len(texts) - MAX_REASONS} more)" if len(texts) > MAX_REASONS else ""
    return bounded(prefix + "; ".join(texts[:MAX_REASONS]), more)


def _of_node(
    dialect: Frrk8sDialect, snapshot: Snapshot, context: NodeObjectContext
) -> Iterator[NodeObject]:
    """Yield the FRRNodeState, and the BGPSessionState of each session."""
    yield dialect.node_state.row(snapshot, context)
    yield from dialect.session_states.rows(snapshot, context)


WRITTEN_OBJECTS: Final = WrittenObjects((NODE_STATE, SESSION_STATE), _of_node)
