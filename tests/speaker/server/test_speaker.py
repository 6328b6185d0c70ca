"""The shell on real sockets on loopback: sessions, failures, passwords, spans, and stop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable, Sequence

import msgspec
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanContext

from speaker.api import (
    ESTABLISHED,
    BestPathChange,
    BmpCollector,
    InstanceConfig,
    PathDown,
    PeerConfig,
    Secret,
    StateChanged,
    StreamClosed,
    UnknownName,
)
from speaker.nlri import IPV4_UNICAST, prefix_to_wire
from speaker.server import Speaker
from speaker.server.trace_links import TraceLinks
from tests.speaker.best_path_reader import Reader
from tests.speaker.server.speaker_pair import NAME, A, B, pair, routes, session_elsewhere
from tests.support.ports import free_port
from tests.support.two_clocks import TwoClocks
from tests.support.wait import until

pytestmark = pytest.mark.usefixtures("both_event_loops")


def test_routes_are_exchanged_over_tcp() -> None:
    async def main() -> None:
        async with pair() as p:
            p.a.update_routes(NAME, "s", routes("10.1.0.0/16"))
            p.connect()
            await until(lambda: p.up and p.received() == {"10.1.0.0/16"})
            p.a.update_routes(NAME, "s", routes("10.2.0.0/16", communities=(1,)))
            await until(lambda: p.received() == {"10.1.0.0/16", "10.2.0.0/16"})
            p.a.update_routes(NAME, "s", {IPV4_UNICAST: {prefix_to_wire("10.1.0.0/16")[1]: None}})
            await until(lambda: p.received() == {"10.2.0.0/16"})
            status = p.a.peers()[0]
            assert abs(status.since - time.time()) < 60
            assert status.local_address == A

    asyncio.run(main())


def test_a_reader_follows_the_best_paths_of_an_instance() -> None:
    async def main() -> None:
        async with pair() as p:
            stream, reader = p.b.follow_best_paths(NAME), Reader()

            async def follow() -> None:
                while True:
                    await stream.wait()
                    reader.apply(stream.take())

            following = asyncio.ensure_future(follow())
            p.a.update_routes(NAME, "s", routes("10.1.0.0/16", "10.2.0.0/16"))
            p.connect()
            await until(lambda: len(reader.routes) == 2)
            (found,) = {one.paths for one in reader.routes.values()}
            assert (found[0].address, found[0].next_hop) == (A, socket.inet_aton(A))
            p.a.update_routes(NAME, "s", {IPV4_UNICAST: {prefix_to_wire("10.1.0.0/16")[1]: None}})
            await until(lambda: len(reader.routes) == 1)
            assert reader.marks == ["TableBegin", "TableEnd", "SelectionEnd"]
            await p.b.stop()
            with pytest.raises(StreamClosed):
                await following

    asyncio.run(main())


def test_a_reader_that_closes_its_stream_is_given_nothing_more() -> None:
    async def main() -> None:
        async with pair() as p:
            closed, other = p.a.follow_best_paths(NAME), p.a.follow_best_paths(NAME)
            await other.wait()
            closed.close()
            closed.close()
            p.a.update_local(NAME, routes("10.1.0.0/16"))
            await until(lambda: any(isinstance(i, BestPathChange) for i in other.take()))
            assert not closed.take()

    asyncio.run(main())


def test_stop_sends_a_cease_within_its_timeout() -> None:
    async def main() -> None:
        async with pair() as p:
            p.connect()
            await until(lambda: p.up)
            # Not at the end of it.
            async with asyncio.timeout(100):
                await p.a.stop(timeout=200)
            await until(lambda: not p.b.peers()[0].established)
            assert p.b.peers()[0].last_error == "received: Cease / Administrative Shutdown"
            assert p.a.peers()[0].state == "Idle"

    asyncio.run(main())


def test_inputs_just_before_a_deadline_keep_the_timer() -> None:
    """The timer is then due at once, and uvloop's handle has no time."""

    async def main() -> None:
        now = 1000.0
        speaker = Speaker(clock=lambda: now)
        await speaker.start()
        speaker.set_instance(InstanceConfig(name=NAME, local_asn=65001, router_id="192.0.2.1"))
        peer = PeerConfig(name="b", address="127.0.0.9", port=1, peer_asn=65002)
        speaker.set_peer(NAME, peer)
        deadline = speaker._engine.next_deadline()
        assert deadline is not None
        now = deadline - 0.0001
        for prefix in ("10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16"):
            speaker.update_routes(NAME, "s", routes(prefix))
        # The longest wait for it.
        now = deadline
        await until(lambda: speaker._engine.next_deadline() != deadline)
        await speaker.stop()

    asyncio.run(main())


