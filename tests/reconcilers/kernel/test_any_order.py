"""Whatever fails and in whichever order: the kernel ends with what is wanted, and without failures."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcilers.kernel import installed, wanted_tables
from reconcilers.kernel.writer.protocol_messages import FromWriter, Reason
from reconcilers.target import comparison, verification
from reconcilers.target.verification import Verification
from speaker.api import NO_PATHS, BestPathChange, PathSet
from speaker.nlri import IPV4_UNICAST
from tests.reconcilers.kernel.memory_writer import MemoryWriter
from tests.reconcilers.kernel.reconciler.reconciler_in_memory import (
    BOTH,
    MAIN,
    ONE,
    TWO,
    Agent,
    hops,
    many,
    wire,
)

PREFIXES = many(8)
PEERS = ("10.88.0.1", "10.88.0.2")
NEXT_HOPS = {ONE: hops(PEERS[0]), TWO: hops(PEERS[1]), BOTH: hops(*PEERS)}
SOME = st.lists(st.sampled_from(PREFIXES), min_size=1, max_size=4, unique=True)
PREFIX = st.sampled_from(PREFIXES)
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("best path"), SOME, st.sampled_from([NO_PATHS, *NEXT_HOPS]), st.booleans()
        ),
        st.tuples(st.just("round")),
        st.tuples(st.just("write")),
        st.tuples(st.just("answer")),
        st.tuples(st.just("turns")),
        st.tuples(st.just("verify")),
        st.tuples(st.just("refuse"), st.sampled_from([Reason.TABLE_FULL, None])),
        st.tuples(st.just("occupy"), PREFIX),
        st.tuples(st.just("free")),
        st.tuples(st.just("remove"), PREFIX),
        st.tuples(st.just("new writer")),
        st.tuples(st.just("session"), st.sampled_from(PEERS), st.booleans()),
        st.tuples(st.just("wait"), st.sampled_from([0.3, 40.0])),
    ),
    max_size=50,
)


class SmallBatches:
    """In place of `BatchSize`: several changes of one prefix are on their way."""

    routes = 2

    def confirmed(self, routes: int, seconds: float) -> None:
        """See `BatchSize`."""


class LateWriter(MemoryWriter):
    """A writer whose answers arrive when the test lets them."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: deque[FromWriter] = deque()
        self._hear: Callable[[FromWriter], None] = lambda _: None

    def follow(self, connected: Callable[[], None], received: Callable[[FromWriter], None]) -> None:
        super().follow(connected, self.answers.append)
        self._hear = received

    def connect(self) -> None:
        self.answers.clear()
        super().connect()

    def answer(self) -> None:
        if self.answers:
            self._hear(self.answers.popleft())

    def run(self) -> None:
        while self.sent or self.answers:
            if self.sent:
                self.step()
            self.answer()


def verifications(agent: Agent) -> Iterator[None]:
    """Verify what the kernel has, again and again; each step is a slice."""
    kernel = agent.kernel.installed
    while True:
        if kernel.listed:
            read: list[bool] = []
            kernel.read(lambda read=read: read.append(True))  # type: ignore[misc]
            while not read:
                yield
            ticks = itertools.count()
            for _ in Verification(agent.runner, lambda: agent.now, ticks.__next__).slices():
                yield
            kernel.end_reading()
        yield


@pytest.fixture(scope="module", autouse=True)
def _small_rounds() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(installed, "BatchSize", SmallBatches)
        patch.setattr(comparison, "SLICE_PARTS", 3)
        patch.setattr(verification, "PIECE_PARTS", 2)
        patch.setattr(wanted_tables, "TAKEN", 4)
        patch.setattr(wanted_tables, "FEW", 1)
        yield


def change(
    agent: Agent, best: dict[str, PathSet], prefixes: list[str], after: PathSet, *, urgent: bool
) -> None:
    for prefix in prefixes:
        before, best[prefix] = best[prefix], after
        if before != after:
            item = BestPathChange(IPV4_UNICAST, before, after, (wire(prefix),))
            agent.kernel.best_paths("main", [item], [item] if urgent else ())


def perform(  # noqa: C901  a case for each step
    agent: Agent, writer: LateWriter, best: dict[str, PathSet], step: tuple[object, ...]
) -> None:
    match step:
        case ("best path", list(prefixes), PathSet() as after, bool(urgent)):
            change(agent, best, prefixes, after, urgent=urgent)
        case ("round",):
            agent.runner.run(agent.now)
        case ("write",) if writer.sent:
            writer.step()
        case ("answer",):
            writer.answer()
        case ("turns",):
            for _ in agent.runner.slices(lambda: agent.now):
                if writer.sent:
                    writer.step()
                writer.answer()
        case ("refuse", reason):
            writer.reject = reason  # type: ignore[assignment]  # a reason, or None
        case ("occupy", str(prefix)) if (MAIN, wire(prefix)) not in writer.kernel:
            writer.foreign.add((MAIN, wire(prefix)))
        case ("free",):
            for place in list(writer.foreign):
                writer.free(*place)
        case ("remove", str(prefix)) if agent.kernel.installed.listed:
            if (MAIN, wire(prefix)) in writer.kernel:
                writer.change(Reason.MISSING, MAIN, wire(prefix))
        case ("new writer",):
            writer.connect()
        case ("session", str(peer), bool(lost)):
            kernel = agent.kernel
            (kernel.session_lost if lost else kernel.session_restored)("main", peer)
        case ("wait", float(seconds)):
            agent.now += seconds


@given(STEPS)
@settings(deadline=None)
def test_the_kernel_ends_with_what_is_wanted(steps: list[tuple[object, ...]]) -> None:
    writer = LateWriter()
    agent = Agent(writer).start()
    best = dict.fromkeys(PREFIXES, NO_PATHS)
    verified = verifications(agent)
    for step in steps:
        if step == ("verify",):
            next(verified)
        else:
            perform(agent, writer, best, step)
    for step in (("refuse", None), ("free",), *(("session", peer, False) for peer in PEERS)):
        perform(agent, writer, best, step)
    agent.kernel.installed.end_reading()
    for _ in range(3):
        agent.now += 100
        agent.settle()
    wanted = {prefix: NEXT_HOPS[paths] for prefix, paths in best.items() if paths}
    assert agent.routes == wanted
    assert agent.kernel.installed.failures.counts() == {}
    assert not agent.errors
    assert not agent.kernel.installed.pending
