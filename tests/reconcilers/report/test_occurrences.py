"""What becomes an Event: here a session that does not come up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from reconcilers import overdue
from reconcilers.bfd_session import BfdSession
from reconcilers.cilium.dialect import CiliumDialect
from reconcilers.dialect import ReportedStatuses
from reconcilers.intent.learned_limits import LearnedLimits
from reconcilers.intent.options import IntentOptions
from reconcilers.model import ObjectRef, ReconcileStatus
from reconcilers.report.events import EventCorrelator, Occurrence
from reconcilers.report.occurrences import Occurrences
from reconcilers.target.write_spread import WriteSpread
from speaker.api import InstanceStatus, PeerPrefixLimit, PeerStatus, StateChanged
from speaker.nlri import IPV4_UNICAST
from statedb import Snapshot, Table
from statedb.state import TableState
from tests.reconcilers.build import NODE, Cluster, cluster_config, peer, service, usual
from tests.reconcilers.cilium.test_report import NOW, session
from tests.reconcilers.intent import test_peer_limits as peer_limits
from tests.reconcilers.intent.test_address_limits import DAYS, put
from tests.support import kinds
from tests.support.dialects import changed


class Found:
    """The occurrences of a cluster with these sessions: of a usual one by default."""

    def __init__(self, *sessions: PeerStatus, cluster: Cluster | None = None) -> None:
        cluster = self.cluster = usual() if cluster is None else cluster
        cluster.run()
        self.sessions = list(sessions)
        self.instances: list[InstanceStatus] = []
        self.now = NOW
        self.reported: list[Occurrence] = []
        self.resolved: list[Occurrence] = []
        self.errors: list[tuple[str, str]] = []
        self._occurrences = Occurrences(
            cluster.db,
            cluster.resources,
            cluster.intent,
            NODE,
            [cluster.dialect],
            lambda: self.sessions,
            lambda: self.instances,
            report=self.reported.append,
            resolved=self.resolved.append,
            now=lambda: self.now,
            on_error=lambda dialect, error: self.errors.append((dialect, str(error))),
        )

    @property
    def due(self) -> bool:
        return self._occurrences.is_due()

    @property
    def read(self) -> set[Table[Any]]:
        return self._occurrences._read

    def compare(self) -> None:
        self._occurrences.compare()


def down(**fields: object) -> PeerStatus:
    return session(**{"state": "Active", "retry_in": 3.0, "since": NOW, **fields})  # type: ignore[arg-type]


def test_a_session_that_does_not_come_up_is_an_event_with_reason_and_cause() -> None:
    found = Found(down(likely_cause="the peer is down, or a firewall drops the packets"))
    found.compare()
    assert found.reported == []
    found.now += overdue.DOWN_SECONDS
    found.compare()
    found.compare()
    (occurrence,) = found.reported
    assert (occurrence.type, occurrence.reason) == ("Warning", "SessionNotEstablished")
    assert occurrence.note == (
        "instance i, peer p (192.0.2.9, AS 65010) does not come up: no route; likely the peer is "
        "down, or a firewall drops the packets"
    )
    found.sessions = [session()]
    found.compare()
    assert found.resolved == [occurrence]


@pytest.mark.parametrize("failures", [overdue.FAILURES - 1, overdue.FAILURES])
def test_a_few_failed_attempts_are_enough(failures: int) -> None:
    found = Found(down(failures=failures))
    found.compare()
    assert found.reported == []
    found.now += overdue.FAILING_SECONDS
    found.compare()
    assert bool(found.reported) is (failures == overdue.FAILURES)


def test_a_session_that_is_not_tried_is_no_event() -> None:
    found = Found(down(state="Idle", retry_in=None))
    found.now += 1000
    found.compare()
    assert found.reported == []


def test_an_instance_that_cannot_listen_is_an_event_with_the_remedy() -> None:
    found = Found()
    text = "listen on :: port 179: Permission denied: it needs the capability NET_BIND_SERVICE"
    for error in (text, text, None):
        found.instances = [instance("i", error), instance("j", None)]
        found.compare()
    (occurrence,) = found.reported
    assert (occurrence.type, occurrence.reason) == ("Warning", "ListenFailed")
    assert (occurrence.regarding.ref.kind, occurrence.regarding.ref.name) == ("Node", NODE)
    assert occurrence.note == f"instance i: {text}"
    assert found.resolved == [occurrence]


def test_a_listener_that_fails_is_an_event_of_the_object_of_its_instance() -> None:
    """As a session is: the node may be configured by objects of another dialect as well."""
    found = Found()
    intent = found.cluster.intent
    with found.cluster.db.write(intent.instances) as txn:
        (row,) = intent.instances.all(txn)
        ref = ObjectRef("CiliumBGPClusterConfig", "", "c")
        intent.instances.upsert(txn, msgspec.structs.replace(row, origin=ref))
    found.instances = [instance(row.name, "listen on :: port 179: address already in use")]
    found.compare()
    (occurrence,) = found.reported
    assert occurrence.regarding.ref == ref


def instance(name: str, error: str | None) -> InstanceStatus:
    return InstanceStatus(
        name=name,
        local_asn=65000,
        router_id="192.0.2.1",
        vrf=None,
        listening=(),
        listen_error=error,
        peers=0,
        refused=0,
    )


def test_where_a_dialect_cannot_name_its_object_the_event_is_regarding_the_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("on purpose")

    extensions = changed(CiliumDialect, ReportedStatuses, of_node=fail)
    monkeypatch.setattr(CiliumDialect, "extensions", extensions)
    found = Found(down())
    found.now += overdue.DOWN_SECONDS
    found.compare()
    (occurrence,) = found.reported
    assert occurrence.regarding.ref.kind == "Node"
    assert found.errors == [("cilium", "'on purpose'")]


def test_an_address_of_one_node_is_an_event_that_names_it() -> None:
    """Other nodes advertise the Service: the Event is not about them."""
    found = Found()
    found.cluster.put(kinds.SERVICE, service("web", "192.0.2.1"))
    found.cluster.run()
    found.compare()
    (event,) = found.reported
    assert (event.regarding.ref.kind, event.regarding.ref.name) == ("Service", "web")
    assert event.of_tenant
    assert event.note == (
        "status.loadBalancer.ingress: 192.0.2.1 is not advertised by node test-node: it is an address "
        "of this node"
    )


def bfd(found: Found, state: str, *, ups: int = 1, diagnostic: str = "") -> list[tuple[str, str]]:
    """Write the state of the peer's BFD session; returns what it is reported as."""
    table = found.cluster.intent.bfd_sessions
    row = BfdSession(
        instance="i",
        peer="p",
        address="192.0.2.9",
        state=state,
        ups=ups,
        diagnostic=diagnostic,
    )
    with found.cluster.db.write(table) as txn:
        table.upsert(txn, row)
    found.reported.clear()
    found.compare()
    return [(one.reason, one.note.partition(") ")[2]) for one in found.reported]


