"""The status of a NodeConfig: the states of its sessions, and the errors of its configuration."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from reconcilers.cilium.conditions import (
    MAX_ERRORS_SHOWN,
    errors_of,
    reconcile_error,
)
from reconcilers.conditions import with_times
from reconcilers.dialect import ObjectStatus
from reconcilers.intent_tables import object_id
from reconcilers.model import ObjectRef, Problem, ReconcileStatus
from reconcilers.report.status_rows import StatusRows
from resources.cilium.status import NodeConfigStatus
from resources.enumeration import MAX_MESSAGE_CHARACTERS
from speaker.api import FamilyStatus, InstanceStatus, PeerStatus
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family
from tests.dialects.beacon.dialect import BeaconDialect
from tests.dialects.beacon.kinds import BEACON
from tests.dialects.objects import beacon
from tests.reconcilers.build import NODE, Cluster, peer, usual
from tests.reconcilers.cilium.v1.build import policy_object
from tests.support import kinds

NOW = 1_767_225_600.0
"""2026-01-01T00:00:00Z."""
REF = ObjectRef("CiliumBGPNodeConfig", "", NODE)


def family(of: Family, received: int, advertised: int, *, negotiated: bool = True) -> FamilyStatus:
    return FamilyStatus(
        family=of,
        negotiated=negotiated,
        received=received,
        accepted=0,
        advertised=advertised,
    )


def session(name: str = "p", state: str = "Established", **fields: Any) -> PeerStatus:  # noqa: ANN401
    up = state == "Established"
    return PeerStatus(
        **{
            "instance": "i",
            "name": name,
            "address": "192.0.2.9",
            "interface": None,
            "port": 179,
            "local_address": None,
            "local_asn": 65001,
            "peer_asn": 65010,
            "state": state,
            "reason": "" if up else "no route",
            "since": NOW - 60,
            "families": (
                family(IPV4_UNICAST, 3, 12),
                family(IPV6_UNICAST, 0, 0, negotiated=False),
            ),
            "peer_router_id": None,
            "hold_time": 9 if up else None,
            "keepalive_time": 3 if up else None,
            "retry_in": None,
            "capabilities": (),
            "last_error": None,
            "flaps": 0,
            "messages_received": 0,
            "messages_sent": 0,
            "updates_received": 0,
            "updates_sent": 0,
            "queued_octets": 0,
            "authentication": None,
            "graceful_restart_time": None,
            "dynamic": False,
            "route_set": None,
            **fields,
        }
    )


class Reported:
    """A cluster, the sessions of its node, and what is reported."""

    def __init__(self, cluster: Cluster, *sessions: PeerStatus) -> None:
        self.cluster = cluster
        self.sessions = list(sessions)
        self.listen_error: str | None = None
        self.statuses = StatusRows(
            cluster.db,
            cluster.intent,
            [cluster.dialect],
            NODE,
            lambda: self.sessions,
            lambda: [
                InstanceStatus(
                    name="i",
                    local_asn=65001,
                    router_id="192.0.2.1",
                    vrf=None,
                    listening=(),
                    listen_error=self.listen_error,
                    peers=1,
                    refused=0,
                )
            ],
        )

    def row(self) -> ObjectStatus | None:
        return self.statuses.table.get(self.cluster.db.snapshot(), object_id(REF))

    def status(self, now: float = NOW) -> dict[str, Any]:
        self.cluster.run()
        self.statuses.run(now)
        row = self.row()
        assert row is not None
        plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(row.status))
        return plain

    def error(self) -> tuple[str, str]:
        (condition,) = self.status()["conditions"]
        return condition["status"], condition["message"]


def test_an_established_session_has_timers_a_time_and_counts() -> None:
    assert Reported(usual(), session()).status() == {
        "bgpInstances": [
            {
                "name": "i",
                "localASN": 65001,
                "peers": [
                    {
                        "name": "p",
                        "peerAddress": "192.0.2.9",
                        "peerASN": 65010,
                        "peeringState": "established",
                        "timers": {"appliedHoldTimeSeconds": 9, "appliedKeepaliveSeconds": 3},
                        "establishedTime": "2025-12-31T23:59:00Z",
                        "routeCount": [
                            {"afi": "ipv4", "safi": "unicast", "received": 3, "advertised": 12}
                        ],
                    }
                ],
            }
        ],
        "conditions": [
            {
                "type": "cilium.io/BGPReconcileError",
                "status": "False",
                "reason": "BGPReconcileError",
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ],
    }


@pytest.mark.parametrize(
    ("state", "reported"),
    [
        ("Idle", "idle"),
        ("Connect", "connect"),
        ("Active", "active"),
        ("OpenSent", "open_sent"),
        ("OpenConfirm", "open_confirm"),
    ],
)
def test_a_session_that_is_not_established_has_its_state_only(state: str, reported: str) -> None:
    (instance,) = Reported(usual(), session(state=state)).status()["bgpInstances"]
    assert instance["peers"] == [
        {"name": "p", "peerAddress": "192.0.2.9", "peerASN": 65010, "peeringState": reported}
    ]


def test_the_states_of_the_attempts_to_a_dead_peer_are_written_as_one() -> None:
    reported = Reported(usual())
    written = []
    for number in range(50):
        state = ("Idle", "Connect", "Active", "Connect", "OpenSent")[number % 5]
        retry = 3.0 if state in ("Idle", "Active") else None
        reported.sessions = [session(state=state, retry_in=retry, since=NOW)]
        reported.cluster.run()
        if reported.statuses.run(NOW + number / 2):
            (instance,) = reported.status(NOW + number / 2)["bgpInstances"]
            written.append(instance["peers"][0]["peeringState"])
    assert written == ["idle", "active"]
    reported.sessions = [session()]
    (instance,) = reported.status()["bgpInstances"]
    assert instance["peers"][0]["peeringState"] == "established"
    # Nothing is tried any more: shut down.
    reported.sessions = [session(state="Idle", since=NOW)]
    (instance,) = reported.status()["bgpInstances"]
    assert instance["peers"][0]["peeringState"] == "idle"


def test_a_session_that_does_not_come_up_is_a_condition_with_its_reason() -> None:
    down = session(state="Active", retry_in=2.0, since=NOW, likely_cause="a firewall")
    reported = Reported(usual(), down)
    types = [condition["type"] for condition in reported.status(NOW + 10)["conditions"]]
    assert types == ["cilium.io/BGPReconcileError"]
    error, sessions = reported.status(NOW + 60)["conditions"]
    assert error["status"] == "False"
    assert sessions == {
        "type": "waggle.dev/SessionsDown",
        "status": "True",
        "reason": "SessionNotEstablished",
        "message": "i: peer p: no route; likely a firewall",
        "lastTransitionTime": "2026-01-01T00:01:00Z",
    }
    # The countdown and the attempts are no change.
    reported.sessions = [session(state="Connect", since=NOW, likely_cause="a firewall")]
    reported.status(NOW + 61)
    reported.sessions = [down]
    assert not reported.statuses.run(NOW + 62)
    reported.sessions = [session()]
    types = [condition["type"] for condition in reported.status(NOW + 70)["conditions"]]
    assert types == ["cilium.io/BGPReconcileError"]


def test_c40_a_learnt_as_number_is_reported() -> None:
    found = usual()
    config = kinds.CLUSTER_CONFIG
    value = {"metadata": {"name": "c"}, "spec": {"bgpInstances": [
        {"name": "i", "localASN": 65001, "peers": [peer(peerASN=0)]}]}}  # fmt: skip
    found.put(config, value)
    reported = Reported(found, session(state="Active", peer_asn=0))
    (instance,) = reported.status()["bgpInstances"]
    assert "peerASN" not in instance["peers"][0]
    reported.sessions = [session(peer_asn=65077)]
    (instance,) = reported.status()["bgpInstances"]
    assert instance["peers"][0]["peerASN"] == 65077


def test_an_unchanged_status_and_a_drifting_clock_are_no_change() -> None:
    reported = Reported(usual(), session())
    reported.status()
    assert not reported.statuses.run(NOW + 1)
    reported.sessions = [session(since=NOW - 60.9)]
    assert not reported.statuses.run(NOW + 2)
    reported.sessions = [session(since=NOW - 50)]
    assert reported.statuses.run(NOW + 3)


def test_a_node_without_a_node_config_has_no_status() -> None:
    found = usual()
    reported = Reported(found, session())
    reported.status()
    found.delete(kinds.CLUSTER_CONFIG, "c")
    found.run()
    assert reported.statuses.run(NOW)
    assert reported.row() is None
    assert not reported.statuses.run(NOW)


def test_a_stored_object_is_identified_by_its_uid() -> None:
    found = usual()
    reported = Reported(found)
    reported.status()
    assert reported.row() is not None
    assert [row.uid for row in reported.statuses.table.all(found.db.snapshot())] == [""]
    instance = {"name": "i", "localASN": 65001, "peers": [peer()]}
    written = {"metadata": {"name": NODE, "uid": "u"}, "spec": {"bgpInstances": [instance]}}
    found.put(kinds.NODE_CONFIG, written)
    reported.status()
    assert [row.uid for row in reported.statuses.table.all(found.db.snapshot())] == ["u"]


def test_errors_are_a_condition_with_a_transition_time() -> None:
    found = usual()
    reported = Reported(found, session())
    assert reported.error() == ("False", "")
    found.delete(kinds.PEER_CONFIG, "pc")
    status, message = reported.error()
    assert status == "True"
    assert message == (
        "i: spec.bgpInstances[0].peers[0].peerConfigRef.name: peer 'p' is not configured: "
        "there is no CiliumBGPPeerConfig 'pc'"
    )
    # It is in the status all the same.
    reported.sessions = []
    (instance,) = reported.status(NOW + 10)["bgpInstances"]
    assert [p["peeringState"] for p in instance["peers"]] == ["idle"]
    (condition,) = reported.status(NOW + 20)["conditions"]
    assert condition["lastTransitionTime"] == "2026-01-01T00:00:00Z"


def test_a_listener_that_cannot_listen_is_an_error_of_its_instance() -> None:
    reported = Reported(usual(), session())
    reported.listen_error = "listen on 0.0.0.0 port 179: permission denied: a port below 1024 needs"
    assert reported.error() == (
        "True",
        f"i: spec.bgpInstances[0].localPort: {reported.listen_error}",
    )


def test_a_v1_policy_of_the_node_leaves_the_node_config_without_sessions() -> None:
    found = usual()
    router = {"localASN": 65001, "neighbors": [{"peerAddress": "192.0.2.9/32", "peerASN": 65010}]}
    found.put(kinds.PEERING_POLICY, policy_object("v1", router))
    reported = Reported(found, session(name="192.0.2.9", instance="65001"))
    (instance,) = reported.status()["bgpInstances"]
    assert [p["peeringState"] for p in instance["peers"]] == ["idle"]
    assert reported.error() == ("True", "has no effect: a CiliumBGPPeeringPolicy selects the node")


def test_errors_of_other_nodes_and_other_kinds_are_not_this_nodes() -> None:
    problems = [
        Problem((ObjectRef("CiliumBGPNodeConfig", "", "other"),), "spec", "no"),
        Problem((ObjectRef("CiliumBGPClusterConfig", "", "c"),), "spec", "no"),
        Problem((ObjectRef("CiliumBGPPeerConfig", "", "pc"),), "spec.authSecretRef", "no Secret"),
    ]
    statuses = [
        ReconcileStatus("peer", "i/p", "InvalidConfig: no"),
        ReconcileStatus("instance", "i"),
    ]
    assert errors_of(NODE, ["i"], problems, statuses) == [
        ("", "CiliumBGPPeerConfig/pc: spec.authSecretRef: no Secret"),
        ("i", "peer p: InvalidConfig: no"),
    ]


def test_the_message_lists_the_first_errors_of_each_instance() -> None:
    errors = [("a", f"error\n{n}") for n in range(MAX_ERRORS_SHOWN + 3)] + [("b", "one")]
    condition = reconcile_error(REF, errors, 7)
    assert condition.status
    assert condition.message.splitlines() == [
        *(f"a: error {n}" for n in range(MAX_ERRORS_SHOWN)),
        "a: and 3 more",
        "b: one",
    ]
    many = reconcile_error(REF, [(str(n), "x" * 100) for n in range(1000)], None)
    assert len(many.message) == MAX_MESSAGE_CHARACTERS


def test_after_a_restart_a_condition_keeps_its_stored_transition_time() -> None:
    first = Reported(usual())
    first.status(NOW)
    again = Reported(usual())
    again.status(NOW + 500)
    before, row = first.row(), again.row()
    assert before is not None
    assert row is not None
    known = {c.type: c for c in before.status.conditions}
    assert with_times(row.status, known).conditions == before.status.conditions
    assert with_times(row.status, {}) == row.status
    assert with_times(NodeConfigStatus(), known) == NodeConfigStatus()


def test_an_instance_that_another_dialect_has_the_name_of_is_reported_by_its_own_name() -> None:
    cluster = usual(also=[BeaconDialect], owners={("instance", "", "i"): "beacon"})
    cluster.put(BEACON, beacon(NODE, instance="i", peerAddress="192.0.2.77"))
    theirs = session(instance="i", state="Idle")
    reported = Reported(cluster, theirs, session(instance="cilium.i"))
    (instance,) = reported.status()["bgpInstances"]
    assert instance["name"] == "i"
    assert [peer["peeringState"] for peer in instance["peers"]] == ["established"]
    # Errors of the other dialect's instance are its own.
    table = cluster.intent.reconcile_statuses
    with cluster.db.write(table) as txn:
        table.upsert(txn, ReconcileStatus("peer", "i/p", error="no route"))
    assert reported.error() == ("False", "")
