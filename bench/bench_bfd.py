"""BFD sessions: waggle-bfd beside BIRD, FRR's bfdd and GoBGP, each with the same neighbor.

In network namespaces of its own: BIRD at one end of all sessions, scheduled before ordinary processes,
as it stands for another machine, and each contestant in turn at the other end; with 100 sessions and,
waggle-bfd and BIRD alone, with 1,000. Measured are the processor seconds of its processes per second,
its memory, and the gaps between the packets that the neighbor receives, by the kernel's time of their
arrival. At the end, of waggle-bfd alone, the process with the sessions is killed, which its keeper
replaces; and then both, the whole process, and another waggle-bfd is started at once on the same state
directory, as the chart has one: the seconds from each end until all sessions have sent again. The last
lines are the goals; exit status 1 if one is missed. On a busy machine contestants that are ordinary
processes lose sessions: the ratio to their processor time is infinite.

``python -m bench.bench_bfd [--sessions N] [--interval MS] [--rounds N] [--router NAME]`` (root)
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import math
import os
import select
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from reconcilers.bfd.process.process_messages import SetSessions, Wanted
from speaker.bfd.session_values import SessionKey, Settings
from tests.support import gobgp
from tests.support.bfd_process import BfdProcess
from tests.support.daemon import Daemon
from tests.support.netns import DEVICE, Link, Namespace, linked_namespaces, unavailable
from tests.support.routers.bird import program
from tests.support.wait import NotReadyError, eventually

FRR: Final = Path("/usr/lib/frr")
MULTIPLIER: Final = 3
PER_MESSAGE: Final = 32
"""Sessions that are set by one message of waggle-bfd's protocol."""
SIZES: Final[dict[int, tuple[str, ...]]] = {
    100: ("waggle", "bird", "frr", "gobgp"),
    1000: ("waggle", "bird"),
}
"""Numbers of sessions, with their contestants: bfdd needs a whole processor for 150."""
GOALS: Final = {"bird": 1.2, "frr": 0.25}
"""Waggle's processor time divided by that of another implementation, at the most."""
MEGABYTES: Final = 40
GAP: Final = 1.1
"""The 99.9th percentile of gaps, divided by the interval, at the most."""
RESTART_SECONDS: Final = 0.5
RESTART_LIMIT: Final = 3.0
"""How long packets are awaited."""
SLOW_SECONDS: Final = 5.0
"""Within which all sessions that are Up send in their interval: a Poll Sequence begins in slow ones."""
SO_TIMESTAMPNS: Final = 35
SO_RCVBUFFORCE: Final = 33
SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23
ETH_P_IP: Final = 0x0800


class Figure(NamedTuple):
    """One measurement of a contestant."""

    cpu: float
    """Of one processor."""
    megabytes: float
    gap: float
    """The 99.9th percentile, divided by the interval."""
    longest: float
    lost: int
    """Sessions that were not Up at the end, by BIRD."""
    restart: float = 0.0
    """Seconds from the end of the process with the sessions until all of them have sent again."""
    whole: float = 0.0
    """The same from the end of the whole process, keeper and sessions."""


class Goal(NamedTuple):
    """A figure, and the most that it may be."""

    name: str
    value: float
    most: float

    @property
    def met(self) -> bool:
        """Whether it is no more."""
        return self.value <= self.most


class Setup(NamedTuple):
    """What all contestants have."""

    sessions: int
    interval: int
    """In milliseconds."""

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield the two addresses of each session: the contestant's, BIRD's."""
        for number in range(self.sessions):
            host = f"{number // 250}.{number % 250 + 1}"
            yield f"10.88.{host}", f"10.89.{host}"


class Contestant(ABC):
    """A program with all sessions."""

    name: str

    def __init__(
        self, namespace: Namespace, directory: Path, setup: Setup, *, is_neighbor: bool = False
    ) -> None:
        """``is_neighbor``: at the other end of all sessions."""
        self.namespace, self.directory, self.setup = namespace, directory, setup
        self.is_neighbor = is_neighbor
        directory.mkdir()

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield the two addresses of each session: its own, the other end's."""
        for ours, theirs in self.setup.pairs():
            yield (theirs, ours) if self.is_neighbor else (ours, theirs)

    @abstractmethod
    def start(self) -> None:
        """Start its processes, with all sessions."""

    @abstractmethod
    def processes(self) -> list[int]:
        """Return its processes."""

    @abstractmethod
    def stop(self) -> None:
        """End them."""


