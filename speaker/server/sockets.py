"""Sockets for BGP: source address, device, TTL and TCP MD5, set before an octet is sent.

Fails closed: a socket that cannot be protected as configured is closed and the error raised; no
connection is made without the key. The only module that knows socket options.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import ipaddress
import os
import socket
import struct
import termios
from typing import Final, Protocol

from speaker.api import Secret
from speaker.server.listening_ports import is_listened_on

BACKLOG: Final = 1024
"""Of listening sockets: after a power failure, the routers of a rack connect at the same time."""

_FURTHEST: Final = 255
_NAME_OCTETS: Final = 16
"""Of the name of an interface, with its end (IFNAMSIZ)."""
_IP_MINTTL: Final = 21
_IPV6_MINHOPCOUNT: Final = 73
_TCP_MD5SIG: Final = 14
_TCP_MD5SIG_EXT: Final = 32
_MD5_FLAG_PREFIX: Final = 1
_MD5_KEY_SIZE: Final = 80
_SOCKADDR_STORAGE_SIZE: Final = 128


class SocketError(OSError):
    """A socket that cannot be set up as requested; the text names the step and the cause."""

    def __init__(self, step: str, error: OSError) -> None:
        super().__init__(error.errno, f"{step}: {describe(error)}")
        self.step = step

    def __str__(self) -> str:
        return str(self.args[1])


def describe(error: OSError) -> str:
    """Return the error as text: ``connection refused``."""
    if error.errno is None:
        return str(error) or type(error).__name__
    text = os.strerror(error.errno)
    # As the end of a sentence: "Connection refused" -> "connection refused".
    return text[:1].lower() + text[1:]


def listen_fix(error: OSError) -> str:
    """Return what to do about a listener that cannot be opened, as a sentence; empty if unknown."""
    match error.errno:
        case errno.EACCES | errno.EPERM:
            return "a port below 1024 needs the capability NET_BIND_SERVICE (or root): set another port"
        case errno.EADDRINUSE:
            return "another process listens there: end it, or set another port"
        case errno.EADDRNOTAVAIL:
            return "no interface of this host has the address"
        case _:
            return ""


def family_of(address: str) -> socket.AddressFamily:
    """Return the socket family of an address in text."""
    version = ipaddress.ip_address(address).version
    return socket.AF_INET if version == 4 else socket.AF_INET6


def sockaddr(address: str, port: int) -> tuple[str, int] | tuple[str, int, int, int]:
    """Return an address as the socket module takes it, an IPv6 zone resolved to its index."""
    if family_of(address) is socket.AF_INET:
        return (address, port)
    host, _, zone = address.partition("%")
    scope = 0
    if zone:
        scope = int(zone) if zone.isdigit() else socket.if_nametoindex(zone)
    return (host, port, 0, scope)


def outgoing(
    *,
    address: str,
    ttl: int,
    min_ttl: int = 0,
    local_address: str | None = None,
    local_port: int | None = None,
    device: str | None = None,
    password: Secret | None = None,
) -> socket.socket:
    """Create a non-blocking socket, ready to connect. Raises `SocketError`.

    ``ttl`` 0 keeps the system's default; ``min_ttl`` 0 accepts any (RFC 5082).
    """
    sock = socket.socket(family_of(address), socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if device is not None:
            bind_device(sock, device)
        if password is not None:
            set_password(sock, address, password)
        if ttl:
            set_ttl(sock, ttl, min_ttl)
        if local_address is not None or local_port:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            anywhere = "0.0.0.0" if sock.family is socket.AF_INET else "::"  # noqa: S104  source
            try:
                sock.bind(sockaddr(local_address or anywhere, local_port or 0))
            except OSError as error:
                raise SocketError(f"source address {local_address}", error) from error
    except BaseException:
        sock.close()
        raise
    return sock


def listening(address: str, port: int, device: str | None = None) -> socket.socket:
    """Create a bound socket that does not listen yet: keys come first. Raises `SocketError`."""
    sock = socket.socket(family_of(address), socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sock.family is socket.AF_INET6:
            # An IPv4 peer must not appear with a mapped address, past its own key and rules.
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if device is not None:
            bind_device(sock, device)
        # The peer is unknown when a SYN is answered: one with TTL security (RFC 5082) would drop a
        # SYN ACK with the system's TTL. The connection gets its peer's TTL once that is known.
        set_ttl(sock, _FURTHEST)
        try:
            sock.bind(sockaddr(address, port))
        except OSError as error:
            if error.errno == errno.EACCES and is_listened_on(address, port):
                # Of the two reasons this one matters more: the other process may have the sessions.
                error = OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
            raise SocketError(f"listen on {address} port {port}", error) from error
    except BaseException:
        sock.close()
        raise
    return sock


def bind_device(sock: socket.socket, device: str) -> None:
    """Bind to an interface or VRF. Raises `SocketError`."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode() + b"\x00")
    except OSError as error:
        raise SocketError(f"interface {device}", error) from error