def test_stop_cancels_a_connection_attempt() -> None:
    async def main() -> None:
        speaker = Speaker()
        await speaker.start()
        speaker.set_instance(InstanceConfig(name=NAME, local_asn=1, router_id="192.0.2.1"))
        with socket.socket() as full:
            # A socket that is bound but does not listen refuses; one with a full queue is silent.
            full.bind((B, 0))
            full.listen(0)
            with contextlib.ExitStack() as stack:
                for _ in range(4):
                    client = stack.enter_context(socket.socket())
                    client.setblocking(False)
                    client.connect_ex(full.getsockname())
                speaker.set_peer(
                    NAME, PeerConfig(name="b", address=B, port=full.getsockname()[1], peer_asn=2)
                )
                await until(lambda: speaker.peers()[0].state == "Connect")
                async with asyncio.timeout(100):
                    await speaker.stop(timeout=200)

    asyncio.run(main())


def test_f28_an_address_in_use_is_reported_and_retried_while_sessions_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("speaker.server.listener.FIRST_RETRY_SECONDS", 0.05)

    async def main() -> None:
        async with pair() as p:
            p.connect()
            await until(lambda: p.up)
            port = free_port(A)
            with socket.create_server((A, port)):
                p.a.set_instance(
                    InstanceConfig(
                        name=NAME, local_asn=65001, router_id="192.0.2.1", listen=((A, port),)
                    )
                )
                await until(lambda: "another process" in (p.a.instances()[0].listen_error or ""))
                await until(lambda: p.up)
                assert p.a.instances()[0].listening == ()
            await until(lambda: p.a.instances()[0].listening == ((A, port),))
            assert p.a.instances()[0].listen_error is None

    asyncio.run(main())