class Waggle(Contestant):
    """waggle-bfd; its agent is this program."""

    name = "waggle"

    def start(self) -> None:
        """See `Contestant`."""
        self._process = BfdProcess(self.namespace, self.directory)
        self._process.connect()
        microseconds = self.setup.interval * 1000
        settings = Settings(microseconds, microseconds, MULTIPLIER)
        wanted = [
            Wanted(SessionKey(theirs, ours, DEVICE), settings)
            for ours, theirs in self.setup.pairs()
        ]
        for first in range(0, len(wanted), PER_MESSAGE):
            self._process.send(SetSessions(tuple(wanted[first : first + PER_MESSAGE])))

    def kill_worker(self) -> None:
        """Kill the process with the sessions: its keeper starts the next one."""
        os.kill(self._process.worker(), signal.SIGKILL)

    def kill_whole(self) -> None:
        """Kill keeper and sessions, as a container ends, and start the program again."""
        self._process.kill_whole()
        self._process.start()

    def processes(self) -> list[int]:
        """See `Contestant`."""
        return [self._process.process.pid, self._process.worker()]

    def stop(self) -> None:
        """See `Contestant`."""
        self._process.end()


class Daemons(Contestant):
    """Other projects' programs."""

    def start(self) -> None:
        """See `Contestant`."""
        self._daemons = [
            Daemon(name, command, log=self.directory / f"{name}.log", namespace=self.namespace)
            for name, command in self.commands()
        ]
        for daemon in self._daemons:
            daemon.start()
            time.sleep(0.3)  # bfdd connects to zebra once

    @abstractmethod
    def commands(self) -> list[tuple[str, list[str | Path]]]:
        """Return names and commands; writes their configuration."""

    def processes(self) -> list[int]:
        """See `Contestant`."""
        return [daemon.pid for daemon in self._daemons]

    def stop(self) -> None:
        """See `Contestant`."""
        for daemon in reversed(self._daemons):
            daemon.stop()


class Neighbor(Daemons):
    """A program that may be at the other end of all sessions."""

    @abstractmethod
    def up(self) -> int:
        """Return the number of sessions that are Up."""

    @abstractmethod
    def marks(self) -> dict[str, float]:
        """Return a number of each session that differs by 1 or more after a loss."""


class Bird(Neighbor):
    """BIRD, also the other end of all sessions."""

    name = "bird"

    def commands(self) -> list[tuple[str, list[str | Path]]]:
        """See `Daemons`."""
        interval = f"{self.setup.interval} ms"
        neighbors = ""
        for local, remote in self.pairs():
            neighbors += f'neighbor {remote} dev "{DEVICE}" local {local};\n'
        options = (
            f"min rx interval {interval}; min tx interval {interval}; multiplier {MULTIPLIER};"
        )
        (self.directory / "bird.conf").write_text(
            f"router id 10.0.0.{1 + self.is_neighbor};\nprotocol device {{}}\n"
            f'protocol bfd {{ interface "*" {{ {options} }};\n{neighbors}}}\n'
        )
        files = ("-c", self.directory / "bird.conf", "-s", self.directory / "control")
        command: list[str | Path] = [program() or "bird", "-f", *files]
        return [("bird", [*command, "-P", self.directory / "pid"])]

    def up(self) -> int:
        """See `Neighbor`."""
        return self._show().count(" Up ")

    def marks(self) -> dict[str, float]:
        """See `Neighbor`: since when it is Up, in seconds of the day."""
        rows = [line.split() for line in self._show().splitlines()]
        times = {row[0]: row[3].split(":") for row in rows if len(row) == 6 and row[2] == "Up"}
        return {
            address: 3600 * int(hour) + 60 * int(minute) + float(second)
            for address, (hour, minute, second) in times.items()
        }

    def _show(self) -> str:
        try:
            with socket.socket(socket.AF_UNIX) as control:
                control.settimeout(10)
                control.connect(str(self.directory / "control"))
                control.recv(1 << 12)
                control.sendall(b"show bfd sessions\n")
                text = ""
                while "0000 " not in text and not text.endswith("0000 \n"):
                    text += control.recv(1 << 16).decode()
                return text
        except OSError as error:
            raise NotReadyError(str(error)) from error


