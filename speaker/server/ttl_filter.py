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
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

_SO_ATTACH_FILTER: Final = 26
_SO_DETACH_FILTER: Final = 27
_NETWORK_HEADER: Final = 0xFFF0_0000
"""SKF_NET_OFF: an offset into the network header; that of a TCP socket begins behind it."""
_LOAD_WORD: Final = 0x20
_LOAD_OCTET: Final = 0x30
_LOAD_KEPT: Final = 0x60
_KEEP: Final = 0x02
"""A word of the scratch memory: a load from the packet costs the kernel ten times its room."""
_AND: Final = 0x54
_JUMP: Final = 0x05
_IF_EQUAL: Final = 0x15
_IF_AT_LEAST: Final = 0x35
_RETURN: Final = 0x06
_ACCEPT: Final = 0xFFFF_FFFF
_FURTHEST_BRANCH: Final = 255
_MAX_INSTRUCTIONS: Final = 4096
_INSTRUCTION: Final = struct.Struct("=HBBI")
_TTL: Final = 4
"""The scratch word of the TTL, behind the words of the source."""
_CACHED_NETWORKS: Final = 8192

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Instruction: TypeAlias = tuple[int, int, int, int]


class _Header(NamedTuple):
    """Offsets of the source address and the TTL in a network header, and its length in words."""

    source: int
    ttl: int
    words: int


class Rule(NamedTuple):
    """The words of a network, and the least TTL of packets from there."""

    words: tuple[int, ...]
    ttl: int


_HEADERS: Final[Mapping[int, _Header]] = {4: _Header(12, 8, 1), 6: _Header(8, 7, 4)}
_EVERYWHERE: Final[Mapping[int, str]] = {4: "0.0.0.0/0", 6: "::/0"}


