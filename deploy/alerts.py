"""The alerts: rules for Prometheus, and the sections of docs/runbook.md that they link to.

``deploy.generate`` writes them to ``helm/waggle/rules/waggle.yaml``, from where the chart makes a
PrometheusRule. They select by the labels of docs/metrics.md alone, and ``node``, which the
ServiceMonitors of the chart set. Sums are by ``cluster``, too: where a Prometheus has several clusters,
their series have it.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
import yaml

RUNBOOK: Final = "RUNBOOK"
"""The chart puts the URL of docs/runbook.md in its place."""


class Alert(msgspec.Struct, frozen=True):
    """A rule, with its summary and remedy for the person on call."""

    name: str
    expression: str
    duration: str
    severity: Literal["critical", "warning", "info"]
    summary: str
    description: str

    @property
    def rule(self) -> dict[str, Any]:
        """The rule in Prometheus' form."""
        return {
            "alert": self.name,
            "expr": self.expression,
            "for": self.duration,
            "labels": {"severity": self.severity},
            "annotations": {
                "summary": self.summary,
                "description": self.description,
                "runbook_url": f"{RUNBOOK}#{self.name.lower()}",
            },
        }


_PEER: Final = "{{ $labels.peer }} ({{ $labels.instance }}) on {{ $labels.node }}"
_NODE: Final = "{{ $labels.node }}"
_MISSING: Final = (
    "max by (cluster, node) (last_over_time(waggle_config_current[6h])) unless "
    "max by (cluster, node) (waggle_config_current)"
)
"""Nodes whose agent was scraped, and is no more; kube-state-metrics knows which of them are deleted."""