class HasOptions(Protocol):
    """A socket, or asyncio's view of one."""

    @property
    def family(self) -> int:
        """AF_INET or AF_INET6."""

    def setsockopt(self, level: int, name: int, value: int, /) -> None:
        """As that of a socket."""

    def getsockopt(self, level: int, name: int, size: int, /) -> bytes:
        """As that of a socket."""


def bound_device(sock: HasOptions) -> str | None:
    """Return the present name of the device that a socket is bound to; None if that is gone.

    None for a socket that is bound to none, too.
    """
    try:
        octets = sock.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, _NAME_OCTETS)
    except OSError:
        return None
    return octets.partition(b"\x00")[0].decode(errors="replace") or None


def set_ttl(sock: HasOptions, ttl: int, min_ttl: int = 0) -> None:
    """Set the TTL of sent packets, and the least TTL of received ones (RFC 5082).

    Raises `SocketError`.
    """
    try:
        if sock.family == socket.AF_INET:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, ttl)
            if min_ttl:
                sock.setsockopt(socket.IPPROTO_IP, _IP_MINTTL, min_ttl)
        else:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, ttl)
            if min_ttl:
                sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_MINHOPCOUNT, min_ttl)
    except OSError as error:
        raise SocketError(f"TTL {ttl}, at least {min_ttl}", error) from error


def reset_if_deaf(sock: socket.socket) -> None:
    """Let the closing of a socket reset the connection if TTL security may drop the peer's packets.

    Without its acknowledgements the kernel sends neither the last octets nor the end of the connection,
    and the peer believes in the session until its hold timer expires.
    """
    # uvloop's socket of a connection that was closed meanwhile raises ValueError in place of OSError.
    with contextlib.suppress(OSError, ValueError):
        if sock.family == socket.AF_INET:
            min_ttl = sock.getsockopt(socket.IPPROTO_IP, _IP_MINTTL)
        else:
            min_ttl = sock.getsockopt(socket.IPPROTO_IPV6, _IPV6_MINHOPCOUNT)
        if min_ttl and _unacknowledged(sock):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _unacknowledged(sock: socket.socket) -> bool:
    """Return whether the peer has not acknowledged all octets that were sent."""
    octets = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4))
    return any(octets)


def set_password(sock: socket.socket, peer: str, password: Secret | None) -> None:
    """Set the TCP MD5 key (RFC 2385) for an address or a prefix; None removes it.

    Raises `SocketError`; the error never holds the password.
    """
    address, _, length = peer.partition("/")
    host, *_ = sockaddr(address, 0)
    packed = ipaddress.ip_address(host).packed
    if sock.family == socket.AF_INET:
        storage = struct.pack("=HH4s", socket.AF_INET, 0, packed)
    else:
        scope = sockaddr(address, 0)[3:] or (0,)
        storage = struct.pack("=HHI16sI", socket.AF_INET6, 0, 0, packed, scope[0])
    key = b"" if password is None else password.reveal()
    option, flags, bits = _TCP_MD5SIG, 0, 0
    if length:
        option, flags, bits = _TCP_MD5SIG_EXT, _MD5_FLAG_PREFIX, int(length)
    value = struct.pack(
        f"={_SOCKADDR_STORAGE_SIZE}sBBHi{_MD5_KEY_SIZE}s", storage, flags, bits, len(key), 0, key
    )
    try:
        sock.setsockopt(socket.IPPROTO_TCP, option, value)
    except OSError as error:
        if password is None and error.errno == errno.ENOENT:
            return
        raise SocketError(f"TCP MD5 for {peer}", error) from None
