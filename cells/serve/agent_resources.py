"""The paths of every agent: status, sessions, routes, explanations, health and cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from cells.api.model import BfdItem, ExplainItem, HostItem, ReceivedExplainItem, StatusItem
from cells.api.resource import ApiResource, BadRequestError, Query
from cells.hive import HealthTree
from cells.hive.composition import Composition
from cells.serve.bfd import bfd_resource
from cells.serve.routing import Routing, peer_counts_resource, peers_resource, routes_resource


class Status(Protocol):
    """The state of the agent."""

    def item(self) -> StatusItem:
        """Return how the agent is."""


class Host(Protocol):
    """The host of the agent."""

    def host(self) -> HostItem:
        """Return how the host is."""


class Missing(Protocol):
    """The peers that the list of sessions does not have."""

    def reasons(self, *, empty: bool) -> list[str]:
        """Return why peers are missing, a sentence each; ``empty``: there are none at all."""


class BfdSessions(Protocol):
    """The BFD sessions of the agent."""

    def bfd_sessions(self, peer: str | None, instance: str | None) -> list[BfdItem]:
        """Return the sessions, by instance and peer."""

    def why_no_bfd(self) -> str:
        """Return why there may be no session."""

    def bfd_problems(self) -> list[str]:
        """Return what is wrong with the process that has the sessions."""


class Explanations(Protocol):
    """The state of prefixes and objects at each peer."""

    def explain(
        self, target: str | None, *, peer: str | None, instance: str | None
    ) -> Iterator[Sequence[ExplainItem]]:
        """Yield the explanation of a prefix or an object for each peer, or of everything.

        In slices. Raises `NotFoundError` or `BadRequestError` before the first item.
        """


class ReceivedExplanations(Protocol):
    """The decisions of import policies."""

    def explain_received(
        self, prefix: str, *, peer: str | None, instance: str | None
    ) -> Iterator[Sequence[ReceivedExplainItem]]:
        """Yield what each peer's import policy decides about a prefix, or about an address.

        In slices. Raises `NotFoundError` or `BadRequestError` before the first item.
        """


class Intent(Protocol):
    """The intent of the node."""

    def intent(self) -> Iterator[Sequence[dict[str, Any]]]:
        """Yield instances, sessions, problems and routes in slices.

        Raises `NotFoundError` before the first item.
        """


def agent_resources(
    status: Status,
    host: Host,
    routing: Routing,
    missing: Missing,
    bfd: BfdSessions,
    explanations: Explanations,
    received: ReceivedExplanations,
    intent: Intent,
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
