"""BFD sessions of an agent as items of the API."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from cells.api.model import BfdIntervalsItem
from cells.options import NodeOptions
from cells.serve.agent_bfd import NO_PROFILE, AgentBfd
from cells.serve.bfd import bfd_item
from cells.state.node import ThisNode
from reconcilers.bfd_session import BfdCounters, BfdProcess, BfdSession
from reconcilers.intent_tables import IntentTables
from statedb import Database, Table


def agent_bfd(*rows: Any, bfd_off: str = "") -> AgentBfd:  # noqa: ANN401
    """Return the view of an agent whose tables have these rows."""
    db = Database()
    intent = IntentTables(db)
    tables: dict[Any, Table[Any]] = {
        BfdSession: intent.bfd_sessions,
        BfdCounters: intent.bfd_counters,
        BfdProcess: intent.bfd_process,
    }
    for row in rows:
        with db.write(tables[type(row)]) as txn:
            tables[type(row)].upsert(txn, row)
    loop = SimpleNamespace(bfd_off=bfd_off)
    return AgentBfd(ThisNode(NodeOptions(name="n")), db, intent, cast("Any", loop))


def test_the_sessions_have_their_counters_and_the_process() -> None:
    view = agent_bfd(
        *(BfdSession(instance="i", peer=peer) for peer in ("p", "q")),
        BfdCounters(instance="i", peer="q", packets_sent=7),
        BfdProcess(connected=True, lateness=2500, problems=("no real time",)),
    )
    items = view.bfd_sessions(None, None)
    assert [(item.node, item.peer, item.packets_sent) for item in items] == [
        ("n", "p", None),
        ("n", "q", 7),
    ]
    assert {item.lateness_seconds for item in items} == {0.0025}
    assert [item.peer for item in view.bfd_sessions("q", None)] == ["q"]
    assert view.bfd_sessions(None, "j") == []
    assert view.bfd_problems() == ["no real time"]


def test_without_sessions_the_reason_is_that_of_the_node_or_of_the_peers() -> None:
    assert agent_bfd().bfd_problems() == []
    assert agent_bfd().why_no_bfd() == NO_PROFILE
    assert agent_bfd(bfd_off="--bfd is off").why_no_bfd() == "--bfd is off"


def test_what_is_unknown_is_absent() -> None:
    item = bfd_item("n", BfdSession(instance="i", peer="p"), None, None)
    assert (item.state, item.remote_state, item.remote_independent) == ("Unknown", None, None)
    assert (item.local_intervals, item.remote_intervals) == (None, None)
    assert (item.transmit_interval_seconds, item.detection_seconds) == (None, None)
    assert (item.packets_sent, item.longest_gap_seconds, item.lateness_seconds) == (None,) * 3
    assert (item.since_time, item.minimum_ttl, item.address) == (None, None, None)


def test_times_are_seconds() -> None:
    row = BfdSession(
        instance="i",
        peer="p",
        multihop=True,
        minimum_ttl=250,
        state="Up",
        since=1_700_000_000.7,
        remote_discriminator=3,
        desired_min_tx=300_000,
        required_min_rx=50_000,
        detect_multiplier=3,
        transmit_interval=500_000,
        detection_time=1_200_000,
    )
    counters = BfdCounters(instance="i", peer="p", packets_sent=4, longest_gap=301_500)
    item = bfd_item("n", row, counters, BfdProcess(connected=True, lateness=1100))
    assert item.local_intervals == BfdIntervalsItem(
        transmit_seconds=0.3, receive_seconds=0.05, detect_multiplier=3
    )
    assert (item.transmit_interval_seconds, item.detection_seconds) == (0.5, 1.2)
    assert (item.longest_gap_seconds, item.lateness_seconds) == (0.3015, 0.0011)
    assert (item.packets_sent, item.minimum_ttl, item.remote_independent) == (4, 250, False)
