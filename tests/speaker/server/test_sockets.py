"""Socket options as requested, or no socket."""

from __future__ import annotations

import errno
import socket

import pytest

from speaker.api import Secret
from speaker.server import sockets


def test_an_outgoing_socket_has_source_address_ttl_and_device() -> None:
    with sockets.outgoing(
        address="127.0.0.2", ttl=7, local_address="127.0.0.3", device="lo"
    ) as sock:
        assert sock.getsockname()[0] == "127.0.0.3"
        assert sock.getsockopt(socket.IPPROTO_IP, socket.IP_TTL) == 7
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16)[:3] == b"lo\0"
        assert not sock.getblocking()


def test_an_ipv6_socket_has_its_hop_limit() -> None:
    with sockets.outgoing(address="::1", ttl=255) as sock:
        assert sock.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS) == 255


def test_rfc5082_packets_from_too_far_away_are_dropped_by_the_kernel() -> None:
    with sockets.outgoing(address="127.0.0.1", ttl=255, min_ttl=254) as sock:
        assert sock.getsockopt(socket.IPPROTO_IP, socket.IP_TTL) == 255
        assert sock.getsockopt(socket.IPPROTO_IP, 21) == 254
    with sockets.outgoing(address="::1", ttl=255, min_ttl=255) as sock:
        assert sock.getsockopt(socket.IPPROTO_IPV6, 73) == 255


def test_a_ttl_of_zero_keeps_the_system_default() -> None:
    with socket.socket() as plain, sockets.outgoing(address="127.0.0.1", ttl=0) as sock:
        option = (socket.IPPROTO_IP, socket.IP_TTL)
        assert sock.getsockopt(*option) == plain.getsockopt(*option)


def test_a_missing_device_is_named() -> None:
    with pytest.raises(sockets.SocketError, match="interface nowhere0: no such device"):
        sockets.outgoing(address="127.0.0.1", ttl=1, device="nowhere0")


def test_a_source_address_that_is_not_local_is_named() -> None:
    with pytest.raises(sockets.SocketError, match="source address 192\\.0\\.2\\.7: cannot assign"):
        sockets.outgoing(address="127.0.0.1", ttl=1, local_address="192.0.2.7")


def test_an_address_in_use_is_named() -> None:
    with sockets.listening("127.0.0.1", 0) as first:
        first.listen()
        port = first.getsockname()[1]
        with pytest.raises(sockets.SocketError, match=f"127.0.0.1 port {port}: address already"):
            sockets.listening("127.0.0.1", port)


@pytest.mark.parametrize(
    ("address", "level", "option"),
    [
        ("127.0.0.1", socket.IPPROTO_IP, socket.IP_TTL),
        ("::1", socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS),
    ],
)
def test_a_listener_answers_with_a_ttl_of_255(address: str, level: int, option: int) -> None:
    # RFC 5082 section 3: the neighbour looks at the TTL of our SYN and ACK already.
    with sockets.listening(address, 0) as sock:
        assert sock.getsockopt(level, option) == 255


def test_an_ipv6_listener_accepts_no_mapped_ipv4() -> None:
    with sockets.listening("::", 0) as sock:
        assert sock.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY) == 1


def test_h14_a_refused_key_is_an_error_without_the_key_and_without_a_socket() -> None:
    class Refusing:
        family = socket.AF_INET

        def setsockopt(self, *_: object) -> None:
            raise OSError(95, "Operation not supported")

    with pytest.raises(sockets.SocketError) as caught:
        sockets.set_password(Refusing(), "10.0.0.1", Secret("geheim"))  # type: ignore[arg-type]
    assert "TCP MD5 for 10.0.0.1" in str(caught.value)
    assert "geheim" not in str(caught.value)


def test_ipv6_zones_become_scope_ids() -> None:
    name = socket.if_indextoname(1)
    assert sockets.sockaddr(f"fe80::1%{name}", 179) == ("fe80::1", 179, 0, 1)
    assert sockets.sockaddr("fe80::1%1", 179) == ("fe80::1", 179, 0, 1)
    assert sockets.sockaddr("10.0.0.1", 179) == ("10.0.0.1", 179)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EACCES, ("NET_BIND_SERVICE", "another port")),
        (errno.EPERM, ("NET_BIND_SERVICE", "another port")),
        (errno.EADDRINUSE, ("another process", "another port")),
        (errno.EADDRNOTAVAIL, ("no interface",)),
    ],
)
def test_a_listener_that_cannot_be_opened_has_a_fix(number: int, words: tuple[str, ...]) -> None:
    text = sockets.listen_fix(sockets.SocketError("listen", OSError(number, "")))
    assert all(word in text for word in words)


def test_an_unknown_failure_of_a_listener_has_no_fix() -> None:
    assert sockets.listen_fix(OSError(errno.ENOMEM, "")) == ""


def test_a_connection_that_uvloop_has_closed_meanwhile_is_not_reset() -> None:
    class Closed(socket.socket):
        def getsockopt(self, *_: object) -> int:  # type: ignore[override]
            raise ValueError("negative file descriptor")

    with Closed() as sock:
        sockets.reset_if_deaf(sock)
