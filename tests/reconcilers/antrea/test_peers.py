"""Peers: canonical addresses, duplicates, passwords, fields of later releases."""

from __future__ import annotations

from typing import Any

import pytest

from reconcilers.model import SecretRef
from resources.errors import ObjectName
from speaker.api import BfdProfile
from tests.reconcilers.antrea.build import Cluster, dual, node, policy, secret

FIELD = "data[{}]".format


def address(text: str, asn: int = 64600, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"address": text, "asn": asn, **fields}


def test_the_defaults_of_a_session() -> None:
    peer = Cluster(node(), policy()).peers()["10.30.4.1"]
    times = [peer[key] for key in ("holdTime", "keepaliveTime", "connectRetryTime")]
    assert times == [90, 30, 120]
    assert (peer["peerPort"], peer["ebgpMultihop"], peer["bfd"]) == (179, 1, None)
    assert peer["gracefulRestart"] == {"restartTime": 120}
    assert peer["accept"] == []


def test_an_address_in_two_spellings_is_one_peer_with_the_settings_of_the_last_entry() -> None:
    peers = [address("2001:DB8:30::1", port=1), address("2001:db8:30:0::1", port=2)]
    it = Cluster(dual(), policy(peers=peers))
    assert {name: p["peerPort"] for name, p in it.peers().items()} == {"2001:db8:30::1": 2}
    assert it.problems() == []


def test_of_two_as_numbers_the_first_entry_is_used_and_the_others_are_problems() -> None:
    peers = [address("10.30.4.1", 1), address("10.30.4.1", 2), address("10.30.4.1", 1, port=9)]
    it = Cluster(node(), policy(peers=peers))
    peer = it.peers()["10.30.4.1"]
    assert (peer["peerASN"], peer["peerPort"]) == (1, 9)
    assert it.problems() == [("BGPPolicy/edge-export", "spec.bgpPeers[1]")]


def test_a_thousand_entries_with_one_address() -> None:
    peers = [address("10.30.4.1", 64000 + i) for i in range(1000)]
    it = Cluster(node(), policy(peers=[*peers, address("10.30.4.2")]))
    assert sorted(it.peers()) == ["10.30.4.1", "10.30.4.2"]
    assert len(it.problems()) == 11
    messages = [p["message"] for p in it.render()["problems"]]
    assert any(text.startswith("999 entries") for text in messages)


def test_a_changed_as_number_changes_the_peer_of_that_name() -> None:
    it = Cluster(node(), policy())
    it.run()
    it.put(policy(peers=[address("10.30.4.1", 64999)]))
    assert {name: p["peerASN"] for name, p in it.peers().items()} == {"10.30.4.1": 64999}


# Passwords


def keys(it: Cluster) -> dict[str, SecretRef | None]:
    it.run()
    found = it.intent.peers.all(it.db.snapshot())
    return {row.name: row.password for row in found}  # type: ignore[misc]


def test_passwords_by_address_and_as_number() -> None:
    peers = [address("10.30.4.1"), address("10.30.4.2"), address("10.30.4.3")]
    given = {
        "10.30.4.1-64600": "one",
        "10.30.4.2-64601": "another AS",
        "10.30.4.3": "no AS",
        "10.30.4.9-64700": "unused",
        "10.30.4.3-064600": "not decimal",
        "x-64600": "no address",
    }
    it = Cluster(node(), policy(peers=peers), secret(given))
    expected = SecretRef("kube-system", "antrea-bgp-passwords", "10.30.4.1-64600", verbatim=True)
    assert keys(it) == {"10.30.4.1": expected, "10.30.4.2": None, "10.30.4.3": None}
    assert it.problems() == []


def down_reason(it: Cluster) -> str | None:
    """Return why the one peer has to stay down."""
    it.run()
    (peer,) = it.intent.peers.all(it.db.snapshot())
    return peer.down_reason


def test_a_secret_that_could_not_be_read_keeps_the_peers_down() -> None:
    unread = ObjectName("Secret", "kube-system", "antrea-bgp-passwords")
    it = Cluster(node(), policy())
    table = it.resources.unread_objects
    assert down_reason(it) is None
    with it.db.write(table) as txn:
        table.upsert(txn, unread)
    reason = "Secret kube-system/antrea-bgp-passwords could not be read"
    assert down_reason(it) == reason
    (problem,) = it.render()["problems"]
    assert problem["message"] == f"{reason}: peers stay down, as they may have a password in it"
    # The last password that was read is used.
    it.put(secret({"10.30.4.1-64600": "one"}))
    assert down_reason(it) is None
    assert it.problems() == []
    it.delete("Secret", "antrea-bgp-passwords", "kube-system")
    assert down_reason(it) == reason
    with it.db.write(table) as txn:
        table.delete(txn, ("Secret", "kube-system", "antrea-bgp-passwords"))
    assert down_reason(it) is None
    assert it.problems() == []


def test_the_secret_comes_goes_and_comes_back() -> None:
    it = Cluster(node(), policy())
    for _ in range(2):
        assert keys(it) == {"10.30.4.1": None}
        it.put(secret({"10.30.4.1-64600": "one"}))
        assert keys(it)["10.30.4.1"] is not None
        it.delete("Secret", "antrea-bgp-passwords", "kube-system")


