"""The state of a running agent for its local API: sessions and routes, with their origins.

Joins the speaker's prefixes and sessions with the intent tables, which have the Kubernetes objects that
a prefix originates from. Reads only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from cells.api.model import (
    ExplainItem,
    OriginItem,
    ReceivedExplainItem,
    RouteItem,
    StatusItem,
    problem_text,
)
from cells.api.resource import BadRequestError, NotFoundError
from cells.hive import Group, HealthTree, Readiness
from cells.intent.cell import IntentLoop
from cells.node import ThisNode
from cells.serve.ages import RouteAges
from cells.serve.items import explain_item, origin_item, route_item
from cells.serve.received import Decisions, explain_received_route, not_received
from cells.serve.speaker_facts import Chosen, SpeakerFacts, selected_families
from cells.serve.status import status_item
from reconcilers.dialect import Dialect, ObjectStatus
from reconcilers.intent.explain import NothingFoundError, parse_target
from reconcilers.intent.peer_names import chosen_peer, named_by_objects
from reconcilers.intent.render import problems
from reconcilers.model import Peer, RouteExplanation
from reconcilers.tables import IntentTables, problem_item
from reconcilers.unused_objects import UnusedObjects
from resources.tables import Tables
from speaker.api import (
    PeerStatus,
    PrefixFilter,
    RouteView,
    SpeakerPort,
    UnknownName,
)
from speaker.nlri import Family, prefix_to_wire
from statedb import Database, Snapshot, Table

MAX_SENTENCES = 20
"""Problems that an answer lists; `waggle status` has all of them."""


class AgentFacts(SpeakerFacts):
    """`cells.serve.agent_resources.Facts` of the real agent."""

    def __init__(
        self,
        node: ThisNode,
        speaker: SpeakerPort,
        database: Database,
        resources: Tables,
        intent: IntentTables,
        loop: IntentLoop,
        dialects: Group[Dialect],
        statuses: Table[ObjectStatus],
        readiness: Readiness,
        health: HealthTree,
        unused: Table[UnusedObjects] | None,
    ) -> None:
        super().__init__(speaker)
        self._node = node.name
        self._database = database
        self._resources = resources
        self._intent = intent
        self._loop = loop
        self._kinds = {k: v for dialect in dialects for k, v in dialect.explained_kinds.items()}
        self._statuses = statuses
        self._readiness = readiness
        self._health = health
        self._unused = unused
        self._ages = RouteAges(database, intent.routes)

    @property
    def node(self) -> str:
        """The name of the node."""
        return self._node

    def status(self) -> StatusItem:
        """Return how the agent is."""
        snapshot = self._database.snapshot()
        return status_item(
            self._node,
            self._readiness,
            self._health,
            peers=self.peers(peer=None, instance=None),
            rows=self._statuses.all(snapshot),
            conditions=self._intent.conditions.all(snapshot),
            problems=problems(snapshot, self._resources, self._intent),
            unused=() if self._unused is None else self._unused.all(snapshot),
            unrestricted=self._loop.unrestricted_addresses(),
        )

    def chosen(self, peer: str | None, instance: str | None) -> Chosen:
        """Return whether a peer is the wanted one, also by the object that configures it."""
        return chosen_peer(self._intent.peers.all(self._database.snapshot()), peer, instance)

    def why_missing(self, *, empty: bool) -> list[str]:
        """Return why peers are missing: those left out; all problems where there are no peers."""
        snapshot = self._database.snapshot()
        if not empty:
            left_out = [row for row in self._intent.problems.all(snapshot) if row.leaves_out]
            texts = sorted(
                f"{'/'.join(row.leaves_out)} is left out: {problem_text(problem_item(row))}"
                for row in left_out
            )
        else:
            found = list(problems(snapshot, self._resources, self._intent))
            texts = [problem_text(problem) for problem in found]
            texts += sorted(
                f"{row.object}: {row.message}"
                for row in self._intent.conditions.all(snapshot)
                if row.status
                and row.message
                # A condition may repeat the problems of its object.
                and not any(problem["message"] in row.message for problem in found)
            )
        hidden = len(texts) - MAX_SENTENCES
        return texts if hidden <= 0 else [*texts[:MAX_SENTENCES], f"and {hidden} more"]

    def received_items(
        self, status: PeerStatus
    ) -> Callable[[Sequence[RouteView]], list[RouteItem]]:
        """Return the translation of received routes, with the decisions of the import policy."""
        decisions = Decisions(self._peer(self._database.snapshot(), status))
        return functools.partial(decisions.items, self.node, status.instance)

    def advertised_items(
        self, status: PeerStatus
    ) -> Callable[[Sequence[RouteView]], list[RouteItem]]:
        """Return the translation of advertised routes, with their origins."""
        snapshot = self._database.snapshot()
        return lambda views: [self._advertised(snapshot, status, view) for view in views]

    def _peer(self, snapshot: Snapshot, status: PeerStatus) -> Peer | None:
        return self._intent.peers.get(snapshot, (status.instance, status.name))

    def explain_received(
        self, prefix: str, *, peer: str | None, instance: str | None
    ) -> Iterator[Sequence[ReceivedExplainItem]]:
        """Yield what the import policy of each peer decides about a prefix, a slice for each peer."""
        _, wanted = selected_families(None, prefix)
        assert wanted is not None  # noqa: S101  there is a prefix
        self._check_names(peer, instance)
        chosen = self.chosen(peer, instance)
        snapshot = self._database.snapshot()
        rows = [
            row
            for row in self._intent.peers.all(snapshot)
            if chosen(row.instance, row.name, row.address)
        ]
        if not rows:
            raise NotFoundError("no peer is configured that is not left out: see waggle status")
        rows.sort(key=lambda row: (row.instance, row.name))
        statuses = {(status.instance, status.name): status for status in self._speaker.peers()}
        return (
            self._received_from(row, statuses.get((row.instance, row.name)), wanted) for row in rows
        )

    def _received_from(
        self, row: Peer, status: PeerStatus | None, wanted: PrefixFilter
    ) -> list[ReceivedExplainItem]:
        """Return what becomes of the routes of the first prefix that a peer has advertised."""
        views: list[RouteView] = []
        if status is not None:
            try:
                routes = self._speaker.routes_received(
                    row.instance, row.name, wanted.family, wanted.prefixes
                )
                views = [view for part in wanted.first_match(routes.slices) for view in part]
            except UnknownName:  # removed since the request
                status = None
        if not views:
            return [not_received(self._node, row, status, wanted)]
        return [explain_received_route(self._node, row, view) for view in views]

    def _advertised(self, snapshot: Snapshot, status: PeerStatus, view: RouteView) -> RouteItem:
        family, nlri = prefix_to_wire(view.prefix)
        origins = self._origins(snapshot, status.route_set, family, nlri)
        item = route_item(self._node, status.instance, view, origins)
        if status.route_set is None:
            return item
        changed = self._ages.since(status.route_set, family, nlri)
        # A session that was established later has advertised it since then.
        since = max(status.since, changed or 0.0)
        return replace(item, since_time=datetime.fromtimestamp(int(since), UTC))

    def _origins(
        self, snapshot: Snapshot, route_set: str | None, family: Family, nlri: bytes
    ) -> list[OriginItem]:
        if route_set is None:
            return []
        row = self._intent.routes.get(snapshot, (route_set, family, nlri))
        if row is None:
            return []
        return [origin_item(origin.object) for origin in row.origins]

    def explain(
        self, target: str | None, *, peer: str | None, instance: str | None
    ) -> Iterator[Sequence[ExplainItem]]:
        """Yield the explanations of a prefix or of an object, one group for each peer."""
        explainer = self._loop.explainer()
        if explainer is None:
            raise NotFoundError("not all sources have been read yet; retry in a moment")
        self._check_names(peer, instance)
        chosen = self.chosen(peer, instance)
        parsed = None
        if target is not None:
            try:
                parsed = parse_target(target, self._kinds)
            except ValueError as error:
                raise BadRequestError(str(error)) from None
        return self._explanations(explainer.explain(parsed, chosen))

    def _explanations(
        self, slices: Iterator[Sequence[RouteExplanation]]
    ) -> Iterator[Sequence[ExplainItem]]:
        """Complete the explanations, slice by slice; each slice is of one peer."""
        statuses = {(status.instance, status.name): status for status in self._speaker.peers()}
        try:
            for found in slices:
                if not found:
                    yield ()
                    continue
                first = found[0]
                status = statuses.get((first.instance or "", first.peer or ""))
                yield self._explained(found, status)
        except NothingFoundError as error:
            raise NotFoundError(str(error)) from None

    def _check_names(self, peer: str | None, instance: str | None) -> None:
        """Raise `NotFoundError` for a peer or instance that is neither configured nor rejected."""
        snapshot = self._database.snapshot()
        left_out = [p.leaves_out for p in self._intent.problems.all(snapshot) if p.leaves_out]
        peers = list(self._intent.peers.all(snapshot))
        instances = {row.name for row in self._intent.instances.all(snapshot)}
        if instance is not None and instance not in instances | {names[0] for names in left_out}:
            raise NotFoundError(f"no instance is called {instance}")
        known = {row.name for row in peers} | {row.address for row in peers}
        known |= {names[1] for names in left_out if len(names) > 1}
        known |= {name for name, named in named_by_objects(peers).items() if len(named) == 1}
        if peer is not None and peer not in known:
            raise NotFoundError(f"no peer is called {peer}")

    def _explained(
        self, found: Sequence[RouteExplanation], status: PeerStatus | None
    ) -> list[ExplainItem]:
        """Complete the intended routes at one peer by its session's state and Adj-RIB-Out."""
        items = [explain_item(self._node, one) for one in found]
        if found[0].peer is None or not any(item.advertised for item in items):
            return items
        if status is None:
            text = "the session has not been set up (yet): see waggle peers, and the agent's log"
            return [_not_advertised(item, "NoSession", text) for item in items]
        if not status.established:
            text = f"the session is {status.state}: {status.reason}"
            return [_not_advertised(item, "SessionDown", text) for item in items]
        families = {str(family.family): family for family in status.families}
        expected: dict[Family, list[bytes]] = {}
        for text in dict.fromkeys(text for item in items for text in item.advertised_prefixes):
            family, nlri = prefix_to_wire(text)
            expected.setdefault(family, []).append(nlri)
        try:
            advertised = {
                view.prefix
                for family, prefixes in expected.items()
                for view in self._speaker.routes_advertised(
                    status.instance, status.name, family, prefixes
                )
            }
        except UnknownName:  # removed since the request
            advertised = set()
        completed = []
        for item in items:
            if advertised.issuperset(item.advertised_prefixes):
                completed.append(item)
                continue
            family_status = families.get(item.family or "")
            if family_status is not None and family_status.obstacle:
                item = _not_advertised(item, family_status.obstacle, family_status.note)
            else:
                item = _not_advertised(item, "NotSent", self._why_unsent(found[0]))
            completed.append(item)
        return completed

    def _why_unsent(self, of: RouteExplanation) -> str:
        """Return why a session that can carry a route has not sent it: a change is not applied."""
        instance, snapshot = of.instance or "", self._database.snapshot()
        peer = self._intent.peers.get(snapshot, (instance, of.peer or ""))
        parts = {of.peer} if peer is None else {of.peer, peer.route_set}
        objects = {instance, *(f"{instance}/{part}" for part in parts if part)}
        for row in self._intent.reconcile_statuses.all(snapshot):
            if row.error is not None and row.object in objects:
                return f"it has not been sent yet: {row.reconciler} {row.object}: {row.error}"
        return "it has not been sent yet"


def _not_advertised(item: ExplainItem, reason: str, message: str) -> ExplainItem:
    """Return an item that is to be advertised as not advertised yet; others unchanged."""
    if not item.advertised:
        return item
    return replace(item, advertised=False, reason=reason, message=message)
