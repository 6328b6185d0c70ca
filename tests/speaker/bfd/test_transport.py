"""Addresses of sockets, and the port that receivers share."""

from __future__ import annotations

import contextlib
import errno
import select
import socket
from collections.abc import Iterator

import pytest

from speaker.bfd import transport
from speaker.bfd.transport import Receiver, is_link_local

HERE = "127.0.0.1"


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("fe80::1", True),
        ("febf::1", True),
        ("fe8::1", False),
        ("fe9::", False),
        ("fec0::1", False),
        ("2001:db8::fe80", False),
        ("169.254.1.1", False),
    ],
)
def test_an_ipv6_address_of_fe80_10_needs_its_interface(address: str, *, expected: bool) -> None:
    assert is_link_local(address) is expected


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> int:
    """A port that is free on this machine, in place of 3784."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind(("", 0))
        number: int = sock.getsockname()[1]
    monkeypatch.setattr(transport, "SINGLE_HOP_PORT", number)
    return number


@contextlib.contextmanager
def receivers(*devices: str) -> Iterator[dict[str, Receiver]]:
    """Open a receiver for each device, one after the other."""
    opened: dict[str, Receiver] = {}
    try:
        for device in devices:
            beside = list(opened.values())
            opened[device] = Receiver(socket.AF_INET, device, multihop=False, beside=beside)
            opened[device].accept_from(frozenset({HERE}), 255)
        yield opened
    finally:
        for receiver in opened.values():
            receiver.close()


@pytest.mark.parametrize("devices", [("", "lo"), ("lo", "")], ids=["device last", "device first"])
def test_sessions_with_and_without_a_device_share_a_port(
    devices: tuple[str, str], port: int
) -> None:
    """As in the default VRF and in another VRF; the loopback interface stands for the VRF."""
    with (
        receivers(*devices) as opened,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as neighbor,
    ):
        neighbor.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 255)
        neighbor.sendto(b"to the device", (HERE, port))
        # A busy machine delivers it later.
        select.select([opened["lo"].sock], [], [], 60)
        received = {device: list(receiver.read(2)) for device, receiver in opened.items()}
    assert [octets for octets, _ in received["lo"]] == [b"to the device"]
    assert received[""] == []


@pytest.mark.parametrize("devices", [("",), ("", "lo")])
def test_no_other_program_shares_the_port(devices: tuple[str, ...], port: int) -> None:
    with receivers(*devices), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with pytest.raises(OSError) as raised:
            other.bind(("", port))
    assert raised.value.errno == errno.EADDRINUSE


def test_a_port_that_another_program_has_is_in_use(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("", port))
        with pytest.raises(OSError) as raised, receivers("lo"):
            pass
    assert raised.value.errno == errno.EADDRINUSE
