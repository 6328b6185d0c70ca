"""The verdicts of the bench of kernel routes, and its peer that listens."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading

import pytest

from bench.bench_fib import Results, Run
from bench.fib.lab import Figure, Lab
from bench.fib.listener import _listen
from speaker.nlri import prefix_to_wire
from tests.speaker.raw import ATTRIBUTES, update
from tests.support.netns import linked_namespaces

SINGLE = prefix_to_wire("198.18.0.0/24")[1]


def verdicts(capsys: pytest.CaptureFixture[str], results: Results) -> list[str]:
    capsys.readouterr()
    missed = results.report()
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("M")]
    assert missed == sum(line.startswith("MISSED") for line in lines)
    return lines


def test_goals_are_ratios_of_medians_and_limits(capsys: pytest.CaptureFixture[str]) -> None:
    results = Results(Run(4, 1000, frozenset()))
    results.figures = {
        ("install", "waggle"): [Figure(n, 0.5) for n in (0.3, 0.4, 9.0)],
        ("install", "bird"): [Figure(1.0, 0.4)],
        ("restart", "waggle"): [Figure(0.2, 0.0, 1.0)],
    }
    results.megabytes = 28
    assert verdicts(capsys, results) == [
        "MET     restart, seconds: 0.2 (goal 0.5)",
        "MISSED  restart, writes: 1 (goal 0)",
        "MET     install, seconds of waggle in seconds of bird: 0.4 (goal 0.8)",
        "MISSED  install, cpu of waggle in cpu of bird: 1.25 (goal 1)",
        "MET     megabytes of the writer: 28 (goal 60)",
    ]


def test_changes_have_the_99th_percentile_of_all_rounds(capsys: pytest.CaptureFixture[str]) -> None:
    results = Results(Run(4, 1000, frozenset({"pass_on"})))
    quick, slow = Figure(1.0, 0.0, changes=(1.0,) * 50), Figure(2.0, 0.0, changes=(2.0,) * 50)
    results.figures = {
        ("pass on in load", "router"): [quick, slow],
        ("pass on in load", "without"): [quick, quick],
    }
    (line,) = verdicts(capsys, results)
    assert line == "MISSED  pass on in load, seconds of router in seconds of without: 2 (goal 1.5)"


def test_the_listener_prints_the_changes_of_one_route_and_counts_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ours, its = socket.socketpair()
    listening = threading.Thread(target=_listen, args=(its, 64702, "10.99.0.14", SINGLE))
    with ours, its:
        listening.start()
        others = [bytes((24, 20, n >> 8, n & 255)) for n in range(1000)]
        messages = [
            update(ATTRIBUTES, SINGLE),
            update(ATTRIBUTES, b"".join(others[:500])),
            update(ATTRIBUTES, b"".join(others[500:])),
            update(b"", withdrawn=SINGLE),
        ]
        octets = b"".join(messages)
        # Messages are cut anywhere on their way.
        for at in range(0, len(octets), 700):
            ours.sendall(octets[at : at + 700])
        ours.shutdown(socket.SHUT_WR)
        listening.join(30)
    first, *counts, last = (line.split() for line in capsys.readouterr().out.splitlines())
    assert counts == [["#", "500"], ["#", "1000"]]
    assert (first[1], last[1]) == ("1", "0")
    assert float(first[0]) <= float(last[0])


class Clock:
    """The `time` of the bench."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class OneFeeder(Lab):
    """A lab whose kernel has the first change two seconds after a command, and the last after five."""

    def __init__(self, clock: Clock, before: int, after: int) -> None:
        self._clock, self._before, self._after = clock, before, after
        self._count, self._family = 30_000, 4
        self._feeder = self  # type: ignore[assignment]
        self._asked = float("inf")

    def ask(self, text: str) -> None:
        del text
        self._asked = self._clock.now

    def routes(self) -> int:
        passed = self._clock.now - self._asked
        middle = (self._before + self._after) // 2
        return self._before if passed < 2 else self._after if passed >= 5 else middle

    def cpu(self) -> float:
        return 0.0


def test_a_table_takes_from_its_first_route_on(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("bench.fib.lab.time", clock)
    assert OneFeeder(clock, 0, 30_000).install().seconds == pytest.approx(3, abs=0.02)


def test_a_table_takes_until_its_last_route_before_the_late_ones_of_the_feeder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr("bench.fib.lab.time", clock)
    # 29,799 of 30,000 are there for three seconds.
    seconds = OneFeeder(clock, 30_000 - 402, 30_000).install().seconds
    assert seconds == pytest.approx(3, abs=0.02)
    # All but the late ones.
    seconds = OneFeeder(clock, 0, 30_000 - 200).install().seconds
    assert seconds == pytest.approx(3, abs=0.02)


def test_the_end_of_a_session_takes_from_that_end_on(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("bench.fib.lab.time", clock)
    assert OneFeeder(clock, 30_000, 0).remove().seconds == pytest.approx(5, abs=0.02)


def test_routes_that_go_at_once_took_the_time_until_then(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("bench.fib.lab.time", clock)
    lab = OneFeeder(clock, 30_000, 0)
    lab.routes = lambda: 0 if clock.now - lab._asked >= 2 else 30_000  # type: ignore[method-assign]
    assert lab.remove().seconds == pytest.approx(2, abs=0.02)


@pytest.mark.netns
def test_the_load_beside_a_router_is_as_many_routes_of_the_kernel() -> None:
    with linked_namespaces() as link:
        link.left.add_address("10.99.0.1/24")
        program = [sys.executable, "-m", "bench.route_load", "20.0.0.0", "1200", "10.99.0.11"]
        subprocess.run([*link.left.command(), *program], check=True, stdin=subprocess.DEVNULL)
        listed = json.loads(link.left.run("ip", "-j", "route", "show", "metric", "20"))
    networks = [f"20.{n >> 8}.{n & 255}.0/24" for n in range(1200)]
    assert sorted(route["dst"] for route in listed) == sorted(networks)
    assert {route["gateway"] for route in listed} == {"10.99.0.11"}