def test_another_spelling_of_the_address_counts() -> None:
    peers = [address("2001:db8:30::1")]
    it = Cluster(dual(), policy(peers=peers), secret({"2001:DB8:30:0::1-64600": "six"}))
    assert it.peers()["2001:db8:30::1"]["password"] is True
    assert it.problems() == []


def test_of_several_spellings_that_of_the_policy_counts_else_the_first() -> None:
    spellings = {"2001:DB8:30::1-64600": "a", "2001:db8:30::1-64600": "b"}
    it = Cluster(dual(), policy(peers=[address("2001:db8:30::1")]), secret(spellings))
    assert keys(it)["2001:db8:30::1"].key == "2001:db8:30::1-64600"  # type: ignore[union-attr]
    assert it.problems() == []
    it.put(policy(peers=[address("2001:db8:30:0::1")]))
    assert keys(it)["2001:db8:30::1"].key == "2001:DB8:30::1-64600"  # type: ignore[union-attr]
    name = "Secret/kube-system/antrea-bgp-passwords"
    assert it.problems() == [(name, FIELD("2001:DB8:30::1-64600"))]


def test_of_another_namespace_only_with_the_flag() -> None:
    given = [node(), policy(), secret({"10.30.4.1-64600": "x"}, "antrea")]
    assert Cluster(*given).peers()["10.30.4.1"]["password"] is False
    assert Cluster(*given, namespace="antrea").peers()["10.30.4.1"]["password"] is True


@pytest.mark.parametrize("value", ["a\0b", "x" * 81, "y" * 2**20])
def test_a_password_that_tcp_md5_cannot_use_is_a_problem_without_the_password(value: str) -> None:
    it = Cluster(node(), policy(), secret({"10.30.4.1-64600": value}))
    assert it.peers()["10.30.4.1"]["password"] is True
    (problem,) = it.render()["problems"]
    assert problem["field"] == FIELD("10.30.4.1-64600")
    assert value not in problem["message"]


def test_an_empty_password_is_none() -> None:
    it = Cluster(node(), policy(), secret({"10.30.4.1-64600": ""}))
    assert it.peers()["10.30.4.1"]["password"] is False


# Fields of later releases

NEXT: dict[str, Any] = {
    "holdTimeSeconds": 30,
    "keepaliveIntervalSeconds": 7,
    "connectRetrySeconds": 5,
    "idleHoldTimeAfterResetSeconds": 4,
    "gracefulRestartEnabled": False,
}


def test_fields_of_later_releases_are_problems_and_ignored() -> None:
    peers = [address("10.30.4.1", bfd={"enabled": True}, **NEXT)]
    it = Cluster(node(), policy(peers=peers))
    fields = {field for _, field in it.problems()}
    assert fields == {f"spec.bgpPeers[0].{name}" for name in (*NEXT, "bfd")}
    assert all("--antrea-next-fields" in p["message"] for p in it.render()["problems"])
    assert it.peers() == Cluster(node(), policy()).peers()


def test_with_the_flag_the_next_fields_are_used() -> None:
    peers = [address("10.30.4.1", **NEXT)]
    it = Cluster(node(), policy(peers=peers), next_fields=True)
    peer = it.peers()["10.30.4.1"]
    times = [peer[key] for key in ("holdTime", "keepaliveTime", "connectRetryTime")]
    assert times == [30, 7, 5]
    assert peer["gracefulRestart"] is None
    (row,) = it.intent.peers.all(it.db.snapshot())
    assert row.idle_hold_time == 4
    assert it.problems() == []


@pytest.mark.parametrize(("hold", "keepalive"), [(3, 1), (31, 10), (65535, 21845)])
def test_the_keepalive_time_is_a_third(hold: int, keepalive: int) -> None:
    it = Cluster(
        node(), policy(peers=[address("10.30.4.1", holdTimeSeconds=hold)]), next_fields=True
    )
    assert it.peers()["10.30.4.1"]["keepaliveTime"] == keepalive


@pytest.mark.parametrize(
    ("bfd", "profile"),
    [
        ({"enabled": True}, BfdProfile()),
        (
            {
                "enabled": True,
                "transmitIntervalMilliseconds": 50,
                "receiveIntervalMilliseconds": 60,
                "detectionMultiplier": 1,
            },
            BfdProfile(transmit_interval=50, receive_interval=60, detect_multiplier=1),
        ),
        (
            {"enabled": True, "minTransmitIntervalMilliseconds": 10, "detectionMultiplier": 4},
            BfdProfile(transmit_interval=10, detect_multiplier=4),
        ),
        (
            {"enabled": True, "minReceiveIntervalMilliseconds": 10},
            BfdProfile(receive_interval=10),
        ),
        ({"enabled": False, "detectionMultiplier": 4}, None),
    ],
)
def test_bfd_of_either_proposal(bfd: dict[str, Any], profile: BfdProfile | None) -> None:
    it = Cluster(node(), policy(peers=[address("10.30.4.1", bfd=bfd)]), next_fields=True)
    it.run()
    (peer,) = it.intent.peers.all(it.db.snapshot())
    assert (peer.bfd, peer.bfd_field) == (profile, "spec.bgpPeers[0].bfd")
