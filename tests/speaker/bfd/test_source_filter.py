"""The filter of receiving sockets, in the kernel."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Iterator

import pytest

from speaker.bfd import source_filter


@contextlib.contextmanager
def sockets(family: int, address: str) -> Iterator[tuple[socket.socket, socket.socket]]:
    with (
        socket.socket(family, socket.SOCK_DGRAM) as receiving,
        socket.socket(family, socket.SOCK_DGRAM) as sending,
    ):
        receiving.bind((address, 0))
        receiving.setblocking(False)
        sending.connect(receiving.getsockname())
        yield receiving, sending


def received(receiving: socket.socket) -> bytes | None:
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
    assert source_filter.program(many) is None
    assert source_filter.program(many[:4000]) is not None
    with sockets(socket.AF_INET, "127.0.0.1") as (receiving, sending):
        source_filter.attach(receiving, [])
        source_filter.attach(receiving, many)
        sending.send(b"x")
        assert received(receiving) == b"x"


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
            source_filter.attach(receiving, ["192.0.2.1"])
            sending.send(b"x")
            assert received(receiving) == b"x"
