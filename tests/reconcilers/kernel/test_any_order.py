"""Whatever fails and in whichever order: the kernel ends with what is wanted, and without failures."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconcilers.kernel.writer.protocol_messages import Reason, TrackedAddress
from reconcilers.model import Instance
from reconcilers.target.verification import Verification
from resources.host import Host, Vrf
from speaker.api import NO_PATHS, BestPathChange, PathSet
from speaker.nlri import IPV4_UNICAST
from tests.reconcilers.kernel.build import internal, octets, path, paths
from tests.reconcilers.kernel.late_writer import LateWriter, small_rounds
from tests.reconcilers.kernel.memory_writer import MemoryWriter
from tests.reconcilers.kernel.reconciler.reconciler_in_memory import (
    BOTH,
    DEFAULT,
    MAIN,
    NETWORKS,
    NUMBERED,
    ONE,
    TWO,
    Agent,
    many,
    wire,
)
from tests.support.examples import examples

PREFIXES = many(8)
PEERS = ("10.88.0.1", "10.88.0.2")
NEVER_LOST = "10.88.0.3"
FAR = ("192.0.2.1", "192.0.2.2", "192.0.2.3")
"""Next hops that the host's default route leads to."""
BEST = (
    ONE,
    TWO,
    BOTH,
    paths(path("10.88.0.1"), internal("10.88.0.7", peer="10.88.0.2")),
    *(paths(internal(far, peer=peer)) for far in FAR for peer in PEERS),
    paths(*(internal(far, peer="10.88.0.2") for far in FAR)),
)
"""Path sets: most are a forwarding class of their own, and some lead to the same next hops."""
NEXT_HOPS = (*PEERS, "10.88.0.7", *FAR)
HOSTS = (
    NUMBERED,
    Host(
        (msgspec.structs.replace(NUMBERED.devices[0], index=5), *NUMBERED.devices[1:]),
        NUMBERED.default_routes,
        NUMBERED.vrfs,
    ),
    Host(NUMBERED.devices[1:], (), NUMBERED.vrfs),
    Host(NUMBERED.devices, NUMBERED.default_routes, (Vrf("red", 1045),)),
)
"""The host, its interface with another number, without it, and with another table of the VRF."""
ROUTES = (NETWORKS[254], DEFAULT, None)
"""What may lead to a next hop."""
SOME = st.lists(st.sampled_from(PREFIXES), min_size=1, max_size=4, unique=True)
PREFIX = st.sampled_from(PREFIXES)
INSTANCES = ("main", "red")
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("best path"),
            st.sampled_from(INSTANCES),
            SOME,
            st.sampled_from([NO_PATHS, *BEST]),
            st.booleans(),
        ),
        st.tuples(st.just("round")),
        st.tuples(st.just("slice")),
        st.tuples(st.just("write")),
        st.tuples(st.just("answer")),
        st.tuples(st.just("turns")),
        st.tuples(st.just("verify")),
        st.tuples(st.just("refuse"), st.sampled_from([Reason.TABLE_FULL, None])),
        st.tuples(st.just("occupy"), PREFIX),
        st.tuples(st.just("free")),
        st.tuples(st.just("remove"), PREFIX),
        st.tuples(st.just("new writer")),
        st.tuples(st.just("lost"), st.sampled_from(PEERS)),
        st.tuples(st.just("established"), st.sampled_from([*PEERS, NEVER_LOST])),
        st.tuples(st.just("host"), st.sampled_from(HOSTS)),
        st.tuples(st.just("next hop"), st.sampled_from(NEXT_HOPS), st.sampled_from(ROUTES)),
        st.tuples(st.just("wait"), st.sampled_from([0.3, 40.0])),
    ),
    min_size=10,
    max_size=60,
)


@pytest.fixture(scope="module", autouse=True)
def _small_rounds() -> Iterator[None]:
    with small_rounds():
        yield


def new_agent(writer: MemoryWriter) -> Agent:
    """Return an agent with two instances that have the same peers, one of them by import."""
    for far in FAR:
        writer.own_routes[TrackedAddress(254, octets(far))] = DEFAULT
    agent = Agent(writer)
    agent.instances(Instance("red", "red", 64710, "10.99.0.11", dialect="frr"))
    return agent.start()