def test_a_bfd_session_that_comes_up_or_is_lost_is_an_event() -> None:
    found = Found()
    assert bfd(found, "Down", ups=0) == []
    assert bfd(found, "Up") == [("BFDSessionUp", "BFD is Up")]
    assert bfd(found, "Up") == []
    expired = "Control Detection Time Expired"
    assert bfd(found, "Down", diagnostic=expired) == [("BFDSessionDown", f"BFD is down: {expired}")]
    assert found.reported[0].type == "Warning"
    assert found.reported[0].action == "BFDSession"


def test_a_short_loss_is_an_event_and_a_lost_connection_to_the_process_is_none() -> None:
    found = Found()
    bfd(found, "Up")
    assert bfd(found, "Unknown", ups=0) == []
    assert bfd(found, "Up") == []
    assert bfd(found, "Up", ups=2) == [("BFDSessionDown", "BFD was down for a moment")]


def test_rfc4486_4_after_a_limit_of_the_peer_what_waits_is_an_event_until_it_is_sent() -> None:
    """Of the object that configures the peer, for its administrator, and of each Service."""
    cluster = peer_limits.cluster(operator=False)
    cluster.delete(kinds.CLUSTER_CONFIG, "c")
    instance = {"name": "i", "localASN": 65001, "peers": [peer(peerConfigRef={"name": "p"})]}
    spec = {"bgpInstances": [instance]}
    cluster.put(kinds.NODE_CONFIG, {"metadata": {"name": NODE}, "spec": spec})
    put(cluster, "old", "198.18.0.1", "198.18.0.2", created=DAYS[0])
    put(cluster, "new", "198.18.0.3", "198.18.0.4", created=DAYS[5])
    found = Found(cluster=cluster)
    found.compare()
    assert found.reported == []
    limits = LearnedLimits(cluster.db, cluster.intent, IntentOptions())
    ended = StateChanged(
        instance="i",
        peer="p",
        address="192.0.2.1",
        old="Established",
        new="Idle",
        reason="Cease / Maximum Number of Prefixes Reached",
        peer_limit=PeerPrefixLimit(family=IPV4_UNICAST, limit=4, advertised=((IPV4_UNICAST, 5),)),
    )
    assert limits.note(ended, 0.0)
    limits.write(0.0)
    cluster.run()
    found.compare()
    events = {event["regarding"]["kind"]: event for event in written(found.reported)}
    assert {(event["type"], event["reason"]) for event in events.values()} == {
        ("Warning", "RejectedConfiguration")
    }
    of_peer, of_service = events["CiliumBGPNodeConfig"], events["Service"]
    assert of_peer["note"] == (
        "peer 'p' is sent no more than 4 prefixes of ipv4-unicast (the peer ended the session: "
        "Maximum Number of Prefixes Reached): "
        "198.18.0.4/32 of Service/a/new, and the addresses of newer Services, wait"
    )
    assert (of_service["metadata"]["namespace"], of_service["regarding"]["name"]) == ("a", "new")
    assert of_service["note"] == (
        f"198.18.0.4/32 waits on node {NODE}: peer 'p' is sent no more than 4 prefixes of "
        "ipv4-unicast, and older Services come first"
    )
    cluster.delete(kinds.SERVICE, "old", "a")
    cluster.run()
    found.compare()
    assert set(found.resolved) == set(found.reported)


