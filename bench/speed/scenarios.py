"""The measurements. Each function runs one daemon once and returns its figures.

``time`` is milliseconds, ``cpu`` the daemon's CPU milliseconds meanwhile, ``waited`` its milliseconds
runnable without a CPU, and ``waited_share`` their share of both; ``rss`` is its peak resident
memory in MB (10^6 octets) until then. A scenario raises `TesterError` if the daemon fails.
"""

from __future__ import annotations

import contextlib
import ipaddress
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.speed import streams
from bench.speed.arena import DAEMON_ADDRESS, DAEMON_ASN, Arena, Tester, Usage, address_of, asn_of
from bench.speed.daemons import CONTENDERS, Contender, Neighbor, Setting

Figures = dict[str, float]
PREFIXES = 10_000
NUDGE_MS = 5
GAP_MS = (5, 35)


def setting(
    sessions: int, *, silent: Sequence[int] = (), originate: int = 0, hold_time: int = 240
) -> Setting:
    """Return a configuration with this number of neighbours; no export to neighbours in ``silent``."""
    first = ipaddress.IPv4Address(streams.FIRST_PREFIX)
    return Setting(
        asn=DAEMON_ASN,
        address=DAEMON_ADDRESS,
        neighbors=tuple(
            Neighbor(address_of(number), asn_of(number), number not in silent)
            for number in range(sessions)
        ),
        originate=tuple(f"{first + index}/32" for index in range(originate)),
        hold_time=hold_time,
    )


@dataclass(frozen=True, slots=True)
class Bout:
    """One daemon and the tester, both running."""

    arena: Arena
    daemon: Contender
    tester: Tester

    def feed(self, session: int, first: int, count: int) -> None:
        """Load a session with an announcement of /32 prefixes."""
        path = self.arena.directory / f"feed-{session}"
        streams.hosts(path, asn_of(session), address_of(session), first, count)
        self.load(session, path)

    def load(self, session: int, path: Path) -> None:
        """Load a session with a file."""
        self.tester.request(f"load {session} {path}")

    def figures(self, began: int, ended: int, before: Usage) -> Figures:
        """Return the figures of the time between two moments, from a CPU time on."""
        return {
            "time": (ended - began) / 1e6,
            **self.daemon.usage().figures_since(before),
            "rss": self.daemon.peak_mb(),
        }


@contextlib.contextmanager
def bout(arena: Arena, name: str, task: Setting, *, hold_time: int = 240) -> Iterator[Bout]:
    """Start a daemon with a configuration, and a tester with a session for each neighbour."""
    for old in arena.directory.iterdir():
        old.unlink()
    with (
        CONTENDERS[name](task, arena) as daemon,
        arena.tester(len(task.neighbors), hold_time) as tester,
    ):
        yield Bout(arena, daemon, tester)


# ----------------------------------------------------------------------- P1 fan-out


def session_up(arena: Arena, name: str, peers: int, prefixes: int = PREFIXES) -> Figures:
    """P1a: with prefixes present, peers come up: first Established until all have all routes."""
    native = CONTENDERS[name].originates
    feeder = 0 if native else 1
    task = setting(
        peers + feeder, silent=[peers] if feeder else [], originate=prefixes if native else 0
    )
    with bout(arena, name, task) as it:
        tester = it.tester
        tester.request(f"range {streams.FIRST_PREFIX} {prefixes}")
        if feeder:
            it.feed(peers, streams.FIRST_PREFIX, prefixes)
            tester.up(peers, peers + 1)
            tester.send(f"blast {peers} {peers + 1}")
            tester.event("sent")
            settle(it.daemon)
        if it.daemon.needs_nudge:
            tester.request(f"nudge 0 {NUDGE_MS}")
        tester.connect(0, peers)
        settle(it.daemon, 0.05)
        before = it.daemon.usage()
        tester.send(f"distinct 0 {peers} {prefixes}")
        tester.send(f"open 0 {peers}")
        complete = tester.event("complete")["time"]
        return it.figures(tester.event("established")["first"], complete, before)