class Machine:
    """An agent with its writer, and what happens to both."""

    def __init__(self) -> None:
        self.writer = LateWriter()
        self.agent = new_agent(self.writer)
        self.host = NUMBERED
        self.lost: set[str] = set()
        self.best: dict[tuple[str, str], PathSet] = {
            (instance, prefix): NO_PATHS for instance in INSTANCES for prefix in PREFIXES
        }
        self._round: Iterator[None] = iter(())
        self._verified = self._verifications()
        for instance in INSTANCES:
            for prefix, after in zip(PREFIXES, BEST, strict=False):
                self.change(instance, [prefix], after, urgent=False)
        self.settle()

    def _verifications(self) -> Iterator[None]:
        """Verify what the kernel has, again and again; each step is a slice."""
        kernel = self.agent.kernel.installed
        while True:
            if kernel.listed:
                read: list[bool] = []
                kernel.read(lambda read=read: read.append(True))  # type: ignore[misc]
                while not read:
                    yield
                ticks = itertools.count()
                slices = Verification(self.agent.runner, lambda: self.agent.now, ticks.__next__)
                for _ in slices.slices():
                    yield
                kernel.end_reading()
            yield

    def slice(self) -> bool:
        """Do a slice of a round; returns whether it has others."""
        for _ in self._round:
            return True
        self._round = self.agent.runner.slices(lambda: self.agent.now)
        return False

    def change(self, instance: str, prefixes: list[str], after: PathSet, *, urgent: bool) -> None:
        for prefix in prefixes:
            before, self.best[instance, prefix] = self.best[instance, prefix], after
            if before != after:
                item = BestPathChange(IPV4_UNICAST, before, after, (wire(prefix),))
                self.agent.kernel.best_paths(instance, [item], [item] if urgent else ())

    def perform(self, step: tuple[object, ...]) -> None:  # noqa: C901  a case for each step
        agent, writer = self.agent, self.writer
        match step:
            case ("best path", str(instance), list(prefixes), PathSet() as after, bool(urgent)):
                self.change(instance, prefixes, after, urgent=urgent)
            case ("round",):
                while self.slice():
                    pass
            case ("slice",):
                self.slice()
            case ("write",) if writer.sent:
                writer.step()
            case ("answer",):
                writer.answer()
            case ("turns",):
                while self.slice():
                    if writer.sent:
                        writer.step()
                    writer.answer()
            case ("verify",):
                # A verification is continued between rounds.
                while self.slice():
                    pass
                next(self._verified)
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
            case ("lost", str(peer)):
                self.lost.add(peer)
                agent.kernel.session_lost("main", peer)
            case ("established", str(peer)):
                self.lost.discard(peer)
                agent.kernel.session_restored("main", peer)
            case ("host", Host() as host):
                self.host = host
                agent.kernel.host_changed(host)
            case ("next hop", str(address), route):
                tracked = TrackedAddress(254, octets(address))
                writer.own_routes[tracked] = route  # type: ignore[assignment]
                if tracked in writer.tracked.addresses:
                    writer.resolve([tracked])
            case ("wait", float(seconds)):
                agent.now += seconds

    def settle(self) -> None:
        """Let everything succeed, and do all that is left to do."""
        self.perform(("refuse", None))
        self.perform(("free",))
        self._report_interfaces()
        self.agent.kernel.installed.end_reading()
        self.perform(("round",))
        for _ in range(3):
            self.agent.now += 100
            self.agent.settle()

    def _report_interfaces(self) -> None:
        """Let the writer report next hops on the interfaces of the host, as kernels do.

        Before, the agent may know an interface earlier or later than the writer.
        """
        index = next((one.index for one in self.host.devices if one.name == "eth0"), None)
        writer, changed = self.writer, []
        for tracked, route in writer.own_routes.items():
            if tracked.table != MAIN.table or route is None:
                continue
            hops = (
                () if index is None else tuple(h._replace(interface=index) for h in route.next_hops)
            )
            if hops != route.next_hops:
                writer.own_routes[tracked] = route._replace(next_hops=hops) if hops else None
                changed.append(tracked)
        writer.resolve(tracked for tracked in changed if tracked in writer.tracked.addresses)

    def differences(self) -> Iterator[object]:
        """Verify everything at once."""
        for drifts in Verification(self.agent.runner, lambda: self.agent.now).slices():
            yield from drifts

    def fresh(self) -> Agent:
        """Return an agent that begins with the present state."""
        writer = MemoryWriter()
        agent = new_agent(writer)
        writer.own_routes.update(self.writer.own_routes)
        for peer in self.lost:
            agent.kernel.session_lost("main", peer)
        agent.kernel.host_changed(self.host)
        agent.settle()
        for (instance, prefix), after in self.best.items():
            if after:
                agent.change(after, prefix, instance=instance)
        return agent


@given(STEPS)
@settings(max_examples=examples(100))
def test_the_kernel_ends_with_what_is_wanted(steps: list[tuple[object, ...]]) -> None:
    machine = Machine()
    for step in steps:
        machine.perform(step)
    machine.settle()
    agent, fresh = machine.agent, machine.fresh()
    assert machine.writer.kernel == fresh.writer.kernel
    for (instance, prefix), after in machine.best.items():
        if instance == "main" and machine.lost.issuperset(path.peer for path in after.paths):
            assert prefix not in agent.routes
    assert set(agent.writer.tracked.addresses) >= set(fresh.writer.tracked.addresses)
    assert agent.kernel.installed.failures.counts() == {}
    assert not agent.errors
    assert not agent.kernel.installed.pending
    assert not any(True for _ in machine.differences())
    agent.kernel.host_changed(machine.host)
    machine.settle()
    assert set(agent.writer.tracked.addresses) == set(fresh.writer.tracked.addresses)
