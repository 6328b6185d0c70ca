"""Sessions and explanations of the agent's API, of a real engine, where routes are not advertised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from cells.api.model import ExplainItem, FamilyCount
from cells.hive import Group
from cells.options import NodeOptions
from cells.serve.agent_routing import AgentRouting
from cells.serve.explain import AgentExplanations
from cells.serve.peer_names import PeerNames
from cells.state.node import ThisNode
from reconcilers.model import ObjectRef, ReconcileStatus, RouteExplanation
from speaker.nlri import prefix_to_wire
from tests.reconcilers.apply.intent_rows import INSTANCE, PEER, Rows

FITS, TOO_LONG = "10.8.0.0/24", "10.9.0.0/24"
NODE = ThisNode(NodeOptions(name="n"))
COMMUNITIES = tuple(range(16_380))
"""65,520 octets: not even an extended message has room for them (RFC 8654)."""


class Intended:
    """The intent's loop and explainer, where both prefixes are to be advertised."""

    def explainer(self) -> Intended:
        return self

    def explain(self, *_: object) -> Iterator[Sequence[RouteExplanation]]:
        for text in (FITS, TOO_LONG):
            family, nlri = prefix_to_wire(text)
            yield [
                RouteExplanation(
                    instance=INSTANCE.name,
                    peer=PEER.name,
                    object=ObjectRef("Service", "shop", "web"),
                    type="LoadBalancerIP",
                    family=family,
                    nlri=nlri,
                    advertised=(nlri,),
                    reason="Advertised",
                    message="",
                )
            ]


def routing(rows: Rows) -> AgentRouting:
    names = PeerNames(rows.db, rows.intent)
    return AgentRouting(NODE, rows.speaker, rows.db, rows.intent, names)


def advertised(rows: Rows) -> FamilyCount:
    (peer,) = routing(rows).peers(peer=None, instance=None)
    counts: list[FamilyCount] = peer["advertised"]
    return next(count for count in counts if count.family == "ipv4-unicast")


def explained(rows: Rows) -> list[ExplainItem]:
    explanations = AgentExplanations(
        NODE,
        rows.speaker,
        rows.db,
        rows.intent,
        cast("Any", Intended()),
        Group(),
        PeerNames(rows.db, rows.intent),
    )
    slices = explanations.explain(None, peer=None, instance=None)
    return [item for items in slices for item in items]


def test_a_route_that_does_not_fit_a_message_is_counted_apart_and_explained() -> None:
    rows = Rows()
    rows.apply([INSTANCE], [PEER])
    rows.route(FITS, TOO_LONG)
    rows.router()
    rows.run()
    assert advertised(rows) == FamilyCount(family="ipv4-unicast", routes=2)
    assert [item.reason for item in explained(rows)] == ["Advertised", "Advertised"]
    rows.route(TOO_LONG, communities=COMMUNITIES)
    rows.run()
    assert advertised(rows) == FamilyCount(
        family="ipv4-unicast",
        routes=1,
        left_out=1,
        reason="they do not fit a message to the peer",
    )
    fits, too_long = explained(rows)
    assert fits.advertised
    assert (too_long.advertised, too_long.reason) == (False, "NotEncodable")
    assert too_long.message == "they do not fit a message to the peer"


def test_a_route_that_is_not_sent_has_the_error_of_the_object_that_is_not_applied() -> None:
    rows = Rows()
    rows.apply([INSTANCE], [PEER])
    rows.router()
    found = explained(rows)
    assert [(item.advertised, item.reason) for item in found] == [(False, "NotSent")] * 2
    assert found[0].message == "it has not been sent yet"
    statuses = rows.intent.reconcile_statuses
    with rows.db.write(statuses) as txn:
        statuses.upsert(txn, ReconcileStatus("route-set", "other/set", error="of another"))
        statuses.upsert(txn, ReconcileStatus("route-set", f"{INSTANCE.name}/set", error="no room"))
    assert explained(rows)[0].message == (
        f"it has not been sent yet: route-set {INSTANCE.name}/set: no room"
    )


def test_a_route_of_a_session_that_is_down_has_its_reason() -> None:
    rows = Rows()
    assert {item.reason for item in explained(rows)} == {"NoSession"}
    assert "the session has not been set up (yet)" in (explained(rows)[0].message or "")
    rows.apply([INSTANCE], [PEER])
    (item, _) = explained(rows)
    assert (item.advertised, item.reason) == (False, "SessionDown")
    (status,) = rows.speaker.peers()
    assert item.message == f"the session is {status.state}: {status.reason}"
