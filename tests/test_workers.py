"""Workers of pytest-xdist: tests that wait run beside tests that compute, and each test runs once."""

from __future__ import annotations

import heapq
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from xdist.remote import Producer

from tests.support.workers import AHEAD, NICENESS, SideBySide, give_way, in_order


@dataclass
class Item:
    """A test with its markers."""

    name: str
    markers: tuple[str, ...] = ()
    path: Path = Path("test_it.py")

    def get_closest_marker(self, name: str, /) -> object | None:
        return name if name in self.markers else None


@dataclass(eq=False)
class Worker:
    """A worker: what it was given, and what it has run."""

    number: int
    given: list[int] = field(default_factory=list)
    ran: list[int] = field(default_factory=list)
    shutting_down: bool = False
    most: int = 0

    @property
    def gateway(self) -> SimpleNamespace:
        return SimpleNamespace(id=f"gw{self.number}")

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        assert not self.shutting_down
        self.given.extend(indices)

    def shutdown(self) -> None:
        self.shutting_down = True

    @property
    def can_begin(self) -> bool:
        """A worker begins a test when it knows the next one, or that there is none."""
        return len(self.given) >= (1 if self.shutting_down else 2)


@dataclass
class Run:
    """A run of tests: the end of each, in seconds, by its worker."""

    schedule: SideBySide
    workers: list[Worker]
    tests: list[str]

    def names(self, number: int) -> list[str]:
        return [self.tests[index] for index in self.workers[number].ran]

    def run(self, seconds: Mapping[str, float]) -> float:
        """Run all tests in virtual time; gives the time of the last end."""
        now, running = 0.0, list[tuple[float, int]]()
        idle = {worker.number for worker in self.workers}
        while True:
            for worker in self.workers:
                if worker.number in idle and worker.can_begin:
                    idle.remove(worker.number)
                    took = seconds[self.tests[worker.given[0]]]
                    heapq.heappush(running, (now + took, worker.number))
            if not running:
                return now
            now, number = heapq.heappop(running)
            worker = self.workers[number]
            index = worker.given.pop(0)
            worker.ran.append(index)
            idle.add(number)
            took = seconds[self.tests[index]]
            self.schedule.mark_test_complete(cast("Any", worker), index, took)
            worker.most = max(worker.most, len(worker.given))


def begun(tests: list[str], workers: int) -> Run:
    """Return a run whose first tests are given to the workers."""

    def option(name: str) -> list[str]:
        assert name == "tx"
        return [f"{workers}*popen"]

    config = SimpleNamespace(getvalue=option, option=SimpleNamespace(loadscopereorder=True))
    schedule = SideBySide(cast("Any", config), Producer("", enabled=False))
    run = Run(schedule, [Worker(number) for number in range(workers)], tests)
    for worker in run.workers:
        schedule.add_node(cast("Any", worker))
        schedule.add_node_collection(cast("Any", worker), tests)
    schedule.schedule()
    return run


@pytest.fixture(autouse=True)
def _two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})


WAITING = [f"tests/interop/test_{n}.py::test_it" for n in range(40)]
GROUP = [f"tests/cluster/test_{n}.py::test_it@apiserver" for n in range(10)]
COMPUTING = [f"tests/speaker/test_{n}.py::test_it" for n in range(2000)]
QUEUE = [*GROUP, *WAITING, *reversed(COMPUTING)]
SECONDS = {**dict.fromkeys([*WAITING, *GROUP], 1.0), **dict.fromkeys(COMPUTING, 0.01)}


def test_what_waits_is_at_the_front_routers_first_and_what_may_be_built_meanwhile_behind_it() -> (
    None
):
    router, program = Path("test_router.py"), Path("test_program.py")
    items = [
        Item("computes"),
        Item("program", ("program",), program),
        Item("gobgp", ("gobgp", "interop"), router),
        Item("its program", ("program",), router),
        Item("router", ("interop", "netns"), router),
        Item("computes too"),
        Item("jaeger", ("apiserver", "jaeger")),
        Item("chart", ("helm",)),
    ]
    front = ["its program", "router", "program", "chart", "jaeger", "gobgp"]
    assert [item.name for item in in_order(items)] == [*front, "computes too", "computes"]


def test_the_tests_on_the_api_server_keep_their_order() -> None:
    paths = [Path(f"test_{n}.py") for n in range(4)]
    items = [Item(str(n), ("apiserver",), path) for n, path in enumerate(paths)]
    items[2].markers = ("apiserver", "interop")
    assert in_order(items) == items


def test_two_workers_compute_in_the_order_of_the_files_while_the_others_wait() -> None:
    run = begun(QUEUE, 4)
    run.run(SECONDS)
    assert run.names(0)[: len(GROUP)] == GROUP
    assert run.names(1)[0] == WAITING[0]
    computed = [name for name in run.names(2) if name in COMPUTING]
    assert computed == sorted(computed, key=COMPUTING.index)
    assert run.names(2)[: len(computed)] == computed
    assert set(COMPUTING) - {*run.names(2), *run.names(3)} == set()


def test_each_test_runs_once_a_group_in_one_worker_and_all_end() -> None:
    for workers in (1, 2, 3, 4, 5, 10):
        run = begun(QUEUE, workers)
        run.run(SECONDS)
        assert sorted(i for worker in run.workers for i in worker.ran) == [*range(len(QUEUE))]
        assert sum(bool(set(GROUP) & set(run.names(n))) for n in range(workers)) == 1
        assert all(worker.shutting_down for worker in run.workers)
        assert run.schedule.tests_finished


def test_fewer_tests_than_workers_leave_some_without_any() -> None:
    run = begun(WAITING[:2], 4)
    run.run(SECONDS)
    assert [len(worker.ran) for worker in run.workers] == [1, 1, 0, 0]


def test_the_last_tests_are_spread_and_all_workers_end_together() -> None:
    run = begun(QUEUE, 4)
    whole = sum(SECONDS.values()) / 4
    assert run.run(SECONDS) < whole + 2 * max(SECONDS.values())


def test_quick_tests_are_given_many_at_once_and_slow_ones_one_by_one() -> None:
    slow = [f"tests/bench/test_{n}.py::test_it" for n in range(100)]
    run = begun([*WAITING, *slow, *reversed(COMPUTING)], 4)
    run.run({**SECONDS, **dict.fromkeys(slow, 0.5)})
    assert [worker.most for worker in run.workers[:2]] == [2, 2]
    assert all(worker.most > AHEAD for worker in run.workers[2:])
    run = begun([*WAITING, *slow], 4)
    run.run({**SECONDS, **dict.fromkeys(slow, 0.5)})
    assert [worker.most for worker in run.workers] == [2] * 4


def test_the_tests_of_a_worker_that_dies_are_given_to_others() -> None:
    run = begun(QUEUE, 4)
    dead = run.workers.pop()
    assert run.schedule.remove_node(cast("Any", dead)) == COMPUTING[1]
    run.run(SECONDS)
    assert sorted(i for worker in run.workers for i in worker.ran) == [*range(len(QUEUE))]


def test_workers_that_compute_leave_the_processors_to_the_programs_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    lowered: list[int] = []
    monkeypatch.setattr(os, "nice", lowered.append)
    for worker, niceness in (("gw0", []), ("gw1", []), ("gw2", [NICENESS]), ("gw3", [NICENESS])):
        give_way(worker, 4)
        assert lowered == niceness
        lowered.clear()
