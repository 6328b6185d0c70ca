"""Monitoring stations on real sockets: a station that reads, connects late, stops."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator

import pytest

from speaker.api import BmpCollector, InstanceConfig, RouteAttributes
from speaker.nlri import IPV4_UNICAST, prefix_to_wire
from speaker.server import Speaker
from tests.speaker.engine.monitoring.collector import assert_same
from tests.speaker.server.speaker_pair import NAME, A, B, pair, routes
from tests.support.bmp import Station
from tests.support.ports import free_port
from tests.support.wait import until

pytestmark = pytest.mark.usefixtures("both_event_loops")
COLLECTOR = "127.0.0.3"


class Listener:
    """A station's socket; what it does not read stays in the kernel."""

    def __init__(self) -> None:
        self.socket = socket.create_server((COLLECTOR, 0))
        self.socket.setblocking(False)
        self.port: int = self.socket.getsockname()[1]
        self.station = Station()
        self.client: socket.socket | None = None
        self.reader: asyncio.Task[None] | None = None

    async def accept(self) -> None:
        """Accept the next connection; the station starts without tables."""
        self.station = Station()
        async with asyncio.timeout(60):
            self.client, _ = await asyncio.get_running_loop().sock_accept(self.socket)

    def read(self) -> None:
        """Read from now on."""
        self.reader = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        assert self.client is not None
        while data := await asyncio.get_running_loop().sock_recv(self.client, 1 << 20):
            self.station.feed(data)
        # As a station does: the speaker waits for the close.
        self.client.close()

    async def follow(self, prefixes: int) -> None:
        """Accept and read connection after connection, until one has this number of prefixes.

        A connection that waited too long to be accepted has been closed by the speaker.
        """
        while True:
            await self.accept()
            self.read()
            await until(lambda: self.knows(prefixes) or self.ended)
            if self.knows(prefixes):
                return

    @property
    def ended(self) -> bool:
        """Whether the connection that is read has been closed."""
        return self.reader is not None and self.reader.done()

    async def close(self) -> None:
        """Close everything; what was wrong with the stream is raised here."""
        if self.reader is not None:
            self.reader.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                await self.reader
        if self.client is not None:
            self.client.close()
        self.socket.close()

    def knows(self, prefixes: int) -> bool:
        """Whether it has this number of prefixes of the peer, and of the Loc-RIB."""
        monitored = self.station.monitored.values()
        return len(monitored) == 2 and all(
            len(view.routes.get(IPV4_UNICAST, {})) == prefixes
            for one in monitored
            for view in (
                (one.pre_policy, one.post_policy) if one.up.peer.address else (one.loc_rib,)
            )
        )


@contextlib.asynccontextmanager
async def listening() -> AsyncIterator[Listener]:
    """Open a station's socket and close it."""
    listener = Listener()
    try:
        yield listener
    finally:
        await listener.close()


def collector(
    listener: Listener, *, queue_limit: int = 1 << 26, retry_time: int = 30
) -> BmpCollector:
    """Return the configuration that leads to it."""
    return BmpCollector(
        name="c",
        address=COLLECTOR,
        port=listener.port,
        local_address=A,
        monitor=("pre-policy", "post-policy", "loc-rib"),
        queue_limit=queue_limit,
        retry_time=retry_time,
    )


def test_a_station_gets_changes_with_the_time_of_day() -> None:
    async def main() -> None:
        async with listening() as listener, pair() as two:
            two.connect()
            await until(lambda: two.up)
            two.b.set_collectors([collector(listener)])
            await listener.accept()
            listener.read()
            two.a.update_routes(NAME, "s", routes(*(f"10.{n}.0.0/16" for n in range(100))))
            await until(lambda: listener.knows(100))
            assert_same(listener.station, two.b._engine.instance(NAME))
            await until(lambda: two.b.collectors()[0].synchronized)
            assert abs(listener.station.of(A).up.peer.time / 1e6 - time.time()) < 60
            await two.b.stop()
            await until(lambda: listener.station.terminated)
            assert not two.b.collectors()

    asyncio.run(main())


