"""The program ``waggle-bfd`` in a network namespace, and the agent's end of its connection."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from reconcilers.bfd.process.process_messages import (
    CODEC,
    Hello,
    Message,
    SessionStatus,
    SetSessions,
    Statuses,
    Wanted,
)
from speaker.bfd.session_values import SessionKey, Settings, State
from tests.support.netns import Namespace
from tests.support.socket_program import END_SECONDS, SocketProgram


class BfdProcess(SocketProgram[Message]):
    """A BFD process, its files in a folder."""

    def __init__(self, side: Namespace, folder: Path, *flags: str, lacking: str = "") -> None:
        """``lacking``: capabilities that the program does not get, as setpriv has them."""
        path = folder / "bfd.sock"
        without = ["setpriv", "--bounding-set", lacking] if lacking else []
        program = [sys.executable, "-m", "waggle_bfd", "--socket", str(path)]
        state = ["--state-directory", str(folder / "state")]
        command = [*side.command(), *without, *program, *state, *flags]
        super().__init__(command, path, CODEC, Hello("test"))

    def connect(self) -> dict[SessionKey, SessionStatus]:
        """Connect as a new agent, and return the sessions that the process has."""
        self.greet()
        sessions: dict[SessionKey, SessionStatus] = {}
        while True:
            piece = self.expect(Statuses)
            sessions.update((status.key, status) for status in piece.sessions)
            if piece.last:
                return sessions

    def worker(self) -> int:
        """Return the process with the sessions: the child of its keeper."""
        pid = self.process.pid
        (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return int(child)

    def kill_whole(self) -> None:
        """Kill keeper and sessions, as a container ends; both have ended at the return."""
        worker = os.pidfd_open(self.worker())
        try:
            # The keeper first, which would replace the other one.
            self.kill()
            signal.pidfd_send_signal(worker, signal.SIGKILL)
            select.select([worker], [], [], END_SECONDS)
        finally:
            os.close(worker)

    def set(self, key: SessionKey, settings: Settings) -> None:
        """Set a session, and wait until the process has it."""
        self.send(SetSessions((Wanted(key, settings),)))
        self.expect(
            Statuses, lambda m: any((s.key, s.settings) == (key, settings) for s in m.sessions)
        )

    def status(self, key: SessionKey) -> SessionStatus:
        """Return the status of a session, as of now."""
        return self.connect()[key]

    def wait_up(self, key: SessionKey) -> SessionStatus:
        """Wait until a session is Up."""
        while (status := self.status(key)).state is not State.UP:
            pass
        return status


@contextlib.contextmanager
def bfd_in(side: Namespace, *flags: str, lacking: str = "") -> Iterator[BfdProcess]:
    """Run a BFD process in a namespace, connected."""
    with tempfile.TemporaryDirectory(prefix="waggle-bfd-") as folder:
        process = BfdProcess(side, Path(folder), *flags, lacking=lacking)
        try:
            process.connect()
            yield process
        finally:
            process.end()


def end_process(directory: Path) -> None:
    """End the process with the sessions, which outlives its agent."""
    for pid in processes(directory):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGTERM)


def processes(directory: Path) -> list[int]:
    """Return the processes with an agent's sessions, by their directory: the keeper and its child."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if b"waggle_bfd" in words and str(directory).encode() in words:
                found.append(int(process.name))
    return found
