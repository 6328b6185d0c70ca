"""Peers of a node: the addresses of their sessions, families and graceful restart."""

from __future__ import annotations

from typing import Any

import pytest

from speaker.api import BfdProfile
from tests.reconcilers.build import NODE, Cluster, cluster_config, peer_config, usual
from tests.support import kinds

UNNUMBERED = {"mode": "Unnumbered", "unnumbered": {"interface": "eth1"}}


def compiled(override: dict[str, Any] | None = None, **peer: Any) -> tuple[Any, list[Any]]:  # noqa: ANN401
    """Return the peer of the render document, if there is one, and the problems."""
    cluster = Cluster()
    status = {"addresses": [{"type": "InternalIP", "address": "192.0.2.9"}]}
    cluster.put(kinds.NODE, {"metadata": {"name": NODE}, "status": status})
    instance = {"name": "i", "localASN": 65001, "peers": [{"name": "p", **peer}]}
    spec = {"bgpInstances": [instance]}
    cluster.put(kinds.CLUSTER_CONFIG, {"metadata": {"name": "c"}, "spec": spec})
    if override is not None:
        given = {"bgpInstances": [{"name": "i", "peers": [{"name": "p", **override}]}]}
        cluster.put(kinds.NODE_CONFIG_OVERRIDE, {"metadata": {"name": NODE}, "spec": given})
    host = {"interfaces": [{"name": "eth1"}]}
    cluster.put(kinds.NODE_NETWORK, {"metadata": {"name": NODE}, "spec": host})
    cluster.run()
    document = cluster.render()
    peers = document["instances"][0]["peers"]
    return (peers[0] if peers else None), document["problems"]


@pytest.mark.parametrize(
    ("fields", "address", "interface"),
    [
        ({"peerAddress": "192.0.2.1"}, "192.0.2.1", None),
        ({"peerAddress": "fd00::1"}, "fd00::1", None),
        ({"peerAddress": "fe80::1%eth1"}, "fe80::1", "eth1"),
        ({"peerAddress": "fe80::1", "peerInterface": "eth1"}, "fe80::1", "eth1"),
        ({"peerAddress": "fe80::1%eth1", "peerInterface": "eth1"}, "fe80::1", "eth1"),
        ({"autoDiscovery": UNNUMBERED}, None, "eth1"),
        ({"peerAddress": "fe80::1", "override": {"peerInterface": "eth2"}}, "fe80::1", "eth2"),
    ],
)
def test_a_peer_has_an_address_or_an_interface(
    fields: dict[str, Any], address: str | None, interface: str | None
) -> None:
    peer, problems = compiled(**fields)
    assert (peer["address"], peer["interface"]) == (address, interface)
    assert not problems


@pytest.mark.parametrize(
    ("fields", "field", "text"),
    [
        ({"peerAddress": "fe80::1"}, "peerAddress", "needs its interface: fe80::1%eth0"),
        (
            {"peerAddress": "192.0.2.1", "peerInterface": "eth1"},
            "peerInterface",
            "not for 192.0.2.1",
        ),
        ({"peerAddress": "fe80::1%eth1", "peerInterface": "eth2"}, "peerInterface", "differs"),
        ({"peerAddress": "0.0.0.0"}, "peerAddress", "is not the address of a host"),
        ({"peerAddress": "224.0.0.5"}, "peerAddress", "is not the address of a host"),
        ({"peerAddress": "255.255.255.255"}, "peerAddress", "is not the address of a host"),
        ({"peerAddress": "::"}, "peerAddress", "is not the address of a host"),
        ({"peerAddress": "ff02::1"}, "peerAddress", "is not the address of a host"),
        (
            {"peerAddress": "192.0.2.1", "override": {"localAddress": "224.0.0.5"}},
            "localAddress",
            "is not the address of a host",
        ),
        ({"peerAddress": "192.0.2.1", "peerASN": 23456}, "peerASN", "is AS_TRANS"),
    ],
)
def test_an_invalid_peer_is_left_out_with_the_field(
    fields: dict[str, Any], field: str, text: str
) -> None:
    peer, problems = compiled(**fields)
    assert peer is None
    (problem,) = problems
    assert problem["field"] == f"spec.bgpInstances[0].peers[0].{field}"
    assert text in problem["message"]


def test_an_instance_with_as_trans_is_left_out_with_the_field() -> None:
    cluster = usual()
    config = cluster_config()
    config["spec"]["bgpInstances"].append({"name": "trans", "localASN": 23456})
    cluster.put(kinds.CLUSTER_CONFIG, config)
    cluster.run()
    assert [instance["name"] for instance in cluster.render()["instances"]] == ["i"]
    assert cluster.problems() == [(f"CiliumBGPNodeConfig/{NODE}", "spec.bgpInstances[1].localASN")]


