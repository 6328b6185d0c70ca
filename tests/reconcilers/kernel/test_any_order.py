"""Whatever fails and in whichever order: the kernel ends with what is wanted, and without failures."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcilers.kernel import installed, wanted_tables
from reconcilers.kernel.writer.values import Reason
from reconcilers.target import comparison
from speaker.api import NO_PATHS, BestPathChange, PathSet
from speaker.nlri import IPV4_UNICAST
from tests.reconcilers.kernel.reconciler.agent import BOTH, MAIN, ONE, TWO, Agent, hops, many, wire

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
        st.tuples(st.just("turns")),
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


@pytest.fixture(scope="module", autouse=True)
def _small_rounds() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(installed, "BatchSize", SmallBatches)
        patch.setattr(comparison, "SLICE_PARTS", 3)
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
    agent: Agent, best: dict[str, PathSet], step: tuple[object, ...]
) -> None:
    writer = agent.writer
    match step:
        case ("best path", list(prefixes), PathSet() as after, bool(urgent)):
            change(agent, best, prefixes, after, urgent=urgent)
        case ("round",):
            agent.runner.run(agent.now)
        case ("write",) if writer.sent:
            writer.step()
        case ("turns",):
            for _ in agent.runner.slices(lambda: agent.now):
                if writer.sent:
                    writer.step()
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
    agent = Agent().start()
    best = dict.fromkeys(PREFIXES, NO_PATHS)
    for step in steps:
        perform(agent, best, step)
    for step in (("refuse", None), ("free",), *(("session", peer, False) for peer in PEERS)):
        perform(agent, best, step)
    for _ in range(3):
        agent.now += 100
        agent.settle()
    wanted = {prefix: NEXT_HOPS[paths] for prefix, paths in best.items() if paths}
    assert agent.routes == wanted
    assert agent.kernel.installed.failures() == {}
    assert not agent.errors
    assert not agent.kernel.installed.pending
