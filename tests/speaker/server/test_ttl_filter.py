"""TTL security holds for the first octets of an accepted connection, too: shown with raw sockets."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import hypothesis.strategies as st
import pytest
from hypothesis import given

from speaker.server import ttl_filter
from speaker.server.bound_devices import BoundDevices
from speaker.server.connection import READ, Connection
from speaker.server.listener import Listener
from tests.support.wait import until

LOOPBACK = {4: "127.0.0.1", 6: "::1"}
FAR = 254
"""The TTL with which a packet of a host two hops away arrives, that was sent with 255."""
SILENCE = 0.3
"""Seconds after which no answer is expected any more."""
both_families = pytest.mark.parametrize("version", [4, 6])


class Received:
    """A listening socket, its connections and what they received."""

    def __init__(self, version: int, least: dict[str, int]) -> None:
        self.octets: list[bytes] = []
        self.connections: list[Connection] = []
        self.listener = Listener(
            instance="i",
            address=LOOPBACK[version],
            port=0,
            device=None,
            accept=self._accept,
            changed=lambda _: None,
            devices=BoundDevices(lambda _: None),
        )
        self._least = least

    async def start(self) -> int:
        self.listener.start({}, self._least)
        await until(lambda: self.listener.bound is not None)
        assert self.listener.bound is not None
        return self.listener.bound[1]

    async def close(self) -> None:
        await self.listener.close()
        for connection in self.connections:
            connection.close(abort=True)
        for connection in self.connections:
            await connection.lost

    def _accept(self) -> Connection:
        return Connection(
            len(self.connections),
            memoryview(bytearray(READ)),
            self.connections.append,
            lambda _, data: self.octets.append(data),
            lambda _, __: None,
            lambda _, __: None,
        )


@contextmanager
def raw(version: int, ttl: int, seconds: float = 60.0) -> Iterator[socket.socket]:
    """A TCP socket whose packets have a TTL; ``seconds``: for which it waits for an answer."""
    family = socket.AF_INET if version == 4 else socket.AF_INET6
    with closing(socket.socket(family, socket.SOCK_STREAM)) as sock:
        set_ttl(sock, ttl)
        sock.settimeout(seconds)
        yield sock


def set_ttl(sock: socket.socket, ttl: int) -> None:
    if sock.family == socket.AF_INET:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, ttl)
    else:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, ttl)


def accepts(code: bytes | None, source: str, ttl: int) -> bool:
    """Return the verdict of a filter for a packet, as the kernel's interpreter has it."""
    if code is None:
        return True
    address = ipaddress.ip_address(source).packed
    start, of_ttl = (12, 8) if len(address) == 4 else (8, 7)
    header = bytearray(40)
    header[start : start + len(address)] = address
    header[of_ttl] = ttl
    instructions = [struct.unpack_from("=HBBI", code, at) for at in range(0, len(code), 8)]
    accumulator, place, kept = 0, 0, [0] * 16
    while True:
        operation, if_true, if_false, value = instructions[place]
        place += 1
        match operation:
            case 0x20:
                accumulator = int.from_bytes(header[value - 0xFFF0_0000 :][:4], "big")
            case 0x30:
                accumulator = header[value - 0xFFF0_0000]
            case 0x60:
                accumulator = kept[value]
            case 0x02:
                kept[value] = accumulator
            case 0x54:
                accumulator &= value
            case 0x05:
                place += value
            case 0x15:
                place += if_true if accumulator == value else if_false
            case 0x35:
                place += if_true if accumulator >= value else if_false
            case 0x06:
                return bool(value)
            case _:
                raise AssertionError(f"no such instruction: {operation}")


@both_families
def test_h02_octets_that_arrive_before_the_connection_is_accepted_are_dropped(version: int) -> None:
    async def scenario() -> None:
        received = Received(version, {LOOPBACK[version]: 255})
        port = await received.start()
        with raw(version, 255) as sock:
            # The kernel completes the handshake; the loop accepts only in a later turn.
            sock.connect((LOOPBACK[version], port))
            set_ttl(sock, FAR)
            sock.send(b"too far")
            await until(lambda: bool(received.connections))
            for _ in range(20):
                await asyncio.sleep(0.001)
            assert received.octets == []
            # Retransmitted from where the peer should be, they arrive.
            set_ttl(sock, 255)
            await until(lambda: received.octets == [b"too far"])
        await received.close()

    asyncio.run(scenario())


