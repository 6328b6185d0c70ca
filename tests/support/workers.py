"""Which worker of pytest-xdist runs which test: tests that wait run beside tests that compute.

Tests of programs, routers and namespaces mostly wait, all others mostly compute. In the order of their
files all workers would wait at the same time, and compute at the same time. Here the queue has tests
that wait at its front (`in_order`), and as many workers as there are processors take from its back
(`SideBySide`). Where both meet, the run is over.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol, TypeVar

import pytest
from xdist.remote import Producer
from xdist.scheduler.loadgroup import LoadGroupScheduling
from xdist.workermanage import WorkerController

WAITING: Final = {"apiserver", "interop", "netns", "program"}
LONGEST: Final = ("apiserver", "interop")
BUILT: Final = ("helm", "jaeger", "gobgp")
"""Markers of tests whose programs may be built meanwhile, in the order of the builds: they run late."""
AHEAD: Final = 16
"""So many quick tests a worker that computes gets at once: the way to it takes as long as they do."""
QUICK_SECONDS: Final = 0.1
NICENESS: Final = 10
"""A tenth of the weight of an ordinary program."""


class Marked(Protocol):
    """What has a place in the queue: an item of pytest."""

    path: Path

    def get_closest_marker(self, name: str, /) -> object | None:
        """Return a marker of that name, or None."""


T = TypeVar("T", bound=Marked)


def late(item: Marked) -> int:
    """Return how late a test is for its program, 0 where none may be built meanwhile."""
    return max((n for n, name in enumerate(BUILT, 1) if item.get_closest_marker(name)), default=0)


def waits(item: Marked) -> bool:
    """Return whether a test mostly waits for programs."""
    return late(item) > 0 or any(item.get_closest_marker(name) for name in WAITING)


def in_order(items: Sequence[T]) -> list[T]:
    """Return the queue: what waits from the front on, what computes from the back on, as given.

    Files with the longest tests, against routers, come first: the last tests, at the middle, are short.
    Tests of a file keep their order, and all on the API server, which they share, theirs.
    """
    first = {item.path for item in items if any(map(item.get_closest_marker, LONGEST))}

    def place(item: T) -> tuple[int, bool]:
        return late(item), item.path not in first

    front = sorted((item for item in items if waits(item)), key=place)
    return [*front, *(item for item in reversed(items) if not waits(item))]


def computes(worker: str, count: int) -> bool:
    """Return whether a worker (``gw0``), of so many, takes tests that compute: one a processor."""
    return int(worker.removeprefix("gw")) >= max(1, count - len(os.sched_getaffinity(0)))


def give_way(worker: str, count: int) -> None:
    """Have a worker that computes leave the processors to the programs of the others' tests.

    These have times to keep, and two processors are always busy.
    """
    if computes(worker, count):
        os.nice(NICENESS)


class SideBySide(LoadGroupScheduling):
    """The schedule of ``--dist loadgroup``, with a queue that has two ends."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        self._places: dict[str, int] = {}
        """Of each test in the collection, which is the same one for all workers."""
        self._quick: set[WorkerController] = set()
        """Whose last test took a moment."""

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Take the tests that a worker has found."""
        super().add_node_collection(node, collection)
        self._places = {name: place for place, name in enumerate(collection)}

    def mark_test_complete(
        self, node: WorkerController, item_index: int, duration: float = 0
    ) -> None:
        """Take the end of a test, and give the worker more; what has ended is looked at no more."""
        name = self.registered_collections[node][item_index]
        scope = self._split_scope(name)
        unit = self.assigned_work[node][scope]
        unit[name] = True
        if all(unit.values()):
            del self.assigned_work[node][scope]
        (self._quick.add if duration < QUICK_SECONDS else self._quick.discard)(node)
        self._reschedule(node)

    def _reschedule(self, node: WorkerController) -> None:
        if node.shutting_down:
            return
        if not self.workqueue:
            node.shutdown()
            return
        least, more = self._stock(node)
        if self._pending_of(self.assigned_work[node]) < least:
            for _ in range(min(more, len(self.workqueue))):
                self._assign_work_unit(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        scope, unit = self.workqueue.popitem(last=self._computes(node))
        self.assigned_work[node][scope] = unit
        node.send_runtest_some([self._places[name] for name, ended in unit.items() if not ended])

    def _stock(self, node: WorkerController) -> tuple[int, int]:
        """Return with how few tests a worker gets more, and how many: it begins one if it has the next.

        Near the end each gets one at a time, so that all of them end together.
        """
        more = min(AHEAD, len(self.workqueue) // (4 * self.numnodes))
        return (4, more) if more > 1 and node in self._quick and self._computes(node) else (2, 1)

    def _computes(self, node: WorkerController) -> bool:
        return computes(node.gateway.id, self.numnodes)