@pytest.mark.parametrize(
    ("discovery", "field"),
    [
        ({**UNNUMBERED, "defaultGateway": {"addressFamily": "ipv4"}}, "defaultGateway"),
        ({**UNNUMBERED, "mode": "DefaultGateway", "defaultGateway": {"addressFamily": "ipv4"}},
         "unnumbered"),
    ],
)  # fmt: skip
def test_the_part_of_another_mode_has_no_effect_and_is_a_problem(
    discovery: dict[str, Any], field: str
) -> None:
    _, problems = compiled(autoDiscovery=discovery)
    (problem,) = [p for p in problems if p["field"].endswith(f"autoDiscovery.{field}")]
    assert problem["category"] == "unsupported"
    assert problem["message"] == f"has no effect with mode {discovery['mode']}"


@pytest.mark.parametrize(
    ("bfd", "problems"),
    [({"enabled": True}, 1), ({}, 1), ({"enabled": False}, 0), (None, 0)],
)
def test_bfd_of_a_later_definition_is_ignored_without_the_flag(
    bfd: dict[str, Any] | None, problems: int
) -> None:
    found = usual()
    spec: dict[str, Any] = {} if bfd is None else {"bfd": bfd}
    found.put(kinds.PEER_CONFIG, peer_config(**spec))
    found.run()
    document = found.render()
    assert [peer["name"] for peer in document["instances"][0]["peers"]] == ["p"]
    assert [
        (problem["objects"], problem["field"], problem["category"])
        for problem in document["problems"]
    ] == [(["CiliumBGPPeerConfig/pc"], "spec.bfd", "unsupported")] * problems
    assert document["instances"][0]["peers"][0]["bfd"] is None


@pytest.mark.parametrize(
    ("bfd", "profile"),
    [
        ({}, BfdProfile()),
        ({"enabled": True, "detectionMultiplier": 5}, BfdProfile(detect_multiplier=5)),
        (
            {"transmitIntervalMilliseconds": 100, "receiveIntervalMilliseconds": 200},
            BfdProfile(transmit_interval=100, receive_interval=200),
        ),
        ({"enabled": False}, None),
        (None, None),
    ],
)
def test_bfd_of_a_later_definition(bfd: dict[str, Any] | None, profile: BfdProfile | None) -> None:
    found = usual(next_fields=True)
    spec: dict[str, Any] = {} if bfd is None else {"bfd": bfd}
    found.put(kinds.PEER_CONFIG, peer_config(**spec))
    found.run()
    (peer,) = found.intent.peers.all(found.db.snapshot())
    assert peer.bfd == profile
    assert found.render()["problems"] == []


@pytest.mark.parametrize(
    ("afi", "safi"),
    [("ipv4", "multicast"), ("ipv4", "mpls_label"), ("ipv6", "mpls_vpn"), ("ipv9", "unicast")],
)
def test_a_family_of_another_safi_is_not_the_unicast_one(afi: str, safi: str) -> None:
    found = usual()
    families = [{"afi": afi, "safi": safi}, {"afi": "ipv6", "safi": "unicast"}]
    found.put(kinds.PEER_CONFIG, {"metadata": {"name": "pc"}, "spec": {"families": families}})
    found.run()
    (peer,) = found.render()["instances"][0]["peers"]
    assert peer["families"] == ["ipv6-unicast"]
    assert found.problems() == [("CiliumBGPPeerConfig/pc", "spec.families[0]")]


def test_the_first_entry_of_a_duplicate_family_is_used() -> None:
    found = usual()
    unicast = {"afi": "ipv4", "safi": "unicast"}
    families = [{**unicast, "advertisements": {}}, unicast]
    found.put(kinds.PEER_CONFIG, {"metadata": {"name": "pc"}, "spec": {"families": families}})
    found.run()
    assert found.prefixes() == ["10.244.0.0/24"]
    assert found.problems() == [("CiliumBGPPeerConfig/pc", "spec.families[1]")]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, None),
        ({"enabled": False}, None),
        ({"enabled": False, "restartTimeSeconds": 60}, None),
        ({"enabled": True}, {"restartTime": 120}),
        ({"enabled": True, "restartTimeSeconds": None}, {"restartTime": 120}),
        ({"enabled": True, "restartTimeSeconds": 4095}, {"restartTime": 4095}),
    ],
)
def test_graceful_restart_is_off_unless_it_is_enabled(
    given: dict[str, Any] | None, expected: dict[str, int] | None
) -> None:
    found = usual()
    found.put(kinds.PEER_CONFIG, peer_config(gracefulRestart=given))
    found.run()
    (peer,) = found.render()["instances"][0]["peers"]
    assert peer["gracefulRestart"] == expected
