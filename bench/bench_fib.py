"""Routes from a BGP session into the kernel: Waggle beside BIRD, and FRR's bgpd with zebra.

In network namespaces of its own: BIRD announces a table to each in turn. Measured are the seconds
from the first route in the kernel until 99 of 100 are there, and the processor seconds of the
processes from the start of the session; then the same for the end of the session. With ``--ecmp`` a
second session with the same routes ends before: the seconds until no route uses it. With ``--change``
one route of a third session comes and goes meanwhile, and on a quiet router: the 99th percentile, of
all rounds, of the seconds until the kernel has it. With ``--restart`` the agent is restarted with its
routes in the kernel: the seconds until a writer knows them, and the changes of routes that the kernel
notifies of until all is settled. The router ``least`` is the floor: `bench.least_router`, over IPv4.

``python -m bench.bench_fib [--routes N] [--rounds N] [--family 4|6] [--router NAME ...]`` (root)
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import ipaddress
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from bench.route_lookup import RouteLookup
from reconcilers.kernel.writer.values import Settings
from tests.support.daemon import Daemon
from tests.support.kernel_writer import WriterProcess
from tests.support.netns import Link, Namespace, linked_namespaces, unavailable
from tests.support.routers.bird import program
from tests.support.wait import NotReadyError, eventually

PORT: Final = 1790
OURS = {4: "10.99.0.1", 6: "fd00:99::1"}
FEEDERS = tuple({4: f"10.99.0.{n}", 6: f"fd00:99::{n}"} for n in (11, 12, 13))
"""The second one announces the same routes with ``--ecmp``, the third one a route with ``--change``."""
SINGLE: Final = {4: ("198.18.0.0/24", "198.18.0.1"), 6: ("2001:db8:ffff::/48", "2001:db8:ffff::1")}
"""The route of the third one, and a host."""
CHANGES: Final = 100
"""On a quiet router."""
OUR_AS, FEEDER_AS = 64710, 64701
FIRST: Final = {4: 0x14000000, 6: 0x20010DB8 << 96}
"""The first network: consecutive /24 from 20.0.0.0, /48 from 2001:db8::."""
MOST: Final = 0.99
"""Of the routes: the feeder sends the last ones, fewer than 100, up to a second after the others."""
PLACES: Final = 1000
"""Networks whose routes are looked at."""
FRR: Final = Path("/usr/lib/frr")
GOALS: Final = {
    ("install", "seconds", "bird"): 0.8,
    ("install", "cpu", "bird"): 1.0,
    ("install", "seconds", "frr"): 0.5,
    ("remove", "seconds", "frr"): 0.5,
    ("lose", "seconds", "frr"): 0.1,
    ("change", "seconds", "bird"): 1.5,
    ("change in load", "seconds", "bird"): 1.5,
}
"""Waggle's median divided by that of another router, at the most."""
LIMITS: Final = {("lose", "seconds"): 0.05, ("restart", "seconds"): 0.5, ("restart", "writes"): 0.0}
"""Waggle's own."""
WRITER_MEGABYTES: Final = 60
POLL_SECONDS: Final = 0.005
SHORT_POLL_SECONDS: Final = 0.001
"""With few routes, which are counted soon, and installed within tens of milliseconds."""
FEW_ROUTES: Final = 20_000
LOOKUP_SECONDS: Final = 0.0002
"""Between two look-ups of one route."""
LIMIT_SECONDS: Final = 120.0
TICKS: Final = os.sysconf("SC_CLK_TCK")


class Figure(NamedTuple):
    """One measurement."""

    seconds: float
    cpu: float
    writes: float = 0.0
    changes: tuple[float, ...] = ()
    """The seconds of each change, of which ``seconds`` is the 99th percentile."""


