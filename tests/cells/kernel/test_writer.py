"""The writer's job: its process or socket, the capability, the end, and the health of the routes."""

from __future__ import annotations

import asyncio
import errno
import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest
from reactivex.subject import Subject
from structlog.testing import capture_logs

from cells.hive import HealthTree
from cells.intent.installing_dialects import InstallingDialects
from cells.kernel import cell
from cells.kernel.cell import (
    ANSWER_POLL_SECONDS,
    GOODBYE_SECONDS,
    WriterJob,
    make_installing_dialects,
    make_kernel_routes,
)
from cells.sources.resources import ApplyTraceLinks
from reconcilers.intent_tables import IntentTables
from reconcilers.kernel.answers import Answers
from reconcilers.kernel.options import FibOptions
from reconcilers.kernel.writer.client import WriterClient
from reconcilers.kernel.writer.protocol_messages import Goodbye
from statedb import Database
from tests.support import looptime
from tests.support.looptime import run


class Child:
    """In place of the process that keeps the writer running."""

    def __init__(self, name: str, command: tuple[str, ...], *_: object, started: Any) -> None:  # noqa: ANN401
        self.given = (name, command)
        self.started = started
        self.runs = 0

    async def start(self) -> None:
        """Nothing is started."""

    async def stop(self) -> None:
        """Nothing is stopped."""

    async def run(self) -> None:
        """Count."""
        self.runs += 1