class Frr(Neighbor):
    """bfdd, with zebra for its interfaces."""

    name = "frr"

    def commands(self) -> list[tuple[str, list[str | Path]]]:
        """See `Daemons`."""
        directory, interval = self.directory, self.setup.interval
        text = "bfd\n"
        for ours, theirs in self.pairs():
            text += (
                f" peer {theirs} local-address {ours} interface {DEVICE}\n"
                f"  detect-multiplier {MULTIPLIER}\n  receive-interval {interval}\n"
                f"  transmit-interval {interval}\n  no shutdown\n exit\n"
            )
        (directory / "zebra.conf").touch()
        (directory / "bfdd.conf").write_text(text)
        (directory / "group").write_text("root:x:0:\nfrrvty:x:999:root\n")
        common: list[str | Path] = [
            *("-z", directory / "zserv", "--vty_socket", directory, "--log", "stdout"),
            *("-A", "127.0.0.1", "-P", "0", "-u", "root", "-g", "root"),
        ]
        # It insists on a user of its own group, which root need not be in.
        grouped = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/group && exec "$@"']
        more: dict[str, list[str | Path]] = {
            "zebra": [],
            "bfdd": ["--bfdctl", directory / "bfdd.sock"],
        }
        commands: list[tuple[str, list[str | Path]]] = []
        for name, options in more.items():
            files: list[str | Path] = ["-f", directory / f"{name}.conf"]
            command: list[str | Path] = [*grouped, directory / "group", FRR / name, *common]
            commands.append((name, [*command, *files, "-i", directory / f"{name}.pid", *options]))
        return commands

    def up(self) -> int:
        """See `Neighbor`."""
        return sum(peer["status"] == "up" for peer in self._show(""))

    def marks(self) -> dict[str, float]:
        """See `Neighbor`: how often it went down."""
        return {peer["peer"]: peer["session-down"] for peer in self._show("counters")}

    def _show(self, what: str) -> list[dict[str, Any]]:
        vtysh = ["vtysh", "--vty_socket", str(self.directory)]
        try:
            text = self.namespace.run(*vtysh, "-c", f"show bfd peers {what} json")
        except RuntimeError as error:
            raise NotReadyError(str(error)) from error
        shown: list[dict[str, Any]] = json.loads(text)
        return shown


class GoBgp(Daemons):
    """GoBGP 4.8.0, whose BFD belongs to its BGP neighbors; these have no BGP at the other end."""

    name = "gobgp"

    def commands(self) -> list[tuple[str, list[str | Path]]]:
        """See `Daemons`."""
        interval = self.setup.interval * 1000
        text = '[global.config]\nas = 65001\nrouter-id = "10.0.0.1"\nport = -1\n'
        for ours, theirs in self.pairs():
            text += (
                f'[[neighbors]]\n[neighbors.config]\nneighbor-address = "{theirs}"\n'
                f'peer-as = 65002\n[neighbors.transport.config]\nlocal-address = "{ours}"\n'
                "passive-mode = true\n[neighbors.bfd.config]\nenabled = true\n"
                f"desired-minimum-tx-interval = {interval}\n"
                f"required-minimum-receive = {interval}\ndetection-multiplier = {MULTIPLIER}\n"
            )
        (self.directory / "gobgpd.toml").write_text(text)
        program = gobgp.find()
        if isinstance(program, str):
            sys.exit(program)
        files: list[str | Path] = ["-f", self.directory / "gobgpd.toml", "--pprof-disable"]
        return [("gobgpd", [program, *files, "--api-hosts", f"unix://{self.directory / 'api'}"])]


CONTESTANTS: Final[dict[str, type[Contestant]]] = {
    kind.name: kind for kind in (Waggle, Bird, Frr, GoBgp)
}


def sniff(descriptor: int, seconds: float) -> dict[bytes, list[float]]:
    """Return the times of the packets to the neighbor's port, by their pair of addresses."""
    times: dict[bytes, list[float]] = {}
    with socket.socket(fileno=os.dup(descriptor)) as sock:
        until = time.monotonic() + seconds
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        while (left := until - time.monotonic()) > 0:
            if not poll.poll(left * 1000):
                break
            with contextlib.suppress(BlockingIOError):
                while True:
                    octets, ancillary, *_ = sock.recvmsg(64, 64, socket.MSG_DONTWAIT)
                    if octets[22:24] != b"\x0e\xc8":
                        continue
                    second, nano = struct.unpack("=qq", ancillary[0][2])
                    times.setdefault(octets[12:20], []).append(second + nano / 1e9)
    return times


