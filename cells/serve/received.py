"""Received routes as items of the API, with the rule of the intent that accepts or rejects each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from cells.api.model import ReceivedExplainItem, RouteItem
from cells.api.resource import NotFoundError
from cells.serve.items import origin_item, received_item
from cells.serve.peer_names import PeerNames
from cells.serve.routing import selected_families
from cells.state.node import ThisNode
from reconcilers.apply.received_verdict import NOT_ALLOWED, ReceivedDecision, decide, translated
from reconcilers.intent_tables import IntentTables
from reconcilers.model import Peer
from speaker.api import (
    PeerStatus,
    PolicyDecision,
    PrefixFilter,
    RouteView,
    SpeakerPort,
    UnknownName,
)
from speaker.nlri import Family, prefix_to_text, prefix_to_wire
from statedb import Database


class Decisions:
    """The decisions about the routes of one peer; equal ones are translated once."""

    def __init__(self, peer: Peer | None) -> None:
        """``peer`` is None for a session that the intent does not have."""
        self._peer = peer
        self._known: dict[PolicyDecision, ReceivedDecision] = {}

    def of(self, view: RouteView) -> ReceivedDecision | None:
        """Return the decision about a route."""
        decision = view.decision
        if self._peer is None or decision is None:
            return None
        known = self._known.get(decision)
        if known is None:
            known = self._known[decision] = translated(self._peer, decision)
        return known

    def items(self, node: str, instance: str, views: Sequence[RouteView]) -> list[RouteItem]:
        """Translate received routes."""
        return [received_item(node, instance, view, self.of(view)) for view in views]


class AgentReceivedExplanations:
    """The decisions of import policies."""

    def __init__(
        self,
        node: ThisNode,
        speaker: SpeakerPort,
        database: Database,
        intent: IntentTables,
        names: PeerNames,
    ) -> None:
        self._node = node.name
        self._speaker = speaker
        self._database = database
        self._intent = intent
        self._names = names

    def explain_received(
        self, prefix: str, *, peer: str | None, instance: str | None
    ) -> Iterator[Sequence[ReceivedExplainItem]]:
        """Yield what the import policy of each peer decides about a prefix, a slice for each peer.

        Raises `NotFoundError` or `BadRequestError` before the first item.
        """
        _, wanted = selected_families(None, prefix)
        assert wanted is not None  # noqa: S101  there is a prefix
        self._names.check(peer, instance)
        chosen = self._names.chosen(peer, instance)
        snapshot = self._database.snapshot()
        rows = [
            row
            for row in self._intent.peers.all(snapshot)
            if chosen(row.instance, row.name, row.address)
        ]
        if not rows:
            raise NotFoundError("no peer is configured: see waggle status")
        rows.sort(key=lambda row: (row.instance, row.name))
        statuses = {(status.instance, status.name): status for status in self._speaker.peers()}
        return (
            self._received_from(row, statuses.get((row.instance, row.name)), wanted) for row in rows
        )

    def _received_from(
        self, row: Peer, status: PeerStatus | None, wanted: PrefixFilter
    ) -> list[ReceivedExplainItem]:
        """Return the explanation of the routes of the first prefix that a peer has advertised."""
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


def decided(node: str, peer: Peer, family: Family, nlri: bytes) -> ReceivedExplainItem:
    """Return what the intent decides about a prefix, as if the peer advertised it."""
    decision = decide(peer, family, nlri)
    item = _explained(node, peer, family, prefix_to_text(family, nlri), decision)
    if family in peer.families:
        return item
    families = ", ".join(map(str, peer.families))
    text = f"the peer is configured for {families} only"
    return replace(item, accepted=False, reason="Family", message=text)


def not_received(
    node: str, peer: Peer, status: PeerStatus | None, wanted: PrefixFilter
) -> ReceivedExplainItem:
    """Explain a prefix that is not among the peer's routes; of an address its longest prefix.

    Whether the peer has advertised it is unknown where routes of the peer are counted only.
    """
    item = replace(decided(node, peer, wanted.family, wanted.prefixes[0]), received=False)
    if item.reason == "Family":
        return item
    why = ("NotReceived", "the peer has not advertised it")
    if status is None:
        why = ("NoSession", "the session has not been set up (yet)")
    elif not status.established:
        why = ("SessionDown", f"the session is {status.state}: {status.reason}")
    elif text := _not_kept(status, wanted.family):
        item = replace(item, received=None)
        why = ("NotReceived", text)
    reason, text = why
    if not item.accepted:
        return replace(item, message=f"{text}; {item.message}")
    return replace(item, reason=reason, message=f"{text}; {item.message} if it comes")


def _not_kept(status: PeerStatus, family: Family) -> str:
    """Return how many routes of the family are kept; an empty text where all are."""
    for counts in status.families:
        if counts.family == family and counts.not_kept:
            kept = counts.received - counts.not_kept
            return (
                f"it is not among the {kept} of {counts.received} received routes that are kept "
                "(--keep-received)"
            )
    return ""


def explain_received_route(node: str, peer: Peer, view: RouteView) -> ReceivedExplainItem:
    """Explain a route that the peer has advertised."""
    family, _ = prefix_to_wire(view.prefix)
    decision = translated(peer, view.decision or PolicyDecision(accepted=False))
    item = replace(_explained(node, peer, family, view.prefix, decision), received=True)
    if not decision.accepted:
        return item
    if not view.used:
        return replace(
            item, reason="Ineligible", message=f"{item.message}, and not used: {view.reason}"
        )
    if not view.best:
        return replace(item, message=f"{item.message}; not the best path: {view.reason}")
    return item


def _explained(
    node: str, peer: Peer, family: Family, prefix: str, decision: ReceivedDecision
) -> ReceivedExplainItem:
    by = "" if decision.object is None else f" of {decision.object}"
    if decision.accepted:
        message = f"accepted by the selector {decision.filter}{by}"
    elif decision.reason == NOT_ALLOWED:
        message = "no selector accepts it"
    else:
        message = f"never accepted: {decision.filter}{by}"
    return ReceivedExplainItem(
        node=node,
        instance=peer.instance,
        peer=peer.name,
        family=str(family),
        prefix=prefix,
        accepted=decision.accepted,
        filter=decision.filter,
        object=None if decision.object is None else origin_item(decision.object),
        reason=decision.reason,
        message=message,
    )
