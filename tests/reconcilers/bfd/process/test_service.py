"""The BFD process in namespaces: its sessions outlive agents, and its own end."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
from pathlib import Path
from typing import cast

import pytest

from reconcilers.bfd.process.process_messages import (
    Changes,
    ProcessStatus,
    RemoveSessions,
    SetSessions,
    Wanted,
)
from reconcilers.bfd.process.service import BY_KERNEL, BfdService, serve
from speaker.bfd.packet import encode
from speaker.bfd.session_values import Diagnostic, SessionKey, Settings, State
from speaker.bfd.transport import SINGLE_HOP_PORT
from tests.speaker.bfd.test_packet import PACKET
from tests.support.bfd_process import bfd_in
from tests.support.netns import Link
from tests.support.packet_flood import flood_from, packet

pytestmark = [pytest.mark.netns, pytest.mark.program]

LEFT, RIGHT = "192.0.2.1", "192.0.2.2"
TO_RIGHT, TO_LEFT = SessionKey(RIGHT, ""), SessionKey(LEFT, "")
MULTIPLIER = 3
SETTINGS = Settings(100_000, 100_000, MULTIPLIER)
RESTARTS = 3
STOPS = 4
FLOOD_SECONDS = 1.0
FLOOD_PACKETS = 20_000


def test_sessions_outlive_agents_and_the_process_itself(link: Link) -> None:
    link.connect(LEFT, RIGHT)
    with bfd_in(link.left) as ours, bfd_in(link.right) as theirs:
        ours.set(TO_RIGHT, SETTINGS)
        theirs.set(TO_LEFT, SETTINGS)
        before = theirs.wait_up(TO_LEFT)
        known = ours.wait_up(TO_RIGHT)
        assert known.settings == SETTINGS

        # Agents come and go.
        for _ in range(3):
            ours.disconnect()
            assert ours.connect()[TO_RIGHT].ups == known.ups

        # The process is killed: its keeper starts the next one, before any agent comes.
        for _ in range(RESTARTS):
            os.kill(ours.worker(), signal.SIGKILL)
            ours.wait_up(TO_RIGHT)
        again = ours.wait_up(TO_RIGHT)
        assert again.local_discriminator == known.local_discriminator
        # Packets of the process that was started last, for longer than the detection time.
        after = theirs.status(TO_LEFT)
        while theirs.status(TO_LEFT).packets_received < after.packets_received + 2 * MULTIPLIER:
            pass
        after = theirs.status(TO_LEFT)
        assert after.state is State.UP
        assert after.ups == before.ups, "the neighbor has noticed nothing"

        # Other settings change no state; the interval in use follows by a Poll Sequence.
        ours.set(TO_RIGHT, Settings(desired_min_tx=200_000, required_min_rx=200_000))
        while theirs.status(TO_LEFT).transmit_interval != 200_000:
            pass
        assert theirs.status(TO_LEFT).ups == before.ups

        # A removed session is AdminDown for its neighbor, at once.
        theirs.drained()
        ours.send(RemoveSessions((TO_RIGHT,)))
        (change,) = theirs.expect(Changes, lambda seen: seen.changes[-1].before is State.UP).changes
        assert (change.before, change.after) == (State.UP, State.DOWN)
        assert change.diagnostic == Diagnostic.NEIGHBOR_SIGNALED_SESSION_DOWN
        assert change.remote_state is State.ADMIN_DOWN
        assert ours.connect() == {}


def test_sessions_outlive_the_whole_process(link: Link) -> None:
    """Keeper and sessions end together, as a container does: the next one has only the files."""
    link.connect(LEFT, RIGHT)
    # The neighbor waits for 25 s: a busy machine starts the program in less.
    patient = Settings(desired_min_tx=100_000, required_min_rx=100_000, detect_multiplier=250)
    with bfd_in(link.left) as ours, bfd_in(link.right) as theirs:
        ours.set(TO_RIGHT, patient)
        theirs.set(TO_LEFT, SETTINGS)
        known = ours.wait_up(TO_RIGHT)
        before = theirs.wait_up(TO_LEFT)
        while theirs.status(TO_LEFT).detection_time != 25_000_000:
            pass

        ours.kill_whole()
        ours.start()

        # No agent has set a session.
        again = ours.connect()[TO_RIGHT]
        assert (again.state, again.settings) == (State.UP, patient)
        assert again.local_discriminator == known.local_discriminator
        received = again.packets_received
        while ours.status(TO_RIGHT).packets_received < received + 2 * MULTIPLIER:
            pass
        assert ours.status(TO_RIGHT).state is State.UP
        after = theirs.status(TO_LEFT)
        assert (after.state, after.ups) == (State.UP, before.ups), (
            "the neighbor has noticed nothing"
        )


def test_a_second_process_on_the_node_ends_no_session_of_the_first(link: Link) -> None:
    """A router with BFD beside an agent, or BFD of another program: the port is the first one's."""
    link.connect(LEFT, RIGHT)
    with bfd_in(link.left) as ours, bfd_in(link.right) as theirs:
        ours.set(TO_RIGHT, SETTINGS)
        theirs.set(TO_LEFT, SETTINGS)
        ours.wait_up(TO_RIGHT)
        before = theirs.wait_up(TO_LEFT)
        with bfd_in(link.left) as second:
            second.set(TO_RIGHT, SETTINGS)
            while second.status(TO_RIGHT).problem != "Address already in use":
                pass
            # Of a session that is not Up a packet is sent each second.
            received = theirs.status(TO_LEFT).packets_received
            while theirs.status(TO_LEFT).packets_received < received + 25:
                pass
            after = theirs.status(TO_LEFT)
            assert (after.state, after.ups) == (State.UP, before.ups)
            # The first one ends, and its session is the second one's to have.
            ours.kill_whole()
            second.wait_up(TO_RIGHT)


