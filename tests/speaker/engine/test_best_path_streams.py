"""Streams of best paths: a reader of any pace ends with the state of the Loc-RIB."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speaker.api import (
    ONE_PATH,
    BestPathChange,
    Fault,
    GracefulRestart,
    InstanceConfig,
    Multipath,
    PathSet,
    PeerConfig,
    RouteAttributes,
)
from speaker.attribute import AS_SEQUENCE, PathAttributes, Segment
from speaker.engine import Engine, best_path_stream
from speaker.engine.inputs import (
    BestPathsTaken,
    FollowBestPaths,
    RemoveInstance,
    SendUpdates,
    SetInstance,
    SetNextHopMetrics,
    SetPeer,
    Shutdown,
    TimersDue,
    UnfollowBestPaths,
    UpdateRoutes,
)
from speaker.engine.path_sets import PathSets
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family
from speaker.peer.actions import EndBestPaths, ReportEvent, SendBestPaths
from speaker.rib.decision import equal_paths
from speaker.rib.loc_rib import LocRib
from speaker.rib.path import Path, Source
from speaker.rib.prefix_table import dictionary
from tests.speaker.best_path_reader import Reader

CONFIG_FIELDS: dict[str, Any] = {"name": "i", "local_asn": 65000, "router_id": "192.0.2.1"}
CONFIG = InstanceConfig(**CONFIG_FIELDS)
SOURCES = [
    Source(f"s{n}", address=bytes((10, 0, 0, n)), router_id=n, ebgp=True) for n in range(1, 5)
]
PREFIXES = [bytes((16, 10, n)) for n in range(40)]
WHOLE_TABLE = ["TableBegin", "TableEnd", "SelectionEnd"]


def path(source: int, med: int = 0, asn: int = 65001, communities: tuple[int, ...] = ()) -> Path:
    attributes = PathAttributes(
        med=med,
        communities=communities,
        as_path=(Segment(AS_SEQUENCE, (asn,)),),
        next_hop=bytes((192, 0, 2, source)),
    )
    return Path(attributes, SOURCES[source])


PATHS = [
    [path(n), path(n, communities=(7,)), path(n, asn=65002), path(n, med=1)]
    for n in range(len(SOURCES))
]
"""Per source; the last one forwards as the first one does."""


class Lab:
    """An engine with one instance and readers of it, driven turn by turn."""

    def __init__(self, *, restarting: bool = False, config: InstanceConfig | None = CONFIG) -> None:
        self.engine = Engine(random.Random(1), restarting=restarting)  # noqa: S311  a seed
        self.now = 0.0
        self.readers: dict[int, Reader] = {}
        self.sent: dict[int, list[SendBestPaths]] = {}
        self.ended: list[int] = []
        self.faults: list[Fault] = []
        if config is not None:
            self.give(SetInstance(config))

    def give(self, item: object) -> None:
        for action in self.engine.handle(item, self.now):  # type: ignore[arg-type]
            if isinstance(action, SendBestPaths):
                self.sent[action.reader].append(action)
            elif isinstance(action, EndBestPaths):
                self.ended.append(action.reader)
            elif isinstance(action, ReportEvent) and isinstance(action.event, Fault):
                self.faults.append(action.event)

    def follow(self, multipath: Multipath = ONE_PATH) -> Reader:
        number = len(self.readers) + 1
        self.sent[number] = []
        self.readers[number] = Reader()
        self.give(FollowBestPaths(number, "i", multipath))
        return self.readers[number]

    def turn(self) -> None:
        if self.engine.updates_pending:
            self.give(SendUpdates())

    def take(self, number: int = 1, batches: int = 1) -> None:
        some, self.sent[number] = self.sent[number][:batches], self.sent[number][batches:]
        for action in some:
            self.readers[number].apply(action.items)
        if some:
            self.give(BestPathsTaken(number, len(some)))

    def settle(self) -> None:
        """Let all readers read until nothing is left."""
        for _ in range(10_000):
            self.turn()
            for number in self.readers:
                self.take(number, 100)
            if not self.engine.updates_pending and not any(self.sent.values()):
                return
        raise AssertionError("there is no end")

    def table(self, family: Family = IPV4_UNICAST) -> LocRib:
        return self.engine.instance("i").outbound.loc.table(family)

    def expected(self, multipath: Multipath = ONE_PATH) -> dict[tuple[Family, bytes], PathSet]:
        """Return the best paths of the Loc-RIB."""
        found = {}
        for family, table in self.engine.instance("i").outbound.loc.tables.items():
            for nlri, paths in table.items():
                best = equal_paths(
                    paths,
                    maximum=multipath.maximum,
                    relax=multipath.relax,
                    metric=table.metric,
                )
                found[family, nlri] = PathSets().several(best, "i")
        return found


# -------------------------------------------------------------- any reading pace

PREFIX_LISTS = st.lists(st.sampled_from(PREFIXES), min_size=1, max_size=12, unique=True)
FAMILIES = st.sampled_from([IPV4_UNICAST, IPV4_UNICAST, IPV6_UNICAST])
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("announce"), FAMILIES, st.integers(0, 3), st.integers(0, 3), PREFIX_LISTS
        ),
        st.tuples(st.just("withdraw"), FAMILIES, st.integers(0, 3), PREFIX_LISTS),
        st.tuples(st.just("turn")),
        st.tuples(st.just("take"), st.integers(1, 3), st.integers(1, 4)),
        st.tuples(st.just("follow")),
        st.tuples(st.just("metric"), st.integers(0, 3), st.integers(0, 2)),
        st.tuples(st.just("create"), st.sampled_from([65000, 65001])),
        st.tuples(st.just("remove")),
    ),
    max_size=60,
)
MULTIPATHS = st.sampled_from(
    [ONE_PATH, Multipath(2), Multipath(64), Multipath(64, relax=True), Multipath(2, relax=True)]
)


@pytest.fixture(scope="module", autouse=True)
def _small_batches() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(best_path_stream, "LOOKUPS", 6)
        patch.setattr(best_path_stream, "BATCH_PREFIXES", 8)
        patch.setattr(best_path_stream, "QUEUE_PREFIXES", 16)
        patch.setattr(best_path_stream, "URGENT_PREFIXES", 2)
        patch.setattr(dictionary, "STEP_KEYS", 7)
        yield


def perform(lab: Lab, step: tuple[Any, ...], wanted: dict[int, Multipath]) -> None:
    """Perform a step; one of an instance that does not exist is none."""
    present = lab.engine.find("i") is not None
    match step:
        case ("announce", family, source, which, nlri) if present:
            lab.table(family).announce(PATHS[source][which], nlri)
        case ("withdraw", family, source, nlri) if present:
            lab.table(family).withdraw(SOURCES[source], nlri)
        case ("metric", source, metric) if present:
            lab.give(SetNextHopMetrics("i", {f"192.0.2.{source}": metric} if metric else {}))
        case ("turn",):
            lab.turn()
        case ("take", number, batches) if number in lab.readers:
            lab.take(number, batches)
        case ("follow",) if len(lab.readers) < len(wanted):
            lab.follow(wanted[len(lab.readers) + 1])
        case ("create", asn):
            lab.give(SetInstance(InstanceConfig(**{**CONFIG_FIELDS, "local_asn": asn})))
        case ("remove",):
            lab.give(RemoveInstance("i"))


@given(STEPS, MULTIPATHS, MULTIPATHS)
@settings(deadline=None)
def test_a_reader_of_any_pace_ends_with_the_state_of_the_loc_rib(
    steps: list[tuple[Any, ...]], one: Multipath, other: Multipath
) -> None:
    """Each change follows what this reader was given before, also when steps were skipped."""
    lab = Lab()
    wanted = {1: one, 2: other, 3: ONE_PATH}
    lab.follow(one)
    for step in steps:
        perform(lab, step, wanted)
    lab.settle()
    assert not lab.faults
    for number, reader in lab.readers.items():
        if lab.engine.find("i") is None:
            assert not reader.routes
            assert reader.marks[-1:] in ([], ["InstanceRemoved"])
        else:
            assert reader.routes == lab.expected(wanted[number])
            assert reader.marks[-3:] == WHOLE_TABLE


# ------------------------------------------------------------------ the whole table


def test_the_whole_table_comes_first_in_slices_and_then_what_changes() -> None:
    lab = Lab()
    lab.table().announce(PATHS[0][0], PREFIXES)
    lab.turn()
    reader = lab.follow()
    for _ in range(8):
        lab.turn()
    begin, change, *_ = [item for action in lab.sent[1] for item in action.items]
    assert type(begin).__name__ == "TableBegin"
    assert isinstance(change, BestPathChange)
    assert len(change.prefixes) < len(PREFIXES)
    assert not change.before
    lab.settle()
    assert reader.marks == WHOLE_TABLE
    assert reader.routes == lab.expected()
    lab.table().withdraw(SOURCES[0], PREFIXES[:2])
    lab.table().announce(PATHS[0][1], [PREFIXES[3]])
    lab.settle()
    assert reader.routes == lab.expected()
    assert reader.changes == len(PREFIXES) + 3
    assert reader.marks == WHOLE_TABLE


def test_the_changes_of_a_turn_arrive_with_its_updates() -> None:
    lab = Lab()
    lab.follow()
    lab.settle()
    lab.table().announce(PATHS[0][0], PREFIXES[:5])
    lab.turn()
    ((change,),) = [action.items for action in lab.sent[1]]
    assert isinstance(change, BestPathChange)
    assert (change.family, list(change.prefixes)) == (IPV4_UNICAST, PREFIXES[:5])


def test_an_instance_may_be_created_later_removed_and_created_again() -> None:
    lab = Lab(config=None)
    reader = lab.follow()
    lab.settle()
    assert reader.marks == []
    lab.give(SetInstance(InstanceConfig(**{**CONFIG_FIELDS, "originate": ("10.0.0.0/8",)})))
    lab.settle()
    assert reader.routes == lab.expected() != {}
    lab.give(RemoveInstance("i"))
    lab.settle()
    assert (reader.routes, reader.marks) == ({}, [*WHOLE_TABLE, "InstanceRemoved"])
    lab.give(SetInstance(CONFIG))
    lab.settle()
    assert reader.marks == [*WHOLE_TABLE, "InstanceRemoved", *WHOLE_TABLE]


def test_another_router_of_the_name_begins_the_stream_again() -> None:
    lab = Lab()
    reader = lab.follow()
    lab.give(UpdateRoutes("i", None, {IPV6_UNICAST: {b"\x20\x20\x01\x0d\xb8": RouteAttributes()}}))
    lab.table().announce(PATHS[0][0], PREFIXES)
    lab.settle()
    lab.give(SetInstance(InstanceConfig(**{**CONFIG_FIELDS, "local_asn": 65009})))
    lab.settle()
    assert list(reader.routes) == [(IPV6_UNICAST, b"\x20\x20\x01\x0d\xb8")], "local routes remain"
    assert reader.marks == 2 * WHOLE_TABLE


# ----------------------------------------------------------------------- back-pressure


def test_a_slow_reader_gets_the_last_state_of_a_prefix() -> None:
    lab = Lab()
    reader = lab.follow()
    lab.settle()
    for round_ in range(200):
        lab.table().announce(PATHS[0][round_ % 2], PREFIXES)
        lab.table().announce(PATHS[1][0], [PREFIXES[round_ % 40]])
        lab.table().withdraw(SOURCES[1], [PREFIXES[round_ % 40]])
        lab.turn()
    assert len(lab.sent[1]) == best_path_stream.MAX_UNREAD
    reader.changes = 0
    lab.settle()
    assert reader.routes == lab.expected()
    messages = best_path_stream.MAX_UNREAD + 1  # and the message that filled the queue
    assert reader.changes <= (messages + 1) * len(PREFIXES), "not every one of 200 steps"


def test_what_came_and_went_while_a_reader_was_busy_is_nothing() -> None:
    lab = Lab()
    reader = lab.follow()
    lab.settle()
    fill_window(lab)
    lab.table().announce(PATHS[1][0], PREFIXES[30:])
    lab.turn()
    lab.table().withdraw(SOURCES[1], PREFIXES[30:])
    lab.turn()
    reader.changes = 0
    lab.settle()
    assert not {prefix for _, prefix in reader.routes} & set(PREFIXES[30:])
    assert reader.routes == lab.expected()


def fill_window(lab: Lab) -> None:
    """Let the first reader not read, until nothing more is sent to it."""
    for which in range(best_path_stream.MAX_UNREAD):
        lab.table().announce(PATHS[0][which % 2], PREFIXES[:8])
        lab.turn()
    for which in (0, 1, 0, 1):
        lab.table().announce(PATHS[0][which], PREFIXES[:20])
        lab.turn()


def prefixes(action: SendBestPaths) -> list[bytes]:
    return [n for item in action.items if isinstance(item, BestPathChange) for n in item.prefixes]


def test_a_new_change_does_not_wait_for_the_backlog_nor_the_backlog_for_new_changes() -> None:
    lab = Lab()
    lab.follow()
    lab.settle()
    fill_window(lab)
    lab.take(1, 2)
    lab.turn()
    old = {prefix for action in lab.sent[1] for prefix in prefixes(action)}
    waiting = set(PREFIXES[:20]) - old
    for number in range(12):
        newest = PREFIXES[20 + number]
        lab.table().announce(PATHS[1][0], [newest])
        # Its own turn, and that of what was sent already.
        lab.take(1, 1)
        lab.turn()
        sent = {prefix for action in lab.sent[1] for prefix in prefixes(action)}
        assert newest in sent
        waiting -= sent
    assert not waiting


def test_a_change_of_few_prefixes_precedes_the_messages_of_a_table() -> None:
    lab = Lab()
    reader = lab.follow()
    lab.settle()
    for first in range(0, 38, 3):
        lab.table().announce(PATHS[0][0], PREFIXES[first : first + 3])
    lab.turn()
    # Two batches are sent, and the others wait.
    lab.table().announce(PATHS[1][0], [PREFIXES[39]])
    lab.table().withdraw(SOURCES[0], [PREFIXES[30]])
    lab.turn()
    assert prefixes(lab.sent[1][-1]) == [PREFIXES[39]], "a batch of its own"
    assert PREFIXES[30] not in prefixes(lab.sent[1][-1]), "it waits in the table itself"
    lab.settle()
    assert reader.routes == lab.expected()


def test_single_changes_of_a_reader_that_does_not_read_are_one_batch_for_each_prefix_at_most() -> (
    None
):
    lab = Lab()
    reader = lab.follow()
    lab.settle()
    for number in range(50):
        lab.table().announce(PATHS[1][number % 2], [PREFIXES[number % 40]])
        lab.turn()
    most = best_path_stream.MAX_UNREAD + best_path_stream.MAX_UNREAD_URGENT
    assert len(lab.sent[1]) == most
    lab.settle()
    assert reader.routes == lab.expected()


def test_single_changes_do_not_have_a_table_sent_faster_than_its_reader_takes_it() -> None:
    lab = Lab()
    for family in (IPV4_UNICAST, IPV6_UNICAST):
        lab.table(family).announce(PATHS[0][0], PREFIXES)
    lab.turn()
    reader = lab.follow()
    while len(lab.sent[1]) < best_path_stream.MAX_UNREAD:
        lab.turn()
    for prefix in PREFIXES[:4]:
        lab.table().announce(PATHS[0][1], [prefix])
        lab.turn()
    assert len(lab.sent[1]) == best_path_stream.MAX_UNREAD
    lab.settle()
    assert reader.routes == lab.expected()


def test_single_changes_that_were_undone_are_looked_up_in_several_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab = Lab()
    lab.follow()
    lab.settle()
    fill_window(lab)
    for number in range(best_path_stream.MAX_UNREAD_URGENT):
        lab.table().announce(PATHS[1][0], [PREFIXES[20 + number]])
        lab.turn()
    for prefix in PREFIXES[25:]:
        lab.table().announce(PATHS[1][0], [prefix])
        lab.table().withdraw(SOURCES[1], [prefix])
        lab.turn()
    looked_up: list[int] = []
    look_up = best_path_stream.BestPathStream._looked_up

    def noted(stream: Any, family: Family, some: Any) -> Any:  # noqa: ANN401
        looked_up.append(len(some))
        return look_up(stream, family, some)

    monkeypatch.setattr(best_path_stream.BestPathStream, "_looked_up", noted)
    lab.take(1, 10)
    lab.turn()
    assert 0 < sum(looked_up) <= best_path_stream.LOOKUPS


def test_urgent_changes_do_not_keep_a_table_waiting() -> None:
    lab = Lab()
    lab.follow()
    lab.settle()
    for first in range(0, 33, 3):
        lab.table().announce(PATHS[0][0], PREFIXES[first : first + 3])
    lab.turn()
    left = set(PREFIXES[:33])
    for number in range(12):
        lab.table().announce(PATHS[1][number % 2], [PREFIXES[39]])
        left -= {prefix for action in lab.sent[1][:1] for prefix in prefixes(action)}
        lab.take(1, 1)
        lab.turn()
    assert not left


def test_what_is_kept_for_a_reader_that_does_not_read_is_bounded_by_the_table() -> None:
    lab = Lab()
    lab.follow()
    for which in range(30):
        for nlri in PREFIXES:
            lab.table().announce(PATHS[which % 4][which % 3], [nlri])
        lab.turn()
    (stream,) = lab.engine._streams.streams.values()
    _, queued, backlog = stream.waiting
    assert queued + backlog <= len(PREFIXES) + best_path_stream.QUEUE_PREFIXES
    assert len(lab.sent[1]) <= best_path_stream.MAX_UNREAD


# --------------------------------------------------------------- end of selection


def restarting_lab() -> Lab:
    """A router after a restart, which waits for a peer that keeps its routes."""
    lab = Lab(restarting=True)
    peer = PeerConfig(
        name="p", address="10.0.0.9", peer_asn=65009, graceful_restart=GracefulRestart()
    )
    lab.give(SetPeer("i", peer))
    return lab


def test_rfc4724_4_1_selection_ends_for_a_reader_with_the_deferral() -> None:
    lab = restarting_lab()
    reader = lab.follow()
    lab.settle()
    assert reader.marks == ["TableBegin", "TableEnd"]
    lab.table().announce(PATHS[0][0], PREFIXES)
    lab.settle()
    assert reader.routes == lab.expected(), "routes are there before"
    assert reader.marks == ["TableBegin", "TableEnd"]
    lab.now = CONFIG.selection_deferral_time + 1
    lab.give(TimersDue())
    lab.settle()
    assert reader.marks == WHOLE_TABLE


def test_rfc4724_4_1_selection_ends_behind_all_changes_that_preceded_its_end() -> None:
    lab = restarting_lab()
    reader = lab.follow()
    lab.settle()
    fill_window(lab)
    lab.table().announce(PATHS[0][0], PREFIXES)
    lab.turn()
    expected = lab.expected()
    lab.now = CONFIG.selection_deferral_time + 1
    lab.give(TimersDue())
    flapping = 0
    while reader.marks != WHOLE_TABLE:
        # New changes, that a reader is never done with, do not postpone it for ever.
        flapping += 1
        assert flapping < 100
        lab.table().announce(PATHS[1][flapping % 2], PREFIXES[:10])
        lab.turn()
        lab.take()
    assert expected.keys() <= reader.routes.keys()


def test_rfc4724_4_1_selection_ends_behind_urgent_changes_and_in_time() -> None:
    lab = restarting_lab()
    reader = lab.follow()
    lab.settle()
    for which in range(best_path_stream.MAX_UNREAD + 1):
        lab.table().announce(PATHS[0][which % 2], PREFIXES[:8])
        lab.turn()
    for nlri in PREFIXES[8:]:
        lab.table().announce(PATHS[1][0], [nlri])
        lab.turn()
    expected = lab.expected()
    lab.now = CONFIG.selection_deferral_time + 1
    lab.give(TimersDue())
    flapping = 0
    while reader.marks != WHOLE_TABLE:
        flapping += 1
        assert flapping < 100
        for nlri in PREFIXES[20:]:
            lab.table().announce(PATHS[1][flapping % 2], [nlri])
            lab.turn()
        lab.take()
    assert expected.keys() <= reader.routes.keys()


def test_a_speaker_that_stops_sends_nothing_more() -> None:
    """What forwards keeps its routes while the speaker is away (RFC 4724 section 4.1)."""
    lab = restarting_lab()
    reader = lab.follow()
    lab.table().announce(PATHS[0][0], PREFIXES)
    lab.settle()
    lab.give(Shutdown())
    lab.settle()
    assert reader.marks == ["TableBegin", "TableEnd"]
    assert len(reader.routes) == len(PREFIXES)


# ------------------------------------------------------------------------- multipath


def test_equal_paths_are_one_set_and_equal_sets_one_object() -> None:
    lab = Lab()
    reader = lab.follow(Multipath(64))
    for source in (2, 0, 1):
        lab.table().announce(PATHS[source][0], PREFIXES[:2])
    lab.settle()
    first, second = reader.routes.values()
    assert first is second
    assert [one.peer for one in first.paths] == ["s1", "s2", "s3"]
    lab.table().withdraw(SOURCES[0], PREFIXES[:1])
    lab.settle()
    assert [one.peer for one in reader.routes[IPV4_UNICAST, PREFIXES[0]].paths] == ["s2", "s3"]
    assert reader.routes[IPV4_UNICAST, PREFIXES[1]] is second


def test_a_change_of_a_path_that_is_not_the_best_one_reaches_readers_of_several_only() -> None:
    lab = Lab()
    one, several = lab.follow(), lab.follow(Multipath(64))
    lab.table().announce(PATHS[0][0], PREFIXES[:1])
    lab.settle()
    changes = one.changes
    lab.table().announce(PATHS[1][0], PREFIXES[:1])
    lab.settle()
    assert (one.changes, len(several.routes[IPV4_UNICAST, PREFIXES[0]].paths)) == (changes, 2)


def test_an_attribute_that_forwarding_does_not_depend_on_is_no_change() -> None:
    lab = Lab()
    reader = lab.follow()
    lab.table().announce(PATHS[0][0], PREFIXES)
    lab.settle()
    changes = reader.changes
    lab.table().announce(PATHS[0][3], PREFIXES)
    lab.settle()
    assert reader.changes == changes


def test_rfc4271_9_1_2_2_e_a_metric_of_a_next_hop_selects_again() -> None:
    lab = Lab()
    one, several = lab.follow(), lab.follow(Multipath(64))
    for source in (0, 1):
        lab.table().announce(PATHS[source][0], PREFIXES)
    lab.settle()
    assert {route.paths[0].peer for route in one.routes.values()} == {"s1"}
    lab.give(SetNextHopMetrics("i", {"192.0.2.0": 20, "192.0.2.1": 10}))
    lab.settle()
    assert {route.paths[0].peer for route in one.routes.values()} == {"s2"}
    assert {len(route.paths) for route in several.routes.values()} == {1}
    views = list(lab.engine.views.routes_available("i", IPV4_UNICAST, PREFIXES[:1]))
    assert [view.reason for view in views] == ["best", "higher metric to the next hop"]
    lab.give(SetNextHopMetrics("i", {}))
    lab.settle()
    assert {route.paths[0].peer for route in one.routes.values()} == {"s1"}
    assert {len(route.paths) for route in several.routes.values()} == {2}


# ------------------------------------------------------------------------- isolation


def test_a_closed_stream_is_sent_nothing_and_the_others_go_on() -> None:
    lab = Lab()
    lab.follow()
    other = lab.follow()
    lab.settle()
    lab.give(UnfollowBestPaths(1))
    lab.table().announce(PATHS[0][0], PREFIXES)
    lab.settle()
    assert other.routes == lab.expected() != {}
    assert not lab.readers[1].routes


def test_an_internal_error_ends_one_stream_and_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab()
    lab.follow(Multipath(2))
    other = lab.follow()

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(best_path_stream, "equal_paths", fail)
    for source in (0, 1):
        lab.table().announce(PATHS[source][0], PREFIXES)
    lab.settle()
    assert lab.ended == [1]
    assert [(fault.instance, fault.error) for fault in lab.faults] == [("i", "RuntimeError: no")]
    monkeypatch.undo()
    assert other.routes == lab.expected()


def test_without_a_reader_no_change_is_kept() -> None:
    lab = Lab()
    lab.follow()
    lab.settle()
    lab.give(UnfollowBestPaths(1))
    lab.table().announce(PATHS[0][0], PREFIXES)
    lab.turn()
    assert not lab.engine.updates_pending
    assert not lab.engine.instance("i").outbound.followers
