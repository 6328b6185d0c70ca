"""The agents of a BFD process: which of them keep it, in virtual time and without sessions."""

from __future__ import annotations

import errno
import gc
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from reconcilers.bfd.process.process_messages import (
    CODEC,
    REPORT_SECONDS,
    Hello,
    Message,
    RemoveSessions,
    SetSessions,
    Wanted,
)
from reconcilers.bfd.process.realtime import RealTime
from reconcilers.bfd.process.service import BfdService, Policy
from speaker.bfd.session_values import SessionKey, Settings, State
from tests.support.two_clocks import TwoClocks

ALONE = 600.0


class Process:
    """A process on a socket of the test."""

    def __init__(self, folder: Path) -> None:
        self.clocks = TwoClocks(now=0.0)
        self.path = str(folder / "bfd.sock")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(8)
        policy = Policy(alone_seconds=ALONE)
        self.service = BfdService(
            self.listener,
            "waggle-bfd",
            RealTime(True, True),
            policy,
            clock=self.clocks.microseconds,
            wall_clock=self.clocks.wall_clock,
        )

    def turns(self, number: int = 4) -> None:
        for _ in range(number):
            # A turn would wait for a packet.
            self.service._wake[1].send(b"\0")
            self.service.turn()

    def agent(self, *versions: int) -> None:
        """Have an agent with these versions connect, and end."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as agent:
            agent.connect(self.path)
            self.turns()
            agent.sendall(CODEC.encode(Hello("test", cast("tuple[int, int]", versions))))
            self.turns()
        self.turns()

    def close(self) -> None:
        self.service._disconnect("the test ends")
        self.service._shell.close()
        for end in (self.listener, *self.service._wake):
            end.close()

    @property
    def ends(self) -> bool:
        return self.service._ending


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    found = Process(tmp_path)
    yield found
    found.close()


def test_agents_that_come_back_keep_the_process(process: Process) -> None:
    for _ in range(3):
        process.clocks.now += ALONE - 1
        process.agent(1, 1)
        assert not process.ends
    process.clocks.now += ALONE
    process.turns()
    assert process.ends


def test_agents_of_another_version_do_not_keep_it(process: Process) -> None:
    """They could not have BFD for ever: the process that they cannot use would never go."""
    process.clocks.now = ALONE - 1
    process.agent(8, 9)
    assert not process.ends
    process.clocks.now = ALONE
    process.agent(8, 9)
    assert process.ends


def test_a_connection_that_cannot_be_accepted_is_tried_again_later(process: Process) -> None:
    """Without descriptors it stays in the queue, and woke the process without a pause."""
    accepted: list[bool] = []

    class Listener:
        def fileno(self) -> int:
            return process.listener.fileno()

        def accept(self) -> Any:  # noqa: ANN401
            accepted.append(len(accepted) > 0)
            if accepted[-1]:
                return process.listener.accept()
            raise OSError(errno.EMFILE, "Too many open files")

    process.service._listener = cast("socket.socket", Listener())
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as agent:
        agent.connect(process.path)
        process.turns(20)
        assert accepted == [False]
        process.clocks.now += REPORT_SECONDS
        process.turns()
        assert accepted == [False, True]


def test_a_time_of_the_past_moves_with_a_step_of_the_clock_as_one_of_bgp(process: Process) -> None:
    """Its age is counted from it, and a node may start before it knows the time."""
    key, clocks = SessionKey("192.0.2.9", "", "no-such-device"), process.clocks
    service, began = process.service, 100.0
    clocks.now = began
    service._set({key: Settings()})
    assert service._status(key).since == clocks.wall_clock()
    for step in (0.0, 86_400.0, -2 * 86_400.0):
        clocks.now += 3600
        clocks.ahead += step
        for wait in (0.0, 0.3, 20.0, 0.0):
            clocks.wait = wait
            since = service._status(key).since
            assert since == pytest.approx(began + clocks.ahead, abs=2e-3), (step, wait)
    service._set({key: Settings(admin_down=True)})
    status = service._status(key)
    assert status.state is State.ADMIN_DOWN
    assert status.since == pytest.approx(clocks.wall_clock(), abs=2e-3)


def test_the_collector_does_not_look_at_sessions(process: Process) -> None:
    """Nor at sessions of later settings: a thousand are some milliseconds in each full collection."""
    try:
        gc.unfreeze()
        process.service._set({SessionKey("192.0.2.9", "", "no-such-device"): Settings()})
        (session,) = process.service._engine.sessions.values()
        assert gc.get_freeze_count() > 0
        assert not any(session is each for each in gc.get_objects())
    finally:
        gc.unfreeze()


# ------------------------------------------------------------------ a second agent

KEY = SessionKey("192.0.2.9", "", "no-such-device")


def greeted(process: Process, *messages: Message) -> socket.socket:
    """Connect as an agent, which sends its greeting and messages at once."""
    agent = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    agent.connect(process.path)
    agent.sendall(b"".join(map(CODEC.encode, (Hello("test"), *messages))))
    process.turns()
    agent.setblocking(False)
    return agent


def is_served(agent: socket.socket) -> bool:
    """Return whether the process has greeted an agent, and has not ended its connection since."""
    octets = b""
    try:
        while piece := agent.recv(1 << 16):
            octets += piece
    except BlockingIOError:
        return octets != b""
    except ConnectionResetError:
        pass
    return False


def test_a_second_agent_takes_no_session_from_the_first(
    process: Process, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of another unit on the node, with the same directory: it would remove what it does not know."""
    with greeted(process) as first:
        assert is_served(first)
        first.sendall(CODEC.encode(SetSessions((Wanted(KEY, Settings()),))))
        process.turns()
        for _ in range(3):
            with greeted(process, RemoveSessions((KEY,))) as second:
                assert not is_served(second)
        assert is_served(first)
        assert process.service._wanted == {KEY: Settings()}
        assert capfd.readouterr().err.count("a second agent connected") == 1


def test_the_next_agent_is_served_as_soon_as_the_first_has_ended(process: Process) -> None:
    """Its connection may be accepted before the end of the other one is read."""
    first = greeted(process)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as second:
        second.connect(process.path)
        second.sendall(CODEC.encode(Hello("test")))
        first.close()
        process.turns()
        second.setblocking(False)
        assert is_served(second)


def test_a_connection_without_a_word_is_no_agent(process: Process) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        silent.connect(process.path)
        process.turns()
        with greeted(process) as agent:
            assert is_served(agent)