def test_a_process_that_stood_still_has_lost_no_session(link: Link) -> None:
    """The packets of the neighbor have arrived meanwhile: they are read before a deadline is judged."""
    link.connect(LEFT, RIGHT)
    # What the neighbor takes for lost has a longer time.
    quick = Settings(desired_min_tx=50_000, required_min_rx=50_000, detect_multiplier=8)
    patient = Settings(desired_min_tx=200_000, required_min_rx=50_000, detect_multiplier=250)
    with bfd_in(link.left) as ours, bfd_in(link.right) as theirs:
        ours.set(TO_RIGHT, patient)
        theirs.set(TO_LEFT, quick)
        ours.wait_up(TO_RIGHT)
        while (status := ours.status(TO_RIGHT)).detection_time != 400_000:
            pass
        for _ in range(STOPS):
            received = status.packets_received
            # Without anything to do but to wait for packets: a signal ends such a wait.
            time.sleep(3 * quick.desired_min_tx / 1e6)
            os.kill(ours.worker(), signal.SIGSTOP)
            time.sleep(1.5 * status.detection_time / 1e6)
            os.kill(ours.worker(), signal.SIGCONT)
            while status.packets_received < received + 20:
                status = ours.status(TO_RIGHT)
        assert (status.state, status.ups) == (State.UP, 1)


def test_a_flood_of_strangers_ends_no_session_and_costs_the_process_nothing(link: Link) -> None:
    """Under other addresses from the link, and under the neighbor's from afar, with less than 255."""
    link.connect(LEFT, RIGHT)
    with bfd_in(link.left) as ours, bfd_in(link.right) as theirs:
        patient = Settings(desired_min_tx=50_000, required_min_rx=50_000, detect_multiplier=20)
        ours.set(TO_RIGHT, patient)
        theirs.set(TO_LEFT, patient)
        ours.wait_up(TO_RIGHT)
        ours.expect(ProcessStatus)
        before, began = _processor_seconds(ours.worker()), time.monotonic()
        sources = (("192.0.2.77", 255), (RIGHT, 254), (RIGHT, 64), (RIGHT, 1))
        octets = encode(PACKET)
        packets = [packet(source, LEFT, ttl, SINGLE_HOP_PORT, octets) for source, ttl in sources]
        sent = flood_from(link.right, FLOOD_SECONDS, LEFT, packets, least=FLOOD_PACKETS)
        took = _processor_seconds(ours.worker()) - before
        elapsed = time.monotonic() - began
        status = ours.status(TO_RIGHT)
        assert (status.state, status.ups) == (State.UP, 1)
        # A packet that reaches Python costs some 2 microseconds; the session itself costs the rest.
        assert took < sent * 0.6e-6 + 0.02 * max(1.0, elapsed)
        own = ours.expect(
            ProcessStatus, lambda seen: any(d.reason == BY_KERNEL for d in seen.discarded)
        )
        assert own.realtime


