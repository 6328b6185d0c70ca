"""Alerts: promtool accepts the rules, each alert fires when it shall and links to its runbook."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml

from cells.hive import Cell, load
from cells.hive.hive import Hive
from deploy.alerts import ALERTS, RUNBOOK, Alert, rules
from tests.cells.observability.test_metrics import documented
from tests.support.metrics import scrape
from waggle_agent.__main__ import CELLS as AGENT_CELLS
from waggle_operator.__main__ import CELLS as OPERATOR_CELLS

ROOT: Final = Path(__file__).parents[2]
PROMTOOL: Final = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")

PEER: Final = 'node="n1",instance="main",peer="tor",peer_address="192.0.2.1"'
PEER_LABELS: Final = {
    "node": "n1",
    "instance": "main",
    "peer": "tor",
    "peer_address": "192.0.2.1",
}
NODE: Final = {"node": "n1"}


class Case(NamedTuple):
    """Series with a value per minute, and the labels of the alert and its value at a time."""

    series: dict[str, str]
    labels: dict[str, str]
    at: str
    value: str = ""
    quiet_at: str = ""
    """When it does not fire; empty: one minute after the start."""


CASES: Final = {
    "WaggleAllSessionsDown": Case(
        {f"waggle_bgp_session_up{{{PEER}}}": "1 0x9", 'waggle_bgp_session_up{node="n2"}': "1x9"},
        NODE,
        "4m",
    ),
    "WaggleSessionDown": Case(
        {f"waggle_bgp_session_up{{{PEER}}}": "0x10"}, PEER_LABELS, "6m", quiet_at="4m"
    ),
    "WaggleSessionFlapping": Case(
        {f"waggle_bgp_session_drops_total{{{PEER}}}": "0+1x60"}, PEER_LABELS, "60m", "60"
    ),
    "WaggleNoRoutesAdvertised": Case(
        {
            f'waggle_bgp_advertised_routes{{{PEER},family="ipv4-unicast"}}': "0x20",
            'waggle_bgp_advertised_routes{node="n2"}': "0x20",
            'waggle_intent_routes{node="n1"}': "4x20",
            'waggle_intent_routes{node="n2"}': "4x20",
            'waggle_drained{node="n1"}': "0x20",
            'waggle_drained{node="n2"}': "1x20",
        },
        NODE,
        "12m",
    ),
    "WaggleRoutesWaiting": Case(
        {f'waggle_bgp_waiting_routes{{{PEER},family="ipv4-unicast"}}': "3x20"},
        {**PEER_LABELS, "family": "ipv4-unicast"},
        "11m",
        "3",
    ),
    "WaggleMalformedUpdates": Case(
        {f"waggle_bgp_malformed_updates{{{PEER}}}": "0 2x20"}, PEER_LABELS, "7m"
    ),
    "WaggleSendQueue": Case(
        {f"waggle_bgp_send_queue_bytes{{{PEER}}}": "2000000x20"}, PEER_LABELS, "6m"
    ),
    "WaggleBFDSessionDown": Case(
        {f"waggle_bfd_session_up{{{PEER}}}": "1x2 0x10"}, PEER_LABELS, "6m"
    ),
    "WaggleBFDFlapping": Case(
        {f"waggle_bfd_session_losses_total{{{PEER}}}": "0+1x60"}, PEER_LABELS, "60m"
    ),
    "WaggleBFDPacketsLate": Case(
        {
            f"waggle_bfd_longest_gap_seconds{{{PEER}}}": "0.3x2 0.73x10",
            f"waggle_bfd_detection_time_seconds{{{PEER}}}": "0.9x10",
        },
        PEER_LABELS,
        "4m",
    ),
    "WaggleBFDNoRealTime": Case(
        {
            'waggle_bfd_realtime{node="n1"}': "0x10",
            'waggle_bfd_connected{node="n1"}': "0x2 1x10",
        },
        NODE,
        "8m",
    ),
    "WaggleBFDDisconnected": Case({'waggle_bfd_connected{node="n1"}': "1 0x10"}, NODE, "4m"),
    "WaggleConfigStale": Case({'waggle_config_current{node="n1"}': "1 0x20"}, NODE, "17m"),
    "WaggleWatchFailing": Case(
        {'waggle_kubernetes_feed_up{node="n1",kind="Service"}': "1 0x20"},
        {**NODE, "kind": "Service"},
        "17m",
    ),
    "WaggleReconcileErrors": Case(
        {'waggle_reconcile_errors_total{node="n1",controller="apply"}': "0+1x60"},
        {**NODE, "controller": "apply"},
        "40m",
    ),
    "WaggleDrift": Case(
        {'waggle_reconcile_drift_total{node="n1",reconciler="peer"}': "0 0 1x60"},
        {**NODE, "reconciler": "peer"},
        "10m",
    ),
    "WaggleKernelRoutesFailing": Case(
        {'waggle_kernel_failed_routes{node="n1",reason="Refused"}': "0 1x20"}, NODE, "8m"
    ),
    "WaggleCertificateExpiring": Case(
        {
            'waggle_certificate_expiry_timestamp_seconds{certificate="webhook"}': "90000x90",
            'waggle_certificate_expiry_timestamp_seconds{certificate="client"}': "9000000x90",
        },
        {"certificate": "webhook"},
        "80m",
        "23h 40m 0s",
    ),
    "WaggleAgentMissing": Case(
        {
            'waggle_config_current{node="n1",pod="a"}': "1x4 _x60",
            'waggle_config_current{node="n2",pod="b"}': "1x60",
        },
        NODE,
        "40m",
    ),
    "WaggleNotReady": Case({'waggle_ready{node="n1"}': "0x20"}, NODE, "11m"),
    "WaggleNoLeader": Case({'waggle_operator_leader{pod="a"}': "1 0x20"}, {}, "8m"),
    "WaggleEventLoopLag": Case(
        {
            'waggle_event_loop_lag_seconds_bucket{node="n1",le="1.0"}': "0x30",
            'waggle_event_loop_lag_seconds_bucket{node="n1",le="2.5"}': "0+60x30",
            'waggle_event_loop_lag_seconds_bucket{node="n1",le="+Inf"}': "0+60x30",
        },
        NODE,
        "25m",
    ),
    "WaggleTaskRestarts": Case(
        {'waggle_task_restarts_total{node="n1",task="apply/rounds"}': "0+1x20"},
        {**NODE, "task": "apply/rounds"},
        "15m",
    ),
    "WaggleVersionSkew": Case(
        {'waggle_build_info{version="1"}': "1x400", 'waggle_build_info{version="2"}': "1x400"},
        {},
        "370m",
        "2",
    ),
}


def rendered(text: str, labels: dict[str, str], value: str) -> str:
    """Return an annotation as Prometheus expands it."""
    text = re.sub(r"{{ \$labels\.(\w+) }}", lambda name: labels.get(name[1], ""), text)
    return re.sub(r"{{ \$value.*?}}", value, text)


def promtool_test(alert: Alert, case: Case) -> dict[str, Any]:
    """Return the test of an alert in promtool's form: it fires at a time, and not at another time."""
    fired = {
        "exp_labels": {"severity": alert.severity, **case.labels},
        "exp_annotations": {
            name: rendered(text, case.labels, case.value)
            for name, text in alert.rule["annotations"].items()
        },
    }
    times: tuple[tuple[str, list[Any]], ...] = ((case.quiet_at or "1m", []), (case.at, [fired]))
    return {
        "interval": "1m",
        "input_series": [
            {"series": name, "values": values} for name, values in case.series.items()
        ],
        "alert_rule_test": [
            {"eval_time": time, "alertname": alert.name, "exp_alerts": expected}
            for time, expected in times
        ],
    }


