"""TCP MD5 keys of listening sockets: each address has that of its peer, however the peers change.

The kernel's keys are the test's, as a table by address: what matters is which one an address has.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from speaker.api import DynamicPeerConfig, InstanceConfig, PeerConfig, Secret
from speaker.server import Speaker, sockets
from speaker.server.connection import Connection
from tests.speaker.server.test_ttl_filter import closed
from tests.support.wait import until

pytestmark = pytest.mark.usefixtures("both_event_loops")
NAME = "i"
AT_ONCE = 0.05
"""Seconds for a good-bye."""
A, B = "127.0.0.2", "127.0.0.3"
RACKS = "127.0.7.0/24"
V6 = "2001:db8::a"
Keys = dict[str, str]


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Keys:
    """The keys of listening sockets, by address or prefix, as the kernel would have them."""
    table: Keys = {}

    def set_password(_: socket.socket, peer: str, password: Secret | None) -> None:
        address = str(ipaddress.ip_network(peer)).removesuffix("/32").removesuffix("/128")
        if password is None:
            table.pop(address, None)
        else:
            table[address] = password.reveal().decode()

    monkeypatch.setattr(sockets, "set_password", set_password)
    return table


@contextlib.asynccontextmanager
async def listening(address: str = "127.0.0.1") -> AsyncIterator[Speaker]:
    """Run a speaker that listens on an address, and on any port."""
    speaker = Speaker()
    await speaker.start()
    try:
        listen = ((address, 0),)
        speaker.set_instance(
            InstanceConfig(name=NAME, local_asn=65000, router_id="192.0.2.1", listen=listen)
        )
        await until(lambda: speaker.instances()[0].listening)
        yield speaker
    finally:
        await speaker.stop(AT_ONCE)


def peer(name: str, address: str, key: str | None, port: int = 179) -> PeerConfig:
    """Build a peer that connects."""
    password = None if key is None else Secret(key)
    return PeerConfig(name=name, address=address, port=port, passive=True, password=password)


def racks(name: str, key: str, prefix: str = RACKS) -> DynamicPeerConfig:
    """Build a range."""
    return DynamicPeerConfig(name=name, prefix=prefix, password=Secret(key))


def test_h14_peers_that_trade_their_addresses_keep_their_keys(keys: Keys) -> None:
    async def main() -> None:
        async with listening() as speaker:
            speaker.set_peer(NAME, peer("a", A, "of a"))
            speaker.set_peer(NAME, peer("b", B, "of b"))
            assert keys == {A: "of a", B: "of b"}
            speaker.set_peer(NAME, peer("a", B, "of a"))
            speaker.set_peer(NAME, peer("b", A, "of b"))
            assert keys == {A: "of b", B: "of a"}
            speaker.remove_peer(NAME, "b")
            assert keys == {B: "of a"}

    asyncio.run(main())


def test_h14_a_peer_with_the_former_address_of_another_peer_keeps_its_key(keys: Keys) -> None:
    async def main() -> None:
        async with listening() as speaker:
            speaker.set_peer(NAME, peer("b", B, "of b"))
            speaker.set_peer(NAME, peer("a", B, "of a"))
            speaker.set_peer(NAME, peer("b", A, None))
            assert keys == {B: "of a"}

    asyncio.run(main())


def test_h14_a_range_that_replaces_another_range_has_a_key_all_the_time(keys: Keys) -> None:
    async def main() -> None:
        async with listening() as speaker:
            speaker.set_peer(NAME, racks("racks", "first"))
            speaker.set_peer(NAME, racks("row", "second"))
            speaker.remove_peer(NAME, "racks")
            assert keys == {RACKS: "second"}
            speaker.remove_peer(NAME, "row")
            assert keys == {}

    asyncio.run(main())


def test_h14_another_spelling_is_the_same_address(keys: Keys) -> None:
    async def main() -> None:
        async with listening("::1") as speaker:
            speaker.set_peer(NAME, peer("2001:DB8::A", "2001:DB8::A", "one"))
            speaker.set_peer(NAME, peer(V6, V6, "one"))
            speaker.remove_peer(NAME, "2001:DB8::A")
            assert keys == {V6: "one"}
            speaker.set_peer(NAME, racks("upper", "two", "2001:DB8:7::/48"))
            speaker.set_peer(NAME, racks("lower", "two", "2001:db8:7::/48"))
            speaker.remove_peer(NAME, "upper")
            assert keys == {V6: "one", "2001:db8:7::/48": "two"}

    asyncio.run(main())


def test_h14_of_two_peers_with_one_address_the_last_that_goes_takes_the_key(keys: Keys) -> None:
    async def main() -> None:
        async with listening() as speaker:
            speaker.set_peer(NAME, peer("a", A, "one"))
            speaker.set_peer(NAME, peer("other port", A, "one", port=1790))
            speaker.remove_peer(NAME, "a")
            assert keys == {A: "one"}
            speaker.remove_peer(NAME, "other port")
            assert keys == {}

    asyncio.run(main())


def test_h14_a_socket_that_is_opened_anew_has_the_keys_of_all_peers(keys: Keys) -> None:
    async def main() -> None:
        async with listening() as speaker:
            for config in (peer("a", A, "of a"), peer("b", B, None), racks("racks", "of racks")):
                speaker.set_peer(NAME, config)
            keys.clear()
            speaker.set_instance(
                InstanceConfig(
                    name=NAME, local_asn=65009, router_id="192.0.2.1", listen=(("127.0.0.1", 0),)
                )
            )
            await until(lambda: speaker.instances()[0].listening)
            assert keys == {A: "of a", RACKS: "of racks"}

    asyncio.run(main())


@contextlib.contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    """Connect to the speaker: the kernel completes the handshake, the loop accepts in a later turn."""
    with contextlib.closing(socket.socket()) as sock:
        sock.connect(("127.0.0.1", port))
        yield sock


@pytest.mark.parametrize("before", [None, "leaked"])
def test_h14_a_connection_from_before_a_key_is_not_the_peers(
    before: str | None, keys: Keys
) -> None:
    async def main() -> None:
        async with listening() as speaker:
            if before is not None:
                speaker.set_peer(NAME, peer("a", "127.0.0.1", before))
            with connected(speaker.instances()[0].listening[0][1]) as sock:
                speaker.set_peer(NAME, peer("a", "127.0.0.1", "key"))
                await until(lambda: closed(sock))
            assert keys == {"127.0.0.1": "key"}

    asyncio.run(main())


@pytest.mark.parametrize("protected", [{"password": Secret("key")}, {"ttl_security": 1}])
def test_h14_h02_a_connection_that_is_accepted_in_the_turn_of_a_protection_is_not_the_peers(
    protected: dict[str, Any], keys: Keys
) -> None:
    async def main() -> None:
        async with listening() as speaker:
            accept = speaker._inputs.listeners._instances[NAME].listeners[0]._accept

            def accepted() -> Connection:
                connection = accept()
                config = PeerConfig(name="a", address="127.0.0.1", passive=True, **protected)
                speaker.set_peer(NAME, config)
                return connection

            server = await asyncio.get_running_loop().create_server(accepted, "127.0.0.1", 0)
            with connected(server.sockets[0].getsockname()[1]) as sock:
                await until(lambda: closed(sock))
            server.close()

    asyncio.run(main())