class Node:
    """A writer's job whose other parts are the test's."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401
        self.hooks: dict[str, dict[str, Any]] = {}
        self.jobs: dict[str, Any] = {}
        self.now = 0.0
        self.health = HealthTree()
        self.changed: Subject[None] = Subject()
        self.installed = SimpleNamespace(
            health="",
            answers=Answers(lambda: self.now),
            listed=False,
            tables=("a", "b"),
            failures=SimpleNamespace(counts=lambda: self.failures),
            count={"a": 3, "b": 4}.__getitem__,
        )
        self.is_connected = True
        self.failures: dict[str, int] = {}
        self.problems: list[str] = []
        self.sent: list[object] = []
        self.wanted_tables = SimpleNamespace(problems=lambda: self.problems)
        this = cast("Any", self)
        self.writer = WriterJob(
            this,
            this,
            FibOptions(**options),
            self.health,
            this,
            this,
            InstallingDialects(frozenset("ba")),
        )

    # The client, the jobs and the hooks

    def add(self, name: str, job: Any, **_: object) -> None:  # noqa: ANN401
        self.jobs[name] = job

    async def job(self) -> None:
        await self.jobs["writer"]()

    def append(self, name: str, **hooks: Any) -> None:  # noqa: ANN401
        self.hooks[name] = hooks

    def send(self, message: object) -> None:
        self.sent.append(message)

    async def disconnected(self) -> None:
        await asyncio.Event().wait()

    def state(self, name: str) -> tuple[str, str] | None:
        for status in self.health.report():
            if status.path[-1] == name:
                return str(status.level), status.message
        return None


@pytest.fixture(name="child")
def _child(monkeypatch: pytest.MonkeyPatch) -> list[Child]:
    children: list[Child] = []

    def made(*arguments: Any, **named: Any) -> Child:  # noqa: ANN401
        children.append(Child(*arguments, **named))
        return children[-1]

    monkeypatch.setattr(cell, "ChildProcess", made)
    return children


def test_without_a_socket_the_writer_is_a_process_that_is_started_first(child: list[Child]) -> None:
    node = Node()
    (process,) = child
    assert process.given == ("waggle-kernel", (sys.executable, "-m", "waggle_kernel"))
    assert node.hooks["writer"] == {"reserve": process.start, "stop": process.stop, "first": True}
    run(node.job())
    assert process.runs == 1


def test_with_a_socket_it_is_another_container(
    child: list[Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[object] = []

    async def connected(path: str, *others: object) -> None:
        given.extend((path, others[-1]))

    monkeypatch.setattr(cell, "stay_connected", connected)
    node = Node(socket="/run/x//fib.sock")
    run(node.job())
    assert given == ["/run/x/fib.sock", "waggle-kernel"]
    assert (child, "writer" in node.hooks) == ([], False)


def test_the_capability_is_given_up_once_the_writer_has_it(
    child: list[Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def give_up(number: int) -> bool:
        asked.append(number)
        return True

    monkeypatch.setattr(cell, "give_up", give_up)
    node = Node()
    child[0].started()
    assert (asked, node.state("capability")) == ([12], None)
    # The keeper, which has it, was killed: another writer could not write.
    child[0].started()
    state = node.state("capability")
    assert asked == [12]
    assert state is not None
    assert state[0] == "degraded"
    assert "started again" in state[1]


def test_a_capability_that_a_thread_keeps_is_named(
    child: list[Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept(_: int) -> bool:
        raise OSError(errno.EBUSY, "2 threads keep the capability")

    monkeypatch.setattr(cell, "give_up", kept)
    node = Node()
    child[0].started()
    assert node.state("capability") == (
        "degraded",
        "the agent keeps NET_ADMIN, which it does not need: 2 threads keep the capability",
    )


def test_at_the_end_the_writer_removes_the_routes_or_is_not_waited_for_longer(
    child: list[Child],
) -> None:
    node = Node(keep=False)

    async def end() -> float:
        await node.hooks["goodbye"]["stop"]()
        return asyncio.get_running_loop().time()

    assert run(end()) == GOODBYE_SECONDS
    assert node.sent == [Goodbye()]
    kept = Node(keep=True)
    run(kept.hooks["goodbye"]["stop"]())
    assert kept.sent == []


def test_the_health_of_the_routes_is_the_first_trouble_or_their_number(child: list[Child]) -> None:
    node = Node()
    node.changed.on_next(None)
    assert node.state("kernel") is None, "nothing is known before the writer has listed them"
    node.installed.listed = True
    node.changed.on_next(None)
    assert node.state("kernel") == ("ok", "7 routes")
    node.failures = {"no such device": 2, "invalid gateway": 1}
    node.problems = ["table 7 is not ours"]
    node.changed.on_next(None)
    assert node.state("kernel") == (
        "degraded",
        "table 7 is not ours, 1 route: invalid gateway, 2 routes: no such device",
    )
    node.installed.health = "not permitted"
    node.changed.on_next(None)
    assert node.state("kernel") == ("degraded", "not permitted")


def test_a_writer_that_hangs_is_reported_by_its_own_deadline_and_goes_on(
    child: list[Child],
) -> None:
    node = Node()
    node.installed.listed = True
    answers = node.installed.answers

    async def scenario() -> None:
        watch = asyncio.ensure_future(node.jobs["answers"]())
        states = []
        answers.begin()
        for seconds, step in (
            (9.0, answers.received),  # a piece of a long listing
            (9.0, lambda: answers.answered(0)),
            (30.0, lambda: answers.sent(1)),
            (30.0, lambda: answers.answered(1)),
            (30.0, lambda: None),
        ):
            node.now += seconds
            await asyncio.sleep(ANSWER_POLL_SECONDS + 1)
            state = node.state("kernel")
            states.append(state and state[0])
            step()
        assert states == [None, None, None, "degraded", "ok"]
        answers.sent(2)
        node.now += 30
        for node.is_connected in (True, False):
            await asyncio.sleep(ANSWER_POLL_SECONDS + 1)
            state = node.state("kernel")
            states.append(state and state[0])
        assert states[5:] == ["degraded", "ok"], "a writer that is gone does not hang"
        watch.cancel()

    looptime.run(scenario())


def test_the_choice_is_logged_at_the_start_with_the_dialects_whose_routes_are_installed(
    child: list[Child],
) -> None:
    node = Node(fib="auto")
    with capture_logs() as logs:
        run(node.hooks["choice"]["start"]())
    (line,) = logs
    assert (line["dialects"], line["fib"]) == ("a,b", "auto")


def test_only_dialects_with_route_installation_have_kernel_routes() -> None:
    def dialect(name: str, *, wants: bool) -> SimpleNamespace:
        return SimpleNamespace(name=name, wants_routes_installed=wants)

    dialects = [dialect("a", wants=True), dialect("b", wants=False)]
    options = FibOptions(fib="auto")
    installing = make_installing_dialects(cast("Any", dialects), options)
    assert installing.dialects == {"a"}
    database = Database()
    routes = make_kernel_routes(
        database,
        IntentTables(database),
        WriterClient("test"),
        installing,
        options,
        ApplyTraceLinks(),
    )
    assert [routes._installs(cast("Any", of)) for of in map(row, ("a", "b"))] == [True, False]


def row(dialect: str) -> SimpleNamespace:
    return SimpleNamespace(dialect=dialect)