SESSIONS: Final = (
    Alert(
        "WaggleAllSessionsDown",
        "sum by (cluster, node) (waggle_bgp_session_up) == 0",
        "2m",
        "critical",
        f"no BGP session on {_NODE}",
        "Nothing that this node advertises is reachable through it.",
    ),
    Alert(
        "WaggleSessionDown",
        "waggle_bgp_session_up == 0",
        "5m",
        "warning",
        f"BGP session with {_PEER} is down",
        "The peer {{ $labels.peer_address }} has no routes of this node.",
    ),
    Alert(
        "WaggleSessionFlapping",
        "increase(waggle_bgp_session_drops_total[1h]) > 3",
        "0m",
        "warning",
        f'BGP session with {_PEER} was lost {{{{ $value | printf "%.0f" }}}} times in an hour',
        "Each loss withdraws the routes of the node for as long as it lasts.",
    ),
    Alert(
        "WaggleNoRoutesAdvertised",
        "sum by (cluster, node) (waggle_bgp_advertised_routes) == 0 and on (cluster, node) "
        "max by (cluster, node) (waggle_intent_routes) > 0 unless on (cluster, node) "
        "max by (cluster, node) (waggle_drained) == 1",
        "10m",
        "critical",
        f"{_NODE} advertises no route",
        "Sessions are established and routes should be advertised, and none is.",
    ),
    Alert(
        "WaggleRoutesWaiting",
        "waggle_bgp_waiting_routes > 0",
        "10m",
        "warning",
        f'{{{{ $value | printf "%.0f" }}}} prefixes are not sent to {_PEER}',
        "The limit of the peer is reached: addresses of Services wait.",
    ),
    Alert(
        "WaggleMalformedUpdates",
        "waggle_bgp_malformed_updates > 0",
        "5m",
        "warning",
        f"{_PEER} sends malformed UPDATEs",
        "Their routes are not used, and the session goes on (RFC 7606).",
    ),
    Alert(
        "WaggleSendQueue",
        "waggle_bgp_send_queue_bytes > 1e6",
        "5m",
        "warning",
        f"{_PEER} does not read",
        "More than a megabyte waits for the peer, which has old routes.",
    ),
)
BFD: Final = (
    Alert(
        "WaggleBFDSessionDown",
        "waggle_bfd_session_up == 0",
        "1m",
        "warning",
        f"BFD session with {_PEER} is down",
        "A path is down, or the router has no BFD for this node.",
    ),
    Alert(
        "WaggleBFDFlapping",
        "increase(waggle_bfd_session_losses_total[1h]) > 3",
        "0m",
        "warning",
        f"BFD session with {_PEER} flaps",
        "A path flaps, or the intervals are too short for one of its ends.",
    ),
    Alert(
        "WaggleBFDPacketsLate",
        "waggle_bfd_longest_gap_seconds > 0.8 * (waggle_bfd_detection_time_seconds > 0)",
        "0m",
        "warning",
        f"packets of BFD with {_PEER} come late",
        "One of the last minutes came when the detection time was nearly over: the next loss is near.",
    ),
    Alert(
        "WaggleBFDNoRealTime",
        "waggle_bfd_realtime == 0 and waggle_bfd_connected == 1",
        "5m",
        "warning",
        f"waggle-bfd of {_NODE} has no real-time scheduling",
        "Short intervals are raised, and a busy node ends BFD sessions.",
    ),
    Alert(
        "WaggleBFDDisconnected",
        "waggle_bfd_connected == 0",
        "2m",
        "warning",
        f"the agent of {_NODE} does not reach waggle-bfd",
        "BFD sessions go on; the agent does not learn of their losses.",
    ),
)
CONFIGURATION: Final = (
    Alert(
        "WaggleConfigStale",
        "waggle_config_current == 0",
        "15m",
        "warning",
        f"the configuration of {_NODE} is not in effect in full",
        "The last valid state of some objects is in effect, or the sources cannot be read.",
    ),
    Alert(
        "WaggleWatchFailing",
        "waggle_kubernetes_feed_up == 0",
        "15m",
        "warning",
        "{{ $labels.kind }} is not read from the API server",
        "The last known objects stay in effect on {{ $labels.node }}.",
    ),
    Alert(
        "WaggleReconcileErrors",
        "increase(waggle_reconcile_errors_total[15m]) > 0",
        "30m",
        "warning",
        f"objects cannot be applied on {_NODE} ({{{{ $labels.controller }}}})",
        "They are retried; the others are in effect.",
    ),
    Alert(
        "WaggleDrift",
        "increase(waggle_reconcile_drift_total[1h]) > 0",
        "0m",
        "warning",
        f"the speaker of {_NODE} differed from the intent ({{{{ $labels.reconciler }}}})",
        "It was repaired; drift is a defect of Waggle.",
    ),
    Alert(
        "WaggleKernelRoutesFailing",
        "sum by (cluster, node) (waggle_kernel_failed_routes) > 0",
        "5m",
        "warning",
        f"received routes are not in the kernel of {_NODE}",
        "The node does not forward by them.",
    ),
    Alert(
        "WaggleCertificateExpiring",
        "waggle_certificate_expiry_timestamp_seconds - time() < 7 * 86400",
        "1h",
        "warning",
        "the certificate {{ $labels.certificate }} ends within a week",
        "{{ $value | humanizeDuration }} remain.",
    ),
)
PROCESSES: Final = (
    Alert(
        "WaggleAgentMissing",
        f"{_MISSING} and on (cluster, node) kube_node_info or "
        f"{_MISSING} unless on (cluster) kube_node_info",
        "10m",
        "critical",
        f"no agent on {_NODE}",
        "Its metrics have been missing for 10 minutes; so are its sessions, if the node still exists.",
    ),
    Alert(
        "WaggleNotReady",
        "waggle_ready == 0",
        "10m",
        "warning",
        f"a program of Waggle on {_NODE} is not ready",
        "It has not read its sources, or peers have not received the initial table.",
    ),
    Alert(
        "WaggleNoLeader",
        "count by (cluster) (last_over_time(waggle_operator_leader[6h])) unless "
        "sum by (cluster) (waggle_operator_leader) > 0",
        "5m",
        "warning",
        "no operator leads",
        "Objects are not generated for new nodes, and conditions are old.",
    ),
    Alert(
        "WaggleEventLoopLag",
        "histogram_quantile(0.99, sum by (cluster, node, le) "
        "(rate(waggle_event_loop_lag_seconds_bucket[10m]))) > 1",
        "10m",
        "warning",
        f"a program of Waggle on {_NODE} is late",
        "Turns of its loop take over a second: keepalives may be late.",
    ),
    Alert(
        "WaggleTaskRestarts",
        "increase(waggle_task_restarts_total[15m]) > 2",
        "0m",
        "warning",
        f"the job {{{{ $labels.task }}}} fails on {_NODE}",
        "After 5 restarts in a row the program ends and is started again.",
    ),
    Alert(
        "WaggleVersionSkew",
        "count by (cluster) (count by (cluster, version) (waggle_build_info)) > 1",
        "6h",
        "info",
        "{{ $value }} versions of Waggle run",
        "An update has not reached all nodes.",
    ),
)
GROUPS: Final = {
    "waggle-sessions": SESSIONS,
    "waggle-bfd": BFD,
    "waggle-configuration": CONFIGURATION,
    "waggle-processes": PROCESSES,
}
ALERTS: Final = tuple(alert for group in GROUPS.values() for alert in group)


def rules() -> str:
    """Return the file of rules, in Prometheus' form."""
    groups = [
        {"name": name, "rules": [alert.rule for alert in alerts]} for name, alerts in GROUPS.items()
    ]
    head = "# Generated from deploy/alerts.py by `make manifests`. Do not edit.\n"
    return head + yaml.safe_dump({"groups": groups}, sort_keys=False, width=100)
