"""An agent that is well: no part of it fails, and the health of each part has the documented text."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from cells.declarations import SPEAKER
from cells.hive import Level, load, provide
from cells.hive.hive import Hive
from cells.speaker.events import SpeakerEvents
from cells.speaker.sessions import Sessions
from speaker.api import SpeakerPort
from tests.cells.report.test_node_objects import ALL, POD, fill, quick  # noqa: F401  a fixture
from tests.cells.stand_in_speaker import StandInSpeaker
from tests.cmd.lab import NODE, configuration, service
from tests.support.apiserver import ApiServer
from tests.support.cells import rewired
from tests.support.metrics import scrape
from tests.support.wait import until
from waggle_agent.__main__ import CELLS

STAND_IN = rewired(
    SPEAKER,
    provides=(SpeakerEvents, Sessions, provide(StandInSpeaker, as_=SpeakerPort)),
    invokes=(Sessions,),
)
AGENT = tuple(STAND_IN if cell is SPEAKER else cell for cell in CELLS)


ALWAYS = {
    "api": "listening on ...",
    "apply": "the speaker holds the intent",
    "apply/import-policy": "1 object, last run took ...",
    "apply/instance": "1 object, last run took ...",
    "apply/learned-limits": "running",
    "apply/peer": "1 object, last run took ...",
    "apply/peer-limits": "running",
    "apply/rounds": "running",
    "apply/route-set": "1 object, last run took ...",
    "apply/session-addresses": "running",
    "apply/session-readings": "running",
    "apply/verification": "running",
    "history/file": "kept in memory only (--history-on-disk is not set)",
    "history/follow": "running",
    "host": "nothing refers to an interface or a default route",
    "host/gateways": "... default gateways",
    "host/netlink": "running",
    "host/redistributed": "no object redistributes routes of the kernel",
    "intent": "1 route, 1 peer",
    "intent/rounds": "running",
    "metrics": "the event loop keeps up",
    "metrics/loop-lag": "running",
    "page": "on the agent's socket",
    "readiness": "every peer has received the initial table",
    "readiness/gate": "finished",
    "speaker/sessions": "running",
    "status": "follows the sessions",
    "status/rounds": "running",
    "unused-objects": "no objects of a dialect that is off",
}
OF_MANIFESTS = {
    "apply/learned-limits-file": "kept in ...",
    "apply/session-addresses-file": "kept in ...",
    "apply/write-learned-limits": "running",
    "apply/write-session-addresses": "running",
    "claims": "kept in ...",
    "claims/write-claims": "running",
    "http": "listening on ...",
    "manifests": "watching ...",
    "manifests/last-valid": "kept in ...",
    "manifests/watch": "running",
    "manifests/write-last-valid": "running",
    "speaker/main/tor-1": "Established",
}
IN_MEMORY = "kept in memory only (--state-directory is not set)"
FOLLOWED = (
    *("BFDProfile", "BGPAdvertisement", "BGPPeer", "Community", "EndpointSlice"),
    *("FRRConfiguration", "FRRK8sConfiguration", "IPAddressPool", "L2Advertisement"),
    *("Namespace", "Node", "Service"),
)
WRITTEN = ("BGPSessionState", "ConfigurationState", "FRRNodeState", "ServiceBGPStatus")
OF_AN_API_SERVER = {
    "apply/learned-limits-file": IN_MEMORY,
    "apply/session-addresses-file": IN_MEMORY,
    "claims": IN_MEMORY,
    "claims/frrk8s": IN_MEMORY,
    "claims/metallb": IN_MEMORY,
    "kubernetes": "reading from kubeconfig ...",
    **{f"kubernetes/{kind}": "listed, and watched since" for kind in FOLLOWED},
    "kubernetes/count": "running",
    "kubernetes/log": "running",
    "kubernetes/secrets": "watches 1 Secret by name",
    "kubernetes/watch": "running",
    "report/cluster-size": "running",
    "report/events": "0 written",
    "report/object-writes-frrk8s": "running",
    "report/object-writes-metallb": "running",
    "report/objects": "computed from sessions and routes",
    **{f"report/objects/{kind}": "1 of this node" for kind in WRITTEN},
    "report/occurrences": "running",
    "report/status": "no object of this node to report on is known",
    "snapshot": "... has the objects of ...",
    "snapshot/resume": "finished",
    "snapshot/write": "running",
    "speaker/default/203.0.113.9": "Established",
}
VARIABLE = re.compile(r"[\d.]+ m?s\b|\d+(?= default gateways)|(\d+\.){3}\d+:\d+|\d{4}-\S+|/\S+")
"""Times, ports and paths."""


def states(hive: Hive) -> dict[str, str]:
    """Return the message of each part that is well, by its path; of others with the level."""
    found = {}
    for part in hive.health.report():
        level = "" if part.level is not Level.DEGRADED else "degraded: "
        found["/".join(part.path)] = level + VARIABLE.sub("...", part.message)
    return found


def run(flags: Mapping[str, Any], expected: dict[str, str]) -> str:
    """Run an agent until its parts report what is expected; returns its metrics."""

    async def whole() -> str:
        hive = Hive(AGENT, load(AGENT, flags=flags))
        task = asyncio.create_task(hive.run())
        try:
            with contextlib.suppress(AssertionError):  # the one below has the difference
                await until(lambda: states(hive) == expected)
            assert states(hive) == expected
            return scrape(hive)
        finally:
            hive.shutdown()
            await task
            assert {job: count for job, count in hive.supervisor.restarts.items() if count} == {}

    return asyncio.run(whole())


def test_of_manifests(tmp_path: Path) -> None:
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    for item in (*configuration([1179]), service("web", "198.51.100.10")):
        path = manifests / f"{item['kind']}-{item['metadata']['name']}.json"
        path.write_text(json.dumps(item))
    flags = {
        "--manifests": [str(manifests)],
        "--node-name": NODE,
        "--api-socket": str(tmp_path / "agent.sock"),
        "--state-directory": str(tmp_path / "state"),
        "--http-address": "0",
        "disable_cell": ["logging"],
    }
    run(flags, ALWAYS | OF_MANIFESTS)


def test_of_a_node_that_is_drained(tmp_path: Path) -> None:
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    node, *others = configuration([1179])
    for item in (*others, service("web", "198.51.100.10")):
        path = manifests / f"{item['kind']}-{item['metadata']['name']}.json"
        path.write_text(json.dumps(item))
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    (manifests / "node.json").write_text(json.dumps({**node, "spec": {"taints": [taint]}}))
    flags = {"--manifests": [str(manifests)], "--node-name": NODE, "--drain": "withdraw"}
    hive = Hive(AGENT, load(AGENT, flags=flags | {"disable_cell": ["logging", "api"]}))
    drained = "intent/drain"

    async def scenario() -> None:
        task = asyncio.create_task(hive.run())
        try:
            await until(lambda: drained in states(hive))
            assert states(hive)[drained].endswith("as the node is drained: it is cordoned")
            (manifests / "node.json").write_text(json.dumps(node))
            await until(lambda: drained not in states(hive))
        finally:
            hive.shutdown()
            await task

    with capture_logs() as logs:
        asyncio.run(scenario())
    names = [line.get("event_name") for line in logs]
    assert names.index("intent.drain") < names.index("intent.drain_over")
    assert (names.count("intent.drain"), names.count("intent.drain_over")) == (1, 1)


METRICS = {
    "waggle_bgp_advertised_routes": "family instance peer peer_address",
    "waggle_bgp_connections_refused_total": "instance",
    "waggle_bgp_malformed_updates": "instance peer peer_address",
    "waggle_bgp_messages_received_total": "instance peer peer_address type",
    "waggle_bgp_messages_sent_total": "instance peer peer_address type",
    "waggle_bgp_received_routes": "family instance peer peer_address status",
    "waggle_bgp_send_queue_bytes": "instance peer peer_address",
    "waggle_bgp_session_drops_total": "instance peer peer_address",
    "waggle_bgp_session_established_timestamp_seconds": "instance peer peer_address",
    "waggle_bgp_session_state": "instance peer peer_address state",
    "waggle_bgp_session_up": "instance local_asn peer peer_address peer_asn",
    "waggle_build_info": "python version",
    "waggle_config_current": "",
    "waggle_config_current_timestamp_seconds": "",
    "waggle_drained": "",
    "waggle_event_loop_lag_seconds": "le",
    "waggle_intent_routes": "",
    "waggle_kubernetes_failures_total": "kind namespace",
    "waggle_kubernetes_feed_up": "kind namespace",
    "waggle_kubernetes_lists_total": "kind namespace",
    "waggle_kubernetes_watch_restarts_total": "kind namespace reason",
    "waggle_kubernetes_watches_total": "kind namespace",
    "waggle_problems": "",
    "waggle_propagation_duration_seconds": "le",
    "waggle_ready": "",
    "waggle_reconcile_drift_total": "reconciler",
    "waggle_reconcile_duration_seconds": "controller le",
    "waggle_reconcile_errors_total": "controller",
    "waggle_reconcile_failed_objects": "reconciler",
    "waggle_reconcile_objects": "reconciler",
    "waggle_reconcile_waiting_objects": "reconciler",
    "waggle_report_events_dropped_total": "",
    "waggle_report_failures_total": "what",
    "waggle_report_object_failures_total": "kind",
    "waggle_report_object_writes_total": "kind",
    "waggle_report_writes_total": "what",
    "waggle_source_objects": "kind",
    "waggle_table_revision_total": "table",
    "waggle_table_rows": "table",
    "waggle_table_unread_changes": "table",
    "waggle_task_restarts_total": "task",
    "waggle_tenant_problems": "",
}
"""The labels of each metric of an agent that has had no event."""


def families(metrics: str) -> dict[str, set[str]]:
    """Return the labels of each metric, but for the times at which they were created."""
    sample = re.compile(r"^(waggle_\w+?)(?:_bucket|_sum|_count)?(\{.*\})? ", re.MULTILINE)
    found: dict[str, set[str]] = {}
    for name, labels in sample.findall(metrics):
        if not name.endswith("_created"):
            found.setdefault(name, set()).update(re.findall(r"(\w+)=\"", labels))
    return found


def test_of_an_api_server(tmp_path: Path) -> None:
    async def whole() -> str:
        async with ApiServer(ALL) as server:
            fill(server)
            flags = {
                "--kubeconfig": str(server.kubeconfig(tmp_path / "kubeconfig")),
                "--node-name": "n1",
                "--api-socket": str(tmp_path / "agent.sock"),
                "--snapshot-file": str(tmp_path / "snapshot"),
                "--snapshot-after-seconds": "1",
                **{f"--node-pod-{name}": value for name, value in POD.items()},
                "enable_cell": ["frrk8s,metallb"],
                "disable_cell": ["cilium", "logging"],
            }
            return await asyncio.to_thread(run, flags, ALWAYS | OF_AN_API_SERVER)

    found = families(asyncio.run(whole()))
    assert {name: " ".join(sorted(labels)) for name, labels in found.items()} == METRICS