class Contestant(ABC):
    """A router that installs what it receives."""

    name: str

    def __init__(self, namespace: Namespace, directory: Path, family: int) -> None:
        self.namespace = namespace
        self.directory = directory
        self.family = family
        directory.mkdir()

    @abstractmethod
    def daemons(self) -> list[Daemon]:
        """Return its processes, in the order of their start; writes their configuration."""

    def run(self, command: list[str | Path], name: str) -> Daemon:
        """Return a process of it."""
        return Daemon(name, command, log=self.directory / f"{name}.log", namespace=self.namespace)


class Waggle(Contestant):
    """An agent with an FRRConfiguration."""

    name = "waggle"

    def daemons(self) -> list[Daemon]:
        """See `Contestant`."""
        manifests = self.directory / "manifests"
        manifests.mkdir()
        neighbors = [
            {
                "address": feeder[self.family],
                "asn": FEEDER_AS,
                "port": PORT,
                "toReceive": {"allowed": {"mode": "all"}},
            }
            for feeder in FEEDERS
        ]
        router = {"asn": OUR_AS, "id": OURS[4], "neighbors": neighbors}
        configuration = {
            "apiVersion": "frrk8s.metallb.io/v1beta1",
            "kind": "FRRConfiguration",
            "metadata": {"name": "bench", "namespace": "frr-k8s-system"},
            "spec": {"bgp": {"routers": [router]}},
        }
        (manifests / "configuration.json").write_text(json.dumps(configuration))
        command: list[str | Path] = [
            *(sys.executable, "-m", "waggle_agent", "--node-name", "bench"),
            *("--manifests", manifests, "--api-socket", self.directory / "api"),
            *("--enable-cell", "frrk8s", "--disable-cell", "cilium"),
        ]
        return [self.run(command, "waggle-agent")]


class Bird(Contestant):
    """BIRD with its kernel protocol."""

    name = "bird"

    def daemons(self) -> list[Daemon]:
        """See `Contestant`."""
        return [_bird(self, OURS[4], _bird_peers(self.family), kernel=True)]


class Frr(Contestant):
    """bgpd and zebra."""

    name = "frr"

    def daemons(self) -> list[Daemon]:
        """See `Contestant`."""
        directory, words = self.directory, f"ipv{self.family} unicast"
        neighbors = [f"neighbor {feeder[self.family]}" for feeder in FEEDERS]
        sessions = "".join(
            f" {neighbor} remote-as {FEEDER_AS}\n {neighbor} port {PORT}\n"
            f" {neighbor} timers connect 1\n"
            for neighbor in neighbors
        )
        activated = "".join(f"  {neighbor} activate\n" for neighbor in neighbors)
        (directory / "zebra.conf").touch()
        (directory / "group").write_text("root:x:0:\nfrrvty:x:999:root\n")
        (directory / "bgpd.conf").write_text(
            f"router bgp {OUR_AS}\n bgp router-id {OURS[4]}\n no bgp ebgp-requires-policy\n"
            f" no bgp default ipv4-unicast\n{sessions}"
            f" address-family {words}\n{activated} exit-address-family\n"
        )
        common: list[str | Path] = [
            *("-z", directory / "zserv", "--vty_socket", directory),
            *("-A", "127.0.0.1", "-P", "0", "-u", "root", "-g", "root", "--log", "stdout"),
        ]
        # It insists on a user of its own group, which root need not be in.
        grouped = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/group && exec "$@"']
        zebra: list[str | Path] = [*grouped, directory / "group", FRR / "zebra", *common]
        zebra += ["-f", directory / "zebra.conf", "-i", directory / "zebra.pid"]
        bgpd: list[str | Path] = [FRR / "bgpd", *common, "-S", "-p", str(PORT)]
        bgpd += ["-l", OURS[self.family], "-f", directory / "bgpd.conf"]
        bgpd += ["-i", directory / "bgpd.pid"]
        return [self.run(zebra, "zebra"), self.run(bgpd, "bgpd")]