def program(version: int, least: Mapping[str, int]) -> bytes | None:
    """Return the filter for peers with a least TTL, by address or prefix; None without any.

    The longest prefix of a source decides; 0 accepts any TTL, and so do sources without an entry.
    Entries that accept any TTL take room only within a prefix that does not: an address takes one
    instruction, of IPv6 where the peers differ in one word. Raises ValueError for more peers than a
    filter has room for.
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
    rules: dict[int, list[Rule]] = {}
    for network, ttl in networks.items():
        if ttl or any(_is_within(network, prefix) for prefix in prefixes):
            rules.setdefault(network.prefixlen, []).append(Rule(_words(network), ttl))
    if not rules:
        return None
    code = _keep_header(_HEADERS[version])
    for length in sorted(rules, reverse=True):
        code += _decide(sorted(rules[length]), _parts(rules[length], length))
    code.append((_RETURN, 0, 0, _ACCEPT))
    if len(code) > _MAX_INSTRUCTIONS:
        raise ValueError(f"a packet filter has no room for {sum(map(len, rules.values()))} peers")
    return b"".join(_INSTRUCTION.pack(*instruction) for instruction in code)


def with_default(version: int, least: Mapping[str, int]) -> Mapping[str, int]:
    """Return the least TTL that most peers of a family have as that of all sources, and the exceptions.

    For more peers than a filter has room for: it applies to sources without an entry, too.
    """
    of_family = {text: ttl for text, ttl in least.items() if (":" in text) == (version == 6)}
    if not of_family:
        return {}
    (common, _), *_ = Counter(of_family.values()).most_common(1)
    exceptions = {text: ttl for text, ttl in of_family.items() if ttl != common}
    wide = [_network(text) for text in exceptions if "/" in text]
    if wide:
        exceptions |= {
            text: ttl
            for text, ttl in of_family.items()
            if any(_is_within(_network(text), prefix) for prefix in wide)
        }
    # Equal link-local addresses of several interfaces have the least of their values.
    exceptions |= {
        text: ttl for text, ttl in of_family.items() if "%" in text and text not in exceptions
    }
    return {_EVERYWHERE[version]: common, **exceptions}


@functools.lru_cache(_CACHED_NETWORKS)
def _network(text: str) -> Network:
    return ipaddress.ip_network(text.partition("%")[0])


@functools.lru_cache(_CACHED_NETWORKS)
def _words(network: Network) -> tuple[int, ...]:
    address = network.network_address.packed
    return struct.unpack(f">{len(address) // 4}I", address)


def _is_within(network: Network, prefix: Network) -> bool:
    return network.prefixlen > prefix.prefixlen and network.network_address in prefix


def _keep_header(header: _Header) -> list[Instruction]:
    """Return the instructions that load each word of the source, and the TTL, once."""
    code: list[Instruction] = []
    for word in range(header.words):
        code += [
            (_LOAD_WORD, 0, 0, _NETWORK_HEADER + header.source + 4 * word),
            (_KEEP, 0, 0, word),
        ]
    return [*code, (_LOAD_OCTET, 0, 0, _NETWORK_HEADER + header.ttl), (_KEEP, 0, 0, _TTL)]


def _parts(rules: Sequence[Rule], length: int) -> list[tuple[int, int]]:
    """Return the words that networks of a length compare, with their masks.

    The word that differs most comes last: each of its values takes one instruction.
    """
    masks = [(word, min(length - 32 * word, 32)) for word in range((length + 31) // 32)]
    masks.sort(key=lambda part: len({words[part[0]] for words, _ in rules}))
    return [(word, 0xFFFF_FFFF << (32 - bits) & 0xFFFF_FFFF) for word, bits in masks]


def _decide(rules: Sequence[Rule], parts: Sequence[tuple[int, int]]) -> list[Instruction]:
    """Return the instructions for networks of one length that differ in these words.

    A source of none of them goes on behind them.
    """
    if not parts:
        return _verdict(rules[0].ttl)
    (word, mask), *rest = parts
    load: list[Instruction] = [(_LOAD_KEPT, 0, 0, word)]
    if mask != 0xFFFF_FFFF:
        load.append((_AND, 0, 0, mask))
    code: list[Instruction] = []
    if not rest:
        # The addresses of each TTL, and what happens to them.
        values: dict[int, list[int]] = {}
        for words, ttl in rules:
            values.setdefault(ttl, []).append(words[word])
        for ttl, ours in values.items():
            for start in range(0, len(ours), _FURTHEST_BRANCH):
                code += _any_of(ours[start : start + _FURTHEST_BRANCH], _verdict(ttl))
        return load + code
    groups: dict[int, list[Rule]] = {}
    for rule in rules:
        groups.setdefault(rule.words[word], []).append(rule)
    for value, group in groups.items():
        body = _decide(group, rest)
        if len(body) <= _FURTHEST_BRANCH:
            code += [*load, (_IF_EQUAL, 0, len(body), value), *body]
        else:
            code += [*load, (_IF_EQUAL, 1, 0, value), (_JUMP, 0, 0, len(body)), *body]
    return code


def _any_of(values: Sequence[int], body: list[Instruction]) -> list[Instruction]:
    """Return the comparisons of the accumulator with values, any of which goes to the body."""
    *others, last = values
    jumps = [(_IF_EQUAL, len(others) - place, 0, value) for place, value in enumerate(others)]
    return [*jumps, (_IF_EQUAL, 0, len(body), last), *body]


def _verdict(ttl: int) -> list[Instruction]:
    if not ttl:
        return [(_RETURN, 0, 0, _ACCEPT)]
    return [
        (_LOAD_KEPT, 0, 0, _TTL),
        (_IF_AT_LEAST, 0, 1, ttl),
        (_RETURN, 0, 0, _ACCEPT),
        (_RETURN, 0, 0, 0),
    ]


class _HasOptions(Protocol):
    """A socket, or asyncio's view of one."""

    def setsockopt(self, level: int, name: int, value: int | bytes, /) -> None: ...


def attach(sock: _HasOptions, code: bytes | None) -> None:
    """Attach a filter to a socket in place of the present one; None removes it. Raises OSError."""
    if code is None:
        with contextlib.suppress(FileNotFoundError):
            sock.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)
        return
    buffer = ctypes.create_string_buffer(code, len(code))
    filter_ = struct.pack("HP", len(code) // 8, ctypes.addressof(buffer))
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, filter_)
