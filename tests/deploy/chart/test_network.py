"""What reaches the programs: metrics, the webhook, network policies and `helm test`."""

from __future__ import annotations

import pytest

from cells.options import (
    WebhookOptions,
)
from tests.deploy.chart.rendered import container, find, option, pod, settings
from tests.support.helm import Helm

pytestmark = pytest.mark.helm


def test_the_webhook_is_off_until_it_is_enabled(helm: Helm) -> None:
    kinds = {o["kind"] for o in helm.template()}
    assert "ValidatingWebhookConfiguration" not in kinds
    assert not settings(helm.template(), "operator").enabled["webhook"]


def test_the_webhook_has_its_service_its_names_and_its_roles(helm: Helm) -> None:
    objects = helm.template({"operator": {"webhook": {"enabled": True, "port": 9999}}})
    options = option(settings(objects, "operator"), "webhook", WebhookOptions)
    assert options.address == "0.0.0.0:9999"
    assert options.names == ("waggle-webhook.waggle-system.svc",)
    assert options.stored_in == options.configuration == "waggle-webhook"
    find(objects, "ValidatingWebhookConfiguration", options.configuration)
    (port,) = find(objects, "Service", "waggle-webhook")["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (443, "webhook")
    deployment = find(objects, "Deployment", "waggle-operator")
    ports = deployment["spec"]["template"]["spec"]["containers"][0]["ports"]
    assert {"name": "webhook", "containerPort": 9999} in ports
    (rule,) = find(objects, "ClusterRole", "waggle-webhook")["rules"]
    assert (rule["resourceNames"], rule["verbs"]) == (["waggle-webhook"], ["get", "patch"])
    create, own = find(objects, "Role", "waggle-webhook")["rules"]
    assert create["verbs"] == ["create"]
    assert (own["resourceNames"], own["verbs"]) == (["waggle-webhook"], ["get", "update"])


def test_network_policies_admit_what_the_programs_serve(helm: Helm) -> None:
    assert not [one for one in helm.template() if one["kind"] == "NetworkPolicy"]
    monitoring = [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}]
    values = {
        "networkPolicy": {"enabled": True, "from": monitoring},
        "operator": {"hostNetwork": False, "webhook": {"enabled": True}},
    }
    objects = helm.template(values)
    for part, ports in (("agent", [9877]), ("operator", [9878, 9443])):
        spec = find(objects, "NetworkPolicy", f"waggle-{part}")["spec"]
        labels = pod(objects, part)["metadata"]["labels"]
        assert spec["podSelector"]["matchLabels"].items() <= labels.items()
        assert [rule["ports"][0]["port"] for rule in spec["ingress"]] == ports
        assert [rule.get("from") for rule in spec["ingress"]] == [monitoring, None][: len(ports)]


@pytest.mark.parametrize(
    ("host", "url"),
    [("0.0.0.0", "http://127.0.0.1:9877/readyz"), ("[::]", "http://[::1]:9877/readyz"),
     ("127.0.0.1", "http://127.0.0.1:9877/readyz")],
)  # fmt: skip
def test_helm_test_asks_an_agent_whether_it_is_ready(helm: Helm, host: str, url: str) -> None:
    objects = helm.template({"agent": {"http": {"host": host}}})
    test = find(objects, "Pod", "waggle-test")
    assert test["metadata"]["annotations"]["helm.sh/hook"] == "test"
    (asking,) = test["spec"]["containers"]
    assert asking["command"][-1] == url
    assert asking["image"] == container(objects, "agent")["image"]
    assert test["spec"]["hostNetwork"] is True
    assert test["spec"]["nodeSelector"] == pod(objects, "agent")["spec"]["nodeSelector"]
    compile(asking["command"][2], "test", "exec")


def test_agents_listen_on_loopback_unless_configured(helm: Helm) -> None:
    objects = helm.template()
    assert "prometheus.io/port" not in pod(objects, "agent")["metadata"].get("annotations", {})
    with pytest.raises(ValueError, match=r"agent\.http\.host is on loopback"):
        helm.template({"metrics": {"serviceMonitor": {"enabled": True}}})


def test_prometheus_finds_the_metrics_either_way(helm: Helm) -> None:
    reachable = {"agent": {"http": {"host": "0.0.0.0"}}}
    objects = helm.template(reachable)
    annotations = pod(objects, "agent")["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == "9877"
    monitored = helm.template(
        {
            **reachable,
            "metrics": {
                "annotations": False,
                "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
            },
        }
    )
    assert "prometheus.io/port" not in pod(monitored, "agent")["metadata"]["annotations"]
    for part in ("agent", "operator"):
        monitor = find(monitored, "ServiceMonitor", f"waggle-{part}")
        service = find(monitored, "Service", f"waggle-{part}-metrics")
        chosen = monitor["spec"]["selector"]["matchLabels"].items()
        assert chosen <= service["metadata"]["labels"].items()
        pods = pod(monitored, part)["metadata"]["labels"].items()
        assert service["spec"]["selector"].items() <= pods
        assert monitor["spec"]["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"]
        assert monitor["metadata"]["labels"]["release"] == "prometheus"
