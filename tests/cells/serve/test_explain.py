"""Explanations of the intent, completed by the state of each session and its Adj-RIB-Out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from cells.api.model import ExplainItem
from cells.api.resource import BadRequestError, NotFoundError, UnavailableError
from cells.hive import Group
from cells.options import NodeOptions
from cells.serve.explain import AgentExplanations
from cells.serve.peer_names import PeerNames
from cells.state.node import ThisNode
from reconcilers.bfd_session import BfdSession
from reconcilers.intent.explain import NothingFoundError
from reconcilers.model import ObjectRef, ReconcileStatus, RouteExplanation
from speaker.api import UnknownName
from speaker.nlri import prefix_to_wire
from tests.reconcilers.apply.intent_rows import INSTANCE, PEER, Rows

FAMILY, NLRI = prefix_to_wire("10.8.0.0/24")
WANTED = RouteExplanation(
    instance=INSTANCE.name,
    peer=PEER.name,
    object=ObjectRef("Service", "shop", "web"),
    type="LoadBalancerIP",
    family=FAMILY,
    nlri=NLRI,
    advertised=(NLRI,),
    reason="Advertised",
    message="",
)
NOT_WANTED = replace(WANTED, advertised=(), reason="NoSelector", message="no advertisement")
OF_NODE = replace(WANTED, instance=None, peer=None)


class Explaining:
    """The explanations of an agent; the intent is what a test has it be."""

    def __init__(self, *slices: Sequence[RouteExplanation]) -> None:
        self.slices: Sequence[Sequence[RouteExplanation]] = slices
        self.given: list[tuple[object, bool]] = []
        self.error: Exception | None = None
        self.rows = Rows()
        self.rows.apply([INSTANCE], [PEER])
        self.is_read = True
        self.speaker: Any = self.rows.speaker

    def explainer(self) -> Explaining | None:
        return self if self.is_read else None

    def explain(self, parsed: object, chosen: Any) -> Iterator[Sequence[RouteExplanation]]:  # noqa: ANN401
        self.given.append((parsed, chosen(INSTANCE.name, PEER.name, PEER.address)))
        yield from self.slices
        if self.error is not None:
            raise self.error

    def items(
        self, target: str | None = None, peer: str | None = None, instance: str | None = None
    ) -> list[list[ExplainItem]]:
        explanations = AgentExplanations(
            ThisNode(NodeOptions(name="n")),
            self.speaker,
            self.rows.db,
            self.rows.intent,
            cast("Any", self),
            Group(),
            PeerNames(self.rows.db, self.rows.intent),
        )
        found = explanations.explain(target, peer=peer, instance=instance)
        return [list(items) for items in found]


def shown(items: Sequence[ExplainItem]) -> list[tuple[bool, str, str | None]]:
    return [(item.advertised, item.reason, item.message) for item in items]


def test_before_the_sources_are_read_there_is_no_explanation() -> None:
    it = Explaining()
    it.is_read = False
    with pytest.raises(UnavailableError, match="not all sources have been read yet"):
        it.items()


@pytest.mark.parametrize(
    ("peer", "instance", "text"),
    [("tor-9", None, "no peer is called tor-9"), (None, "red", "no instance is called red")],
)
def test_an_unknown_peer_or_instance_is_named(
    peer: str | None, instance: str | None, text: str
) -> None:
    with pytest.raises(NotFoundError, match=text):
        Explaining().items(None, peer, instance)


def test_the_request_selects_target_peer_and_instance() -> None:
    it = Explaining()
    assert it.items() == []
    it.items("10.8.0.0/24", PEER.name, INSTANCE.name)
    (nothing, is_any), (parsed, is_chosen) = it.given
    assert (nothing, is_any, is_chosen) == (None, True, True)
    assert parsed is not None
    with pytest.raises(BadRequestError):
        it.items("10.8.0.0/99")


def test_a_target_that_nothing_is_known_of_is_not_found() -> None:
    it = Explaining([NOT_WANTED])
    it.error = NothingFoundError("no object has 10.8.0.0/24")
    with pytest.raises(NotFoundError, match="no object has"):
        it.items("10.8.0.0/24")


def test_slices_without_explanations_leave_the_loop_to_others() -> None:
    assert [len(items) for items in Explaining([], [NOT_WANTED], []).items()] == [0, 1, 0]


def test_what_is_not_advertised_or_of_no_peer_is_as_the_intent_has_it() -> None:
    first, second = Explaining([NOT_WANTED], [OF_NODE]).items()
    assert shown(first) == [(False, "NoSelector", "no advertisement")]
    assert shown(second) == [(True, "Advertised", None)]


def test_without_an_established_session_nothing_is_advertised() -> None:
    it = Explaining([WANTED, NOT_WANTED])
    (items,) = it.items()
    (status,) = it.rows.speaker.peers()
    assert shown(items) == [
        (False, "SessionDown", f"the session is {status.state}: {status.reason}"),
        (False, "NoSelector", "no advertisement"),
    ]
    it.speaker = SimpleNamespace(peers=list)
    (items,) = it.items()
    text = "the session has not been set up (yet): see waggle peers, and the agent's log"
    assert shown(items)[0] == (False, "NoSession", text)


def established(*explanations: RouteExplanation) -> Explaining:
    it = Explaining(explanations)
    it.rows.router()
    return it


def test_what_is_in_the_adj_rib_out_is_advertised_and_the_rest_is_not_sent() -> None:
    it = established(WANTED, NOT_WANTED)
    it.rows.route("10.8.0.0/24")
    it.rows.run()
    (items,) = it.items()
    assert shown(items) == [
        (True, "Advertised", None),
        (False, "NoSelector", "no advertisement"),
    ]
    _, other = prefix_to_wire("10.9.0.0/24")
    it.slices = [[replace(WANTED, advertised=(NLRI, other))]]
    assert shown(it.items()[0]) == [(False, "NotSent", "it has not been sent yet")]


def test_a_family_that_the_session_cannot_send_has_its_obstacle() -> None:
    it = established(WANTED)
    (status,) = it.rows.speaker.peers()
    families = tuple(
        replace(of, obstacle="NextHop", note="no address") if of.family == FAMILY else of
        for of in status.families
    )
    it.speaker = SimpleNamespace(
        peers=lambda: [replace(status, families=families)],
        routes_advertised=it.rows.speaker.routes_advertised,
    )
    assert shown(it.items()[0]) == [(False, "NextHop", "no address")]


def test_a_peer_that_is_removed_meanwhile_has_been_sent_nothing() -> None:
    it = established(WANTED)

    def removed(*_: object) -> None:
        raise UnknownName("peer", PEER.name)

    it.speaker = SimpleNamespace(peers=it.rows.speaker.peers, routes_advertised=removed)
    assert shown(it.items()[0]) == [(False, "NotSent", "it has not been sent yet")]


@pytest.mark.parametrize(
    ("name", "is_reason"),
    [
        ("i", True),
        ("i/p", True),
        ("i/set", True),
        ("i/other", False),
        ("j", False),
        ("j/p", False),
    ],
)
def test_what_is_not_sent_has_the_error_of_its_instance_peer_or_route_set(
    name: str, *, is_reason: bool
) -> None:
    it = established(WANTED)
    statuses = it.rows.intent.reconcile_statuses
    with it.rows.db.write(statuses) as txn:
        statuses.upsert(txn, ReconcileStatus("peer", "i/p", error=None))
        statuses.upsert(txn, ReconcileStatus("step", name, error="no room"))
    message = it.items()[0][0].message
    assert message == (
        f"it has not been sent yet: step {name}: no room"
        if is_reason
        else "it has not been sent yet"
    )


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (
            BfdSession(instance="i", peer="p", state="Down", diagnostic="Neighbor Signaled Down"),
            "; its BFD session is Down (Neighbor Signaled Down)",
        ),
        (
            BfdSession(instance="i", peer="p", state="Init", holds_bgp=True),
            "; its BFD session is Init, for which BGP waits",
        ),
        (BfdSession(instance="i", peer="p", state="Up"), ""),
        (BfdSession(instance="i", peer="p", state="Unknown"), ""),
    ],
)
def test_a_session_that_is_down_has_the_state_of_its_bfd_session(
    row: BfdSession, text: str
) -> None:
    """A path that is down: BGP ended for it, and cannot come up."""
    it = Explaining([WANTED])
    with it.rows.db.write(it.rows.intent.bfd_sessions) as txn:
        it.rows.intent.bfd_sessions.upsert(txn, row)
    (((advertised, reason, message),),) = (shown(items) for items in it.items())
    assert (advertised, reason) == (False, "SessionDown")
    assert message is not None
    assert message.startswith("the session is ")
    assert message.partition("; its BFD")[1:] == (("; its BFD", text[9:]) if text else ("", ""))
