"""The sessions of the process follow the intent: the runner, and a process in memory."""

from __future__ import annotations

from msgspec.structs import replace

from reconcilers.bfd.process.process_messages import (
    Change,
    Message,
    RemoveSessions,
    SetSessions,
    Statuses,
)
from reconcilers.bfd.reconciler import KEPT_SECONDS, BfdReconciler
from reconcilers.intent_tables import IntentTables
from reconcilers.model import (
    Instance,
    ObjectRef,
    Peer,
    PendingDialect,
)
from reconcilers.target import Runner
from resources.tables import Tables
from speaker.api import BfdProfile
from speaker.bfd.session_values import Diagnostic, SessionKey, Settings, State
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
        self.bfd = BfdReconciler(
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


def test_an_agent_that_returns_finds_single_hops_whose_interfaces_are_gone() -> None:
    """Sessions to one address in several VRFs, of internal peers; no network of the node has it."""
    agent = Agent()
    vrfs = ("blue", "red")
    with agent.db.write(agent.intent.instances) as txn:
        for vrf in vrfs:
            agent.intent.instances.upsert(txn, replace(INSTANCE, name=vrf, vrf=vrf))
    agent.peers(*(replace(PEER, instance=vrf, peer_asn=65001) for vrf in vrfs))
    assert agent.connect(*(replace(KEY, device=vrf) for vrf in vrfs)) == []


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


def test_a_peer_that_is_made_again_has_its_session_again() -> None:
    """A report that was on its way when the session was removed is outdated."""
    agent = Agent()
    agent.connect()
    agent.peers(PEER)
    assert agent.peers() == [RemoveSessions((KEY,))]
    agent.bfd.reported(Statuses((status_of(KEY),)))
    assert agent.round() == []
    assert agent.peers(PEER) == [set_to(KEY)]


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


def test_sessions_are_kept_while_a_dialect_waits_for_its_kinds() -> None:
    """Which peers it has is not known: a session that is none of the others' may be one of theirs."""
    agent = Agent()
    table = agent.intent.pending_dialects
    with agent.db.write(table) as txn:
        table.upsert(txn, PendingDialect("cilium", ("peer-configs",)))
    agent.peers(PEER)
    assert agent.connect(KEY, OTHER) == []
    for _ in range(5):
        agent.now += KEPT_SECONDS
        assert agent.round() == []
    with agent.db.write(table) as txn:
        table.delete_all(txn)
    agent.now += KEPT_SECONDS
    assert agent.round() == [RemoveSessions((OTHER,))]


def test_nothing_is_known_of_sessions_without_a_connection() -> None:
    agent = Agent()
    agent.peers(PEER)
    agent.connect(KEY)
    agent.bfd.disconnected()
    assert not agent.bfd.listed
    assert agent.peers(replace(PEER, bfd=QUICK)) == []
    quick = Settings(desired_min_tx=100_000, required_min_rx=100_000)
    assert agent.connect(KEY) == [set_to(KEY, quick)]


def test_a_peer_that_goes_without_a_connection_has_no_session_after_it() -> None:
    agent = Agent()
    agent.connect()
    agent.peers(PEER)
    agent.bfd.disconnected()
    assert agent.peers() == []
    assert agent.connect(KEY) == [RemoveSessions((KEY,))]


def test_a_change_is_known_before_the_next_status_of_its_session() -> None:
    agent = Agent()
    agent.peers(PEER)
    agent.connect(KEY)
    before = agent.bfd.statuses[KEY]
    down = Change(KEY, State.UP, State.DOWN, Diagnostic.NONE, State.UP, 0, True, 7, 150_000)
    agent.bfd.state_changed(down)
    assert (agent.bfd.statuses[KEY].state, agent.bfd.statuses[KEY].ups) == (State.DOWN, before.ups)
    agent.bfd.state_changed(down._replace(before=State.DOWN, after=State.UP))
    # As in its next status: that is no other loss.
    assert (agent.bfd.statuses[KEY].state, agent.bfd.statuses[KEY].ups) == (
        State.UP,
        before.ups + 1,
    )
    agent.bfd.state_changed(down._replace(key=OTHER))
    assert OTHER not in agent.bfd.statuses
