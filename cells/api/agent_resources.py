"""The paths of every agent: status, sessions, routes, explanations, health and cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from cells.api.model import ExplainItem, PeerItem, ReceivedExplainItem, RouteItem, StatusItem
from cells.api.resource import ApiResource, BadRequestError, Query
from cells.hive import HealthTree
from cells.hive.composition import Composition

TABLES = ("available", "advertised", "received")


class Facts(Protocol):
    """State of the agent, read in one turn of the loop."""

    def peers(self, *, peer: str | None, instance: str | None) -> list[PeerItem]:
        """Return the sessions, by instance and name; ``peer`` is a name or an address."""

    def why_missing(self, *, empty: bool) -> list[str]:
        """Return why peers are missing, a sentence each; ``empty``: there are none at all."""

    def status(self) -> StatusItem:
        """Return how the agent is."""

    def routes(
        self,
        table: str,
        *,
        family: str | None,
        peer: str | None,
        instance: str | None,
        prefix: str | None,
    ) -> Iterator[Sequence[RouteItem]]:
        """Yield the routes of a table in slices.

        ``prefix`` is a prefix, or an address for the longest match of each table. Raises
        `NotFoundError`, and `BadRequestError` for a peer of several instances or a ``prefix`` that
        is neither, before the first slice.
        """

    def explain(
        self, target: str | None, *, peer: str | None, instance: str | None
    ) -> Iterator[Sequence[ExplainItem]]:
        """Yield what becomes of a prefix or an object at each peer, or of everything.

        In slices. Raises `NotFoundError` or `BadRequestError` before the first item.
        """

    def explain_received(
        self, prefix: str, *, peer: str | None, instance: str | None
    ) -> Iterator[Sequence[ReceivedExplainItem]]:
        """Yield what each peer's import policy decides about a prefix, or about an address.

        In slices. Raises `NotFoundError` or `BadRequestError` before the first item.
        """


def agent_resources(
    facts: Facts, health: HealthTree, composition: Composition
) -> tuple[ApiResource, ...]:
    """Return the resources."""

    def routes(query: Query) -> Iterator[Sequence[RouteItem]]:
        table = query.get("table", "advertised")
        if table not in TABLES:
            raise BadRequestError(f"table is none of {', '.join(TABLES)}: {table}")
        return facts.routes(
            table,
            family=query.get("family"),
            peer=query.get("peer"),
            instance=query.get("instance"),
            prefix=query.get("prefix"),
        )

    def explain_received(query: Query) -> Iterator[Sequence[ReceivedExplainItem]]:
        prefix = query.get("prefix")
        if prefix is None:
            raise BadRequestError("prefix: a prefix or an address is required")
        return facts.explain_received(
            prefix, peer=query.get("peer"), instance=query.get("instance")
        )

    return (
        ApiResource(path="/v1/status", kind="StatusList", read=lambda _: [facts.status()]),
        ApiResource(
            path="/v1/peers",
            kind="PeerList",
            parameters=("peer", "instance"),
            read=lambda query: facts.peers(peer=query.get("peer"), instance=query.get("instance")),
            notes=lambda: [item.message for item in facts.status().unused_objects],
            problems=lambda empty: facts.why_missing(empty=empty),
        ),
        ApiResource(
            path="/v1/routes",
            kind="RouteList",
            parameters=("table", "family", "peer", "instance", "prefix"),
            limited=True,
            read=routes,
        ),
        ApiResource(
            path="/v1/explain",
            kind="ExplainList",
            parameters=("target", "peer", "instance"),
            read=lambda query: facts.explain(
                query.get("target"), peer=query.get("peer"), instance=query.get("instance")
            ),
        ),
        ApiResource(
            path="/v1/explain-received",
            kind="ReceivedExplainList",
            parameters=("prefix", "peer", "instance"),
            read=explain_received,
        ),
        ApiResource(path="/v1/health", kind="HealthReport", read=lambda _: list(health.report())),
        ApiResource(path="/v1/cells", kind="CellList", read=lambda _: composition.views()),
    )
