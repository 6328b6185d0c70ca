"""TCP MD5 and TTL security between real sockets on loopback, on both sides.

The kernel does the work; these tests check its configuration, for both families and directions.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from speaker.api import DynamicPeerConfig, InstanceConfig, PeerConfig, Secret
from speaker.server import Speaker
from speaker.server.sockets import set_password
from tests.speaker.server.speaker_pair import session_elsewhere
from tests.support.wait import until

pytestmark = pytest.mark.usefixtures("both_event_loops")
NAME = "i"
AT_ONCE = 0.05
"""Seconds for a good-bye: many a neighbour here never hears one, and each would take the full time."""
ADDRESSES = {4: ("127.0.0.1", "127.0.0.2"), 6: ("::1", "::1")}


def _unavailable() -> str | None:
    with socket.socket() as sock:
        try:
            set_password(sock, "127.0.0.0/24", Secret("x"))
        except OSError:
            return "the kernel has no TCP MD5 for prefixes"
    return None


needs_md5 = pytest.mark.skipif(_unavailable() is not None, reason=_unavailable() or "")
both_families = pytest.mark.parametrize("version", [4, 6])


class Sides:
    """A speaker that listens, and others that connect to it, each with an AS of its own."""

    def __init__(self, version: int) -> None:
        self.source, self.address = ADDRESSES[version]
        self.listener = Speaker()
        self.callers: dict[int, Speaker] = {}
        self.port = 0

    async def start(self) -> None:
        await self.listener.start()
        config = InstanceConfig(
            name=NAME, local_asn=65000, router_id="192.0.2.1", listen=((self.address, 0),)
        )
        self.listener.set_instance(config)
        await until(lambda: self.listener.instances()[0].listening)
        self.port = self.listener.instances()[0].listening[0][1]

    async def call(
        self, asn: int, source: str, *, password: str | None = None, ttl_security: int = 0
    ) -> Speaker:
        """Let a speaker connect, or connect otherwise than before."""
        speaker = self.callers.get(asn)
        if speaker is None:
            speaker = self.callers[asn] = Speaker()
            await speaker.start()
            speaker.set_instance(
                InstanceConfig(name=NAME, local_asn=asn, router_id=f"192.0.2.{asn % 100}")
            )
        speaker.set_peer(
            NAME,
            PeerConfig(
                name="listener",
                address=self.address,
                port=self.port,
                peer_asn=65000,
                local_address=source,
                connect_retry_time=1,
                password=None if password is None else Secret(password),
                ttl_security=ttl_security,
            ),
        )
        return speaker

    async def stop(self) -> None:
        for speaker in (*self.callers.values(), self.listener):
            await speaker.stop(AT_ONCE)


@contextlib.asynccontextmanager
async def sides(version: int) -> AsyncIterator[Sides]:
    """Start the listening side; stop all."""
    made = Sides(version)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


def is_up(speaker: Speaker) -> bool:
    """Whether a caller's only session is established."""
    return speaker.peers()[0].established


async def stays_down(speaker: Speaker) -> None:
    """Check that a session does not come up while another session does, and has the reason."""
    await session_elsewhere()
    assert not is_up(speaker)
    assert speaker.peers()[0].reason


@needs_md5
@both_families
def test_rfc2385_a_neighbour_known_by_its_prefix_needs_the_prefixs_password(version: int) -> None:
    prefix = {4: "127.0.0.0/24", 6: "::/64"}[version]

    async def main() -> None:
        async with sides(version) as s:
            s.listener.set_peer(
                NAME, DynamicPeerConfig(name="rack", prefix=prefix, password=Secret("right"))
            )
            await stays_down(await s.call(65001, s.source))
            await stays_down(await s.call(65001, s.source, password="wrong"))
            speaker = await s.call(65001, s.source, password="right")
            await until(lambda: is_up(speaker))
            (peer,) = s.listener.peers()
            assert peer.authentication == "TCP MD5"

    asyncio.run(main())


@needs_md5
def test_rfc2385_a_prefixs_password_changes_without_effect_outside_of_it() -> None:
    async def main() -> None:
        async with sides(4) as s:
            s.listener.set_peer(
                NAME,
                DynamicPeerConfig(name="rack", prefix="127.0.1.0/24", password=Secret("one")),
            )
            s.listener.set_peer(NAME, DynamicPeerConfig(name="other", prefix="127.0.2.0/24"))
            inside = await s.call(65001, "127.0.1.1", password="one")
            outside = await s.call(65002, "127.0.2.1")
            await until(lambda: is_up(inside) and is_up(outside))
            s.listener.set_peer(
                NAME,
                DynamicPeerConfig(name="rack", prefix="127.0.1.0/24", password=Secret("two")),
            )
            await until(lambda: not is_up(inside))
            await stays_down(inside)
            await s.call(65001, "127.0.1.1", password="two")
            await until(lambda: is_up(inside))
            s.listener.set_peer(NAME, DynamicPeerConfig(name="rack", prefix="127.0.1.0/24"))
            await until(lambda: not is_up(inside))
            await s.call(65001, "127.0.1.1")
            await until(lambda: is_up(inside))
            assert is_up(outside)
            assert outside.peers()[0].flaps == 0

    asyncio.run(main())


@needs_md5
def test_rfc2385_of_two_prefixes_the_longer_ones_password_is_used() -> None:
    async def main() -> None:
        async with sides(4) as s:
            for prefix, word in (("127.0.0.0/16", "wide"), ("127.0.1.0/24", "narrow")):
                s.listener.set_peer(
                    NAME, DynamicPeerConfig(name=word, prefix=prefix, password=Secret(word))
                )
            await stays_down(await s.call(65001, "127.0.1.1", password="wide"))
            speaker = await s.call(65001, "127.0.1.1", password="narrow")
            other = await s.call(65002, "127.0.2.1", password="wide")
            await until(lambda: is_up(speaker) and is_up(other))

    asyncio.run(main())


def known_caller(address: str, ttl_security: int) -> PeerConfig:
    """Build the listener's neighbour that connects."""
    return PeerConfig(
        name="caller", address=address, peer_asn=65001, passive=True, ttl_security=ttl_security
    )


@both_families
def test_rfc5082_two_sides_with_ttl_security_have_a_session(version: int) -> None:
    """The caller drops the answer to its SYN, too, unless that has a TTL of 255."""

    async def main() -> None:
        async with sides(version) as s:
            s.listener.set_peer(NAME, known_caller(s.source, 1))
            speaker = await s.call(65001, s.source, ttl_security=1)
            await until(lambda: is_up(speaker))

    asyncio.run(main())


@both_families
@pytest.mark.parametrize(("caller", "listener"), [(1, 0), (0, 1)])
def test_rfc5082_a_neighbour_with_a_ttl_of_1_is_dropped(
    version: int, caller: int, listener: int
) -> None:
    async def main() -> None:
        async with sides(version) as s:
            s.listener.set_peer(NAME, known_caller(s.source, listener))
            await stays_down(await s.call(65001, s.source, ttl_security=caller))
            assert not s.listener.peers()[0].established

    asyncio.run(main())
