"""The limit of a peer that ended its session with Maximum Number of Prefixes Reached (RFC 4486)."""

from __future__ import annotations

import pytest

from reconcilers.intent.learned_limits import LIFTED_AFTER_SECONDS, LearnedLimits, limits_of
from reconcilers.intent.options import IntentOptions
from reconcilers.intent_tables import IntentTables
from reconcilers.model import LearnedLimit, Peer
from speaker.api import PeerPrefixLimit, StateChanged
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family
from statedb import Database

SENT = ((IPV4_UNICAST, 1500), (IPV6_UNICAST, 40))
NAMED = PeerPrefixLimit(family=IPV4_UNICAST, limit=1000, advertised=SENT)


@pytest.mark.parametrize(
    ("found", "limits"),
    [
        (NAMED, {IPV4_UNICAST: 1000}),
        (PeerPrefixLimit(advertised=SENT), {IPV4_UNICAST: 1350, IPV6_UNICAST: 36}),
        # A bound that was not exceeded: the peer counts in another way than we do.
        (PeerPrefixLimit(family=IPV4_UNICAST, limit=1500, advertised=SENT), {IPV4_UNICAST: 1350}),
        (PeerPrefixLimit(family=IPV6_UNICAST, limit=0, advertised=SENT), {IPV6_UNICAST: 0}),
        (PeerPrefixLimit(advertised=((IPV4_UNICAST, 0),)), {}),
    ],
)
def test_rfc4486_4_the_limit_is_what_the_data_names_else_nine_tenths_of_what_was_sent(
    found: PeerPrefixLimit, limits: dict[Family, int]
) -> None:
    assert limits_of(found) == limits


class Node:
    """The tables of a node with one peer."""

    def __init__(self) -> None:
        self.db = Database()
        self.intent = IntentTables(self.db)
        with self.db.write(self.intent.peers) as txn:
            self.intent.peers.upsert(txn, Peer("i", "p", "192.0.2.1", None, 65000))
        self.limits = LearnedLimits(self.db, self.intent, IntentOptions())

    def rows(self) -> dict[str, int]:
        found = self.intent.learned_limits.all(self.db.snapshot())
        return {f"{row.peer}/{row.family}": row.limit for row in found}

    def up(self, now: float) -> bool:
        return self.limits.note(changed("OpenConfirm", "Established"), now)

    def down(self, now: float, limit: PeerPrefixLimit | None = None) -> bool:
        return self.limits.note(changed("Established", "Idle", limit), now)


def changed(old: str, new: str, limit: PeerPrefixLimit | None = None) -> StateChanged:
    return StateChanged(
        instance="i", peer="p", address=None, old=old, new=new, reason="", peer_limit=limit
    )


def test_sessions_without_a_limit_write_nothing() -> None:
    node = Node()
    assert not node.up(0.0)
    assert not node.down(5.0)
    assert node.limits.write(5.0) is None
    assert node.rows() == {}


def test_a_limit_is_lifted_once_the_session_has_been_up_for_an_hour() -> None:
    node = Node()
    node.up(0.0)
    assert node.down(10.0, NAMED)
    assert node.limits.write(10.0) is None  # the session is down
    assert node.rows() == {"p/ipv4-unicast": 1000}
    assert node.up(20.0)
    assert node.limits.write(20.0) == LIFTED_AFTER_SECONDS
    assert not node.down(30.0)
    assert node.up(100.0)
    assert node.limits.write(3700.0 - 1) == 1.0
    assert node.rows() == {"p/ipv4-unicast": 1000}
    assert node.limits.write(3700.0) is None
    assert node.rows() == {}


def test_a_peer_that_ends_the_next_session_too_gets_fewer() -> None:
    node = Node()
    for sent, limit in ((1000, 900), (900, 810), (810, 729)):
        node.up(0.0)
        node.down(1.0, PeerPrefixLimit(advertised=((IPV4_UNICAST, sent),)))
        node.limits.write(1.0)
        assert node.rows() == {"p/ipv4-unicast": limit}


def test_the_limit_goes_with_the_peer() -> None:
    node = Node()
    node.down(10.0, NAMED)
    node.limits.write(10.0)
    with node.db.write(node.intent.peers) as txn:
        node.intent.peers.delete(txn, ("i", "p"))
    node.limits.write(11.0)
    assert node.rows() == {}
    # An end that comes after the removal leaves nothing behind.
    node.down(12.0, NAMED)
    node.limits.write(12.0)
    assert node.rows() == {}


@pytest.mark.parametrize("end", [("192.0.2.2", None), (None, "eth1")])
def test_another_router_with_the_name_of_a_peer_begins_without_a_limit(
    end: tuple[str | None, str | None],
) -> None:
    node = Node()
    node.down(10.0, NAMED)
    node.limits.write(10.0)
    assert node.rows() == {"p/ipv4-unicast": 1000}
    with node.db.write(node.intent.peers) as txn:
        node.intent.peers.upsert(txn, Peer("i", "p", *end, 65000))
    node.limits.write(11.0)
    assert node.rows() == {}


def test_a_limit_of_a_former_release_is_that_of_the_peer_with_its_name() -> None:
    """Its file has no addresses."""
    node = Node()
    node.limits.restore([LearnedLimit("i", "p", IPV4_UNICAST, 1000)])
    node.limits.write(10.0)
    assert node.rows() == {"p/ipv4-unicast": 1000}
