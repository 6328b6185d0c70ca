"""Work in slices: what one slice holds, and what is seen between two of them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from reconcilers.frrk8s import field_values
from reconcilers.frrk8s.dialect import Frrk8sDialect
from reconcilers.frrk8s.options import Frrk8sClusterOptions
from reconcilers.intent.address_limits import AddressLimits
from reconcilers.intent.route_rows import RouteRows
from reconcilers.intent.service_addresses import cluster_ips
from reconcilers.operator import InProcessOperator, Planner
from reconcilers.sliced_work import (
    BATCH_PIECES,
    SLICE_PIECES,
    Pieces,
    Slices,
    changes_of,
    finish,
    merged,
    quick,
)
from reconcilers.target.comparison import SLICE_PARTS
from statedb import Database
from statedb.changes import SLICE
from tests.reconcilers.build import service, usual
from tests.reconcilers.frrk8s.agent_in_memory import AgentInMemory
from tests.reconcilers.frrk8s.build import configuration, neighbor, router
from tests.statedb.rows import Row, put, rows_table
from tests.support import kinds

COUNT = 12_000
ROUTERS = [f"203.0.113.{i}" for i in (9, 10)]
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}


def large(count: int, *, second: int = 16) -> dict[str, Any]:
    """Make an object with many prefixes, which it advertises to one of two neighbours."""
    prefixes = [f"172.{second}.{i >> 8}.{i & 255}/32" for i in range(count)]
    entry = [{"community": "65001:7", "prefixes": prefixes}]
    advertise = {"allowed": {"prefixes": prefixes}, "withCommunity": entry}
    ends = [neighbor(address=ROUTERS[0], toAdvertise=advertise), neighbor(address=ROUTERS[1])]
    return configuration("large", {"bgp": {"routers": [router(*ends, prefixes=prefixes)]}})


def small() -> dict[str, Any]:
    advertise = {"allowed": {"mode": "all"}}
    ends = [neighbor(address=address, toAdvertise=advertise) for address in ROUTERS]
    spec = {"bgp": {"routers": [router(*ends, prefixes=["198.51.100.0/24"])]}}
    return configuration("small", spec)


class Largest:
    """The most calls of some functions between two readings of the clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *places: tuple[Any, str]) -> None:
        self.calls = 0
        self.most = 0
        for owner, name in places:
            monkeypatch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, function: Any) -> Any:  # noqa: ANN401
        def call(*args: Any, **named: Any) -> Any:  # noqa: ANN401
            self.calls += 1
            return function(*args, **named)

        return call

    def look(self) -> None:
        self.most = max(self.most, self.calls)
        self.calls = 0


@pytest.fixture
def agent() -> AgentInMemory:
    made = AgentInMemory("n1")
    made.write([NODE, small()])
    made.settle()
    made.connect()
    return made


def test_pieces_fill_slices() -> None:
    pieces = Pieces(10)
    assert [pieces.fill_slice(4) for _ in range(6)] == [False, False, True] * 2
    assert pieces.slices == 2


def test_all_slices_at_one_go() -> None:
    def work() -> Slices[str]:
        yield
        yield
        return "done"

    assert finish(work()) == "done"


def test_a_small_change_is_one_slice(agent: AgentInMemory) -> None:
    for number in range(40):
        agent.write([large(20 * (number % 5))])
        assert list(agent.compiler.slices()) == []
        assert list(agent.runner.slices(lambda: agent.network.now)) == []


