"""The BFD session that a peer shall have."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import pytest
from msgspec.structs import replace

from reconcilers.bfd.wanted_session import bfd_settings, shared_settings, wanted_session
from reconcilers.model import Instance, ObjectRef, Peer
from resources.host.network import Device, Host
from speaker.api import BfdProfile
from speaker.bfd.session_values import SessionKey, Settings

INSTANCE = Instance("i", None, 65001, "192.0.2.1", None, ObjectRef("Router", "", "r"))
PEER = Peer("i", "p", "192.0.2.9", None, 65010, bfd=BfdProfile())
HOST = Host(
    devices=(
        Device("eth0", networks=("192.0.2.0/24", "2001:db8::/64")),
        Device("eth1", vrf="red", networks=("198.51.100.0/24",)),
    )
)


def key_of(
    instance: Instance = INSTANCE,
    *,
    found: str | None = None,
    host: Host = HOST,
    before: Container[SessionKey] = (),
    **fields: Any,  # noqa: ANN401
) -> SessionKey:
    wanted = wanted_session(replace(PEER, **fields), instance, found, host, before)
    assert wanted is not None
    return wanted[0]


def test_a_peer_without_a_profile_or_without_an_address_has_no_session() -> None:
    assert wanted_session(replace(PEER, bfd=None), INSTANCE, None, HOST) is None
    assert wanted_session(replace(PEER, address=None), INSTANCE, None, HOST) is None


def test_the_settings_come_from_the_profile_in_microseconds() -> None:
    profile = BfdProfile(
        receive_interval=100, transmit_interval=200, detect_multiplier=5, passive=True
    )
    assert bfd_settings(profile, multihop=False) == Settings(
        desired_min_tx=200_000, required_min_rx=100_000, detect_multiplier=5, passive=True
    )


def test_only_a_multihop_session_has_a_least_ttl() -> None:
    profile = BfdProfile(minimum_ttl=200)
    ttls = [bfd_settings(profile, multihop=multihop).minimum_ttl for multihop in (False, True)]
    assert ttls == [255, 200]


def test_rfc5883_3_the_echo_function_is_used_in_both_directions_of_a_single_hop_alone() -> None:
    def echo(profile: BfdProfile, *, multihop: bool) -> tuple[int, int]:
        settings = bfd_settings(profile, multihop=multihop)
        return settings.echo_interval, settings.required_min_echo_rx

    profile = BfdProfile(echo_mode=True, echo_interval=20)
    assert echo(profile, multihop=False) == (20_000, 20_000)
    assert echo(profile, multihop=True) == (0, 0)
    assert echo(replace(profile, echo_mode=False), multihop=False) == (0, 0)


@pytest.mark.parametrize(
    ("fields", "multihop"),
    [
        ({}, False),
        ({"ebgp_multihop": 2}, True),
        ({"ebgp_multihop": 255}, True),
        ({"peer_asn": "external"}, False),
        ({"peer_asn": 0}, False),
        # An internal peer in a network of the node, with any TTL; and one behind a router.
        ({"peer_asn": 65001, "ebgp_multihop": 9}, False),
        ({"peer_asn": "internal", "address": "2001:db8::9"}, False),
        ({"peer_asn": 65001, "address": "198.51.100.9"}, True),
        ({"peer_asn": 65001, "local_asn": 65002}, False),
        ({"bfd": BfdProfile(multihop=True)}, True),
        ({"bfd": BfdProfile(multihop=False), "ebgp_multihop": 9}, False),
    ],
)
def test_the_hops_default_to_the_hops_of_the_bgp_session(
    fields: dict[str, Any], multihop: bool
) -> None:
    assert key_of(**fields).multihop is multihop


def test_a_network_of_another_vrf_is_behind_a_router() -> None:
    red = replace(INSTANCE, vrf="red")
    inside = key_of(red, peer_asn=65001, address="198.51.100.9")
    assert inside == SessionKey("198.51.100.9", "", "red")
    assert key_of(red, peer_asn=65001).multihop


def test_a_single_hop_stays_one_while_its_interface_is_gone() -> None:
    before = key_of(peer_asn=65001)
    assert key_of(peer_asn=65001, host=Host(), before={before}) == before
    assert key_of(peer_asn=65001, host=Host()).multihop
    other = replace(before, device="red")
    assert key_of(peer_asn=65001, host=Host(), before={other}).multihop


def test_the_session_of_a_link_local_address_has_its_interface() -> None:
    key = SessionKey("fe80::1", "", "eth1")
    red = replace(INSTANCE, vrf="red")
    assert key_of(red, address="fe80::1", interface="eth1", ebgp_multihop=2) == key
    assert key_of(address=None, found="fe80::1%eth1", interface="eth1") == key


def test_the_source_address_is_the_configured_one_or_the_kernels_choice() -> None:
    assert key_of(local_address="2001:DB8::0:5", address="2001:db8::9").local == "2001:db8::5"
    assert key_of().local == ""


@pytest.mark.parametrize(
    "fields",
    [
        {"hold_time": 9},
        {"keepalive_time": 1},
        {"route_set": "other"},
        {"accept": None},
        {"down_reason": "no Secret"},
        {"peer_port": 1790},
        {"origins": (ObjectRef("Router", "", "other"),)},
    ],
)
def test_no_other_setting_of_a_peer_changes_its_session(fields: dict[str, Any]) -> None:
    wanted = wanted_session(PEER, INSTANCE, None, HOST)
    assert wanted_session(replace(PEER, **fields), INSTANCE, None, HOST) == wanted


def test_another_profile_of_a_peer_is_the_same_session_with_other_settings() -> None:
    wanted = wanted_session(PEER, INSTANCE, None, HOST)
    slower = replace(PEER, bfd=BfdProfile(transmit_interval=900, name="slow"))
    changed = wanted_session(slower, INSTANCE, None, HOST)
    assert wanted is not None
    assert changed == (wanted[0], replace(wanted[1], desired_min_tx=900_000))


def test_peers_that_share_a_session_have_the_settings_that_notice_a_loss_first() -> None:
    quick = Settings(desired_min_tx=50_000, required_min_rx=50_000, detect_multiplier=10)
    patient = Settings(desired_min_tx=300_000, required_min_rx=20_000, detect_multiplier=2)
    assert shared_settings([patient, quick]) == shared_settings([quick, patient]) == quick
    assert shared_settings([patient]) == patient


def test_a_shared_session_is_passive_for_all_or_none_and_has_the_narrowest_ttl() -> None:
    passive = Settings(passive=True, minimum_ttl=200)
    active = Settings(minimum_ttl=254, detect_multiplier=5)
    shared = shared_settings([passive, active])
    assert (shared.detect_multiplier, shared.passive, shared.minimum_ttl) == (3, False, 254)
    assert shared_settings([passive, passive]) == passive
