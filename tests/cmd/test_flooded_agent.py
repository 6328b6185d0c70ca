"""A real agent whose page and socket are flooded: its sessions keep their times, and it answers."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from cells.api.agent_socket import connected
from cells.observability.http_connections import MAX_CONNECTIONS
from tests.cmd.lab import NODE, configuration, established, routers, service
from tests.support.agent import Agent
from tests.support.ports import free_port

pytestmark = pytest.mark.program
HOLD_SECONDS = 90
"""A busy machine keeps no process from running for so long."""
FLOOD_SECONDS = 6
KEEPALIVES = 5
"""Of each router within a flood, which is compared then: there is one a second, or somewhat more."""
FEWER = 2
"""KEEPALIVEs by which the agent may differ from a router: both vary their times (RFC 4271, 10)."""
KEPT = 2
"""Floods in which each session keeps its times, before as many in which one does not."""
FLOODS = 10
"""Tries: on a machine that is busy otherwise the routers lose their times as well."""
SERVICES = 1000
CLIENTS = 2 * MAX_CONNECTIONS
"""Connections that each flood keeps open, at the most."""
LEAST = MAX_CONNECTIONS // 4
"""Connections that each flood makes: a thread that gets little of a busy machine goes on for longer."""
LAST_SECONDS = 120.0
"""The end of a flood that cannot connect."""
LARGE = b"GET /v1/routes HTTP/1.1\r\nHost: localhost\r\n\r\n"
Connect = Callable[[], socket.socket]


def flood(connect: Connect, sent: bytes, counts: list[int]) -> None:
    """Connect again and again, send this, and read nothing; the oldest connections are closed."""
    held: list[socket.socket] = []
    began = time.monotonic()
    while (took := time.monotonic() - began) < LAST_SECONDS:
        if took > FLOOD_SECONDS and counts[0] >= LEAST:
            break
        try:
            sock = connect()
        except OSError:
            time.sleep(0.01)
            continue
        try:
            sock.sendall(sent)
        except OSError:
            sock.close()
            continue
        counts[0] += 1
        held.append(sock)
        if len(held) > CLIENTS:
            held.pop(0).close()
    for sock in held:
        sock.close()


@contextlib.contextmanager
def flooded(*connects: Connect) -> Iterator[list[list[int]]]:
    """Flood each address with silent clients, half requests and answers that are not read."""
    counts: list[list[int]] = []
    threads = []
    for connect in connects:
        for sent in (b"", b"GET /v1/pe", LARGE, b"\0" * 1000):
            counts.append([0])
            arguments = (connect, sent, counts[-1])
            threads.append(threading.Thread(target=flood, args=arguments))
            threads[-1].start()
    yield counts
    for thread in threads:
        thread.join()


class Keepalives(NamedTuple):
    """KEEPALIVEs of a session in one flood."""

    of_agent: int
    of_router: int
    """The control: the router is on the same machine, and has no other clients."""


def keepalives(agent: Agent) -> dict[str, Keepalives]:
    """Return how many each session has sent and received, by peer."""
    of_agent, of_router = (
        {
            item["labels"]["peer"]: int(item["value"])
            for item in agent.ask("/v1/metrics", name=f"waggle_bgp_messages_{direction}_total")
            if item["labels"]["type"] == "keepalive"
        }
        for direction in ("sent", "received")
    )
    assert len(of_agent) == len(of_router) == 2
    return {peer: Keepalives(of_agent[peer], of_router[peer]) for peer in of_agent}


def test_sessions_keep_their_times_under_slow_silent_and_flooding_clients(tmp_path: Path) -> None:
    port = free_port("127.0.0.1")
    with routers(tmp_path, 2, holdTime=HOLD_SECONDS, keepaliveTime=1) as ports:
        objects = configuration(ports)
        for item in objects:
            if item["kind"] == "CiliumBGPPeerConfig":
                timers = item["spec"]["timers"]
                timers |= {"holdTimeSeconds": HOLD_SECONDS, "keepAliveTimeSeconds": 1}
        services = [service(f"s{n}", f"198.18.{n >> 8}.{n & 255}") for n in range(SERVICES)]
        arguments = ("--enable-cell", "cilium", "--page-address", f"127.0.0.1:{port}")
        agent = Agent(None, tmp_path / "agent", node=NODE, arguments=arguments)
        agent.write_objects("all.json", *objects, *services)
        agent.start()
        try:
            established(agent, 2)
            before = {name: item["sinceTime"] for name, item in agent.peers().items()}

            def to_page() -> socket.socket:
                return socket.create_connection(("127.0.0.1", port), timeout=60)

            def to_socket() -> socket.socket:
                return connected(agent.socket, 10)

            kept, lost = 0, list[list[Keepalives]]()
            for _ in range(FLOODS):
                earlier = keepalives(agent)
                with flooded(to_page, to_socket) as counts:
                    pass
                assert all(count >= LEAST for (count,) in counts), counts
                sessions = [
                    Keepalives(
                        *(now - then for now, then in zip(counted, earlier[peer], strict=True))
                    )
                    for peer, counted in keepalives(agent).items()
                ]
                if min(session.of_router for session in sessions) < KEEPALIVES:
                    continue
                if all(session.of_agent >= session.of_router - FEWER for session in sessions):
                    kept += 1
                else:
                    lost.append(sessions)
                if KEPT in (kept, len(lost)):
                    break
            assert kept == KEPT, (kept, lost)
            # It answers at both, and each session is the one of before.
            after = {name: item["sinceTime"] for name, item in agent.peers().items()}
            assert after == before
            page = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            page.request("GET", "/v1/peers")
            states = json.loads(page.getresponse().read())["items"]
            assert [item["state"] for item in states] == ["Established", "Established"]
            page.close()
        finally:
            agent.stop()