SOCKET: Final = f"""
import socket, sys
sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons({ETH_P_IP}))
sniffer.bind(("{DEVICE}", {ETH_P_IP}))
sniffer.setsockopt(socket.SOL_SOCKET, {SO_TIMESTAMPNS}, 1)
sniffer.setsockopt(socket.SOL_SOCKET, {SO_RCVBUFFORCE}, 1 << 24)
sniffer.setsockopt({SOL_PACKET}, {PACKET_IGNORE_OUTGOING}, 1)
with socket.socket(fileno=int(sys.argv[1])) as channel:
    socket.send_fds(channel, [b"."], [sniffer.fileno()])
"""
"""Run in a namespace: passes a socket on that receives all IPv4 packets that arrive there."""


def sniffer(namespace: Namespace) -> int:
    """Return a socket of a namespace, for `sniff`."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [*namespace.command(), sys.executable, "-c", SOCKET, str(theirs.fileno())]
        subprocess.run(command, pass_fds=[theirs.fileno()], check=True)
        return socket.recv_fds(ours, 1, 1)[1][0]


def cpu(processes: list[int]) -> float:
    """Return the processor seconds of processes, of all of their threads."""
    total = 0
    for process in processes:
        for task in Path(f"/proc/{process}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def megabytes(processes: list[int]) -> float:
    """Return the memory of processes that no other process shares."""
    total = 0
    for process in processes:
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total / 1024


def measure(
    kind: type[Contestant], link: Link, directory: Path, setup: Setup, seconds: float
) -> Figure:
    """Start a contestant, wait for its sessions, measure."""
    neighbor = Bird(link.right, directory / "neighbor", setup, is_neighbor=True)
    contestant = kind(link.left, directory / kind.name, setup)
    neighbor.start()
    try:
        contestant.start()
        try:
            eventually(lambda: _all_up(neighbor))
            prefer(neighbor.processes())
            processes = contestant.processes()
            time.sleep(SLOW_SECONDS)
            seen = sniffer(link.right)
            before = cpu(processes)
            times = sniff(seen, seconds)
            used = (cpu(processes) - before) / seconds
            lost = setup.sessions - neighbor.up()
            gaps = sorted(
                after - before
                for source in times.values()
                for before, after in itertools.pairwise(source)
            )
            memory = megabytes(processes)
            restarted = whole = 0.0
            if isinstance(contestant, Waggle):
                restarted = _restart(contestant.kill_worker, seen, setup)
                eventually(lambda: _all_up(neighbor))
                time.sleep(SLOW_SECONDS)
                whole = _restart(contestant.kill_whole, seen, setup)
            os.close(seen)
            interval = setup.interval / 1000
            return Figure(
                used,
                memory,
                gaps[int(len(gaps) * 0.999)] / interval,
                gaps[-1] / interval,
                lost,
                restarted,
                whole,
            )
        finally:
            contestant.stop()
    finally:
        neighbor.stop()


def _restart(kill: Callable[[], None], seen: int, setup: Setup) -> float:
    """Kill a process, which is started again; returns the seconds until all sessions have sent."""
    sniff(seen, 0.01)
    killed = time.time()
    kill()
    times = sniff(seen, RESTART_LIMIT)
    first = [
        next((at for at in source if at > killed + 0.002), killed + RESTART_LIMIT)
        for source in times.values()
    ]
    return max(first) - killed if len(first) == setup.sessions else RESTART_LIMIT


def _all_up(neighbor: Bird) -> None:
    assert neighbor.up() == neighbor.setup.sessions, f"{neighbor.up()} sessions are Up"


def main() -> None:
    """Measure each contestant in turns, and print medians and goals."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sessions", type=int, action="append", help="default: 100, then 1000")
    parser.add_argument("--interval", type=int, default=50, help="in milliseconds")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--router", action="append", choices=CONTESTANTS)
    args = parser.parse_args()
    if (reason := unavailable()) is not None:
        sys.exit(reason)
    stand_for_another_machine()
    without = {GoBgp.name} if isinstance(gobgp.find(), str) else set()
    goals: list[Goal] = []
    for sessions in args.sessions or SIZES:
        setup = Setup(sessions, args.interval)
        names = args.router or [
            name for name in SIZES.get(sessions, CONTESTANTS) if name not in without
        ]
        medians = compare(setup, names, args.rounds, args.seconds)
        print(f"medians, {sessions} sessions")
        for name, figure in medians.items():
            print(f"{name:8}{_line(figure)}")
        goals += judged(sessions, medians)
    print("goals")
    for goal in goals:
        print(f"{goal.name}: {goal.value:.2f} (goal {goal.most}) {'ok' if goal.met else 'missed'}")
    sys.exit(not all(goal.met for goal in goals))


