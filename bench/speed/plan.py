"""The plan of a run: scenarios with their sizes, contenders, repetitions and goals.

The name of a contender may have an interface, as ``bird:birdc``. The quick form has the same scenarios
with fewer sizes, repetitions and changes, and omits cases that take minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bench.speed import scenarios
from bench.speed.arena import Arena
from bench.speed.scenarios import Figures

OURS = "waggle"


@dataclass(frozen=True, slots=True)
class Goal:
    """At most ``limit``: our figure, or its ratio to a rival's same figure, or to one of our own."""

    limit: float
    figure: str = "time"
    rival: str | None = None
    own: str | None = None
    contender: str = OURS
    """The contender of the figure."""

    def __str__(self) -> str:
        if self.contender != OURS:
            return f"{self.contender}: {replace(self, contender=OURS)}"
        if self.rival is not None:
            return f"{self.figure} at most {self.limit:g} of {self.rival}'s"
        if self.own is not None:
            return f"{self.figure} at most {self.limit:g} of {self.own}"
        return f"{self.figure} at most {self.limit:g}"


@dataclass(frozen=True, slots=True)
class Case:
    """One scenario at one size."""

    scenario: str
    """As the ``--scenarios`` option names it."""
    size: str
    run: Callable[[Arena, str], Figures]
    repetitions: dict[str, int]
    """By contender, in the order in which they take turns."""
    goals: tuple[Goal, ...] = ()
    shown: tuple[str, ...] = ("time", "cpu", "rss")
    """The figures of the table; the first one is the result of the scenario."""


@dataclass(frozen=True, slots=True)
class Size:
    """The sizes and repetitions of a form of the run."""

    peers: tuple[int, ...]
    repetitions: int
    changes: int
    idle_seconds: float
    full: bool


QUICK = Size(peers=(1, 10, 100), repetitions=3, changes=60, idle_seconds=32.0, full=False)
FULL = Size(
    peers=(1, 10, 30, 50, 75, 100), repetitions=5, changes=200, idle_seconds=62.0, full=True
)


def cases(size: Size, table: Path, prefixes: int) -> Iterator[Case]:
    """Yield everything; ``table`` is the file of P4's UPDATEs."""
    yield Case(
        "rest", "1 neighbour", scenarios.resting, {"waggle": 3, "bird": 1, "frr": 1, "gobgp": 1},
        (Goal(45, "rss"),), ("rss",),
    )  # fmt: skip
    for peers in size.peers:
        yield _session_up(size, peers)
    for peers in size.peers:
        yield _fan_out(size, peers)
    for peers in size.peers:
        yield _fan_in(size, peers)
    for peers in (10, 30) if size.full else (10,):
        yield _mesh(size, peers)
    yield from _single(size)
    yield from _table(size, table, prefixes)
    yield _idle(size)
    yield _hostile(size)


def _times(size: Size, **most: int) -> dict[str, int]:
    """Return repetitions: as the form has them, but at most so many."""
    return {name: min(size.repetitions, many) for name, many in most.items() if many}


ALWAYS = 99


def _often(size: Size) -> Size:
    """Return a form with more repetitions, for cases that other load of the machine affects most."""
    return replace(size, repetitions=2 * size.repetitions - 1)


def _session_up(size: Size, peers: int) -> Case:
    gobgp = ALWAYS if peers <= 10 or size.full else 1
    exabgp = 1 if peers <= (30 if size.full else 10) else 0
    rivals = ["bird", "frr", "openbgpd", "gobgp", *(["exabgp"] if exabgp else [])]
    return Case(
        "P1a",
        f"N={peers}",
        partial(_by_name, scenarios.session_up, peers=peers),
        _times(
            size, waggle=ALWAYS, pure=ALWAYS, bird=ALWAYS, frr=ALWAYS, openbgpd=ALWAYS, gobgp=gobgp,
            exabgp=exabgp,
        ),
        tuple(
            Goal(0.13 if (rival, peers) == ("bird", 100) else 0.5, rival=rival)
            for rival in rivals
            if peers >= 10 or rival != "bird"
        ),
    )  # fmt: skip


def _fan_out(size: Size, peers: int) -> Case:
    # GoBGP sends an UPDATE for each prefix: half a minute and more with many peers.
    gobgp = 1 if peers <= (50 if size.full else 10) else 0
    bird = {1: 1.2, 10: 0.5, 100: 0.2}.get(peers)
    goals = [Goal(0.5, rival="frr")]
    if bird is not None:
        goals.insert(0, Goal(bird, rival="bird"))
    if gobgp:
        goals.append(Goal(0.02, rival="gobgp"))
    return Case(
        "P1b",
        f"N={peers}",
        partial(_by_name, scenarios.fan_out, peers=peers),
        _times(
            size, waggle=ALWAYS, pure=ALWAYS, bird=ALWAYS, frr=ALWAYS, openbgpd=ALWAYS, gobgp=gobgp
        ),
        tuple(goals),
    )


