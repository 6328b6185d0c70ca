"""An agent that starts again, in whichever order it learns what it depends on, loses no route."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcilers.kernel.writer.protocol_messages import TrackedAddress
from reconcilers.model import Instance
from speaker.api import NO_PATHS, BestPathChange, PathSet, SelectionEnd, TableBegin, TableEnd
from speaker.nlri import IPV4_UNICAST
from tests.reconcilers.kernel.build import internal, octets, path, paths
from tests.reconcilers.kernel.late_writer import LateWriter, small_rounds
from tests.reconcilers.kernel.memory_writer import Place
from tests.reconcilers.kernel.reconciler.reconciler_in_memory import (
    BOTH,
    DEFAULT,
    NUMBERED,
    ONE,
    TWO,
    Agent,
    many,
    wire,
)
from tests.support.examples import examples

PREFIXES = many(3)
QUIET = 8
"""So many turns without a message, and all is done: a round of few routes may send nothing."""
FAR = ("192.0.2.1", "192.0.2.2")
"""Next hops that the host's default route leads to."""
NOWHERE = "198.18.0.1"
BEST = (
    ONE,
    TWO,
    BOTH,
    paths(path("10.88.0.1"), internal(FAR[0], peer="10.88.0.2")),
    *(paths(internal(far, peer="10.88.0.1")) for far in FAR),
    paths(internal(NOWHERE, peer="10.88.0.1")),
    paths(path("10.99.0.1", instance="red")),
    paths(path("", peer="eth0", address="fe80::1", interface="eth0", link_local=octets("fe80::1"))),
)
ROWS = {
    "main": Instance("main", None, 64710, "10.88.0.11", dialect="frr"),
    "red": Instance("red", "red", 64710, "10.99.0.11", dialect="frr"),
}
"""Of the default VRF and of another VRF, which imports the routes of the first one."""
Tables = dict[tuple[str, str], PathSet]
KEYS = st.tuples(st.sampled_from(tuple(ROWS)), st.sampled_from(PREFIXES))
TABLES = st.dictionaries(KEYS, st.sampled_from(BEST), min_size=2)
FORMER = st.dictionaries(KEYS, st.sampled_from(BEST), max_size=2)
"""What an earlier agent had in place of it."""
INPUTS = (
    "host",
    "writer",
    *(f"instance {name}" for name in ROWS),
    *(f"end {name}" for name in ROWS),
)
ANY_ORDER = st.permutations(INPUTS)
ORDERS = ANY_ORDER | ANY_ORDER.map(lambda names: sorted(names, key=lambda n: n.startswith("end")))
"""In half of them the peers announce most while all else is known."""
Step = str | tuple[str, str, bool]
STEPS = st.lists(
    st.one_of(
        st.just("input"),
        st.sampled_from(("slice", "round", "write", "answer")),
        st.just("turn"),
        st.tuples(st.sampled_from(tuple(ROWS)), st.sampled_from(PREFIXES), st.booleans()),
    ),
    min_size=10,
    max_size=80,
)


class OneByOne(LateWriter):
    """A writer that reports each next hop in a message of its own."""

    def __init__(self) -> None:
        super().__init__()
        for far in FAR:
            self.own_routes[TrackedAddress(254, octets(far))] = DEFAULT

    def resolve(self, addresses: Iterable[TrackedAddress]) -> None:
        for address in addresses:
            super().resolve([address])


@pytest.fixture(scope="module", autouse=True)
def _small_rounds() -> Iterator[None]:
    with small_rounds():
        yield


