"""The metrics that dashboards of MetalLB, FRR-k8s and Cilium expect, with their labels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from msgspec.structs import replace

from reconcilers.bfd_session import UP, BfdCounters, BfdSession
from reconcilers.cilium.compat_metrics import of_agent as of_cilium
from reconcilers.dialect import (
    CompatHistogram,
    CompatMetric,
    CompatMetrics,
    Dialect,
    Durations,
    MetricsContext,
    Session,
)
from speaker.api import MessageCounts, PeerStatus
from tests.reconcilers.metallb.build import NODE
from tests.reconcilers.metallb.objects import advertisement, peer, pool
from tests.reconcilers.metallb.test_node_objects import Node, service

ROUNDS = Durations((("0.5", 3.0), ("+Inf", 4.0)), 2.5)
SENT = MessageCounts(open=1, update=2, notification=3, keepalive=4, route_refresh=5)
RECEIVED = MessageCounts(open=6, update=7, keepalive=8)

Samples = dict[str, dict[tuple[str, ...], Any]]


def read(metrics: Iterable[CompatMetric | CompatHistogram | None]) -> Samples:
    """Return the samples of each metric by their labels."""
    return {one.name: dict(one.samples) for one in metrics if one is not None}


def node_with_sessions() -> tuple[Node, MetricsContext]:
    """A node with two peers, one of them down, and two Services, one of them announced."""
    node = Node()
    node.put(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}},
        peer("tor-a", "203.0.113.9"),
        peer("tor-6", "2001:db8::a"),
        pool("front", "198.18.30.0/24"),
        advertisement("plain"),
        *service("web", "198.18.30.5"),
        *service("idle", "198.18.99.5"),
    )
    node.apply()
    snapshot = node.db.snapshot()
    rows = {(row.instance, row.name): row for row in node.intent.peers.all(snapshot)}
    instances = {row.name: row for row in node.intent.instances.all(snapshot)}

    def status(found: PeerStatus) -> PeerStatus:
        families = tuple(
            replace(family, advertised=1, received=5, accepted=3) for family in found.families
        )
        counted = replace(found, sent_by_type=SENT, received_by_type=RECEIVED, families=families)
        return counted if found.address == "203.0.113.9" else replace(counted, state="Idle")

    sessions = tuple(
        Session(rows[one.instance, one.name], instances[one.instance], status(one))
        for one in node.speaker.peers()
    )
    context = MetricsContext(
        node.tables,
        snapshot,
        node.intent,
        "frrk8s",
        NODE,
        sessions,
        {next(iter(instances)): 2},
        4,
        ROUNDS,
        is_loaded=True,
        is_current=False,
    )
    return node, context


def of(dialect: Dialect, context: MetricsContext) -> Samples:
    (metrics,) = dialect.each(CompatMetrics)
    assert metrics.agent is not None
    return read(metrics.agent(dialect, context))


def test_sessions_of_frr_k8s_have_the_names_of_its_exporter() -> None:
    node, context = node_with_sessions()
    found = of(node.dialects[1], context)
    up, down = ("203.0.113.9", "default"), ("2001:db8::a", "default")
    assert found["frrk8s_bgp_session_up"] == {up: 1, down: 0}
    assert found["frrk8s_bgp_announced_prefixes_total"][up] == 1
    counts = {name: values[up] for name, values in found.items() if name.startswith("frrk8s_bgp_")}
    assert counts == {
        "frrk8s_bgp_session_up": 1,
        "frrk8s_bgp_announced_prefixes_total": 1,
        "frrk8s_bgp_received_prefixes_total": 3,
        "frrk8s_bgp_opens_sent": 1,
        "frrk8s_bgp_opens_received": 6,
        "frrk8s_bgp_notifications_sent": 3,
        "frrk8s_bgp_updates_total": 2,
        "frrk8s_bgp_updates_total_received": 7,
        "frrk8s_bgp_keepalives_sent": 4,
        "frrk8s_bgp_keepalives_received": 8,
        "frrk8s_bgp_route_refresh_sent": 5,
        "frrk8s_bgp_total_sent": 15,
        "frrk8s_bgp_total_received": 21,
    }
    assert found["frrk8s_k8s_client_config_loaded_bool"] == {(): 1}
    assert found["frrk8s_k8s_client_config_stale_bool"] == {(): 1}
    assert found["frrk8s_k8s_client_update_errors_total"] == {(): 6}, "2 attempts and 4 problems"


def test_bfd_sessions_of_frr_k8s() -> None:
    node, context = node_with_sessions()
    rows = [(one.peer.instance, one.peer.name) for one in context.sessions]
    with node.db.write(node.intent.bfd_sessions, node.intent.bfd_counters) as txn:
        for instance, name in rows:
            row = BfdSession(instance=instance, peer=name, state=UP, ups=3)
            node.intent.bfd_sessions.upsert(txn, row)
        instance, name = rows[0]
        counters = BfdCounters(
            instance=instance,
            peer=name,
            packets_sent=7,
            packets_received=9,
            echoes_sent=5,
            echoes_received=4,
        )
        node.intent.bfd_counters.upsert(txn, counters)
    found = of(node.dialects[1], replace(context, snapshot=node.db.snapshot()))
    with node.db.write(node.intent.bfd_sessions) as txn:
        unknown = BfdSession(instance=rows[0][0], peer=rows[0][1])
        node.intent.bfd_sessions.upsert(txn, unknown)
    away = of(node.dialects[1], replace(context, snapshot=node.db.snapshot()))
    labels = (context.sessions[0].status.address or "", "default")
    assert labels not in away["frrk8s_bfd_session_up_events"], "0 would be a reset"
    assert labels not in away["frrk8s_bfd_session_down_events"]
    assert found["frrk8s_bfd_session_up"][labels] == 1
    assert found["frrk8s_bfd_session_up_events"][labels] == 3
    assert found["frrk8s_bfd_session_down_events"][labels] == 2
    assert found["frrk8s_bfd_control_packet_input"] == {labels: 9}
    assert found["frrk8s_bfd_control_packet_output"] == {labels: 7}
    assert found["frrk8s_bfd_echo_packet_input"] == {labels: 4}
    assert found["frrk8s_bfd_echo_packet_output"] == {labels: 5}


def test_metallb_has_the_same_of_its_bgppeers_and_the_services_that_are_announced() -> None:
    node, context = node_with_sessions()
    found = of(node.metallb, context)
    assert found["metallb_bgp_session_up"][("203.0.113.9", "default")] == 1
    assert found["metallb_k8s_client_updates_total"][()] > 0
    assert found["metallb_speaker_announced"] == {("shop/web", "bgp", NODE, "198.18.30.5"): 1}


def test_sessions_of_cilium_are_labelled_by_as_number_and_address_with_port() -> None:
    _, context = node_with_sessions()
    found = read(of_cilium(cast("Any", None), context))
    asn = str(context.sessions[0].status.local_asn)
    up = (asn, "203.0.113.9:179", "65001")
    assert found["cilium_bgp_control_plane_session_state"] == {
        up: 1,
        (asn, "[2001:db8::a]:179", "65001"): 0,
    }
    assert found["cilium_bgp_control_plane_advertised_routes"][(*up, "ipv4", "unicast")] == 1
    assert found["cilium_bgp_control_plane_reconcile_run_duration_seconds"].popitem()[1] == ROUNDS
    assert list(found["cilium_bgp_control_plane_reconcile_errors_total"].values()) == [2]