def fan_out(arena: Arena, name: str, peers: int, prefixes: int = PREFIXES) -> Figures:
    """P1b: all peers Established, prefixes arrive from a feeder: until the last peer has all routes."""
    with bout(arena, name, setting(peers + 1, silent=[peers])) as it:
        tester = it.tester
        tester.request(f"range {streams.FIRST_PREFIX} {prefixes}")
        it.feed(peers, streams.FIRST_PREFIX, prefixes)
        tester.up(0, peers + 1)
        settle(it.daemon)
        before = it.daemon.usage()
        tester.send(f"distinct 0 {peers} {prefixes}")
        tester.send(f"blast {peers} {peers + 1}")
        complete = tester.event("complete")["time"]
        return it.figures(tester.event("blast")["time"], complete, before)


# ------------------------------------------------------------------------- P2 fan-in


def fan_in(arena: Arena, name: str, peers: int, prefixes: int = PREFIXES) -> Figures:
    """P2: feeders with distinct prefixes, one monitor that receives all of them."""
    with bout(arena, name, setting(peers + 1, silent=range(peers))) as it:
        tester = it.tester
        tester.request(f"range {streams.FIRST_PREFIX} {peers * prefixes}")
        for feeder in range(peers):
            it.feed(feeder, streams.FIRST_PREFIX + feeder * prefixes, prefixes)
        tester.up(0, peers + 1)
        settle(it.daemon)
        before = it.daemon.usage()
        tester.send(f"distinct {peers} {peers + 1} {peers * prefixes}")
        tester.send(f"blast 0 {peers}")
        complete = tester.event("complete")["time"]
        return it.figures(tester.event("blast")["time"], complete, before)


def mesh(arena: Arena, name: str, peers: int, prefixes: int = PREFIXES) -> Figures:
    """P2 mesh: every peer announces distinct prefixes and receives all others'."""
    with bout(arena, name, setting(peers)) as it:
        tester = it.tester
        tester.request(f"range {streams.FIRST_PREFIX} {peers * prefixes}")
        for feeder in range(peers):
            first = streams.FIRST_PREFIX + feeder * prefixes
            it.feed(feeder, first, prefixes)
            tester.request(f"own {feeder} {first} {prefixes}")
        tester.up(0, peers)
        settle(it.daemon)
        before = it.daemon.usage()
        tester.send(f"distinct 0 {peers} {(peers - 1) * prefixes}")
        tester.send(f"blast 0 {peers}")
        complete = tester.event("complete")["time"]
        return it.figures(tester.event("blast")["time"], complete, before)


# ---------------------------------------------------------------- P3 a single change


def _filled(it: Bout, feeder: int, peers: int, prefixes: int) -> None:
    tester = it.tester
    tester.request(f"range {streams.FIRST_PREFIX} {prefixes}")
    it.feed(feeder, streams.FIRST_PREFIX, prefixes)
    tester.up(0, len(it.daemon.setting.neighbors))
    settle(it.daemon)
    tester.send(f"distinct 0 {peers} {prefixes}")
    tester.send(f"blast {feeder} {feeder + 1}")
    tester.event("complete")
    settle(it.daemon, 0.2)


def _pinged(tester: Tester, session: int, peers: int, changes: int) -> list[float]:
    low, high = GAP_MS
    tester.send(f"ping {session} {streams.PING_PREFIX} {changes} {low} {high} 0 {peers}")
    took = [tester.event("change")["took"] / 1e6 for _ in range(2 * changes)]
    tester.event("pinged")
    return took


def single(arena: Arena, name: str, peers: int, changes: int, prefixes: int = PREFIXES) -> Figures:
    """P3: one prefix announced and withdrawn by a peer, until all peers have received it."""
    with bout(arena, name, setting(peers + 1, silent=[peers])) as it:
        _filled(it, peers, peers, prefixes)
        before = it.daemon.usage()
        took = _pinged(it.tester, peers, peers, changes)
        return {
            **spread(took),
            **it.daemon.usage().figures_since(before, len(took)),
            "rss": it.daemon.peak_mb(),
        }


