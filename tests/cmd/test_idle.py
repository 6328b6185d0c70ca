"""An idle agent does not wake up: the kernel reports changes of files, and nothing polls."""

from __future__ import annotations

import socket
import struct
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cmd.lab import NODE, configuration, established, service
from tests.support.agent import Agent
from tests.support.wait import eventually

SESSIONS = 100
SAMPLES, SAMPLE_SECONDS = 12, 0.5
"""Six seconds are measured, from any sample on."""
_MARKER = b"\xff" * 16


def _open(router_id: int) -> bytes:
    """Return an OPEN of AS 65000 with hold time 0 (RFC 4271 section 4.2): no keepalives follow."""
    capabilities = bytes([1, 4, 0, 1, 0, 1])
    parameters = bytes([2, len(capabilities)]) + capabilities
    body = struct.pack("!BHHIB", 4, 65000, 0, router_id, len(parameters)) + parameters
    return _MARKER + struct.pack("!HB", 19 + len(body), 1) + body


def _answer(listener: socket.socket, connections: list[socket.socket]) -> None:
    """Accept sessions until the listener closes; what they send is not read."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        connection.sendall(_open(0xC0000200 + len(connections)) + _MARKER + b"\0\x13\x04")
        connections.append(connection)


@contextmanager
def silent_peers() -> Iterator[int]:
    """Listen at all loopback addresses on one port, which is yielded."""
    connections: list[socket.socket] = []
    with socket.create_server(("0.0.0.0", 0), backlog=SESSIONS) as listener:
        thread = threading.Thread(target=_answer, args=(listener, connections))
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in connections:
                connection.close()


def wake_ups(pid: int) -> int:
    """Return how often the threads of a process have gone to sleep (proc(5))."""
    found = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        for line in status.read_text().splitlines():
            name, _, value = line.partition(":")
            if name == "voluntary_ctxt_switches":
                found += int(value)
    return found


@pytest.mark.program
def test_an_idle_agent_wakes_up_less_than_twice_a_second(tmp_path: Path) -> None:
    """One without sessions and one with a hundred, measured at the same time."""
    agents = {
        count: Agent(None, tmp_path / f"{count}-sessions", node=NODE) for count in (0, SESSIONS)
    }
    with silent_peers() as port:
        try:
            for count, agent in agents.items():
                items = [*configuration([port] * count), service("web", "198.51.100.10")]
                agent.write_objects("all.json", *items)
                agent.start()
            for count, agent in agents.items():
                agent.wait_ready()
                established(agent, count)
            samples: deque[dict[int, int]] = deque(maxlen=SAMPLES + 1)

            def idle() -> None:
                """Fail unless little has happened in the last samples: the start is over."""
                samples.append({n: wake_ups(agent.daemon.pid) for n, agent in agents.items()})
                assert len(samples) > SAMPLES
                found = {count: samples[-1][count] - samples[0][count] for count in agents}
                assert max(found.values()) < 2 * SAMPLES * SAMPLE_SECONDS, found

            eventually(idle, interval=SAMPLE_SECONDS)
        finally:
            for agent in agents.values():
                agent.stop()