def _fan_in(size: Size, peers: int) -> Case:
    gobgp = 1 if peers <= (30 if size.full else 10) else 0
    many = ALWAYS if peers < 100 or size.full else 2
    goal = {10: 1.0, 100: 0.4}.get(peers)
    return Case(
        "P2",
        f"N={peers}",
        partial(_by_name, scenarios.fan_in, peers=peers),
        _times(
            size, waggle=ALWAYS, pure=ALWAYS, bird=ALWAYS, frr=many, openbgpd=many, gobgp=gobgp
        ),
        () if goal is None else (Goal(goal, rival="bird"),),
    )  # fmt: skip


def _mesh(size: Size, peers: int) -> Case:
    return Case(
        "P2",
        f"mesh N={peers}",
        partial(_by_name, scenarios.mesh, peers=peers),
        _times(size, waggle=ALWAYS, pure=ALWAYS, bird=ALWAYS, frr=ALWAYS, openbgpd=1),
        (Goal(0.5, rival="bird"),),
    )


def _single(size: Size) -> Iterator[Case]:
    changes = size.changes
    slow = 2 if size.full else 1
    yield Case(
        "P3",
        "from a feeder",
        partial(_by_name, scenarios.single, peers=10, changes=changes),
        _times(
            size,
            waggle=ALWAYS,
            compiled=ALWAYS,
            bird=ALWAYS,
            frr=slow,
            openbgpd=slow,
            gobgp=slow,
            **{"relay": ALWAYS, "relay-uvloop": ALWAYS},
        ),
        (Goal(1.0, "p50", "bird"), Goal(1.0, "p99", "bird")),
        ("p50", "p99", "max", "cpu"),
    )
    yield Case(
        "P3",
        "by its own interface",
        partial(_own, peers=10, changes=changes),
        _times(
            size,
            **{
                "waggle:api": ALWAYS, "bird:birdc": ALWAYS, "bird:socket": ALWAYS,
                "frr:vtysock": slow, "openbgpd:bgpctl": slow, "gobgp:gobgp": slow,
            },
        ),
        (Goal(0.25, "p50", "bird:birdc"), Goal(1.0, "p50", "bird:socket")),
        ("p50", "p99", "max", "cpu"),
    )  # fmt: skip


def _table(size: Size, table: Path, prefixes: int) -> Iterator[Case]:
    slow = {"frr": 1, "openbgpd": 1, **({"gobgp": 1, "exabgp": 1} if size.full else {})}
    yield Case(
        "P4",
        f"{prefixes:,} prefixes",
        partial(_by_name, scenarios.full_table, table=table, prefixes=prefixes),
        _times(_often(size), waggle=ALWAYS, pure=ALWAYS, compiled=ALWAYS, bird=ALWAYS, **slow),
        (
            Goal(0.5, rival="bird"),
            Goal(0.97, "rss", "bird"),
            Goal(1.03, rival="bird", contender="pure"),
            Goal(1.3, "rss", "bird", contender="pure"),
        ),
        ("time", "cpu", "rss", "initial_table", "rss_initial_table"),
    )
    yield Case(
        "stall",
        "a change while P4's table comes",
        partial(_by_name, scenarios.stall, table=table, changes=400),
        _times(size, waggle=ALWAYS, bird=ALWAYS, **({"openbgpd": 1} if size.full else {})),
        (),
        ("p50", "p99", "max", "changes", "rss"),
    )


def _idle(size: Size) -> Case:
    return Case(
        "P5",
        "1,000 sessions",
        partial(_by_name, scenarios.idle, peers=1000, seconds=size.idle_seconds),
        {"waggle": 1, "bird": 1, **({"frr": 1, "gobgp": 1} if size.full else {})},
        (Goal(5.0, "percent"),),
        ("percent", "established", "rss"),
    )


def _hostile(size: Size) -> Case:
    # Not FRR: it reads without a limit, and uses gigabytes within seconds.
    return Case(
        "P6",
        "flood and a stalled peer",
        partial(_by_name, scenarios.hostile, peers=10, changes=size.changes),
        _times(_often(size), waggle=ALWAYS, bird=ALWAYS, **({"gobgp": 1} if size.full else {})),
        (Goal(2.0, "p99", own="p99_before"),),
        ("p50_before", "p99_before", "p50", "p99", "max", "flooded", "rss_before", "rss"),
    )


def _by_name(
    scenario: Callable[..., Figures], arena: Arena, name: str, **arguments: object
) -> Figures:
    return scenario(arena, name, **arguments)


def _own(arena: Arena, name: str, *, peers: int, changes: int) -> Figures:
    daemon, _, way = name.partition(":")
    return scenarios.own_change(arena, daemon, way, peers, changes)