def own_change(
    arena: Arena, name: str, way: str, peers: int, changes: int, prefixes: int = PREFIXES
) -> Figures:
    """P3 with a prefix that the daemon originates by its interface, with the start of a client."""
    with bout(arena, name, setting(peers + 1, silent=[peers])) as it:
        _filled(it, peers, peers, prefixes)
        tester = it.tester
        took = []
        before = it.daemon.usage()
        for step in range(2 * changes):
            announce = step % 2 == 0
            tester.send(f"watch {streams.PING_PREFIX} {int(announce)} 0 {peers}")
            tester.event("watching")
            began = time.monotonic_ns()
            it.daemon.switch(way, announce=announce)
            took.append((tester.event("seen", 30)["time"] - began) / 1e6)
            time.sleep(0.01)
        return {
            **spread(took),
            **it.daemon.usage().figures_since(before, len(took)),
            "rss": it.daemon.peak_mb(),
        }


def spread(times: Sequence[float]) -> Figures:
    """Return percentiles of times, by the nearest rank."""
    ordered = sorted(times)

    def rank(share: float) -> float:
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]

    return {"p50": rank(0.5), "p99": rank(0.99), "max": ordered[-1]}


# ---------------------------------------------------------------------- P4 full table


def full_table(arena: Arena, name: str, table: Path, prefixes: int) -> Figures:
    """P4: a table like that of the Internet from one peer, until the daemon is idle.

    Then a second peer comes up and receives the table, if the daemon advertises received routes.
    """
    transit = CONTENDERS[name].transit
    with bout(arena, name, setting(2, silent=[0])) as it:
        tester = it.tester
        it.load(0, table)
        tester.up(0, 1)
        settle(it.daemon)
        before = it.daemon.usage()
        tester.send("blast 0 1")
        began = tester.event("blast")["time"]
        tester.event("sent")
        ended = quiet_since(it.daemon)
        figures = it.figures(began, ended, before)
        if transit:
            if it.daemon.needs_nudge:
                tester.request(f"nudge 1 {NUDGE_MS}")
            tester.connect(1, 2)
            tester.send(f"announced 1 2 {prefixes}")
            tester.send("open 1 2")
            complete = tester.event("complete")["time"]
            # Time and memory of the initial table.
            figures["initial_table"] = (complete - tester.event("established")["first"]) / 1e6
            figures["rss_initial_table"] = it.daemon.peak_mb()
        return figures


def stall(arena: Arena, name: str, table: Path, changes: int) -> Figures:
    """P3 while the table of P4 arrives from another peer: the longest delay.

    One peer announces a single prefix repeatedly, one receives it, a third sends the table.
    """
    with bout(arena, name, setting(3, silent=[1, 2])) as it:
        tester = it.tester
        tester.request(f"range {streams.FIRST_PREFIX} {PREFIXES}")
        it.load(2, table)
        tester.up(0, 3)
        settle(it.daemon)
        before = it.daemon.usage()
        tester.send(f"ping 1 {streams.PING_PREFIX} {changes} 5 6 0 1")
        tester.event("change")
        tester.send("blast 2 3")
        began = tester.event("blast")["time"]
        tester.event("sent")
        sent = time.monotonic_ns()
        took = [
            change["took"] / 1e6
            for change in (tester.event("change") for _ in range(2 * changes - 1))
            if began <= change["began"] <= sent
        ]
        return {
            **spread(took or [0.0]),
            **it.daemon.usage().figures_since(before, len(took) or 1),
            "changes": len(took),
            "rss": it.daemon.peak_mb(),
        }


# ----------------------------------------------------------------- P5 idle, P6 hostile