@both_families
def test_h02_a_host_that_is_too_far_away_gets_no_connection(version: int) -> None:
    async def scenario() -> None:
        received = Received(version, {LOOPBACK[version]: 255})
        port = await received.start()
        with raw(version, FAR, SILENCE) as sock, pytest.raises(TimeoutError):
            await asyncio.to_thread(sock.connect, (LOOPBACK[version], port))
        assert not received.connections
        # Another number of hops takes effect for the next connection.
        received.listener.set_least_ttl({LOOPBACK[version]: FAR})
        with raw(version, FAR) as sock:
            await asyncio.to_thread(sock.connect, (LOOPBACK[version], port))
            await until(lambda: bool(received.connections))
        await received.close()

    asyncio.run(scenario())


def test_the_longest_prefix_of_a_source_decides() -> None:
    async def scenario() -> None:
        least = {"127.0.0.0/8": 255, "127.0.7.0/24": 0, "127.0.7.1": 255, "192.0.2.1": 255}
        received = Received(4, least)
        port = await received.start()

        async def connects(source: str, ttl: int, seconds: float = 60.0) -> bool:
            with raw(4, ttl, seconds) as sock:
                sock.bind((source, 0))
                before = len(received.connections)
                with contextlib.suppress(TimeoutError):
                    await asyncio.to_thread(sock.connect, ("127.0.0.1", port))
                    await until(lambda: len(received.connections) > before)
                    return True
            return False

        assert await connects("127.0.7.2", 64)
        assert await connects("127.0.7.1", 255)
        assert not await connects("127.0.7.1", 64, SILENCE)
        assert not await connects("127.0.8.1", 64, SILENCE)
        assert await connects("127.0.8.1", 255)
        received.listener.set_least_ttl({"127.0.8.1": 0})
        assert await connects("127.0.8.1", 64)
        await received.close()

    asyncio.run(scenario())


def test_an_accepted_connection_has_the_option_in_place_of_the_filter() -> None:
    async def scenario() -> None:
        received = Received(4, {"127.0.0.1": 255})
        port = await received.start()
        with raw(4, 255) as sock:
            sock.connect(("127.0.0.1", port))
            await until(lambda: bool(received.connections))
            received.connections[0].set_ttl(255, FAR)
            set_ttl(sock, FAR)
            sock.send(b"one hop more is permitted now")
            await until(lambda: bool(received.octets))
        await received.close()

    asyncio.run(scenario())


def far_apart(number: int) -> str:
    """Return an address that shares no word but one with addresses of other numbers."""
    return f"2001:db8:0:{number:x}::1"


@pytest.mark.parametrize(
    "address", [far_apart, lambda n: f"fd00::{n:x}", lambda n: f"10.0.{n >> 8}.{n & 255}"]
)
def test_thousands_of_peers_that_disagree_have_their_own_rules(
    address: Callable[[int], str],
) -> None:
    least = {address(number): 255 - number % 3 for number in range(3000)}
    version = 6 if ":" in address(0) else 4
    family = socket.AF_INET if version == 4 else socket.AF_INET6
    code = ttl_filter.program(version, least)
    assert code is not None
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        try:
            ttl_filter.attach(sock, code)
        except OSError as error:
            pytest.skip(f"net.core.optmem_max is small here: {error}")
    for number in (0, 1, 2, 254, 255, 256, 1500, 2999):
        at_least = 255 - number % 3
        assert accepts(code, address(number), at_least)
        assert not accepts(code, address(number), at_least - 1)
    assert accepts(code, address(3001), 1)


def test_more_peers_than_a_filter_holds_are_refused_and_not_let_in() -> None:
    least = {f"10.{i >> 8}.{i & 255}.1": 255 for i in range(5000)}
    with pytest.raises(ValueError, match="no room for 5000 peers"):
        ttl_filter.program(4, least)
    assert ttl_filter.program(6, least) is None
    assert ttl_filter.program(4, {"10.0.0.1": 0}) is None


