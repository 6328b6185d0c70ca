"""The place of measurements: a virtual cable between the tester and one daemon at a time.

Each session of the tester has an address in the network of the daemon, so they are directly connected
neighbours. Neighbour entries are permanent: ARP is not measured.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import selectors
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

from tests.support.netns import DEVICE, Link, Namespace, linked_namespaces

ROOT = Path(__file__).resolve().parents[2]
TESTER = ROOT / "build" / "bench-tester"
DAEMON_ADDRESS = "10.99.255.254"
DAEMON_ASN = 64500
SESSION_ADDRESS = "10.99.1.1"
"""The address of the first session; the others follow."""
SESSION_ASN = 64512
NETWORK_BITS = 16
SESSIONS = 1000
TIMEOUT = 300.0


def address_of(session: int) -> str:
    """Return the address of a session of the tester."""
    return str(ipaddress.IPv4Address(SESSION_ADDRESS) + session)


def asn_of(session: int) -> int:
    """Return the AS of a session of the tester."""
    return SESSION_ASN + session


class TesterError(Exception):
    """The tester or the daemon failed in a scenario."""


class Tester:
    """The process of the tester, one for each measurement: reads commands, writes JSON."""

    def __init__(self, namespace: Namespace, sessions: int, hold_time: int = 240) -> None:
        if not TESTER.exists():
            raise TesterError(
                f"{TESTER.relative_to(ROOT)} is not there: run make build/bench-tester"
            )
        self._process = subprocess.Popen(
            [*namespace.command(), str(TESTER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in: IO[bytes] = self._process.stdin
        self._out: IO[bytes] = self._process.stdout
        os.set_blocking(self._out.fileno(), False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._out, selectors.EVENT_READ)
        self._pending = b""
        self._answers: list[dict[str, Any]] = []
        self.lost: list[int] = []
        """Sessions that ended."""
        self.expect_lost: set[int] = set()
        """Sessions that may end."""
        self.request(
            f"sessions {sessions} {SESSION_ADDRESS} {SESSION_ASN} {hold_time} {DAEMON_ADDRESS} 179"
        )

    def send(self, command: str) -> None:
        """Write a command."""
        self._in.write(command.encode() + b"\n")
        self._in.flush()

    def request(self, command: str) -> dict[str, Any]:
        """Write a command and return its answer, which is not an event."""
        self.send(command)
        return self._take(lambda answer: "event" not in answer, command, TIMEOUT)

    def event(self, name: str, within: float = TIMEOUT) -> dict[str, Any]:
        """Return the next event of a kind; others stay for later."""
        return self._take(lambda answer: answer.get("event") == name, name, within)

    def _take(self, wanted: Any, what: str, within: float) -> dict[str, Any]:  # noqa: ANN401
        deadline = time.monotonic() + within
        while True:
            for index, answer in enumerate(self._answers):
                if wanted(answer):
                    return self._answers.pop(index)
            left = deadline - time.monotonic()
            if left <= 0:
                raise TesterError(f"no answer to {what!r} within {within:g} s")
            self._read(left)

    def _read(self, timeout: float) -> None:
        if not self._selector.select(timeout):
            return
        data = os.read(self._out.fileno(), 1 << 16)
        if not data:
            raise TesterError(f"the tester has ended with status {self._process.wait()}")
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            answer = json.loads(line)
            if answer.get("event") == "lost":
                self.lost.append(answer["session"])
                if answer["session"] not in self.expect_lost:
                    raise TesterError(f"session {answer['session']} was lost: {answer['reason']}")
            elif answer.get("event") != "refused":
                self._answers.append(answer)

    def up(self, first: int, behind: int) -> dict[str, Any]:
        """Connect sessions, then open all of them; the times of the first and last Established."""
        self.connect(first, behind)
        self.send(f"open {first} {behind}")
        return self.event("established")

    def connect(self, first: int, behind: int) -> None:
        """Connect sessions; no OPEN is sent."""
        self.send(f"connect {first} {behind}")
        self.event("connected")

    def close(self) -> None:
        """End the tester with all its sessions."""
        self._process.kill()
        self._process.wait()
        self._selector.close()
        self._in.close()
        self._out.close()


@dataclass(frozen=True, slots=True)
class Arena:
    """Both sides of the cable."""

    link: Link
    directory: Path

    @property
    def daemon_side(self) -> Namespace:
        """Where daemons run."""
        return self.link.right

    @contextlib.contextmanager
    def tester(self, sessions: int, hold_time: int = 240) -> Iterator[Tester]:
        """Run a tester with so many sessions, none of them connected."""
        tester = Tester(self.link.left, sessions, hold_time)
        try:
            yield tester
        finally:
            tester.close()


@contextlib.contextmanager
def arena(directory: Path) -> Iterator[Arena]:
    """Create the namespaces for the duration of the context."""
    with linked_namespaces() as link:
        link.left.batch(
            f"addr add 10.99.0.1/{NETWORK_BITS} dev {DEVICE}",
            # All addresses of the sessions are local, without an entry for each.
            f"route add local 10.99.0.0/17 dev {DEVICE}",
        )
        link.right.batch(f"addr add {DAEMON_ADDRESS}/{NETWORK_BITS} dev {DEVICE}")
        ours = _mac(link.left)
        link.right.batch(
            *(
                f"neigh add {address_of(session)} lladdr {ours} dev {DEVICE} nud permanent"
                for session in range(SESSIONS)
            )
        )
        theirs = _mac(link.right)
        link.left.batch(f"neigh add {DAEMON_ADDRESS} lladdr {theirs} dev {DEVICE} nud permanent")
        yield Arena(link, directory)


def _mac(namespace: Namespace) -> str:
    (entry,) = json.loads(namespace.run("ip", "-j", "link", "show", "dev", DEVICE))
    address: str = entry["address"]
    return address


# ------------------------------------------------------------------- resource usage


def processes(pid: int) -> list[int]:
    """Return a process and its descendants."""
    processes = [pid]
    for process in processes:
        for task in Path(f"/proc/{process}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                processes += [int(child) for child in task.read_text().split()]
    return processes


class Usage(NamedTuple):
    """What the scheduler knows of processes, in seconds."""

    cpu: float
    """On a CPU."""
    waited: float
    """Runnable, and without one: other programs, or its own threads, had it."""

    def figures_since(self, before: Usage, tasks: int = 1) -> dict[str, float]:
        """Return the figures of the time since: ``cpu`` of each task, and what was waited for all."""
        cpu, waited = self.cpu - before.cpu, self.waited - before.waited
        share = waited / (cpu + waited) if waited > 0 else 0.0
        return {"cpu": cpu * 1e3 / tasks, "waited": waited * 1e3, "waited_share": share}


def usage(pids: list[int]) -> Usage:
    """Return the times of processes and their threads, to the microsecond."""
    cpu = waited = 0
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError):
                on_cpu, runnable, _ = map(int, task.read_text().split())
                cpu += on_cpu
                waited += runnable
    return Usage(cpu / 1e9, waited / 1e9)


def at_work(pids: list[int]) -> bool:
    """Whether a thread of these processes runs or is runnable."""
    for pid in pids:
        for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
            with contextlib.suppress(OSError):
                # The name in parentheses may have any character in it.
                if stat.read_text().rpartition(")")[2].split()[0] == "R":
                    return True
    return False


def memory_mb(pids: list[int], field: str = "VmHWM") -> float:
    """Return resident memory: VmHWM is the peak, VmRSS that of now. 1 MB is 10^6 octets."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith(field + ":"):
                    total += int(line.split()[1])
    return total * 1024 / 1e6