def idle(arena: Arena, name: str, peers: int, seconds: float) -> Figures:
    """P5: Established sessions with a KEEPALIVE of each side every 30 s; percent of a core."""
    with bout(arena, name, setting(peers, hold_time=90), hold_time=90) as it:
        it.tester.up(0, peers)
        time.sleep(2)
        before, began = it.daemon.usage(), time.monotonic()
        time.sleep(seconds)
        used, took = it.daemon.usage().figures_since(before), time.monotonic() - began
        established = it.tester.request(f"totals 0 {peers}")["established"]
        return {
            **used,
            "percent": used["cpu"] / 10 / took,
            "established": established,
            "rss": it.daemon.peak_mb(),
        }


def hostile(arena: Arena, name: str, peers: int, changes: int, prefixes: int = PREFIXES) -> Figures:
    """P6: P3 alone, then with a flooding peer and a peer that has stopped reading."""
    pinger, flooder, stalled = peers, peers + 1, peers + 2
    with bout(arena, name, setting(peers + 3, silent=[pinger, flooder])) as it:
        tester = it.tester
        _filled(it, pinger, peers, prefixes)
        used = it.daemon.usage()
        before = spread(_pinged(tester, pinger, peers, changes))
        resting = it.daemon.peak_mb()
        path = arena.directory / "flood"
        streams.flood(path, asn_of(flooder), address_of(flooder), prefixes)
        it.load(flooder, path)
        tester.expect_lost = {stalled}
        tester.request(f"stall {stalled} 1")
        tester.send(f"flood {flooder}")
        began = tester.event("blast")["time"]
        during = spread(_pinged(tester, pinger, peers, changes))
        took = (time.monotonic_ns() - began) / 1e9
        rounds = tester.request(f"totals {flooder} {flooder + 1}")["rounds"]
        return {
            **it.daemon.usage().figures_since(used),
            "p50_before": before["p50"],
            "p99_before": before["p99"],
            "p50": during["p50"],
            "p99": during["p99"],
            "max": during["max"],
            "rss_before": resting,
            "rss": it.daemon.peak_mb(),
            "flooded": rounds * 4 * prefixes / took,
            "stalled_lost": float(stalled in tester.lost),
        }


def resting(arena: Arena, name: str) -> Figures:
    """Resident memory with one neighbour and nothing to do."""
    with bout(arena, name, setting(1)) as it:
        it.tester.up(0, 1)
        settle(it.daemon, 0.5)
        return {"rss": it.daemon.resident_mb(), "peak": it.daemon.peak_mb()}


# --------------------------------------------------------------------------- waiting


def settle(daemon: Contender, quiet: float = 0.1, within: float = 60.0) -> None:
    """Wait until a daemon has used less than 2 % of a core for a while (seconds)."""
    deadline = time.monotonic() + within
    used, since = daemon.cpu(), time.monotonic()
    while time.monotonic() - since < quiet:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{daemon.name} does not become idle")
        time.sleep(0.01)
        now = daemon.cpu()
        if now - used > 0.02 * quiet:
            used, since = now, time.monotonic()


def quiet_since(daemon: Contender, polls: int = 75, within: float = 200.0) -> int:
    """Return the time (ns) at which a daemon became idle: the last poll at which it worked.

    Polled every two milliseconds; a quarter of these on a core is work. Polls are counted, not time,
    and a runnable process is not idle: the host may stop all processes for a while.
    """
    deadline = time.monotonic() + within
    last = time.monotonic_ns()
    used = daemon.cpu()
    looked = last
    idle = 0
    while True:
        time.sleep(0.002)
        now, cpu = time.monotonic_ns(), daemon.cpu()
        if cpu - used > 0.25e-9 * (now - looked):
            last = now
            idle = 0
        elif idle < polls:
            idle += 1
        elif not daemon.at_work():
            return last
        used, looked = cpu, now
        if time.monotonic() > deadline:
            raise TimeoutError(f"{daemon.name} does not come to rest")