def written(occurrences: Sequence[Occurrence]) -> list[dict[str, Any]]:
    """Return the Events that are written for occurrences."""
    correlator = EventCorrelator("node", WriteSpread(lambda: 0.0, lambda: 1))
    for occurrence in occurrences:
        correlator.record(occurrence, 0.0, NOW)
    return [correlator.write(key).content for key in correlator.take_changed()]


def test_a_change_of_what_no_occurrence_regards_makes_no_comparison_due() -> None:
    found = Found()
    assert found.due, "the first one"
    found.compare()
    assert not found.due
    found.cluster.put(kinds.SERVICE, service("web", "198.51.100.1"))
    found.cluster.run()
    assert not found.due
    found.cluster.put(kinds.SERVICE, service("web", "192.0.2.1"))
    found.cluster.run()
    assert found.due, "a problem"
    found.compare()
    assert not found.due
    (before,) = found.reported
    again = service("web", "192.0.2.1")
    again["metadata"]["uid"] = "again"
    found.cluster.put(kinds.SERVICE, again)
    found.cluster.run()
    assert found.due, "an Event has the UID of its object"
    found.compare()
    assert found.resolved == [before]
    assert found.reported[1].regarding.uid == "again"


def test_a_comparison_that_fails_is_due_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Found(down())
    found.compare()
    assert not found.due
    with monkeypatch.context() as patched:
        patched.setattr(overdue, "is_overdue", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            found.compare()
    assert found.due


def test_every_table_that_a_comparison_reads_makes_one_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = Found(down())
    cluster = found.cluster
    read: set[Table[Any]] = set()
    state = Snapshot.state

    def recorded(snapshot: Snapshot, table: Table[Any]) -> TableState:
        read.add(table)
        return state(snapshot, table)

    def compare() -> list[str]:
        cluster.run()
        found.reported.clear()
        read.clear()
        with monkeypatch.context() as patched:
            patched.setattr(Snapshot, "state", recorded)
            found.compare()
        assert read <= found.read
        return [occurrence.regarding.ref.kind for occurrence in found.reported]

    assert compare() == []
    cluster.put(kinds.SERVICE, service("web", "192.0.2.1"))
    assert compare() == ["Service"]
    statuses = cluster.intent.reconcile_statuses
    with cluster.db.write(statuses) as txn:
        statuses.upsert(txn, ReconcileStatus("peer", "i/p", "refused"))
    # The node has no object that an Event regards, but one may be created.
    assert compare() == ["Node"]
    found.now += overdue.DOWN_SECONDS
    assert compare() == ["Node"]
    spec = cluster_config()["spec"]
    cluster.put(kinds.NODE_CONFIG, {"metadata": {"name": NODE}, "spec": spec})
    assert found.due
    of_node = "CiliumBGPNodeConfig"
    assert compare() == ["CiliumBGPClusterConfig", of_node, of_node]
    (row,) = cluster.intent.instances.all(cluster.db.snapshot())
    found.instances = [instance(row.name, "listen on :: port 179: address already in use")]
    assert compare() == [of_node]
