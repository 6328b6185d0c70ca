"""Cells become one graph; errors name what is missing; run() starts and stops in order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence

import pytest

from cells.hive import Cell, CompositionError, DisabledCellError, Health, Wiring, load
from cells.hive.hive import Hive
from cells.hive.jobs import JobFailedError, Jobs, RestartPolicy
from cells.hive.lifecycle import Lifecycle
from cells.hive.show import dot, tree, views
from tests.support import looptime

EVENTS: list[str] = []


@pytest.fixture(autouse=True)
def _fresh() -> None:
    EVENTS.clear()


class Part:
    """Notes its construction, start and stop."""

    name = "part"

    def __init__(self, lifecycle: Lifecycle) -> None:
        EVENTS.append(f"new {self.name}")
        lifecycle.append(self.name, start=self.start, stop=self.stop)

    async def start(self) -> None:
        EVENTS.append(f"+{self.name}")

    async def stop(self) -> None:
        EVENTS.append(f"-{self.name}")


class Store(Part):
    name = "store"


class Web(Part):
    name = "web"

    def __init__(self, lifecycle: Lifecycle, store: Store) -> None:
        super().__init__(lifecycle)
        self.store = store


class Crash:
    """A cell's part whose one job always fails."""

    def __init__(self, jobs: Jobs, health: Health) -> None:
        health.ok("here")
        jobs.add("crash", self.run, policy=RestartPolicy(restarts=1))

    async def run(self) -> None:
        raise ZeroDivisionError("on purpose")


STORE = Cell(
    name="store", description="Keeps rows.", wiring=Wiring(provides=(Store,), invokes=(Store,))
)
WEB = Cell(name="web", description="Serves pages.", wiring=Wiring(provides=(Web,), invokes=(Web,)))
CRASH = Cell(name="crash", description="Fails.", wiring=Wiring(invokes=(Crash,)))


def build(*cells: Cell, disabled: Sequence[str] = ()) -> Hive:
    return Hive(cells, load(cells, flags={"disable_cell": list(disabled)}))


def test_construction_is_in_order_of_need_and_so_are_start_and_stop() -> None:
    threads = set(threading.enumerate())
    hive = build(WEB, STORE)
    assert EVENTS == ["new store", "new web"]
    assert hive.get(Web).store is hive.get(Store)

    async def scenario() -> None:
        await hive.run(started=hive.shutdown)

    EVENTS.clear()
    looptime.run(scenario())
    assert EVENTS == ["+store", "+web", "-web", "-store"]
    assert threads.issuperset(threading.enumerate())


def test_a_disabled_cell_is_not_built() -> None:
    hive = build(STORE, WEB, disabled=["web"])
    assert EVENTS == ["new store"]
    assert hive.settings.enabled == {"store": True, "web": False}
    with pytest.raises(CompositionError, match="no enabled cell provides Web"):
        hive.get(Web)


def test_a_cell_that_needs_a_disabled_one_is_an_error_with_both_names() -> None:
    with pytest.raises(DisabledCellError) as caught:
        build(STORE, WEB, disabled=["store"])
    assert str(caught.value) == (
        "cell web needs Store of cell store, which is disabled: "
        "enable store (--enable-cell store) or disable web as well"
    )
    assert EVENTS == []


def test_f35_a_job_given_up_stops_the_hive_in_order_and_raises() -> None:
    hive = build(STORE, CRASH)
    with pytest.raises(JobFailedError, match=r"crash\.crash failed for good.*on purpose"):
        looptime.run(hive.run())
    assert EVENTS == ["new store", "+store", "-store"]


def test_a_failed_start_is_raised_after_what_had_started_is_stopped() -> None:
    class Broken(Part):
        name = "broken"

        async def start(self) -> None:
            raise OSError("address in use")

    hive = build(
        STORE, Cell(name="broken", description="", wiring=Wiring(invokes=(Broken,))), CRASH
    )
    with pytest.raises(OSError, match="address in use"):
        looptime.run(hive.run())
    assert EVENTS[-2:] == ["+store", "-store"]


def during_start(act: Callable[[Hive], None]) -> Hive:
    """Build a hive whose second cell starts slowly, and act while it does."""

    class Slow(Part):
        name = "slow"

        async def start(self) -> None:
            asyncio.get_running_loop().call_later(1, lambda: act(hives[0]))
            await asyncio.sleep(30)

    hives = [build(STORE, Cell(name="slow", description="", wiring=Wiring(invokes=(Slow,))))]
    return hives[0]


def test_a_stop_requested_during_the_start_does_not_wait_for_it() -> None:
    hive = during_start(lambda hive: hive.shutdown())

    async def scenario() -> float:
        await hive.run()
        return asyncio.get_running_loop().time()

    assert looptime.run(scenario()) < 2
    assert EVENTS[-2:] == ["+store", "-store"]


def test_cancelling_the_run_still_stops_in_order() -> None:
    hive = build(STORE, WEB)

    async def scenario() -> None:
        task = asyncio.create_task(hive.run())
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()

    EVENTS.clear()
    looptime.run(scenario())
    assert EVENTS == ["+store", "+web", "-web", "-store"]


def test_the_tree_and_the_graph_name_every_cell() -> None:
    settings = load((STORE, WEB), flags={"disable_cell": ["web"]})
    found = views((STORE, WEB), settings)
    assert tree(found).splitlines() == [
        "store: enabled",
        "    Keeps rows.",
        "    provides Store",
        "web: disabled (switched off)",
        "    Serves pages.",
        "    needs Store (store)",
        "    provides Web",
    ]
    graph = dot(found)
    assert '"web" -> "store" [label="Store"];' in graph
    assert graph.startswith("digraph cells {")
    assert graph.endswith("}")
