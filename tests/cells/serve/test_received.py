"""Received routes of a real engine, with the rule of the intent that decides about each."""

from __future__ import annotations

from msgspec.structs import replace

from cells.api.model import OriginItem, ReceivedExplainItem
from cells.serve.received import Decisions, decided, explain_received_route, not_received
from reconcilers.model import ObjectRef, Peer, PrefixRule
from speaker.api import RouteAttributes, parse_prefix
from speaker.nlri import IPV4_UNICAST, prefix_to_wire
from tests.reconcilers.apply.intent_rows import INSTANCE, Rows, changed

OBJECT = ObjectRef("Router", "ns", "a")
ITEM = OriginItem(kind="Router", namespace="ns", name="a")
BLOCK = "AlwaysBlock 10.96.0.0/12"
PEER = changed(
    accept=(PrefixRule("10.0.0.0/8", le=24, origin=OBJECT),),
    reject=(PrefixRule("10.96.0.0/12", le=32, label="AlwaysBlock"),),
)


def session() -> Rows:
    """Return a session that has received a route of every kind."""
    rows = Rows()
    rows.apply([INSTANCE], [PEER])
    router = rows.router()
    prefixes = ("10.1.0.0/16", "10.96.1.0/24", "192.0.2.0/24")
    routes = dict.fromkeys(prefixes, RouteAttributes())
    routes["10.2.0.0/16"] = RouteAttributes(next_hop="127.0.0.1")
    router.routes(routes)
    rows.network.run(1)
    return rows


def test_each_route_is_accepted_by_a_selector_or_has_the_reason() -> None:
    views = session().speaker.host.received(IPV4_UNICAST, "p")
    items = Decisions(PEER).items("n", "i", [views[prefix] for prefix in sorted(views)])
    found = [(i.prefix, i.status, i.accepted, i.filter, i.object) for i in items]
    assert found == [
        ("10.1.0.0/16", "accepted", True, "10.0.0.0/8 le 24", ITEM),
        ("10.2.0.0/16", "the next hop is a loopback address", True, "10.0.0.0/8 le 24", ITEM),
        ("10.96.1.0/24", BLOCK, False, BLOCK, None),
        ("192.0.2.0/24", "NotAllowed", False, "NotAllowed", None),
    ]


def test_a_route_of_a_peer_without_intent_has_the_speakers_reason() -> None:
    views = session().speaker.host.received(IPV4_UNICAST, "p")
    (item,) = Decisions(None).items("n", "i", [views["192.0.2.0/24"]])
    assert (item.status, item.accepted) == ("not accepted by the import policy", None)


def test_an_explanation_says_whether_the_route_was_received_and_is_used() -> None:
    rows = session()
    views = rows.speaker.host.received(IPV4_UNICAST, "p")
    explained = {prefix: explain_received_route("n", PEER, view) for prefix, view in views.items()}
    assert all(item.received for item in explained.values())
    reasons = {prefix: (item.reason, item.message) for prefix, item in explained.items()}
    by = "accepted by the selector 10.0.0.0/8 le 24 of Router/ns/a"
    assert reasons == {
        "10.1.0.0/16": ("Accepted", by),
        "10.2.0.0/16": ("Ineligible", f"{by}, and not used: the next hop is a loopback address"),
        "10.96.1.0/24": ("AlwaysBlock", f"never accepted: {BLOCK}"),
        "192.0.2.0/24": ("NotAllowed", "no selector accepts it"),
    }
    (status,) = rows.speaker.peers()
    absent = not_received("n", PEER, status, parse_prefix("10.7.0.0/16"))
    assert (absent.received, absent.accepted, absent.reason) == (False, True, "NotReceived")
    assert not_received("n", PEER, None, parse_prefix("10.7.0.0/16")).reason == "NoSession"
    blocked = not_received("n", PEER, status, parse_prefix("10.96.7.1"))
    assert (blocked.prefix, blocked.reason) == ("10.96.7.1/32", "AlwaysBlock")
    assert blocked.message.startswith("the peer has not advertised it; never accepted: ")


def test_of_a_peer_whose_routes_are_counted_only_it_is_unknown_what_it_has_advertised() -> None:
    (status,) = session().speaker.peers()
    families = tuple(replace(one, received=40, not_kept=30) for one in status.families[:1])
    counting = replace(status, families=families)
    absent = not_received("n", PEER, counting, parse_prefix("10.7.0.0/16"))
    assert (absent.received, absent.accepted, absent.reason) == (None, True, "NotReceived")
    blocked = not_received("n", PEER, counting, parse_prefix("10.96.7.1"))
    assert (blocked.received, blocked.reason) == (None, "AlwaysBlock")
    assert blocked.message.startswith(
        "it is not among the 10 of 40 received routes that are kept (--keep-received); never "
    )


def at(peer: Peer, prefix: str) -> ReceivedExplainItem:
    return decided("n", peer, *prefix_to_wire(prefix))


def test_without_an_agent_the_intent_alone_decides() -> None:
    assert (at(PEER, "10.1.0.0/16").accepted, at(PEER, "10.1.0.0/16").received) == (True, None)
    assert at(PEER, "10.96.0.0/16").filter == BLOCK
    four = changed(PEER, accept=None, families=(IPV4_UNICAST,))
    item = at(four, "2001:db8::/32")
    assert (item.accepted, item.reason) == (False, "Family")
