"""A router, its feeders, and what is measured of it."""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from bench.fib.contestants import (
    FEEDERS,
    FIRST,
    LISTENER,
    LISTENER_AS,
    OURS,
    PORT,
    SINGLE,
    Contestant,
    Feeder,
    Router,
)
from bench.fib.listener import Listener
from bench.route_lookup import RouteLookup
from reconcilers.kernel.writer.protocol_messages import Settings
from tests.support.daemon import Daemon
from tests.support.kernel_writer import WriterProcess
from tests.support.netns import Link, linked_namespaces
from tests.support.wait import eventually

CHANGES: Final = 100
"""On a quiet router."""
LATE_ROUTES: Final = 200
"""More routes than the feeder's last UPDATE has, which it sends up to 0.6 s after the others.

BIRD sends full messages first: of 100,000 routes the last message has 161 or fewer, over IPv4 and over
IPv6. Until it comes the receive queue of a router is empty (``/proc/PID/net/tcp``); in which sessions
it is late is chance, and a quick router waits longest for it.
"""
FEW_LEFT: Final = 50
"""A table with fewer routes is gone."""
PLACES: Final = 1000
"""Networks whose routes are looked at."""
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


class Lab:
    """A contestant and its feeder."""

    def __init__(
        self,
        contestant: Contestant,
        feeders: list[Feeder],
        daemons: list[Daemon],
        listener: Listener | None,
    ) -> None:
        self._listener = listener
        self._installs = contestant.installs
        self._load: subprocess.Popen[bytes] | None = None
        if contestant.load:
            first = str(ipaddress.ip_address(FIRST[4]))
            routes = (first, str(feeders[0].count), FEEDERS[0][4])
            command = [*contestant.namespace.command(), *contestant.load, *routes]
            self._load = subprocess.Popen(command, stdin=subprocess.PIPE)
        self._feeder, self._second, self._third = feeders
        self._namespace = contestant.namespace
        self._lookup = RouteLookup(contestant.namespace)
        self._daemons = daemons
        self._count = feeders[0].count
        self._family = contestant.family
        self._others = self._all_routes()

    @property
    def _all(self) -> int:
        """The routes with which a table is complete."""
        return self._count - LATE_ROUTES

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

    def install(self) -> Figure:
        """Begin the session of the first feeder; the seconds from the first route to the last one.

        The session begins when the router connects again, which is no work of the installation. The
        last one is that before the feeder's last UPDATE (`LATE_ROUTES`).
        """
        return self._measure(lambda: self._feeder.ask("enable feed"), lambda n: n >= self._all)

    def remove(self) -> Figure:
        """End that session; the seconds from its end until all routes are gone."""
        return self._measure(
            lambda: self._feeder.ask("disable feed"), lambda n: n < FEW_LEFT, from_first=False
        )

    def _measure(
        self, act: Callable[[], object], is_done: Callable[[int], bool], *, from_first: bool = True
    ) -> Figure:
        """Act, and wait until the kernel has what it leads to.

        ``from_first``: the clock begins with the first change in the kernel, and not with the act.
        """
        before, cpu = self.routes(), self.cpu()
        pause = POLL_SECONDS if self._count > FEW_ROUTES else SHORT_POLL_SECONDS
        acted = time.monotonic()
        act()
        began = None if from_first else acted
        while not is_done(count := self.routes()):
            now = time.monotonic()
            if began is None and abs(count - before) > 2:
                began = now
            assert now < acted + LIMIT_SECONDS, f"the kernel has {count} routes"
            time.sleep(pause)
        ended = time.monotonic()
        # What follows the last route is part of its work.
        time.sleep(0.3)
        return Figure(ended - (ended if began is None else began), self.cpu() - cpu)

    def lose(self) -> Figure:
        """End the session of the second feeder, and wait until no route uses it."""
        address = FEEDERS[1][self._family]
        self._measure(lambda: self._second.ask("enable feed"), lambda _: self._uses(address))
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
        """Return the 99th percentile of one route that comes and goes, and the CPU time of all."""
        # With the first one the session is known to be there.
        list(self._one_change(0.5))
        cpu = self.cpu()
        changes = [seconds for _ in range(CHANGES // 2) for seconds in self._one_change(0.01)]
        return Figure(percentile(changes), self.cpu() - cpu, changes=tuple(changes))

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
        # Of few routes all may be there already.
        while not changes or (self.routes() < self._all and time.monotonic() < until):
            changes += self._one_change(0.0)
        return Figure(percentile(changes), self.cpu() - cpu, changes=tuple(changes))

    def pass_on(self) -> Figure:
        """Return the 99th percentile until the listener has a route that comes, or that it goes."""
        list(self._one_passed_on(0.5))
        changes = [seconds for _ in range(CHANGES // 2) for seconds in self._one_passed_on(0.01)]
        return Figure(percentile(changes), 0.0, changes=tuple(changes))

    def pass_on_in_load(self) -> Figure:
        """Return the same while the first feeder's routes are passed on and installed.

        Their session is begun and ended here.
        """
        assert self._listener is not None
        time.sleep(2.0)
        changes: list[float] = []
        cpu, before = self.cpu(), self._listener.count
        self._feeder.ask("enable feed")
        until = time.monotonic() + LIMIT_SECONDS
        while self._listener.count == before and time.monotonic() < until:
            time.sleep(LOOKUP_SECONDS)
        if self._load is not None and self._load.stdin is not None:
            self._load.stdin.close()
        # Of few routes all may be there already.
        while not changes or (time.monotonic() < until and not self._is_passed_on(before)):
            changes += self._one_passed_on(0.0)
        figure = Figure(percentile(changes), self.cpu() - cpu, changes=tuple(changes))
        time.sleep(2.0)
        self._feeder.ask("disable feed")
        return figure

    def _is_passed_on(self, before: int) -> bool:
        """Return whether the listener has the table, and the kernel where it is installed."""
        assert self._listener is not None
        is_installed = not self._installs or self.routes() >= self._all
        return is_installed and self._listener.count >= before + self._all

    def _one_passed_on(self, pause: float) -> Iterator[float]:
        """Have the third feeder announce and withdraw its route; yields the seconds of both."""
        assert self._listener is not None
        for command, there in (("enable single", True), ("disable single", False)):
            began = time.monotonic()
            self._third.ask(command)
            yield self._listener.until(there=there, after=began) - began
            time.sleep(pause)

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
        """Close what reads the kernel, and end the listener."""
        self._lookup.close()
        if self._listener is not None:
            self._listener.close()
        if self._load is not None:
            self._load.kill()
            self._load.communicate()

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


def percentile(seconds: list[float]) -> float:
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
        listener = None
        if isinstance(contestant, Router):
            link.right.add_address(f"{LISTENER}/24")
            listener = Listener(link.right, LISTENER, PORT, LISTENER_AS, SINGLE[4][0])
        daemons = contestant.daemons()
        for daemon in (*(d for feeder in feeders for d in feeder.daemons()), *daemons):
            daemon.start()
            stack.callback(daemon.stop)
            time.sleep(1.0)
        for feeder in feeders:
            eventually(functools.partial(feeder.ask, "show status"))
        time.sleep(5.0)
        with contextlib.closing(Lab(contestant, feeders, daemons, listener)) as running:
            yield running


def _addresses(link: Link) -> None:
    right = ((link.right, addresses) for addresses in FEEDERS)
    for side, addresses in ((link.left, OURS), *right):
        side.add_address(f"{addresses[4]}/24")
        side.add_address(f"{addresses[6]}/64")
