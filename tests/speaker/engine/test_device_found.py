"""Peers whose connections are bound to a device that exists again: they are tried at once."""

from __future__ import annotations

import pytest

from speaker.api import InstanceConfig, PeerConfig
from speaker.engine.inputs import DeviceFound, SetInstance, TransportFailed
from tests.speaker.network import INSTANCE, Host, Network


def _config(vrf: str | None) -> InstanceConfig:
    return InstanceConfig(name=INSTANCE, local_asn=65001, router_id="192.0.2.1", vrf=vrf)


def waiting(*, vrf: str | None = "red", interface: str | None = None) -> tuple[Network, Host]:
    """A host whose peer waits after a failed attempt."""
    network = Network()
    host = network.host("near", "192.0.2.1", 65001)
    host.give(SetInstance(_config(vrf)))
    network.silent.add("192.0.2.2")
    host.peer(PeerConfig(name="far", address="192.0.2.2", interface=interface))
    network.run(1)
    (connect,) = host.connects
    host.give(TransportFailed(connect.connection, "interface red: no such device"))
    assert host.status().reason == "interface red: no such device"
    return network, host


@pytest.mark.parametrize(("vrf", "interface"), [("red", None), (None, "red"), ("blue", "red")])
def test_a_peer_that_waits_is_tried_at_once(vrf: str | None, interface: str | None) -> None:
    _, host = waiting(vrf=vrf, interface=interface)
    host.give(DeviceFound("red"))
    assert len(host.connects) == 2


@pytest.mark.parametrize(("vrf", "interface"), [("blue", None), (None, None), ("red", "eth0")])
def test_one_of_another_device_waits_on(vrf: str | None, interface: str | None) -> None:
    _, host = waiting(vrf=vrf, interface=interface)
    host.give(DeviceFound("red"))
    assert len(host.connects) == 1


def test_an_attempt_that_is_made_already_goes_on() -> None:
    network = Network()
    host = network.host("near", "192.0.2.1", 65001)
    host.give(SetInstance(_config("red")))
    network.silent.add("192.0.2.2")
    host.peer(PeerConfig(name="far", address="192.0.2.2"))
    network.run(1)
    host.give(DeviceFound("red"))
    assert len(host.connects) == 1


def test_attempts_after_that_begin_anew() -> None:
    """An interface may get its address a second after the VRF is there."""
    network, host = waiting()
    for _ in range(8):
        network.run(130)
        host.give(TransportFailed(host.connects[-1].connection, "interface red: no such device"))
    before = len(host.connects)
    host.give(DeviceFound("red"))
    host.give(TransportFailed(host.connects[-1].connection, "no route to host"))
    network.run(1.5)
    assert len(host.connects) == before + 2
