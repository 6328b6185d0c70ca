"""Metrics of BFD sessions: ours, and FRR-k8s's by its names."""

from __future__ import annotations

from msgspec.structs import replace
from prometheus_client import CollectorRegistry, generate_latest

from cells.bfd.metrics import BfdMetrics
from reconcilers.bfd_session import BfdCounters, BfdProcess, BfdSession
from reconcilers.intent_tables import IntentTables
from statedb import Database

UP = BfdSession(
    instance="red", peer="tor", address="192.0.2.1", state="Up", ups=3, detection_time=900_000
)
DOWN = BfdSession(instance="i", peer="eth0", state="Down", ups=2)
COUNTERS = BfdCounters(
    instance="red",
    peer="tor",
    packets_sent=7,
    packets_received=9,
    longest_gap=301_000,
    echoes_sent=5,
    echoes_received=4,
)
PROCESS = BfdProcess(connected=True, realtime=True, lateness=1500, discarded=(("TTL", 4),))


def scraped(*sessions: BfdSession, process: BfdProcess | None = None) -> set[str]:
    """Return the samples of a scrape, none of which is repeated."""
    database = Database()
    intent = IntentTables(database)
    with database.write(intent.bfd_sessions, intent.bfd_counters, intent.bfd_process) as txn:
        for row in sessions:
            intent.bfd_sessions.upsert(txn, row)
        intent.bfd_counters.upsert(txn, COUNTERS)
        if process is not None:
            intent.bfd_process.upsert(txn, process)
    registry = CollectorRegistry()
    registry.register(BfdMetrics(database, intent))
    lines = generate_latest(registry).decode().splitlines()
    samples = [line for line in lines if not line.startswith("#")]
    assert len(set(samples)) == len(samples)
    return set(samples)


def test_the_state_and_the_counters_of_a_session() -> None:
    labels = '{instance="red",peer="tor",peer_address="192.0.2.1"}'
    assert scraped(UP, DOWN) >= {
        f"waggle_bfd_session_up{labels} 1.0",
        'waggle_bfd_session_up{instance="i",peer="eth0",peer_address=""} 0.0',
        f"waggle_bfd_detection_time_seconds{labels} 0.9",
        f"waggle_bfd_session_losses_total{labels} 2.0",
        f"waggle_bfd_packets_received_total{labels} 9.0",
        f"waggle_bfd_packets_sent_total{labels} 7.0",
        f"waggle_bfd_echo_packets_received_total{labels} 4.0",
        f"waggle_bfd_echo_packets_sent_total{labels} 5.0",
        f"waggle_bfd_longest_gap_seconds{labels} 0.301",
    }


def test_without_a_connection_sessions_are_not_down_and_their_losses_are_not_reset() -> None:
    unknown = BfdSession(instance="red", peer="tor", address="192.0.2.1")
    away = scraped(unknown, process=replace(PROCESS, connected=False))
    assert "waggle_bfd_connected 0.0" in away
    names = {sample.partition("{")[0] for sample in away}
    assert not names & {"waggle_bfd_session_up", "waggle_bfd_session_losses_total"}
    connected = scraped(unknown, process=PROCESS)
    labels = '{instance="red",peer="tor",peer_address="192.0.2.1"}'
    assert f"waggle_bfd_session_up{labels} 0.0" in connected, "a session that cannot be is down"


def test_the_process() -> None:
    assert scraped(process=PROCESS) == {
        "waggle_bfd_connected 1.0",
        "waggle_bfd_realtime 1.0",
        "waggle_bfd_lateness_seconds 0.0015",
        'waggle_bfd_packets_discarded_total{reason="TTL"} 4.0',
    }
    assert scraped() == set()