class Restart:
    """An agent that finds the routes of an earlier one, and its inputs, each once."""

    def __init__(
        self,
        writer: LateWriter,
        tables: Tables,
        inputs: Sequence[str] = INPUTS,
        observe: Callable[[], None] = lambda: None,
    ) -> None:
        """``inputs``: in which order it is given them."""
        self.writer = writer
        self.agent = Agent(writer, deferred=True)
        self.agent.kernel.host_changed(None)
        self._tables = tables
        self._announced: set[tuple[str, str]] = set()
        self._inputs = list(inputs)
        self._given: set[str] = set()
        self._rounds: Iterator[None] = iter(())
        self._observe = observe

    def perform(self, step: Step) -> None:
        match step:
            case "slice":
                self._slice()
            case "round":
                while self._slice():
                    pass
            case "write" if self.writer.sent:
                self.writer.step()
            case "answer":
                self.writer.answer()
            case "turn":
                for each in ("round", "write", "answer"):
                    self.perform(each)
            case "input" if self._inputs:
                self._give(*self._inputs.pop(0).split())
            case (str(instance), str(prefix), bool(urgent)):
                self._announce(instance, prefix, urgent=urgent)
        self._observe()

    def _slice(self) -> bool:
        for _ in self._rounds:
            return True
        self._rounds = self.agent.runner.slices(lambda: self.agent.now)
        return False

    def _give(self, name: str, instance: str = "") -> None:
        kernel = self.agent.kernel
        if f"{name} {instance}" in self._given:
            return
        if name == "end":
            self._give("instance", instance)
        match name:
            case "host":
                kernel.host_changed(NUMBERED)
            case "writer":
                self.writer.connect()
            case "instance":
                self.agent.instances(ROWS[instance])
                kernel.configure(self.agent.db.snapshot())
                kernel.best_paths(instance, [TableBegin()])
            case _:
                for of, prefix in self._tables:
                    if of == instance:
                        self._announce(instance, prefix, urgent=False)
                kernel.best_paths(instance, [TableEnd(), SelectionEnd()])
        self._given.add(f"{name} {instance}")

    def _announce(self, instance: str, prefix: str, *, urgent: bool) -> None:
        key = (instance, prefix)
        if (
            f"instance {instance}" in self._given
            and key in self._tables
            and key not in self._announced
        ):
            self._announced.add(key)
            item = BestPathChange(IPV4_UNICAST, NO_PATHS, self._tables[key], (wire(prefix),))
            self.agent.kernel.best_paths(instance, [item], [item] if urgent else ())

    def end(self) -> None:
        """Learn the rest, and end the deferral."""
        while self._inputs:
            self.perform("input")
        self._settle()
        self.agent.kernel.end_deferral()
        self._settle()

    def _settle(self) -> None:
        quiet = 0
        for _ in range(50):
            is_busy = bool(self.writer.sent or self.writer.answers)
            self.perform("turn")
            is_busy |= bool(self.writer.sent or self.writer.answers)
            quiet = 0 if is_busy or self.agent.kernel.wanted_tables.has_changed else quiet + 1
            if quiet == QUIET:
                break
        self.agent.settle()
        self._observe()


def after(tables: Tables, writer: LateWriter) -> dict[Place, object]:
    """Return what an agent leaves in the kernel that learns everything at once."""
    restart = Restart(writer, tables)
    restart.end()
    return dict(writer.kernel)


@given(FORMER, TABLES, ORDERS, STEPS)
@settings(max_examples=examples(300))
def test_a_route_that_stays_is_never_gone(
    former: Tables, tables: Tables, inputs: list[str], steps: list[Step]
) -> None:
    """Nor does it lead to others than before, meanwhile."""
    expected = after(tables, OneByOne())
    writer = OneByOne()
    before = after({**tables, **former}, writer)
    writer.answers.clear()
    staying = {place for place, hops in expected.items() if before.get(place) == hops}
    broken: list[object] = []

    def observe() -> None:
        for place in staying:
            hops = writer.kernel.get(place)
            if hops is None or not set(hops) <= set(expected[place]):  # type: ignore[call-overload]
                broken.append((place, hops))

    restart = Restart(writer, tables, inputs, observe)
    for step in steps:
        restart.perform(step)
    restart.end()
    assert not broken
    assert writer.kernel == expected