def test_an_object_with_many_prefixes_is_compiled_in_slices(
    agent: AgentInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = Largest(monkeypatch, (field_values, "prefix"))
    written = Largest(monkeypatch, (RouteRows, "_exchange"))
    agent.write([large(COUNT)])
    before = agent.rows()
    slices = agent.compiler.slices()
    for _ in slices:
        parsed.look()
        written.look()
        assert len(agent.rows()) == len(before), "the rows change at the end, all at once"
    for largest in (parsed, written):
        largest.look()
        assert 0 < largest.most <= SLICE_PIECES
    assert len(agent.rows()) > COUNT
    # It goes, and a peer gets less, in slices, too.
    agent.remove(large(0))
    for _ in agent.compiler.slices():
        written.look()
    written.look()
    assert written.most <= SLICE_PIECES
    assert agent.rows() == before


def test_the_slices_of_many_routes_are_calls_of_the_speaker(agent: AgentInMemory) -> None:
    agent.write([large(COUNT)])
    agent.compiler.run()
    agent.speaker.take()
    largest = 0
    for _ in agent.runner.slices(lambda: agent.network.now):
        calls = [call for call in agent.speaker.take() if call[0] == "update_routes"]
        largest = max([largest, *(len(changed) for _, _, changed in calls)])
        assert sum(len(changed) for _, _, changed in calls) <= SLICE_PARTS
        assert agent.runner.applied is None
    assert largest == SLICE_PARTS
    agent.network.run(1)
    assert all(status.established for status in agent.speaker.peers())


def test_a_peer_is_moved_to_a_new_set_once_it_is_complete(agent: AgentInMemory) -> None:
    def routes() -> list[int]:
        """Count the routes of the set that each peer has."""
        found = []
        for config in agent.speaker.peer_configs("default").values():
            assert config.route_set is not None
            prefixes = agent.speaker.route_set_prefixes("default", config.route_set)
            assert prefixes is not None
            found.append(sum(map(len, prefixes.values())))
        return found

    # The neighbours part: one of them gets another set, with the small object's route alone.
    agent.write([large(COUNT)])
    agent.compiler.run()
    for _ in agent.runner.slices(lambda: agent.network.now):
        assert min(routes()) >= 1
    assert sorted(routes()) == [1, COUNT + 1]
    agent.network.run(1)
    # They are advertised the same again: one of them is moved to the set of the other one.
    agent.remove(large(0))
    agent.compiler.run()
    for _ in agent.runner.slices(lambda: agent.network.now):
        assert min(routes()) >= 1
    assert routes() == [1, 1]


def test_an_object_with_many_prefixes_goes_in_slices(agent: AgentInMemory) -> None:
    agent.write([large(COUNT)])
    agent.settle()
    agent.remove(large(0))
    agent.compiler.run()
    agent.speaker.take()
    turns = []
    slices = agent.runner.slices(lambda: agent.network.now)
    for _ in slices:
        turns.append([name for name, *_ in agent.speaker.take()])
        assert agent.runner.applied is None
    turns.append([name for name, *_ in agent.speaker.take()])
    # What the instance originates, the peers' sets, the large set: each has a turn of its own.
    calls = [name for turn in turns for name in turn]
    assert {"set_instance", "set_peer", "remove_route_set"} <= set(calls)
    assert all(len(set(turn)) <= 1 for turn in turns), turns
    agent.network.run(1)
    assert all(status.established for status in agent.speaker.peers())


def test_a_run_that_is_given_up_changes_nothing(agent: AgentInMemory) -> None:
    agent.write([large(COUNT)])
    before = agent.rows()
    slices = agent.compiler.slices()
    for _ in range(COUNT // SLICE_PIECES * 5):
        next(slices)
    slices.close()
    assert agent.rows() == before
    with agent.db.write(agent.intent.routes):
        pass  # No lock is left behind.


def test_the_operators_part_compiles_in_slices(
    agent: AgentInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialect = Frrk8sDialect(agent.tables, Frrk8sClusterOptions())
    planner = Planner(agent.db, [dialect], "kube-system", stored=False)
    operator = InProcessOperator(agent.db, agent.intent, planner)
    agent.write([large(COUNT)])
    parsed = Largest(monkeypatch, (field_values, "prefix"))
    for _ in operator.slices():
        parsed.look()
    parsed.look()
    # A slice ends with a batch; what is small is counted with the next one.
    assert 0 < parsed.most < SLICE_PIECES + BATCH_PIECES


def test_sorted_lists_are_merged_in_slices() -> None:
    values = [number * 7919 % 20_011 for number in range(20_000)]
    runs = [
        sorted(number.to_bytes(4) for number in values[n : n + 500]) for n in range(0, 20_000, 500)
    ]
    slices = merged(runs, Pieces(100))
    assert sum(1 for _ in slices) > 10
    assert finish(merged(runs, Pieces(100))) == sorted(number.to_bytes(4) for number in values)
    assert finish(merged([], Pieces())) == []


def test_the_changes_of_a_table_are_read_in_slices() -> None:
    db = Database()
    table = rows_table(db)
    iterator, pieces = table.changes(db), Pieces()
    with db.write(table) as txn:
        table.fill(txn, [Row("s", str(number)) for number in range(2 * SLICE + 1)])
    runs = list(changes_of(iterator, db.snapshot(), pieces))
    assert [len(some) for some in runs if some] == [SLICE, SLICE, 1]
    assert runs.index(None) < len(runs) - 2
    put(db, table, Row("s", "1"), Row("s", "2"), Row("s", "1", ("red",)))
    (last,) = changes_of(iterator, db.snapshot(), pieces)
    assert [change.row.name for change in last or ()] == ["2", "1"]


def test_the_first_round_reads_the_services_of_a_cluster_in_slices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = usual()
    web = kinds.SERVICE.decode(service("web", "198.51.100.1"))
    table = found.resources.services
    with found.db.write(table) as txn:
        names = [f"web-{number}" for number in range(SLICE + 1)]
        rows = [replace(web, metadata=replace(web.metadata, name=name)) for name in names]
        table.fill(txn, [replace(row, status=type(web.status)()) for row in rows])
    assert found.operator is not None
    found.operator.run()
    readers = Largest(monkeypatch, (AddressLimits, "_count"), (cluster_ips, "_routes"))
    for _ in found.compiler.slices():
        readers.look()
    readers.look()
    assert readers.most == SLICE


@pytest.mark.parametrize("count", [0, 1, SLICE_PIECES, SLICE_PIECES + 1, 6 * SLICE_PIECES])
def test_items_of_quick_steps_are_each_there_once(count: int) -> None:
    pieces = Pieces()
    lists = list(quick(dict.fromkeys(range(count)), pieces))
    assert [item for some in lists if some is not None for item in some] == list(range(count))
    assert lists.count(None) == pieces.slices == (count == 6 * SLICE_PIECES)


def test_few_items_end_a_slice_that_is_full_but_for_them() -> None:
    pieces = Pieces()
    pieces.fill_slice(SLICE_PIECES - 1)
    assert list(quick([], pieces)) == [[]]
    assert list(quick(["a"], pieces)) == [["a"], None]
