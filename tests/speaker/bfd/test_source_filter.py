"""The filter of receiving sockets, in the kernel."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Iterator

import pytest

from speaker.bfd import source_filter


class Receiving(socket.socket):
    """A socket to read from, and another socket, which shows what has arrived.

    A busy machine delivers a packet after the call that has sent it: what is sent to the other socket
    afterwards is behind it.
    """

    def __init__(self, family: int, address: str) -> None:
        super().__init__(family, socket.SOCK_DGRAM)
        self.bind((address, 0))
        self.setblocking(False)
        self._behind = socket.socket(family, socket.SOCK_DGRAM)
        self._behind.bind((address, 0))
        self._behind.settimeout(60)
        self._sending = socket.socket(family, socket.SOCK_DGRAM)
        self._sending.connect(self._behind.getsockname())

    def close(self) -> None:
        """Close all of them."""
        super().close()
        self._behind.close()
        self._sending.close()

    def delivered(self) -> None:
        """Wait until what has been sent before is read or dropped."""
        self._sending.send(b"behind")
        self._behind.recv(100)


@contextlib.contextmanager
def sockets(family: int, address: str) -> Iterator[tuple[Receiving, socket.socket]]:
    with (
        Receiving(family, address) as receiving,
        socket.socket(family, socket.SOCK_DGRAM) as sending,
    ):
        sending.connect(receiving.getsockname())
        yield receiving, sending


def received(receiving: Receiving) -> bytes | None:
    receiving.delivered()
    try:
        return receiving.recv(100)
    except BlockingIOError:
        return None


@pytest.mark.parametrize(
    ("family", "own", "others"),
    [
        (socket.AF_INET, "127.0.0.1", ["127.0.0.2", "192.0.2.1"]),
        (socket.AF_INET6, "::1", ["::2", "2001:db8::1", "1::1", "fe80::1%eth0"]),
    ],
    ids=["ipv4", "ipv6"],
)
def test_packets_of_strangers_are_dropped(family: int, own: str, others: list[str]) -> None:
    with sockets(family, own) as (receiving, sending):
        for addresses, arrives in (
            (others, False),
            ([*others, own], True),
            ([own], True),
            ([], False),
        ):
            source_filter.attach(receiving, addresses)
            sending.send(b"x")
            assert (received(receiving) is not None) is arrives, addresses


def test_beyond_the_kernels_limit_nothing_is_filtered() -> None:
    many = [f"10.{i >> 8}.{i & 255}.1" for i in range(5000)]
    assert source_filter.program(socket.AF_INET, many) is None
    assert source_filter.program(socket.AF_INET, many[:3500]) is not None
    with sockets(socket.AF_INET, "127.0.0.1") as (receiving, sending):
        source_filter.attach(receiving, [])
        source_filter.attach(receiving, many, 64)
        sending.send(b"x")
        assert received(receiving) == b"x"
        assert arrived(receiving, sending, ttl=63) < 300, "the TTL is looked at all the same"


def arrived(receiving: Receiving, sending: socket.socket, ttl: int, packets: int = 640) -> int:
    """Return how many of some packets with a TTL were received."""
    if sending.family == socket.AF_INET:
        sending.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, ttl)
    else:
        sending.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, ttl)
    count = 0
    for _ in range(packets):
        sending.send(b"x")
        count += received(receiving) is not None
    return count


@pytest.mark.parametrize(
    ("family", "own"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
)
def test_of_packets_with_a_low_ttl_a_sample_is_received(family: int, own: str) -> None:
    """No packet that a stranger sends under a neighbor's address from afar costs more than that."""
    with sockets(family, own) as (receiving, sending):
        source_filter.attach(receiving, [own], 254)
        assert arrived(receiving, sending, ttl=255) == 640
        assert arrived(receiving, sending, ttl=254) == 640
        # 10 are expected: 60 come once in 10^25 runs, and none once in 23,000.
        for ttl in (1, 64, 253):
            assert arrived(receiving, sending, ttl=ttl) < 60
        assert any(arrived(receiving, sending, ttl=253) for _ in range(3))


def test_two_thousand_ipv6_addresses_are_filtered() -> None:
    """Of the same network, and of networks of their own."""
    near = [f"2001:db8::{i:x}" for i in range(1, 1001)]
    far = [f"2001:db8:{i:x}::{7 * i:x}:1" for i in range(1, 1001)]
    with sockets(socket.AF_INET6, "::1") as (receiving, sending):
        source_filter.attach(receiving, [*near, *far])
        assert arrived(receiving, sending, ttl=255, packets=1) == 0
        source_filter.attach(receiving, [*near, *far, "::1"])
        assert arrived(receiving, sending, ttl=255, packets=1) == 1


@pytest.mark.parametrize("count", [1, 254, 255, 256, 509, 510, 511, 1000])
def test_each_of_many_addresses_is_accepted(count: int) -> None:
    """A jump reaches 255 instructions."""
    with sockets(socket.AF_INET, "127.0.0.1") as (receiving, sending):
        for before in {0, count // 2, max(count - 2, 0), count - 1, count}:
            # In the order of addresses.
            networks = [10] * before + [192] * (count - before)
            others = [f"{network}.{i >> 8}.{i & 255}.1" for i, network in enumerate(networks)]
            source_filter.attach(receiving, [*others, "127.0.0.1"])
            sending.send(b"x")
            assert received(receiving) == b"x", before
        source_filter.attach(receiving, others)
        sending.send(b"x")
        assert received(receiving) is None


def test_a_program_that_a_socket_has_no_room_for_filters_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As before Linux 6.7 with some hundred addresses: no session is without its packets."""
    with sockets(socket.AF_INET, "127.0.0.1") as (receiving, sending):
        source_filter.attach(receiving, [])

        def refuse(*_: object) -> None:
            raise OSError(errno.ENOMEM, "Cannot allocate memory")

        monkeypatch.setattr(source_filter, "attach_program", refuse)
        for _ in range(2):
            source_filter.attach(receiving, ["192.0.2.1"], 255)
            sending.send(b"x")
            assert received(receiving) == b"x"