def test_a_station_that_reads_nothing_delays_no_session_and_gets_all_tables_again() -> None:
    async def main() -> None:
        async with listening() as listener, pair() as two:
            two.connect()
            await until(lambda: two.up)
            two.b.set_collectors([collector(listener, queue_limit=256 * 1024, retry_time=1)])
            await listener.accept()
            await until(lambda: two.b.collectors()[0].connected)

            reasons = set()

            def received() -> bool:
                # Each of them is seen: it is the status for a second, until the next connection.
                reasons.add(two.b.collectors()[0].reason)
                sent = two.a.peers()[0].messages_sent
                return two.b.peers()[0].messages_received >= sent

            def disconnected() -> bool:
                return any("does not read" in reason for reason in reasons)

            # The station does not read: the kernel accepts a part, then the queue grows to its limit.
            for number in range(100):
                changes = {
                    prefix_to_wire(f"10.{n % 250}.{n // 250}.0/24")[1]: RouteAttributes(
                        communities=(number, n, *range(1000, 1200))
                    )
                    for n in range(500)
                }
                two.a.update_routes(NAME, "s", {IPV4_UNICAST: changes})
                for _ in range(10):
                    received()
                    await asyncio.sleep(0.005)
                await until(received)
                if disconnected():
                    break
            assert disconnected()
            assert two.up
            two.a.update_routes(NAME, "s", routes("192.0.2.0/24"))
            # Counted: to list all of them again and again would be what takes the time.
            await until(lambda: two.b.peers()[0].families[0].received == 501)
            assert "192.0.2.0/24" in two.received()
            assert listener.client is not None
            listener.client.close()
            await listener.follow(501)
            assert_same(listener.station, two.b._engine.instance(NAME))
            assert two.b.collectors()[0].connections >= 2

    asyncio.run(main())


def test_a_missing_station_is_retried() -> None:
    async def main() -> None:
        speaker = Speaker()
        port = free_port(COLLECTOR)
        missing = BmpCollector(name="c", address=COLLECTOR, port=port, retry_time=1)
        speaker.set_collectors([missing])
        async with speaker:
            await until(lambda: speaker.collectors()[0].retry_in is not None)
            assert speaker.collectors()[0].reason == "connection refused"
            with socket.create_server((COLLECTOR, port)):
                await until(lambda: speaker.collectors()[0].connected)

    asyncio.run(main())


def test_commands_before_start_are_queued() -> None:
    async def main() -> None:
        async with listening() as listener:
            speaker = Speaker()
            speaker.set_collectors([collector(listener)])
            speaker.set_instance(InstanceConfig(name=NAME, local_asn=1, router_id="192.0.2.1"))
            speaker.update_local(NAME, routes("10.0.0.0/8"))
            async with speaker:
                await listener.accept()
                listener.read()
                station = listener.station
                await until(lambda: station.monitored and station.loc_rib.loc_rib.ended)
                assert list(station.loc_rib.loc_rib.routes[IPV4_UNICAST]) == [b"\x08\x0a"]
                assert station.loc_rib.up.peer.time

    asyncio.run(main())


def test_a_second_router_connects_to_no_station() -> None:
    """The station knows a router by its address, and would take the second one for the first."""

    async def main() -> None:
        first = socket.create_server((B, 0))
        async with listening() as listener, Speaker() as second:
            second.set_collectors([collector(listener)])
            listen = ((B, first.getsockname()[1]),)
            second.set_instance(
                InstanceConfig(name=NAME, local_asn=1, router_id="192.0.2.1", listen=listen)
            )
            await until(lambda: second.instances()[0].listen_error is not None)
            # On loopback the kernel completes a connection within the call.
            with pytest.raises(BlockingIOError):
                listener.socket.accept()
            first.close()
            await listener.accept()
            await until(lambda: second.collectors()[0].connected)

    asyncio.run(main())
