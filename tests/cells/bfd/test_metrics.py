"""Metrics of BFD sessions: ours, and those that FRR-k8s has, with its names."""

from __future__ import annotations

from msgspec.structs import replace
from prometheus_client import CollectorRegistry, generate_latest

from cells.bfd.metrics import BfdMetrics
from reconcilers.bfd_session import BfdCounters, BfdProcess, BfdSession
from reconcilers.model import Instance
from reconcilers.tables import IntentTables
from statedb import Database

UP = BfdSession(
    instance="red", peer="tor", address="192.0.2.1", state="Up", ups=3, detection_time=900_000
)
DOWN = BfdSession(instance="i", peer="eth0", state="Down", ups=2)
COUNTERS = BfdCounters(
    instance="red", peer="tor", packets_sent=7, packets_received=9, longest_gap=301_000
)
PROCESS = BfdProcess(
    name="waggle-bfd", connected=True, realtime=True, lateness=1500, discarded=(("TTL", 4),)
)


def scraped(*sessions: BfdSession, process: BfdProcess | None = None) -> set[str]:
    """Return the samples of a scrape, none of which is repeated."""
    database = Database()
    intent = IntentTables(database)
    with database.write(
        intent.bfd_sessions, intent.bfd_counters, intent.bfd_process, intent.instances
    ) as txn:
        intent.instances.upsert(txn, Instance("red", "vrf-red", 65001, "192.0.2.9"))
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
        f"waggle_bfd_longest_gap_seconds{labels} 0.301",
    }


def test_the_names_and_labels_of_frr_k8s() -> None:
    red, plain = '{peer="192.0.2.1",vrf="vrf-red"}', '{peer="eth0",vrf="default"}'
    found = {line for line in scraped(UP, DOWN) if line.startswith("frrk8s_")}
    assert found == {
        f"frrk8s_bfd_session_up{red} 1.0",
        f"frrk8s_bfd_session_up{plain} 0.0",
        f"frrk8s_bfd_session_up_events{red} 3.0",
        f"frrk8s_bfd_session_up_events{plain} 2.0",
        f"frrk8s_bfd_session_down_events{red} 2.0",
        f"frrk8s_bfd_session_down_events{plain} 2.0",
        f"frrk8s_bfd_control_packet_input{red} 9.0",
        f"frrk8s_bfd_control_packet_output{red} 7.0",
    }


def test_a_session_of_several_peers_is_one_for_frr_k8s() -> None:
    """Its labels are the neighbor and the VRF: a second sample of them makes a scrape invalid."""
    other = replace(UP, instance="blue", peer="other")
    with_one = {line for line in scraped(replace(UP, instance="i")) if line.startswith("frrk8s_")}
    lines = [*scraped(replace(UP, instance="i"), other)]
    assert {line for line in lines if line.startswith("frrk8s_")} == with_one


def test_the_process() -> None:
    assert scraped(process=PROCESS) == {
        "waggle_bfd_connected 1.0",
        "waggle_bfd_realtime 1.0",
        "waggle_bfd_lateness_seconds 0.0015",
        'waggle_bfd_packets_discarded_total{reason="TTL"} 4.0',
    }
    assert scraped() == set()