def _processor_seconds(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def test_the_end_of_a_pod_is_no_failure_for_neighbors(link: Link) -> None:
    link.connect(LEFT, RIGHT)
    with bfd_in(link.right) as theirs:
        with bfd_in(link.left, "--at-end", "admin-down") as ours:
            ours.set(TO_RIGHT, SETTINGS)
            theirs.set(TO_LEFT, SETTINGS)
            theirs.wait_up(TO_LEFT)
        # The change to Up may come after the status that has it.
        (change,) = theirs.expect(Changes, lambda seen: seen.changes[-1].before is State.UP).changes
        assert change.remote_state is State.ADMIN_DOWN


MAY_LOCK = "import ctypes; print(ctypes.CDLL(None).mlockall(7))"
"""A program that locks its memory as the BFD process does: current, future, on fault."""


def _kilobytes(pid: int) -> dict[str, int]:
    """Return what the kernel has of a process's memory."""
    lines = (line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {words[0].rstrip(":"): int(words[1]) for words in lines if words[0].startswith("Vm")}


def test_all_memory_of_the_process_is_locked(link: Link) -> None:
    """A page that is read from a disk takes longer than an interval."""
    if link.left.run(sys.executable, "-c", MAY_LOCK).strip() != "0":
        pytest.skip("memory cannot be locked here, without CAP_IPC_LOCK or RLIMIT_MEMLOCK")
    link.connect(LEFT, RIGHT)
    with bfd_in(link.left) as ours:
        assert ours.expect(ProcessStatus).memory_locked
        memory = _kilobytes(ours.worker())
        assert memory["VmLck"] >= memory["VmRSS"] > 0
        # Memory of later sessions is locked, and so is that of the next process.
        ours.send(
            SetSessions(
                tuple(Wanted(SessionKey(f"192.0.2.{n}", ""), SETTINGS) for n in range(2, 250))
            )
        )
        while len(ours.connect()) < 248:
            pass
        os.kill(ours.worker(), signal.SIGKILL)
        assert len(ours.connect()) == 248
        assert ours.expect(ProcessStatus).memory_locked
        memory = _kilobytes(ours.worker())
        assert memory["VmLck"] >= memory["VmRSS"] > 0


def test_the_collector_looks_at_nothing_that_is_there_when_the_service_begins() -> None:
    frozen: list[int] = []

    class Service:
        def run(self) -> None:
            frozen.append(gc.get_freeze_count())

        def end(self) -> None:
            raise AssertionError

    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        gc.unfreeze()
        serve(cast("BfdService", Service()))
        assert frozen[0] > len(gc.get_objects())
    finally:
        gc.unfreeze()
        for number, handler in handlers.items():
            signal.signal(number, handler)


def test_without_real_time_short_intervals_are_raised(link: Link) -> None:
    link.connect(LEFT, RIGHT)
    lacking = "-sys_nice,-ipc_lock"
    with bfd_in(link.left, "--least-interval", "250", lacking=lacking) as ours:
        ours.set(TO_RIGHT, SETTINGS)
        status = ours.status(TO_RIGHT)
        assert status.settings == SETTINGS
        assert (status.desired_min_tx, status.required_min_rx) == (250_000, 250_000)
        own = ours.expect(ProcessStatus)
        assert own.memory_locked is (_kilobytes(ours.worker())["VmLck"] > 0)
        assert not own.realtime
        assert own.least_interval == 250_000
        assert any("CAP_SYS_NICE" in problem for problem in own.problems)


def test_the_process_keeps_no_capability_that_it_does_not_need(link: Link) -> None:
    with bfd_in(link.left) as ours:
        own = ours.expect(ProcessStatus)
        (line,) = (
            line
            for line in Path(f"/proc/{ours.worker()}/status").read_text().splitlines()
            if line.startswith("CapEff")
        )
        assert int(line.split()[1], 16) in (0, 1 << 14)
        assert own.realtime == (not own.problems or own.least_interval == 0)
