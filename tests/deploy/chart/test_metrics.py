"""What the chart has for Prometheus and Grafana: monitors, alerts and dashboards, off by default."""

from __future__ import annotations

import json

import pytest

from deploy.alerts import ALERTS
from tests.deploy.chart.rendered import find
from tests.support.helm import Helm

pytestmark = pytest.mark.helm
BOARDS = ("fleet", "node", "peer")


def test_alerts_and_dashboards_are_off_by_default(helm: Helm) -> None:
    objects = helm.template()
    assert not [each for each in objects if each["kind"] == "PrometheusRule"]
    assert not [each for each in objects if "dashboard" in each["metadata"]["name"]]


def test_alerts_link_to_the_runbook_that_is_set(helm: Helm) -> None:
    rule = {
        "enabled": True,
        "labels": {"release": "prometheus"},
        "runbookUrl": "https://wiki.example.org/runbook",
        "disabled": ["WaggleVersionSkew"],
    }
    objects = helm.template({"metrics": {"prometheusRule": rule}})
    found = find(objects, "PrometheusRule", "waggle")
    assert found["metadata"]["labels"]["release"] == "prometheus"
    rules = [each for group in found["spec"]["groups"] for each in group["rules"]]
    assert rules == [
        {
            **alert.rule,
            "annotations": {
                **alert.rule["annotations"],
                "runbook_url": f"https://wiki.example.org/runbook#{alert.name.lower()}",
            },
        }
        for alert in ALERTS
        if alert.name != "WaggleVersionSkew"
    ]


def test_a_runbook_with_characters_of_yaml_leaves_no_alert_out(helm: Helm) -> None:
    rule = {"enabled": True, "runbookUrl": 'https://wiki/?page=a: "b" #c'}
    found = find(helm.template({"metrics": {"prometheusRule": rule}}), "PrometheusRule", "waggle")
    rules = [each for group in found["spec"]["groups"] for each in group["rules"]]
    assert len(rules) == len(ALERTS)
    assert rules[0]["annotations"]["runbook_url"].startswith(rule["runbookUrl"])


def test_names_of_services_and_labels_are_valid_whatever_the_names_of_the_release(
    helm: Helm,
) -> None:
    values = {
        "agent": {"http": {"host": "0.0.0.0"}},
        "metrics": {"serviceMonitor": {"enabled": True}},
        "fullnameOverride": "w" * 50,
        "nameOverride": "123",
    }
    objects = helm.template(values)
    services = [each["metadata"]["name"] for each in objects if each["kind"] == "Service"]
    assert len(services) == 2
    assert all(len(name) <= 63 for name in services)
    labels = [value for each in objects for value in each["metadata"].get("labels", {}).values()]
    assert all(isinstance(value, str) for value in labels), "a number is no label"


def test_dashboards_are_configmaps_for_the_sidecar_of_grafana(helm: Helm) -> None:
    boards = {"enabled": True, "namespace": "monitoring", "annotations": {"folder": "BGP"}}
    objects = helm.template({"metrics": {"dashboards": boards}})
    for name in BOARDS:
        found = find(objects, "ConfigMap", f"waggle-dashboard-{name}")
        assert found["metadata"]["namespace"] == "monitoring"
        assert found["metadata"]["annotations"] == {"folder": "BGP"}
        assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
        board = json.loads(found["data"][f"waggle-{name}.json"])
        assert board["uid"] == f"waggle-{name}"


def test_the_monitors_keep_the_label_instance(helm: Helm) -> None:
    values = {
        "agent": {"http": {"host": "0.0.0.0"}},
        "metrics": {"serviceMonitor": {"enabled": True}},
    }
    for part in ("agent", "operator"):
        monitor = find(helm.template(values), "ServiceMonitor", f"waggle-{part}")
        (endpoint,) = monitor["spec"]["endpoints"]
        assert endpoint["honorLabels"] is True
        assert endpoint["relabelings"][0]["targetLabel"] == "node"
