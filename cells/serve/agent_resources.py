"""The paths of every agent: status, sessions, routes, explanations, health and cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cells.api.model import ReceivedExplainItem
from cells.api.resource import ApiResource, BadRequestError, Query
from cells.hive import HealthTree
from cells.hive.composition import Composition
from cells.serve.agent_bfd import AgentBfd
from cells.serve.bfd import bfd_resource
from cells.serve.explain import AgentExplanations
from cells.serve.host import AgentHost
from cells.serve.intent import AgentIntent
from cells.serve.missing_peers import MissingPeers
from cells.serve.received import AgentReceivedExplanations
from cells.serve.routing import (
    SpeakerRouting,
    peer_counts_resource,
    peers_resource,
    routes_resource,
)
from cells.serve.status import AgentStatus


def agent_resources(
    status: AgentStatus,
    host: AgentHost,
    routing: SpeakerRouting,
    missing: MissingPeers,
    bfd: AgentBfd,
    explanations: AgentExplanations,
    received: AgentReceivedExplanations,
    intent: AgentIntent,
    health: HealthTree,
    composition: Composition,
) -> tuple[ApiResource, ...]:
    """Return the resources."""

    def explain_received(query: Query) -> Iterator[Sequence[ReceivedExplainItem]]:
        prefix = query.get("prefix")
        if prefix is None:
            raise BadRequestError("prefix: a prefix or an address is required")
        return received.explain_received(
            prefix, peer=query.get("peer"), instance=query.get("instance")
        )

    return (
        ApiResource(path="/v1/status", kind="StatusList", read=lambda _: [status.item()]),
        ApiResource(path="/v1/host", kind="HostList", read=lambda _: [host.host()]),
        peers_resource(
            routing,
            notes=lambda: [row.message for row in status.item().unused_objects],
            problems=lambda empty: missing.reasons(empty=empty),
        ),
        peer_counts_resource(routing),
        bfd_resource(
            bfd.bfd_sessions,
            notes=lambda: [bfd.why_no_bfd()],
            problems=lambda _: bfd.bfd_problems(),
        ),
        routes_resource(routing),
        ApiResource(
            path="/v1/explain",
            kind="ExplainList",
            parameters=("target", "peer", "instance"),
            read=lambda query: explanations.explain(
                query.get("target"), peer=query.get("peer"), instance=query.get("instance")
            ),
        ),
        ApiResource(
            path="/v1/explain-received",
            kind="ReceivedExplainList",
            parameters=("prefix", "peer", "instance"),
            read=explain_received,
        ),
        ApiResource(path="/v1/intent", kind="IntentList", read=lambda _: intent.intent()),
        ApiResource(path="/v1/health", kind="HealthReport", read=lambda _: list(health.report())),
        ApiResource(path="/v1/cells", kind="CellList", read=lambda _: composition.views()),
    )
