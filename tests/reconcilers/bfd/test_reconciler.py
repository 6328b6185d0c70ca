"""The sessions of the process follow the intent: the runner, and a process in memory."""

from __future__ import annotations

from msgspec.structs import replace

from reconcilers.bfd.process.values import Message, RemoveSessions, SetSessions, Statuses
from reconcilers.bfd.reconciler import KEPT_SECONDS, BfdSessions
from reconcilers.model import BfdProfile, Instance, ObjectRef, Peer
from reconcilers.tables import IntentTables
from reconcilers.target import Runner
from resources.tables import Tables
from speaker.bfd.values import SessionKey, Settings
from statedb import Database
from tests.reconcilers.bfd.build import status_of

INSTANCE = Instance("i", None, 65001, "192.0.2.1", None, ObjectRef("Router", "", "r"))
PEER = Peer("i", "p", "192.0.2.9", None, 65010, bfd=BfdProfile())
KEY, OTHER = SessionKey("192.0.2.9", ""), SessionKey("192.0.2.8", "")
QUICK = BfdProfile(receive_interval=100, transmit_interval=100)


class Agent:
    """The reconciler with its runner, and what it sends."""

    def __init__(self) -> None:
        self.db = Database()
        self.intent = IntentTables(self.db)
        self.now = 0.0
        self.sent: list[Message] = []
        self.bfd = BfdSessions(
            self.db, self.intent, Tables(self.db), self.sent.append, lambda: self.now
        )
        self.runner = Runner(self.db, self.intent.reconcile_statuses, [self.bfd])
        with self.db.write(self.intent.instances) as txn:
            self.intent.instances.upsert(txn, INSTANCE)

    def peers(self, *rows: Peer) -> list[Message]:
        """Have these peers and no others; returns what is sent."""
        with self.db.write(self.intent.peers) as txn:
            self.intent.peers.delete_all(txn)
            for row in rows:
                self.intent.peers.upsert(txn, row)
        return self.round()

    def connect(self, *keys: SessionKey) -> list[Message]:
        """Have a process with these sessions."""
        self.bfd.connected()
        self.bfd.reported(Statuses(tuple(map(status_of, keys))))
        self.bfd.reported(Statuses((), last=True))
        return self.round()

    def round(self) -> list[Message]:
        self.runner.run(self.now)
        sent = list(self.sent)
        self.sent.clear()
        return sent


def set_to(key: SessionKey, settings: Settings | None = None) -> SetSessions:
    return SetSessions(((key, settings or Settings()),))  # type: ignore[arg-type]


def test_nothing_is_sent_before_the_process_has_listed_its_sessions() -> None:
    agent = Agent()
    assert agent.peers(PEER) == []
    assert agent.connect() == [set_to(KEY)]
    assert agent.round() == []


def test_an_agent_that_returns_finds_its_sessions() -> None:
    agent = Agent()
    agent.peers(PEER)
    assert agent.connect(KEY) == []


def test_a_changed_profile_changes_the_settings_and_nothing_else_does() -> None:
    agent = Agent()
    agent.peers(PEER)
    agent.connect(KEY)
    assert agent.peers(replace(PEER, hold_time=30, route_set="x")) == []
    quick = Settings(desired_min_tx=100_000, required_min_rx=100_000)
    assert agent.peers(replace(PEER, bfd=QUICK)) == [set_to(KEY, quick)]


def test_a_session_ends_with_its_last_peer() -> None:
    agent = Agent()
    second = replace(PEER, name="second")
    agent.connect()
    assert agent.peers(PEER, second) == [set_to(KEY)]
    assert list(agent.bfd.peers_of(KEY)) == [("i", "p"), ("i", "second")]
    assert agent.peers(second) == []
    assert agent.peers(replace(second, bfd=None)) == [RemoveSessions((KEY,))]


def test_sessions_of_an_agent_before_are_kept_for_a_while() -> None:
    """The neighbor on an interface is not known yet when an agent starts."""
    agent = Agent()
    agent.peers(PEER)
    assert agent.connect(KEY, OTHER) == []
    agent.now = KEPT_SECONDS - 1
    assert agent.round() == []
    agent.now = KEPT_SECONDS + 1
    assert agent.round() == [RemoveSessions((OTHER,))]


def test_a_peer_on_an_interface_has_a_session_once_its_neighbor_is_known() -> None:
    agent = Agent()
    agent.connect()
    assert agent.peers(replace(PEER, address=None, interface="eth0")) == []
    agent.bfd.neighbors_found({("i", "p"): "fe80::9"})
    assert agent.round() == [set_to(SessionKey("fe80::9", "", "eth0"))]


def test_a_process_that_lost_everything_is_given_it_again() -> None:
    agent = Agent()
    agent.peers(PEER)
    agent.connect(KEY)
    assert agent.connect() == [set_to(KEY)]