def compare(setup: Setup, names: list[str], rounds: int, seconds: float) -> dict[str, Figure]:
    """Measure contestants in turns; returns the medians."""
    figures: dict[str, list[Figure]] = {}
    for number in range(rounds):
        for name in names:
            with (
                linked_namespaces() as link,
                tempfile.TemporaryDirectory(prefix="bench-bfd-") as path,
            ):
                give_addresses(link, setup)
                figure = measure(CONTESTANTS[name], link, Path(path), setup, seconds)
            figures.setdefault(name, []).append(figure)
            print(f"round {number + 1} {name}, {setup.sessions}: {_line(figure)}", flush=True)
    return {
        name: Figure(*map(statistics.median, zip(*rows, strict=True)))
        for name, rows in figures.items()
    }


def stand_for_another_machine() -> None:
    """Schedule this process before ordinary ones: what it does not read in time is lost."""
    flags = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
    os.sched_setscheduler(0, flags, os.sched_param(5))


def prefer(processes: Sequence[int]) -> None:
    """Schedule processes, with all of their threads, before ordinary ones."""
    for process in processes:
        for task in Path(f"/proc/{process}/task").iterdir():
            flags = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
            os.sched_setscheduler(int(task.name), flags, os.sched_param(10))


def give_addresses(link: Link, setup: Setup) -> None:
    """Give both ends their addresses, and the hardware addresses of the other one."""
    ours, theirs = zip(*setup.pairs(), strict=True)
    sides = ((link.left, ours, link.right, theirs), (link.right, theirs, link.left, ours))
    for side, addresses, other, neighbors in sides:
        (interface,) = json.loads(other.run("ip", "-j", "link", "show", DEVICE))
        # Permanent: the kernel's table has room for 1,024 neighbors that it has found itself.
        permanent = f"lladdr {interface['address']} dev {DEVICE} nud permanent"
        side.batch(*(f"addr add {address}/8 dev {DEVICE}" for address in addresses))
        side.batch(*(f"neigh add {address} {permanent}" for address in neighbors))


def _line(figure: Figure) -> str:
    restart = ""
    if figure.restart:
        restart = f", restart {figure.restart:.2f} s, whole process {figure.whole:.2f} s"
    return (
        f"{figure.cpu * 100:.1f} % of a processor, {figure.megabytes:.0f} MB, gap p99.9 "
        f"{figure.gap:.2f} longest {figure.longest:.2f} of the interval, {figure.lost} lost{restart}"
    )


def judged(sessions: int, medians: dict[str, Figure]) -> list[Goal]:
    """Return the goals of a number of sessions."""
    waggle = medians.get(Waggle.name)
    if waggle is None:
        return []
    # Sessions that are down cost nothing: there is nothing to compare with.
    goals = [
        Goal(
            f"CPU, of {name}'s",
            math.inf if medians[name].lost else waggle.cpu / medians[name].cpu,
            most,
        )
        for name, most in GOALS.items()
        if name in medians
    ]
    goals += [
        Goal("megabytes", waggle.megabytes, MEGABYTES),
        Goal("gap p99.9, of the interval", waggle.gap, GAP),
        Goal("seconds until all have sent after a kill", waggle.restart, RESTART_SECONDS),
        Goal("the same, whole process", waggle.whole, RESTART_SECONDS),
        Goal("lost", waggle.lost, 0),
    ]
    return [goal._replace(name=f"{sessions} sessions, {goal.name}") for goal in goals]


if __name__ == "__main__":
    main()
