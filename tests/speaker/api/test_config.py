"""An invalid configuration is rejected when it is created, with the name of the field."""

from __future__ import annotations

import pytest

from speaker.api import (
    Confederation,
    DynamicPeerConfig,
    GracefulRestart,
    InstanceConfig,
    InvalidConfig,
    PeerConfig,
)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"hold_time": 1}, "hold_time"),
        ({"hold_time": 65536}, "hold_time"),
        ({"hold_time": 9, "keepalive_time": 10}, "keepalive_time"),
        ({"keepalive_time": 0}, "keepalive_time"),
        ({"connect_retry_time": 0}, "connect_retry_time"),
        ({"ebgp_multihop": 256}, "ebgp_multihop"),
        ({"peer_asn": 2**32}, "peer_asn"),
        ({"local_asn": 0}, "local_asn"),
        ({"address": None}, "address"),
        ({"address": "router1"}, "address"),
        ({"local_address": "fd00::1"}, "local_address"),
        ({"port": 0}, "port"),
        ({"families": ()}, "families"),
        ({"graceful_restart": GracefulRestart(4096)}, "graceful_restart.restart_time"),
        ({"next_hop_ipv6": "10.0.0.1"}, "next_hop_ipv6"),
        ({"next_hop_ipv6": "ff02::1"}, "next_hop_ipv6"),
        ({"next_hop_ipv4": "0.0.0.0"}, "next_hop_ipv4"),
        ({"next_hop_ipv4": "224.0.0.1"}, "next_hop_ipv4"),
        ({"next_hop_ipv4": "fe80::1"}, "next_hop_ipv4"),
        ({"address": "0.0.0.0"}, "address"),
        ({"address": "::"}, "address"),
        ({"address": "224.0.0.5"}, "address"),
        ({"address": "255.255.255.255"}, "address"),
        ({"address": "ff02::5%eth0"}, "address"),
        ({"local_address": "224.0.0.5"}, "local_address"),
        ({"peer_asn": 23456}, "peer_asn"),
        ({"local_asn": 23456}, "local_asn"),
    ],
)
def test_an_invalid_peer_is_rejected(change: dict[str, object], field: str) -> None:
    values: dict[str, object] = {"name": "p", "address": "10.0.0.1", **change}
    with pytest.raises(InvalidConfig) as caught:
        PeerConfig(**values)  # type: ignore[arg-type]
    assert (caught.value.name, caught.value.field) == ("p", field)


def test_a_hold_time_of_zero_allows_a_keepalive_time_of_zero() -> None:
    assert PeerConfig(name="p", address="10.0.0.1", hold_time=0, keepalive_time=0).hold_time == 0


@pytest.mark.parametrize(
    ("change", "field"),
    [({"local_asn": 0}, "local_asn"), ({"local_asn": 23456}, "local_asn"),
     ({"confederation": Confederation(23456)}, "confederation"),
     ({"router_id": "0.0.0.0"}, "router_id"),
     ({"router_id": "::1"}, "router_id"), ({"listen": (("x", 179),)}, "listen"),
     ({"listen": (("::", 65536),)}, "listen"), ({"originate": ("10.0.0.1/8",)}, "originate")],
)  # fmt: skip
def test_an_invalid_instance_is_rejected(change: dict[str, object], field: str) -> None:
    values: dict[str, object] = {
        "name": "i", "local_asn": 1, "router_id": "192.0.2.1", **change,
    }  # fmt: skip
    with pytest.raises(InvalidConfig) as caught:
        InstanceConfig(**values)  # type: ignore[arg-type]
    assert caught.value.field == field


def test_a_dynamic_peer_configuration_makes_a_peer_for_an_address() -> None:
    config = DynamicPeerConfig(name="racks", prefix="10.0.0.0/24", hold_time=9, keepalive_time=3)
    peer = config.for_address("10.0.0.7")
    assert (peer.name, peer.address, peer.passive, peer.hold_time) == (
        "10.0.0.7",
        "10.0.0.7",
        True,
        9,
    )
    with pytest.raises(InvalidConfig, match="prefix"):
        DynamicPeerConfig(name="racks", prefix="10.0.0.1/24")


def test_a_range_of_dynamic_peers_has_addresses_of_hosts() -> None:
    for prefix in ("224.0.0.0/8", "ff02::/16"):
        with pytest.raises(InvalidConfig, match="prefix"):
            DynamicPeerConfig(name="racks", prefix=prefix)
    assert DynamicPeerConfig(name="any", prefix="0.0.0.0/0").limit == 1000