def promtool(*arguments: str, within: Path) -> str:
    assert PROMTOOL is not None
    command = [PROMTOOL, *arguments]
    done = subprocess.run(command, cwd=within, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_alert_has_a_case() -> None:
    assert CASES.keys() == {alert.name for alert in ALERTS}


@needs_promtool
def test_each_alert_fires_when_it_shall_and_not_before(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(rules())
    tests = [promtool_test(alert, CASES[alert.name]) for alert in ALERTS]
    document = {"rule_files": ["rules.yaml"], "tests": tests}
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(document))
    assert f"{len(ALERTS)} rules found" in promtool("check", "rules", "rules.yaml", within=tmp_path)
    assert "SUCCESS" in promtool("test", "rules", "tests.yaml", within=tmp_path)


def test_alerts_select_documented_metrics_with_their_labels() -> None:
    known = documented()
    for alert in ALERTS:
        for name in re.findall(r"waggle_\w+", alert.expression):
            assert name.removesuffix("_bucket") in known, alert.name


def test_each_alert_links_to_its_section_of_the_runbook() -> None:
    page = (ROOT / "docs/runbook.md").read_text()
    sections = {heading.lower() for heading in re.findall(r"^## (\w+)$", page, re.MULTILINE)}
    links = {alert.rule["annotations"]["runbook_url"] for alert in ALERTS}
    assert {link.removeprefix(f"{RUNBOOK}#") for link in links} <= sections


def test_the_page_of_operations_lists_each_alert() -> None:
    page = (ROOT / "docs/operations.md").read_text()
    assert set(re.findall(r"^\| \[`(Waggle\w+)`\]", page, re.MULTILINE)) == set(CASES)


PEER_OF_B: Final = f'cluster="b",{PEER}'
WITH_A_SECOND_CLUSTER: Final = {
    "WaggleAllSessionsDown": Case(
        {
            f"waggle_bgp_session_up{{{PEER_OF_B}}}": "0x9",
            f'waggle_bgp_session_up{{cluster="a",{PEER}}}': "1x9",
        },
        {"cluster": "b", **NODE},
        "4m",
    ),
    "WaggleNoRoutesAdvertised": Case(
        {
            f'waggle_bgp_advertised_routes{{cluster="a",{PEER}}}': "4x20",
            'waggle_intent_routes{cluster="a",node="n1"}': "4x20",
            'waggle_drained{cluster="a",node="n1"}': "1x20",
            f"waggle_bgp_advertised_routes{{{PEER_OF_B}}}": "0x20",
            'waggle_intent_routes{cluster="b",node="n1"}': "4x20",
            'waggle_drained{cluster="b",node="n1"}': "0x20",
        },
        {"cluster": "b", **NODE},
        "12m",
    ),
    "WaggleAgentMissing": Case(
        {
            'waggle_config_current{cluster="a",node="n1"}': "1x60",
            'waggle_config_current{cluster="b",node="n1"}': "1x4 _x60",
        },
        {"cluster": "b", **NODE},
        "40m",
    ),
    "WaggleNoLeader": Case(
        {
            'waggle_operator_leader{cluster="a",pod="a"}': "1x20",
            'waggle_operator_leader{cluster="b",pod="b"}': "1 0x20",
        },
        {"cluster": "b"},
        "8m",
    ),
    "WaggleVersionSkew": Case(
        {
            'waggle_build_info{cluster="a",version="1"}': "1x400",
            'waggle_build_info{cluster="b",version="1"}': "1x400",
            'waggle_build_info{cluster="b",version="2"}': "1x400",
        },
        {"cluster": "b"},
        "370m",
        "2",
    ),
}
DELETED_NODE: Final = Case(
    {
        'waggle_config_current{node="n1"}': "1x4 _x60",
        'waggle_config_current{node="n2"}': "1x4 _x60",
        'waggle_config_current{cluster="b",node="n2"}': "1x60",
        'kube_node_info{node="n1",pod="a"}': "1x60",
        'kube_node_info{node="n2",pod="b"}': "1x8 _x60",
    },
    NODE,
    "40m",
)
"""Of the two agents that are missing the node of one was deleted."""


@needs_promtool
def test_alerts_are_per_cluster_and_deleted_nodes_miss_nothing(
    tmp_path: Path,
) -> None:
    alerts = {alert.name: alert for alert in ALERTS}
    cases = [*WITH_A_SECOND_CLUSTER.items(), ("WaggleAgentMissing", DELETED_NODE)]
    tests = [promtool_test(alerts[name], case) for name, case in cases]
    (tmp_path / "rules.yaml").write_text(rules())
    document = {"rule_files": ["rules.yaml"], "tests": tests}
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(document))
    assert "SUCCESS" in promtool("test", "rules", "tests.yaml", within=tmp_path)


def test_sums_keep_the_cluster() -> None:
    for alert in ALERTS:
        matched = re.findall(r"\b(?:by|on) \(([^)]*)\)", alert.expression)
        assert all("cluster" in labels.split(", ") for labels in matched), alert.name


@needs_promtool
@pytest.mark.parametrize("cells", [AGENT_CELLS, OPERATOR_CELLS], ids=["agent", "operator"])
def test_promtool_has_no_complaint_about_names_and_help(cells: tuple[Cell, ...]) -> None:
    flags = {"disable_cell": ["logging"], "--bfd": "true", "--kubeconfig": "in-cluster"}
    known = {"--bfd"} if cells is OPERATOR_CELLS else set()
    given = {name: value for name, value in flags.items() if name not in known}
    text = scrape(Hive(cells, load(cells, flags=given)))
    assert PROMTOOL is not None
    command = [PROMTOOL, "check", "metrics"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
