"""Explanations of prefixes and objects at each peer: the intent, completed by the session's state."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from cells.api.model import ExplainItem
from cells.api.resource import BadRequestError, NotFoundError, UnavailableError
from cells.hive import Group
from cells.intent.cell import IntentLoop
from cells.serve.items import explain_item
from cells.serve.peer_names import PeerNames
from cells.state.node import ThisNode
from reconcilers.bfd_session import UNKNOWN, UP
from reconcilers.dialect import Dialect, explained_kinds
from reconcilers.intent.explain import NothingFoundError, parse_target
from reconcilers.intent_tables import IntentTables
from reconcilers.model import RouteExplanation
from speaker.api import PeerStatus, SpeakerPort, UnknownName
from speaker.nlri import Family, prefix_to_wire
from statedb import Database


class AgentExplanations:
    """The state of prefixes and objects at each peer."""

    def __init__(
        self,
        node: ThisNode,
        speaker: SpeakerPort,
        database: Database,
        intent: IntentTables,
        loop: IntentLoop,
        dialects: Group[Dialect],
        names: PeerNames,
    ) -> None:
        self._node = node.name
        self._speaker = speaker
        self._database = database
        self._intent = intent
        self._loop = loop
        self._kinds = explained_kinds(dialects)
        self._names = names

    def explain(
        self, target: str | None, *, peer: str | None, instance: str | None
    ) -> Iterator[Sequence[ExplainItem]]:
        """Yield the explanations of a prefix or of an object, one group for each peer.

        Raises before the first item: `NotFoundError`, `BadRequestError`, and until the first round of
        the intent `UnavailableError`.
        """
        explainer = self._loop.explainer()
        if explainer is None:
            raise UnavailableError("not all sources have been read yet; retry in a moment")
        self._names.check(peer, instance)
        chosen = self._names.chosen(peer, instance)
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
            for explanations in slices:
                if not explanations:
                    yield ()
                    continue
                first = explanations[0]
                status = statuses.get((first.instance or "", first.peer or ""))
                yield self._explained(explanations, status)
        except NothingFoundError as error:
            raise NotFoundError(str(error)) from None

    def _explained(
        self, explanations: Sequence[RouteExplanation], status: PeerStatus | None
    ) -> list[ExplainItem]:
        """Complete the intended routes at one peer by its session's state and Adj-RIB-Out."""
        items = [explain_item(self._node, explanation) for explanation in explanations]
        if explanations[0].peer is None or not any(item.advertised for item in items):
            return items
        if status is None:
            text = "the session has not been set up (yet): see waggle peers, and the agent's log"
            return [_not_advertised(item, "NoSession", text) for item in items]
        if not status.established:
            text = f"the session is {status.state}: {status.reason}{self._bfd_of(status)}"
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
                item = _not_advertised(item, "NotSent", self._why_unsent(explanations[0]))
            completed.append(item)
        return completed

    def _bfd_of(self, status: PeerStatus) -> str:
        """Return the state of the peer's BFD session, if that is not Up: the path is down."""
        snapshot = self._database.snapshot()
        row = self._intent.bfd_sessions.get(snapshot, (status.instance, status.name))
        if row is None or row.state in {UP, UNKNOWN}:
            return ""
        reasons = f" ({row.diagnostic})" if row.diagnostic else ""
        waits = ", for which BGP waits" if row.holds_bgp else ""
        return f"; its BFD session is {row.state}{reasons}{waits}"

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