class Least(Contestant):
    """The least program that does it, over IPv4: the floor."""

    name = "least"

    def daemons(self) -> list[Daemon]:
        """See `Contestant`."""
        neighbors = [feeder[4] for feeder in FEEDERS]
        command: list[str | Path] = [sys.executable, "-m", "bench.least_router", str(OUR_AS)]
        return [self.run([*command, OURS[4], str(PORT), *neighbors], "least")]


class Feeder(Contestant):
    """BIRD with a table, whose session begins and ends when it is asked."""

    name = "feeder"

    def __init__(
        self,
        namespace: Namespace,
        directory: Path,
        family: int,
        count: int,
        addresses: Mapping[int, str],
    ) -> None:
        super().__init__(namespace, directory, family)
        self.count = count
        self._addresses = addresses

    def daemons(self) -> list[Daemon]:
        """See `Contestant`."""
        length, step = (24, 1 << 8) if self.family == 4 else (48, 1 << 80)
        networks = (FIRST[self.family] + n * step for n in range(self.count))
        routes = "".join(
            f"route {ipaddress.ip_address(network)}/{length} blackhole;\n" for network in networks
        )
        static = f"protocol static {{ ipv{self.family}; {routes} }}\n"
        single = f"route {SINGLE[self.family][0]} blackhole;"
        if not self.count:
            static = f"protocol static single {{ disabled; ipv{self.family}; {single} }}\n"
        peer = (
            f"protocol bgp feed {{ local {self._addresses[self.family]} port {PORT} as {FEEDER_AS};\n"
            f"neighbor {OURS[self.family]} port {PORT} as {OUR_AS};\n"
            f"passive on; {'disabled;' if self.count else ''} strict bind on;\n"
            f"connect retry time 1; error wait time 1, 1;\n"
            f"ipv{self.family} {{ import none; export all; next hop self; }}; }}\n"
        )
        return [_bird(self, self._addresses[4], static + peer, kernel=False)]

    def ask(self, text: str) -> str:
        """Send a command of birdc."""
        try:
            with socket.socket(socket.AF_UNIX) as control:
                control.settimeout(10)
                control.connect(str(self.directory / "control"))
                control.recv(4096)
                control.sendall(f"{text}\n".encode())
                return control.recv(1 << 16).decode()
        except OSError as error:
            raise NotReadyError(str(error)) from error


def _bird(owner: Contestant, router_id: str, text: str, *, kernel: bool) -> Daemon:
    lines = f'router id {router_id};\nlog "{owner.directory / "bird.log"}" all;\n'
    lines += "protocol device { scan time 1; }\nprotocol direct { ipv4; ipv6; }\n"
    if kernel:
        channel = f"ipv{owner.family} {{ import none; export all; }}"
        lines += f"protocol kernel {{ merge paths on; {channel}; }}\n"
    (owner.directory / "bird.conf").write_text(lines + text)
    files = ("-c", owner.directory / "bird.conf", "-s", owner.directory / "control")
    command: list[str | Path] = [program() or "bird", "-f", *files]
    return owner.run([*command, "-P", owner.directory / "pid"], owner.name)


def _bird_peers(family: int) -> str:
    return "".join(
        f"protocol bgp {{ local {OURS[family]} port {PORT} as {OUR_AS};\n"
        f"neighbor {feeder[family]} port {PORT} as {FEEDER_AS};\n"
        "connect retry time 1; connect delay time 1; error wait time 1, 1;\n"
        f"ipv{family} {{ import all; export none; }}; }}\n"
        for feeder in FEEDERS
    )


