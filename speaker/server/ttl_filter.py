"""TTL security before a connection is accepted (RFC 5082): a packet filter on the listening socket.

IP_MINTTL of an accepted connection is set after its first octets may have arrived. A filter on the
listening socket judges every packet by its source address, from the SYN on; the connection inherits it
until the option is set. Classic BPF, which needs no privilege. Pure but for `attach`.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import ipaddress
import socket
import struct
from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol, TypeAlias

_SO_ATTACH_FILTER: Final = 26
_SO_DETACH_FILTER: Final = 27
_NETWORK_HEADER: Final = 0xFFF0_0000
"""SKF_NET_OFF: an offset into the network header; that of a TCP socket begins behind it."""
_LOAD_WORD: Final = 0x20
_LOAD_OCTET: Final = 0x30
_AND: Final = 0x54
_IF_EQUAL: Final = 0x15
_IF_AT_LEAST: Final = 0x35
_RETURN: Final = 0x06
_ACCEPT: Final = 0xFFFF_FFFF
_MAX_INSTRUCTIONS: Final = 4096
_INSTRUCTION: Final = struct.Struct("=HBBI")
_END: Final = _INSTRUCTION.pack(_RETURN, 0, 0, _ACCEPT)
_CACHED_RULES: Final = 4096

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network


class _Header(NamedTuple):
    """Where a network header has the source address and the TTL, and the number of its words."""

    source: int
    ttl: int
    words: int


_HEADERS: Final[Mapping[int, _Header]] = {4: _Header(12, 8, 1), 6: _Header(8, 7, 4)}


def program(version: int, least: Mapping[str, int]) -> bytes | None:
    """Return the filter for peers with a least TTL, by address or prefix; None without any.

    The longest prefix of a source decides; 0 accepts any TTL, and so do sources without an entry.
    Entries that accept any TTL take room only within a prefix that does not. Raises ValueError for
    more peers than a filter has room for.
    """
    secured = [text for text, ttl in least.items() if ttl]
    # Only these can have a source of another peer, too.
    wide = any("/" in text or "%" in text for text in secured)
    networks: dict[Network, int] = {}
    for text in least if wide else secured:
        network, ttl = _network(text), least[text]
        if network.version == version:
            # Link-local addresses of several interfaces may be equal.
            networks[network] = min(ttl, networks.get(network, ttl))
    prefixes = [
        network
        for network, ttl in networks.items()
        if ttl and network.prefixlen < network.max_prefixlen
    ]
    rules = sorted(
        (-network.prefixlen, int(network.network_address), _rule(network, ttl))
        for network, ttl in networks.items()
        if ttl or any(_is_within(network, prefix) for prefix in prefixes)
    )
    if not rules:
        return None
    code = b"".join(rule for _, _, rule in rules) + _END
    if len(code) > _MAX_INSTRUCTIONS * _INSTRUCTION.size:
        raise ValueError(f"a packet filter has no room for {len(rules)} peers")
    return code


@functools.lru_cache(_CACHED_RULES)
def _network(text: str) -> Network:
    return ipaddress.ip_network(text.partition("%")[0])


def _is_within(network: Network, prefix: Network) -> bool:
    return network.prefixlen > prefix.prefixlen and network.network_address in prefix


@functools.lru_cache(_CACHED_RULES)
def _rule(network: Network, ttl: int) -> bytes:
    """Return the instructions of one peer."""
    header = _HEADERS[network.version]
    body = _verdict(header, ttl)
    return b"".join(_INSTRUCTION.pack(*one) for one in _tests(header, network, len(body)) + body)


def _verdict(header: _Header, ttl: int) -> list[tuple[int, int, int, int]]:
    if not ttl:
        return [(_RETURN, 0, 0, _ACCEPT)]
    return [
        (_LOAD_OCTET, 0, 0, _NETWORK_HEADER + header.ttl),
        (_IF_AT_LEAST, 0, 1, ttl),
        (_RETURN, 0, 0, _ACCEPT),
        (_RETURN, 0, 0, 0),
    ]


def _tests(header: _Header, network: Network, body: int) -> list[tuple[int, int, int, int]]:
    """Return the comparisons of the source with a network; a difference jumps behind the body."""
    address = network.network_address.packed
    mask = network.netmask.packed
    parts: list[list[tuple[int, int]]] = []
    for word in range(header.words):
        bits = int.from_bytes(mask[4 * word : 4 * word + 4], "big")
        if bits:
            part = [(_LOAD_WORD, _NETWORK_HEADER + header.source + 4 * word)]
            if bits != 0xFFFF_FFFF:
                part.append((_AND, bits))
            part.append((_IF_EQUAL, int.from_bytes(address[4 * word : 4 * word + 4], "big")))
            parts.append(part)
    left = sum(map(len, parts))
    found = []
    for code, value in (one for part in parts for one in part):
        left -= 1
        found.append((code, 0, left + body if code == _IF_EQUAL else 0, value))
    return found


class _HasOptions(Protocol):
    """A socket, or asyncio's view of one."""

    def setsockopt(self, level: int, name: int, value: int | bytes, /) -> None: ...


def common(least: Mapping[str, int]) -> Mapping[str, int]:
    """Return one rule for all sources of each family, where the peers agree; nothing where not."""
    values = set(least.values())
    return {} if len(values) != 1 else dict.fromkeys(("0.0.0.0/0", "::/0"), *values)


def attach(sock: _HasOptions, code: bytes | None) -> None:
    """Attach a filter to a socket in place of the present one; None removes it. Raises OSError."""
    if code is None:
        with contextlib.suppress(FileNotFoundError):
            sock.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)
        return
    buffer = ctypes.create_string_buffer(code, len(code))
    filter_ = struct.pack("HP", len(code) // 8, ctypes.addressof(buffer))
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, filter_)