@given(
    st.dictionaries(
        st.one_of(
            st.ip_addresses(v=6, network="2001:db8::/124").map(str),
            st.builds(
                lambda a, n: str(ipaddress.ip_network((a, n), strict=False)),
                st.ip_addresses(v=6, network="2001:db8::/124"),
                st.integers(0, 128),
            ),
            st.sampled_from(["fe80::1%a", "fe80::1%b", "fe80::/10", "::/0"]),
        ),
        st.sampled_from([0, 1, 64, 254, 255]),
        max_size=8,
    ),
    st.one_of(st.ip_addresses(v=6, network="2001:db8::/123").map(str), st.just("fe80::1")),
    st.sampled_from([1, 64, 254, 255]),
)
def test_a_filter_decides_as_the_longest_prefix(
    least: dict[str, int], source: str, ttl: int
) -> None:
    address = ipaddress.ip_address(source)
    matches: dict[int, list[int]] = {}
    for text, value in least.items():
        network = ipaddress.ip_network(text.partition("%")[0])
        if address in network:
            matches.setdefault(network.prefixlen, []).append(value)
    expected = ttl >= min(matches[max(matches)]) if matches else True
    assert accepts(ttl_filter.program(6, least), source, ttl) is expected
    if matches:
        # The shorter form has a rule for sources without an entry, and the same one for all peers.
        assert (
            accepts(ttl_filter.program(6, ttl_filter.with_default(6, least)), source, ttl)
            is expected
        )


def test_peers_without_ttl_security_take_no_room_from_others() -> None:
    plain = {f"10.{i >> 8}.{i & 255}.1": 0 for i in range(5000)}
    alone = ttl_filter.program(4, {"192.0.2.1": 255})
    assert ttl_filter.program(4, {**plain, "192.0.2.1": 255}) == alone
    # Within a prefix that has it, they are exceptions.
    code = ttl_filter.program(4, {"10.0.0.0/8": 255, "10.0.0.1": 0, "192.0.2.1": 0})
    assert code == ttl_filter.program(4, {"10.0.0.0/8": 255, "10.0.0.1": 0})
    assert code != ttl_filter.program(4, {"10.0.0.0/8": 255})


def test_a_link_local_address_on_two_links_has_the_least_ttl_of_both() -> None:
    both = {"fe80::1%eth0": 255, "fe80::1%eth1": 254}
    assert ttl_filter.program(6, both) == ttl_filter.program(6, {"fe80::1": 254})
    assert ttl_filter.program(6, {"fe80::1%eth0": 255, "fe80::1%eth1": 0}) is None


def test_many_peers_that_agree_have_one_rule() -> None:
    async def scenario() -> None:
        # More than a filter has room for; the kernel's is less (net.core.optmem_max).
        others = {f"10.{i >> 8}.{i & 255}.1": 255 for i in range(5000)}
        received = Received(4, {**others, LOOPBACK[4]: 255})
        port = await received.start()
        assert received.listener.unfiltered == set()
        with raw(4, FAR, SILENCE) as sock, pytest.raises(TimeoutError):
            await asyncio.to_thread(sock.connect, (LOOPBACK[4], port))
        with raw(4, 255) as sock:
            await asyncio.to_thread(sock.connect, (LOOPBACK[4], port))
            await until(lambda: bool(received.connections))
        # A filter that does not agree is an exception.
        received.listener.set_least_ttl({**others, LOOPBACK[4]: 0})
        assert received.listener.unfiltered == set()
        with raw(4, 64) as sock:
            await asyncio.to_thread(sock.connect, (LOOPBACK[4], port))
            await until(lambda: len(received.connections) == 2)
        await received.close()

    asyncio.run(scenario())


def test_a_connection_from_before_the_filter_is_closed() -> None:
    async def scenario() -> None:
        received = Received(4, {})
        port = await received.start()
        with raw(4, FAR) as sock:
            # The kernel completes the handshake, and the loop does not accept before its next turn.
            sock.connect((LOOPBACK[4], port))
            sock.send(b"too far")
            received.listener.set_least_ttl({LOOPBACK[4]: 255})
            await until(lambda: closed(sock))
        assert received.octets == []
        with raw(4, 255) as sock:
            sock.connect((LOOPBACK[4], port))
            await until(lambda: bool(received.connections))
        await received.close()

    asyncio.run(scenario())


def closed(sock: socket.socket) -> bool:
    """Return whether the other end has closed a connection."""
    sock.setblocking(False)
    try:
        return sock.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