def test_f28_sessions_wait_for_a_port_that_another_process_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other process may be an agent with the same objects, whose sessions would end."""
    monkeypatch.setattr("speaker.server.listener.FIRST_RETRY_SECONDS", 0.05)

    async def main() -> None:
        accepted: list[str] = []

        async def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted.append(writer.get_extra_info("peername")[0])
            writer.close()

        router = await asyncio.start_server(accept, B, 0)
        port = free_port(A)
        with socket.create_server((A, port)) as other:
            async with Speaker() as speaker:
                first = InstanceConfig(
                    name=NAME, local_asn=65001, router_id="192.0.2.1", listen=((A, port),)
                )
                speaker.set_instance(first)
                speaker.set_peer(
                    NAME,
                    PeerConfig(
                        name="b",
                        address=B,
                        port=router.sockets[0].getsockname()[1],
                        connect_retry_time=1,
                        idle_hold_time=0,
                    ),
                )
                await until(lambda: "another process" in speaker.peers()[0].reason)
                await session_elsewhere()
                assert accepted == []
                other.close()
                await until(lambda: len(accepted) > 0)
                # Once it has listened, an address that is in use ends no session.
                with socket.socket() as another:
                    another.bind((A, 0))
                    another.listen()
                    changed = ((A, another.getsockname()[1]),)
                    speaker.set_instance(msgspec.structs.replace(first, listen=changed))
                    await until(lambda: speaker.instances()[0].listen_error is not None)
                    accepted.clear()
                    await until(lambda: len(accepted) > 0)
        router.close()

    asyncio.run(main())


def test_h01_a_connection_from_an_unknown_address_is_closed_without_a_byte() -> None:
    async def main() -> None:
        async with pair() as p:
            p.connect()
            await until(lambda: p.up)
            reader, writer = await asyncio.open_connection(B, p.port, local_addr=("127.0.0.9", 0))
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()
            assert p.up

    asyncio.run(main())


def test_h10_a_reset_connection_is_established_again() -> None:
    async def main() -> None:
        async with pair() as p:
            p.connect()
            await until(lambda: p.up)
            (connection,) = p.a._inputs.transports._connections.values()
            assert connection._transport is not None
            connection._transport.abort()
            await until(lambda: p.b.peers()[0].flaps == 1)
            await until(lambda: p.up)

    asyncio.run(main())


def _md5_works() -> bool:
    from speaker.server.sockets import set_password

    with socket.socket() as sock:
        try:
            set_password(sock, A, Secret("x"))
        except OSError:
            return False
    return True


needs_md5 = pytest.mark.skipif(not _md5_works(), reason="the kernel has no TCP MD5")


@needs_md5
def test_h14_equal_passwords_make_a_session_with_authentication_in_the_status() -> None:
    async def main() -> None:
        async with pair() as p:
            p.connect(at_a=Secret("geheim"), at_b=Secret("geheim"))
            await until(lambda: p.up)
            assert p.a.peers()[0].authentication == "TCP MD5"

    asyncio.run(main())


@needs_md5
@pytest.mark.parametrize(
    ("at_a", "at_b"), [(None, Secret("x")), (Secret("x"), None), (Secret("x"), Secret("y"))]
)
def test_h14_unequal_passwords_make_no_session(at_a: Secret | None, at_b: Secret | None) -> None:
    async def main() -> None:
        async with pair() as p:
            p.connect(at_a=at_a, at_b=at_b)
            await session_elsewhere()
            assert not p.a.peers()[0].established
            assert not p.b.peers()[0].established
            assert p.a.peers()[0].reason

    asyncio.run(main())


@needs_md5
def test_h14_a_password_is_changed_and_removed_without_a_restart() -> None:
    async def main() -> None:
        async with pair() as p:
            p.connect(at_a=Secret("one"), at_b=Secret("one"))
            await until(lambda: p.up)
            p.connect(at_a=Secret("two"), at_b=Secret("two"))
            await until(lambda: p.b.peers()[0].flaps >= 1)
            await until(lambda: p.up)
            p.connect()
            await until(lambda: p.b.peers()[0].authentication is None)
            await until(lambda: p.up)

    asyncio.run(main())


def test_h14_a_kernel_that_refuses_the_key_makes_no_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from speaker.server import sockets

    def refuse(*_: object) -> None:
        raise sockets.SocketError(f"TCP MD5 for {B}", OSError(95, "Operation not supported"))

    async def main() -> None:
        async with pair() as p:
            monkeypatch.setattr(sockets, "set_password", refuse)
            p.connect(at_a=Secret("x"), at_b=Secret("x"))
            await until(lambda: "TCP MD5" in p.a.peers()[0].reason)
            assert "TCP MD5 for 127.0.0.1" in (p.b.instances()[0].listen_error or "")
            # A connection without the key is refused, although the kernel accepts it.
            p.a.set_peer(
                NAME,
                PeerConfig(
                    name="b", address=B, port=p.port, peer_asn=65002, local_address=A,
                    connect_retry_time=1,
                ),
            )  # fmt: skip
            await until(lambda: p.a.peers()[0].failures >= 2)
            assert not p.b.peers()[0].established
            assert not p.a.peers()[0].established

    asyncio.run(main())


def test_a_source_address_that_is_not_local_is_named() -> None:
    async def main() -> None:
        async with pair() as p:
            p.a.set_peer(
                NAME,
                PeerConfig(
                    name="b", address=B, port=p.port, peer_asn=65002, local_address="192.0.2.77"
                ),
            )
            await until(lambda: "192.0.2.77" in p.a.peers()[0].reason)

    asyncio.run(main())


class _Spans(SpanExporter):
    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.spans.extend(spans)
        return SpanExportResult.SUCCESS


def test_a_recording_span_gets_a_child_for_each_group_that_is_sent_updates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exporter = _Spans()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)

    async def main() -> None:
        async with pair() as p:
            p.connect()
            await until(lambda: p.up)
            p.a.update_routes(NAME, "s", routes("10.9.0.0/16"))
            await until(lambda: p.received() == {"10.9.0.0/16"})
            assert exporter.spans == []
            with provider.get_tracer("test").start_as_current_span("round") as span:
                p.a.update_routes(NAME, "s", routes("10.1.0.0/16", "10.2.0.0/16"))
            await until(lambda: len(p.received()) == 3)
            (sent,) = [s for s in exporter.spans if s.name == "bgp.update.send"]
            (export,) = [s for s in exporter.spans if s.name == "bgp.export"]
            assert export.parent == span.get_span_context()
            assert sent.parent == export.context
            attributes = dict(sent.attributes or {})
            assert attributes["network.peer.address"] == B
            assert (attributes["bgp.instance"], attributes["bgp.peers"]) == (NAME, ("b",))
            assert (attributes["bgp.prefix_count"], attributes["bgp.update_count"]) == (2, 1)
            assert attributes["bgp.octet_count"] > 40  # type: ignore[operator]  # it is a number

    asyncio.run(main())


def test_a_change_that_sends_nothing_is_no_cause_of_a_later_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provider = TracerProvider()
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)

    async def main() -> None:
        async with pair() as p:
            with provider.get_tracer("test").start_as_current_span("round"):
                # There is no session yet.
                p.a.update_routes(NAME, "s", routes("10.1.0.0/16"))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert p.a._inputs.trace_links.contexts == []

    asyncio.run(main())


def test_a_reader_of_best_paths_learns_the_span_that_caused_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exporter = _Spans()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)

    async def main() -> None:
        async with pair() as p:
            reader = p.a.follow_best_paths(NAME)
            await reader.wait()
            assert list(reader.take_causes()) == []
            assert reader.take()
            with provider.get_tracer("test").start_as_current_span("round") as span:
                p.a.update_local(NAME, routes("10.1.0.0/16"))
            await reader.wait()
            (cause,) = reader.take_causes()
            assert reader.take()
            (export,) = (each for each in exporter.spans if each.name == "bgp.export")
            assert cause == export.context
            assert export.parent == span.get_span_context()
            assert list(reader.take_causes()) == []

    asyncio.run(main())


def test_an_unknown_instance_is_an_error_and_commands_before_start_are_queued() -> None:
    async def main() -> None:
        speaker = Speaker()
        speaker.set_instance(InstanceConfig(name=NAME, local_asn=1, router_id="192.0.2.1"))
        speaker.set_peer(NAME, PeerConfig(name="p", address=B, passive=True))
        async with speaker:
            assert [status.name for status in speaker.peers()] == ["p"]
            with pytest.raises(UnknownName, match="there is no instance 'x'"):
                speaker.update_routes("x", "s", {})
            with pytest.raises(UnknownName):
                speaker.set_peer("x", PeerConfig(name="p", address=B))

    asyncio.run(main())


def test_an_instance_without_listen_addresses_does_not_listen() -> None:
    async def main() -> None:
        async with pair() as p:
            assert p.a.instances()[0].listening == ()
            p.b.remove_instance(NAME)
            await until(lambda: not p.b.instances())
            with socket.socket() as probe:
                assert probe.connect_ex((B, p.port)) != 0

    asyncio.run(main())


def test_every_change_of_routes_is_linked_to_the_span_that_causes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provider = TracerProvider()
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)

    async def main() -> None:
        async with pair() as p:
            speaker = p.a
            noted: list[SpanContext] = []
            monkeypatch.setattr(
                TraceLinks,
                "note",
                lambda _: noted.append(trace.get_current_span().get_span_context()),
            )
            other = InstanceConfig(name="other", local_asn=65001, router_id="192.0.2.1")
            config = PeerConfig(name="late", address="192.0.2.9", passive=True)
            calls: tuple[Callable[[], object], ...] = (
                lambda: speaker.set_instance(other),
                lambda: speaker.set_peer(NAME, config),
                lambda: speaker.update_routes(NAME, "s", routes("10.1.0.0/16")),
                lambda: speaker.remove_route_set(NAME, "s"),
                lambda: speaker.paths_down([PathDown(NAME, "late")]),
                lambda: speaker.set_next_hop_metrics(NAME, {}),
                lambda: speaker.remove_peer(NAME, "late"),
                lambda: speaker.remove_instance("other"),
            )
            for call in calls:
                with provider.get_tracer("test").start_as_current_span("round") as span:
                    call()
                assert noted == [span.get_span_context()]
                noted.clear()

    asyncio.run(main())


def test_the_loss_of_a_path_is_published_before_the_call_returns() -> None:
    """What follows the events removes kernel routes within the turn in which BFD's report came."""

    async def main() -> None:
        async with pair() as p:
            p.connect()
            await until(lambda: p.up)
            p.events.clear()
            p.a.paths_down([PathDown(NAME, "b", "Control Detection Time Expired")])
            (lost,) = (event for event in p.events if isinstance(event, StateChanged))
            assert (lost.peer, lost.old) == ("b", ESTABLISHED)
            assert lost.new != ESTABLISHED

    asyncio.run(main())


def test_a_time_of_the_past_depends_on_no_wait_between_two_clocks() -> None:
    clocks = TwoClocks()
    speaker = Speaker(clock=clocks.clock, wall_clock=clocks.wall_clock)
    speaker.set_instance(InstanceConfig(name=NAME, local_asn=65001, router_id="192.0.2.1"))
    config = PeerConfig(name="b", address=B, peer_asn=65002, passive=True, import_="all")
    speaker.set_peer(NAME, config)
    speaker.set_collectors([BmpCollector(name="c", address=B, port=1)])

    def since() -> list[float]:
        return [*(i.since for i in speaker.peers()), *(i.since for i in speaker.collectors())]

    async def main() -> None:
        await speaker.start()
        before = since()
        for wait in (0.0, 0.3, 0.0, 20.0, 0.004):
            clocks.wait = wait
            assert since() == before, wait
        # A step of the clock is no wait: the times move with the clock, and ages stay.
        clocks.wait = 0.0
        for step in (30, -86_400):
            clocks.ahead += step
            before = [item + step for item in before]
            assert since() == pytest.approx(before, abs=1e-3)
        await speaker.stop()

    asyncio.run(main())