class Lab:
    """A contestant and its feeder."""

    def __init__(
        self, contestant: Contestant, feeders: list[Feeder], daemons: list[Daemon]
    ) -> None:
        self._feeder, self._second, self._third = feeders
        self._namespace = contestant.namespace
        self._lookup = RouteLookup(contestant.namespace)
        self._daemons = daemons
        self._count = feeders[0].count
        self._family = contestant.family
        self._others = self._all_routes()

    def routes(self) -> int:
        """Return the number of routes in the kernel that were not there at the beginning."""
        return self._all_routes() - self._others

    def _all_routes(self) -> int:
        proc = Path(f"/proc/{self._daemons[-1].pid}/net")
        if self._family == 6:
            return int((proc / "rt6_stats").read_text().split()[3], 16)
        # The main table first, which is one trie with the local one: both have the routes of both.
        text = (proc / "fib_triestat").read_text()
        return int(text.split("Prefixes:")[1].split()[0])

    def cpu(self) -> float:
        """Return the processor seconds of the contestant's processes."""
        return sum(map(_cpu, _with_children([daemon.pid for daemon in self._daemons])))

    def measure(
        self, command: str, is_done: Callable[[int], bool], *, feeder: Feeder | None = None
    ) -> Figure:
        """Ask a feeder, by default the first one, and wait until the kernel has what it leads to."""
        before, cpu = self.routes(), self.cpu()
        pause = POLL_SECONDS if self._count > FEW_ROUTES else SHORT_POLL_SECONDS
        (feeder or self._feeder).ask(command)
        until = time.monotonic() + LIMIT_SECONDS
        began: float | None = None
        while not is_done(count := self.routes()):
            now = time.monotonic()
            if began is None and abs(count - before) > 2:
                began = now
            assert now < until, f"{command}: the kernel has {count} routes"
            time.sleep(pause)
        ended = time.monotonic()
        # What follows the last route is part of its work.
        time.sleep(0.3)
        return Figure(ended - (began or ended), self.cpu() - cpu)

    def lose(self) -> Figure:
        """End the session of the second feeder, and wait until no route uses it."""
        address = FEEDERS[1][self._family]
        self.measure("enable feed", lambda _: self._uses(address), feeder=self._second)
        octets = ipaddress.ip_address(address).packed
        # All routes, as the message of a group leaves some for others to find.
        while any(octets not in (self._route(place) or b"") for place in self._places()):
            time.sleep(POLL_SECONDS)
        time.sleep(1.0)
        cpu, began = self.cpu(), time.monotonic()
        self._second.ask("disable feed")
        seconds = 0.0
        for place in self._places():
            while octets in (self._route(place) or b""):
                seconds = time.monotonic() - began
        assert not self._uses(address), "a route that was not looked at uses it"
        time.sleep(0.3)
        return Figure(seconds, self.cpu() - cpu)

    def _places(self) -> range:
        """Return the networks whose routes are looked at, by number."""
        return range(0, self._count, max(1, self._count // PLACES))

    def _route(self, place: int) -> bytes | None:
        host = FIRST[self._family] + (place << (8 if self._family == 4 else 80)) + 1
        return self._lookup.route(str(ipaddress.ip_address(host)))

    def change(self) -> Figure:
        """Return the 99th percentile of one route that comes and goes."""
        # With the first one the session is known to be there.
        list(self._one_change(0.5))
        changes = [seconds for _ in range(CHANGES // 2) for seconds in self._one_change(0.01)]
        return Figure(_percentile(changes), 0.0, changes=tuple(changes))

    def change_in_load(self) -> Figure:
        """Return the same while the first feeder's routes are installed, which is begun here."""
        # The withdrawals of the end before are over.
        time.sleep(2.0)
        changes: list[float] = []
        cpu, before = self.cpu(), self.routes()
        self._feeder.ask("enable feed")
        until = time.monotonic() + LIMIT_SECONDS
        while self.routes() < before + 20 and time.monotonic() < until:
            time.sleep(LOOKUP_SECONDS)
        while self.routes() < MOST * self._count and time.monotonic() < until:
            changes += self._one_change(0.0)
        return Figure(_percentile(changes), self.cpu() - cpu, changes=tuple(changes))

    def _one_change(self, pause: float) -> Iterator[float]:
        """Have the third feeder announce and withdraw its route; yields the seconds of both."""
        host = SINGLE[self._family][1]
        for command, there in (("enable single", True), ("disable single", False)):
            began = time.monotonic()
            self._third.ask(command)
            while (self._lookup.route(host) is not None) is not there:
                assert time.monotonic() < began + LIMIT_SECONDS, command
                # A busy loop would take the processor that the router waits for.
                time.sleep(LOOKUP_SECONDS)
            yield time.monotonic() - began
            time.sleep(pause)

    def restart(self) -> Figure:
        """Restart the agent, between which a writer of its own reads the routes."""
        (agent,) = self._daemons
        until = time.monotonic() + LIMIT_SECONDS
        while self.routes() < self._count and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
        time.sleep(1.0)
        agent.stop()
        with tempfile.TemporaryDirectory(prefix="waggle-bench-") as folder:
            path = Path(folder) / "socket"
            writer = WriterProcess(self._namespace, path)
            try:
                writer.greet()
                began = time.monotonic()
                writer.send(Settings())
                listed = writer.listing()
                seconds = time.monotonic() - began
                octets = sum(len(r.prefixes) for each in listed for r in each.routes)
                assert octets >= 4 * self._count, "the writer does not know all routes"
            finally:
                writer.end()
            changes = Path(folder) / "changes"
            command = [*self._namespace.command(), "ip", "monitor", "route", "nexthop"]
            with changes.open("w") as output:
                monitor = subprocess.Popen(command, stdout=output)
            try:
                agent.start()
                # Its sessions are established, and the deferral of stale routes is over.
                time.sleep(20.0)
            finally:
                monitor.terminate()
                monitor.wait(5)
            return Figure(seconds, 0.0, float(len(changes.read_text().splitlines())))

    def writer_megabytes(self) -> float:
        """Return the largest memory of a process besides the first one of a contestant."""
        return max(map(_megabytes, list(_with_children([self._daemons[0].pid]))[1:]), default=0.0)

    def close(self) -> None:
        """Close what reads the kernel."""
        self._lookup.close()

    def _uses(self, address: str) -> bool:
        """Whether any route has a next hop."""
        shown = self._namespace.run("ip", f"-{self._family}", "route", "show", "table", "main")
        return f"via {address} " in shown


def _with_children(pids: list[int]) -> Iterator[int]:
    for pid in pids:
        yield pid
        for thread in Path(f"/proc/{pid}/task").iterdir():
            yield from _with_children([int(p) for p in (thread / "children").read_text().split()])


def _megabytes(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def _numbers(figure: Figure) -> tuple[float, float, float]:
    return figure.seconds, figure.cpu, figure.writes


def _percentile(seconds: list[float]) -> float:
    """Return the 99th percentile."""
    return statistics.quantiles(seconds, n=100, method="inclusive")[98]


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@contextlib.contextmanager
def lab(kind: type[Contestant], family: int, count: int) -> Iterator[Lab]:
    """Run a contestant and a feeder that does not announce yet."""
    with (
        linked_namespaces() as link,
        tempfile.TemporaryDirectory(prefix="waggle-bench-") as folder,
        contextlib.ExitStack() as stack,
    ):
        _addresses(link)
        feeders = [
            Feeder(link.right, Path(folder) / f"feeder{number}", family, own, addresses)
            for number, (addresses, own) in enumerate(zip(FEEDERS, (count, count, 0), strict=True))
        ]
        contestant = kind(link.left, Path(folder) / kind.name, family)
        daemons = contestant.daemons()
        for daemon in (*(d for feeder in feeders for d in feeder.daemons()), *daemons):
            daemon.start()
            stack.callback(daemon.stop)
            time.sleep(1.0)
        for feeder in feeders:
            eventually(functools.partial(feeder.ask, "show status"), within=60)
        time.sleep(5.0)
        with contextlib.closing(Lab(contestant, feeders, daemons)) as running:
            yield running


def _addresses(link: Link) -> None:
    right = ((link.right, addresses) for addresses in FEEDERS)
    for side, addresses in ((link.left, OURS), *right):
        side.add_address(f"{addresses[4]}/24")
        side.add_address(f"{addresses[6]}/64")


def main() -> int:
    """Measure; returns 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--routes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--family", type=int, choices=(4, 6), default=4)
    kinds: dict[str, type[Contestant]] = {kind.name: kind for kind in (Waggle, Bird, Frr, Least)}
    parser.add_argument(
        "--ecmp", action="store_true", help="a second session with the same routes ends, too"
    )
    parser.add_argument(
        "--change", action="store_true", help="one route of a third session changes"
    )
    parser.add_argument(
        "--restart",
        action="store_true",
        help="the agent is restarted with the routes in the kernel",
    )
    parser.add_argument("--router", action="append", choices=list(kinds))
    args = parser.parse_args()
    reason = unavailable()
    if reason is not None:
        print(reason)
        return 2
    names = args.router or [name for name in kinds if name != Least.name]
    found: dict[tuple[str, str], list[Figure]] = {}
    megabytes = 0.0
    for _ in range(args.rounds):
        for name in names:
            with lab(kinds[name], args.family, args.routes) as running:
                steps: dict[str, Callable[[], Figure]] = {
                    **({"change": running.change} if args.change else {}),
                    "install": lambda: running.measure(
                        "enable feed", lambda n: n >= MOST * args.routes
                    ),
                    **({"lose": running.lose} if args.ecmp else {}),
                    **({"restart": running.restart} if args.restart and name == "waggle" else {}),
                    "remove": lambda: running.measure("disable feed", lambda n: n < 50),
                    **({"change in load": running.change_in_load} if args.change else {}),
                }
                for step, work in steps.items():
                    figure = work()
                    found.setdefault((step, name), []).append(figure)
                    print(_line(name, step, figure), flush=True)
                if name == "waggle":
                    megabytes = max(megabytes, running.writer_megabytes())
    print(f"memory of the writer: {megabytes:.0f} MB (goal {WRITER_MEGABYTES})")
    return max(_report(found), int(megabytes > WRITER_MEGABYTES))


def _line(name: str, step: str, figure: Figure) -> str:
    more = f" {figure.writes:.0f} changes" if step == "restart" else ""
    if figure.changes:
        median = statistics.median(figure.changes)
        more = f", median {median:.4f} s of {len(figure.changes)} changes"
    return f"{name:7} {step:14} {figure.seconds:7.4f} s {figure.cpu:6.2f} s CPU{more}"


def _report(found: dict[tuple[str, str], list[Figure]]) -> int:
    """Print medians and ratios; returns 1 if a goal is missed."""

    def median(step: str, name: str, what: str) -> float:
        figures = found[step, name]
        if what == "seconds" and figures[0].changes:
            # A round has few of them.
            return _percentile([seconds for figure in figures for seconds in figure.changes])
        at = Figure._fields.index(what)
        return statistics.median(values[at] for values in map(_numbers, figures))

    missed = 0
    for step, name in found:
        seconds, cpu, writes = (median(step, name, each) for each in ("seconds", "cpu", "writes"))
        changes = [seconds for figure in found[step, name] for seconds in figure.changes]
        medians = Figure(seconds, cpu, writes, tuple(changes))
        print(f"median  {_line(name, step, medians)}")
    for (step, what), limit in LIMITS.items():
        if (step, "waggle") in found:
            value = median(step, "waggle", what)
            missed += value > limit
            mark = "" if value <= limit else "  MISSED"
            print(f"{step} {what}: {value:.3f} (goal {limit:.2f}){mark}")
    for (step, what, other), goal in GOALS.items():
        if {(step, "waggle"), (step, other)} <= found.keys():
            ratio = median(step, "waggle", what) / median(step, other, what)
            missed += ratio > goal
            mark = "" if ratio <= goal else "  MISSED"
            print(f"{step} {what}: {ratio:.2f} of {other} (goal {goal:.2f}){mark}")
    return 1 if missed else 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt, subprocess.SubprocessError):
        sys.exit(main())
