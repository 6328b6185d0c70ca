"""The chart: what helm makes of it, by default and with the values that people give."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from cells.dialects.cell import DialectCell
from cells.hive import Settings, load
from cells.hive.hive import Hive
from cells.options import (
    ClaimsOptions,
    HttpOptions,
    KubernetesOptions,
    LoggingOptions,
    OperatorOptions,
    ResourcesOptions,
    SnapshotOptions,
    WebhookOptions,
)
from deploy.generate import files
from reconcilers.cilium.options import CiliumOperatorOptions, CiliumOptions
from tests.support.helm import Helm
from waggle_agent.__main__ import CELLS as AGENT_CELLS
from waggle_operator.__main__ import CELLS as OPERATOR_CELLS

pytestmark = pytest.mark.helm

Object = dict[str, Any]


def find(objects: list[Object], kind: str, name: str) -> Object:
    """Find the one object of a kind and name."""
    (found,) = [o for o in objects if (o["kind"], o["metadata"]["name"]) == (kind, name)]
    return found


def pod(objects: list[Object], part: str) -> Object:
    """Give the Pod template of a part."""
    kind = "DaemonSet" if part == "agent" else "Deployment"
    found: Object = find(objects, kind, f"waggle-{part}")["spec"]["template"]
    return found


def container(objects: list[Object], part: str) -> Object:
    """Give its only container."""
    (found,) = pod(objects, part)["spec"]["containers"]
    return dict(found)


def settings(objects: list[Object], part: str) -> Settings:
    """Read the configuration as the program does, with the environment of its container."""
    text = find(objects, "ConfigMap", f"waggle-{part}")["data"]["config.yaml"]
    fields = {
        "spec.nodeName": "node-1",
        "metadata.name": "pod-1",
        "metadata.namespace": "waggle",
        "metadata.uid": "uid-1",
    }
    environment = {
        variable["name"]: variable.get("value")
        or fields[variable["valueFrom"]["fieldRef"]["fieldPath"]]
        for variable in container(objects, part)["env"]
    }
    cells = AGENT_CELLS if part == "agent" else OPERATOR_CELLS
    found = load(cells, env=environment, file=yaml.safe_load(text), file_name="config.yaml")
    Hive(cells, found)
    return found


def option(settings: Settings, cell: str, kind: type[Any]) -> Any:  # noqa: ANN401
    """Give the options of a cell."""
    found = settings.options[cell]
    assert isinstance(found, kind)
    return found


EVERYTHING: Mapping[str, Any] = {
    "apiServer": {"host": "192.0.2.5"},
    "commonLabels": {"team": "net"},
    "image": {"digest": "sha256:" + "0" * 64},
    "imagePullSecrets": [{"name": "pull"}],
    "metrics": {"serviceMonitor": {"enabled": True}},
    "namespace": {"create": True},
    "routerIdAllocationIpPool": "10.0.0.0/24",
    "secrets": {"namespace": "bgp", "create": True},
    "agent": {
        "http": {"host": "0.0.0.0"},
        "affinity": {"nodeAffinity": {}},
        "extraEnv": [{"name": "TZ", "value": "UTC"}],
        "extraVolumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108  in the Pod
        "extraVolumes": [{"name": "tmp", "emptyDir": {}}],
        "podAnnotations": {"a": "b"},
        "podLabels": {"c": "d"},
        "serviceAccount": {"annotations": {"e": "f"}},
        "snapshot": {"hostPath": "/var/lib/waggle"},
    },
    "operator": {
        "affinity": {"nodeAffinity": {}},
        "cells": {"cilium": {"translatePeeringPolicies": True}},
        "extraEnv": [{"name": "TZ", "value": "UTC"}],
        "hostNetwork": False,
        "podAnnotations": {"a": "b"},
        "podLabels": {"c": "d"},
    },
}
"""Values that take every way through the templates."""


@pytest.mark.parametrize("values", [{}, EVERYTHING, {"operator": {"enabled": False}}])
def test_helm_lint_passes(helm: Helm, values: Mapping[str, Any]) -> None:
    assert "0 chart(s) failed" in helm.lint(values)


def test_values_that_add_objects_add_them_in_their_place(helm: Helm) -> None:
    objects = helm.template(EVERYTHING)
    for part in ("agent", "operator"):
        metadata = pod(objects, part)["metadata"]
        assert (metadata["annotations"]["a"], metadata["labels"]["c"]) == ("b", "d")
        assert {"name": "TZ", "value": "UTC"} in container(objects, part)["env"]
        assert pod(objects, part)["spec"]["imagePullSecrets"] == [{"name": "pull"}]
        assert pod(objects, part)["spec"]["affinity"] == {"nodeAffinity": {}}
    mounts = container(objects, "agent")["volumeMounts"]
    names = {volume["name"] for volume in pod(objects, "agent")["spec"]["volumes"]}
    assert {mount["name"] for mount in mounts} == names
    account = find(objects, "ServiceAccount", "waggle-agent")
    assert account["metadata"]["annotations"] == {"e": "f"}
    namespace = find(objects, "Namespace", "waggle-system")
    standard = "pod-security.kubernetes.io/enforce"
    assert namespace["metadata"]["labels"][standard] == "privileged"


@pytest.mark.parametrize(
    ("report", "writes"),
    [
        ({}, {"ciliumbgpnodeconfigs/status", "events"}),
        ({"events": False}, {"ciliumbgpnodeconfigs/status"}),
        # What an agent wrote before it has to remove.
        ({"status": False}, {"ciliumbgpnodeconfigs/status", "events"}),
        ({"enabled": False}, set()),
    ],
)
def test_the_role_of_an_agent_follows_its_settings(
    helm: Helm, report: Mapping[str, bool], writes: set[str]
) -> None:
    objects = helm.template({"agent": {"cells": {"report": report}}})
    settings(objects, "agent")
    rules = find(objects, "ClusterRole", "waggle-agent")["rules"]
    found = {r for rule in rules for r in rule["resources"] if "patch" in rule["verbs"]}
    assert found == writes


def test_agents_are_restricted_to_their_node_where_the_api_server_can(helm: Helm) -> None:
    def policies(version: str = "1.30.0", **values: Any) -> set[str]:  # noqa: ANN401  values
        objects = helm.template(values, version=version)
        bound = {
            one["spec"]["policyName"]
            for one in objects
            if one["kind"] == "ValidatingAdmissionPolicyBinding"
        }
        named = {
            rule["resources"][0]: one["metadata"]["name"]
            for one in objects
            if one["kind"] == "ValidatingAdmissionPolicy"
            for rule in one["spec"]["matchConstraints"]["resourceRules"]
        }
        assert set(named.values()) == bound
        return set(named)

    assert policies() == {"ciliumbgpnodeconfigs/status", "events"}
    assert policies("1.29.9") == policies("1.25.0-eks-1") == set()
    assert policies("1.31.2-gke.5") == policies()
    assert policies(admissionPolicy={"enabled": False}) == set()
    # As its roles, by what the settings let an agent write.
    assert policies(cells={"cilium": {"enabled": False}}) == {"events"}
    silent = {"report": {"events": False}}
    assert policies(agent={"cells": silent}) == {"ciliumbgpnodeconfigs/status"}


@pytest.mark.parametrize(("migrate", "granted"), [(True, True), (False, False)])
def test_the_role_of_an_operator_follows_its_settings(
    helm: Helm, *, migrate: bool, granted: bool
) -> None:
    cells = {"operator": {"migrateStorageVersions": migrate}}
    objects = helm.template({"operator": {"cells": cells}})
    rules = find(objects, "ClusterRole", "waggle-operator")["rules"]
    assert any("apiextensions.k8s.io" in rule["apiGroups"] for rule in rules) is granted


def test_the_objects_of_a_dialect_that_is_off_may_be_counted_and_no_more(helm: Helm) -> None:
    objects = helm.template({"cells": {"cilium": {"enabled": False}}})
    allowed = {}
    for part in ("agent", "operator"):
        assert not settings(objects, part).enabled["cilium"]
        rules = find(objects, "ClusterRole", f"waggle-{part}")["rules"]
        found = [rule for rule in rules if "cilium.io" in rule["apiGroups"]]
        allowed[part] = [(rule["resources"], rule["verbs"]) for rule in found]
    counted = ["ciliumbgpclusterconfigs", "ciliumbgppeeringpolicies"]
    assert allowed == {"agent": [(counted, ["list"])], "operator": []}
    assert "cilium-config" not in str(objects)


def test_an_operator_may_read_what_shows_that_a_rival_runs(helm: Helm) -> None:
    names = [cell.name for cell in OPERATOR_CELLS if isinstance(cell, DialectCell)]
    objects = helm.template({"cells": {name: {"enabled": True} for name in names}})
    rules = find(objects, "ClusterRole", "waggle-operator")["rules"]
    assert {"apiGroups": ["apps"], "resources": ["daemonsets"], "verbs": ["list"]} in rules
    for cell in OPERATOR_CELLS:
        rivals = cell.dialect.rivals if isinstance(cell, DialectCell) else ()
        for namespace, _, name in (r.config_map.partition("/") for r in rivals if r.config_map):
            role = find(objects, "Role", f"waggle-operator-{name}")
            assert role["metadata"]["namespace"] == namespace
            (rule,) = role["rules"]
            assert (rule["resources"], rule["resourceNames"]) == (["configmaps"], [name])
            assert rule["verbs"] == ["get"]


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


def test_the_committed_files_are_the_generated_ones(helm: Helm) -> None:
    for path, text in files(str(helm.program)).items():
        assert path.read_text() == text, f"{path} is not as generated: run `make manifests`"


def test_without_values_both_programs_have_their_settings(helm: Helm) -> None:
    objects = helm.template()
    of_agent, of_operator = settings(objects, "agent"), settings(objects, "operator")
    for found in (of_agent, of_operator):
        assert option(found, "kubernetes", KubernetesOptions).kubeconfig == "in-cluster"
        assert option(found, "resources", ResourcesOptions).secrets_namespace == "waggle-system"
    assert option(of_agent, "http", HttpOptions).address == "127.0.0.1:9877"
    assert option(of_operator, "http", HttpOptions).address == "0.0.0.0:9878"
    assert option(of_operator, "operator", OperatorOptions).lease_namespace == "waggle-system"
    assert option(of_operator, "operator", OperatorOptions).identity == "pod-1"


def test_values_become_settings(helm: Helm) -> None:
    objects = helm.template(
        {
            "cells": {"logging": {"level": "debug", "format": "json"}},
            "routerIdAllocationIpPool": "10.0.0.0/24",
            "secrets": {"namespace": "bgp"},
            "agent": {
                "cells": {
                    "cilium": {"peeringPolicies": "first"},
                    "logging": {"level": "warning"},
                }
            },
            "operator": {
                "cells": {
                    "cilium": {"translatePeeringPolicies": True},
                    "operator": {"statusReport": False},
                }
            },
        }
    )
    of_agent, of_operator = settings(objects, "agent"), settings(objects, "operator")
    logs = option(of_agent, "logging", LoggingOptions)
    assert (logs.level, logs.format) == ("warning", "json")
    assert option(of_operator, "logging", LoggingOptions).level == "debug"
    intent = option(of_agent, "cilium", CiliumOptions)
    assert intent.peering_policies == "first"
    assert intent.router_id_allocation_ip_pool == "10.0.0.0/24"
    operated = option(of_operator, "operator", OperatorOptions)
    assert operated.status_report is False
    cilium = option(of_operator, "cilium", CiliumOperatorOptions)
    assert cilium.router_id_allocation_ip_pool == "10.0.0.0/24"
    assert cilium.translate_peering_policies is True
    assert option(of_agent, "resources", ResourcesOptions).secrets_namespace == "bgp"


def test_a_snapshot_is_kept_on_the_node_where_it_is_enabled(helm: Helm) -> None:
    objects = helm.template({"agent": {"snapshot": {"hostPath": "/var/lib/waggle"}}})
    found = settings(objects, "agent")
    snapshot = option(found, "snapshot", SnapshotOptions)
    assert snapshot.file is not None
    # Claims are kept beside it.
    claims = option(found, "claims", ClaimsOptions)
    assert claims.directory == str(Path(snapshot.file).parent)
    mounts = {m["mountPath"]: m["name"] for m in container(objects, "agent")["volumeMounts"]}
    name = mounts[str(Path(snapshot.file).parent)]
    (volume,) = [v for v in pod(objects, "agent")["spec"]["volumes"] if v["name"] == name]
    assert volume["hostPath"] == {"path": "/var/lib/waggle", "type": "DirectoryOrCreate"}
    # By default no file of the node is touched.
    volumes = pod(helm.template(), "agent")["spec"]["volumes"]
    assert not any("hostPath" in volume for volume in volumes)
    assert option(settings(helm.template(), "agent"), "claims", ClaimsOptions).directory is None


def test_a_change_of_settings_starts_new_pods(helm: Helm) -> None:
    def checksum(values: Mapping[str, Any]) -> str:
        annotations = pod(helm.template(values), "agent")["metadata"]["annotations"]
        return str(annotations["checksum/configuration"])

    assert checksum({}) == checksum({"operator": {"replicas": 3}})
    assert checksum({}) != checksum({"cells": {"logging": {"level": "debug"}}})


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"agent": {"tolerationz": []}}, "tolerationz"),
        ({"cells": {"logging": {"level": "loud"}}}, "level"),
        ({"cells": {"loging": {}}}, "loging"),
        ({"agent": {"cells": {"http": {"address": "1"}}}}, "http"),
        ({"agent": {"capabilities": ["SYS_ADMIN"]}}, "capabilities"),
        ({"operator": {"replicas": 0}}, "replicas"),
        ({"operator": {"cells": {"kubernetes": {"kubeconfig": "/x"}}}}, "kubernetes"),
        ({"routerIdAllocationIpPool": "2001:db8::/64"}, "routerIdAllocationIpPool"),
        ({"image": {"digest": "sha256:12"}}, "digest"),
        ({"secrets": {"namespace": "Not A Name"}}, "namespace"),
        ({"routerIdAllocationIpPool": "10.0.0.0/33"}, "routerIdAllocationIpPool"),
        ({"routerIdAllocationIpPool": "10.0.256.0/24"}, "routerIdAllocationIpPool"),
        ({"agent": {"cells": {"intent": {"advertiseDeny": ["10.0.0.0/33"]}}}}, "advertiseDeny"),
        ({"agent": {"cells": {"intent": {"advertiseDeny": ["fd00::/129"]}}}}, "advertiseDeny"),
        ({"agent": {"cells": {"cilium": {"nodeAddress": ["10.0.0.300"]}}}}, "nodeAddress"),
        ({"cells": {"telemetry": {"otlpEndpoint": "collector:4318"}}}, "otlpEndpoint"),
        ({"agent": {"probes": {"liveness": {"periodSeconds": 0}}}}, "periodSeconds"),
        ({"extraObjects": {"kind": "ConfigMap"}}, "extraObjects"),
    ],
)
def test_invalid_values_are_rejected_by_name(
    helm: Helm, values: Mapping[str, Any], error: str
) -> None:
    with pytest.raises(ValueError, match=error):
        helm.template(values)


def test_the_agent_runs_before_there_is_a_network(helm: Helm) -> None:
    spec = pod(helm.template(), "agent")["spec"]
    assert spec["hostNetwork"] is True
    # An empty key with Exists tolerates every taint, also those of a node that is not ready.
    assert spec["tolerations"] == [{"operator": "Exists"}]
    assert spec["priorityClassName"] == "system-node-critical"
    named = helm.template({"apiServer": {"host": "api.example", "port": 8443}})
    for part in ("agent", "operator"):
        variables = {v["name"]: v.get("value") for v in container(named, part)["env"]}
        assert variables["KUBERNETES_SERVICE_HOST"] == "api.example"
        assert variables["KUBERNETES_SERVICE_PORT"] == "8443"
        settings(named, part)


def test_privileges_are_minimal(helm: Helm) -> None:
    objects = helm.template()
    for part, capabilities in (("agent", ["NET_BIND_SERVICE"]), ("operator", None)):
        context = container(objects, part)["securityContext"]
        assert context["capabilities"]["drop"] == ["ALL"]
        assert context["capabilities"].get("add") == capabilities
        assert context["allowPrivilegeEscalation"] is False
        assert context["readOnlyRootFilesystem"] is True
        assert "privileged" not in context
        spec = pod(objects, part)["spec"]
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not any("hostPath" in volume for volume in spec["volumes"])
        assert not spec.get("hostPID")
        assert not spec.get("hostIPC")
    assert pod(objects, "operator")["spec"]["securityContext"]["runAsNonRoot"] is True
    without = helm.template({"agent": {"capabilities": []}})
    assert pod(without, "agent")["spec"]["securityContext"]["runAsNonRoot"] is True
    assert "add" not in container(without, "agent")["securityContext"]["capabilities"]


def test_probes_have_the_address_of_the_program(helm: Helm) -> None:
    everywhere = helm.template({"agent": {"http": {"host": "0.0.0.0"}}})
    for part, port in (("agent", 9877), ("operator", 9878)):
        found = container(everywhere, part)
        assert found["ports"] == [{"name": "http", "containerPort": port}]
        assert found["livenessProbe"]["httpGet"] == {"path": "/livez", "port": "http"}
        assert found["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
    for host, probed in (("127.0.0.1", "127.0.0.1"), ("[::1]", "::1")):
        here = helm.template({"agent": {"http": {"host": host, "port": 9000}}})
        found = container(here, "agent")
        assert found["startupProbe"]["httpGet"]["host"] == probed
        assert found["ports"][0]["containerPort"] == 9000
        assert option(settings(here, "agent"), "http", HttpOptions).address == f"{host}:9000"


def test_probes_have_the_settings_of_the_values(helm: Helm) -> None:
    probes = {
        "liveness": {"periodSeconds": 31, "timeoutSeconds": 7, "failureThreshold": 9},
        "readiness": {"periodSeconds": 3, "timeoutSeconds": 2, "failureThreshold": 4},
    }
    objects = helm.template({"agent": {"probes": probes}, "operator": {"probes": probes}})
    for part in ("agent", "operator"):
        found = container(objects, part)
        for name, wanted in probes.items():
            assert wanted.items() <= found[f"{name}Probe"].items()


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


def test_extra_objects_are_templates(helm: Helm) -> None:
    extra = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "extra", "namespace": "{{ .Release.Namespace }}"},
    }
    (found,) = [
        one
        for one in helm.template({"extraObjects": [extra]})
        if one["metadata"]["name"] == "extra"
    ]
    assert found["metadata"]["namespace"] == "waggle-system"


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


@pytest.mark.parametrize(
    "version", ["v1.29.0", "v1.29.15-gke.1503000", "v1.30.0+k3s1", "v1.31.2-eks-7f9249a", "v1.35.0"]
)
def test_the_chart_accepts_every_build_of_a_supported_version(helm: Helm, version: str) -> None:
    assert helm.template(version=version)


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


def test_a_drain_takes_one_operator_at_a_time(helm: Helm) -> None:
    objects = helm.template()
    budget = find(objects, "PodDisruptionBudget", "waggle-operator")["spec"]
    labels = pod(objects, "operator")["metadata"]["labels"].items()
    assert budget["selector"]["matchLabels"].items() <= labels
    assert budget["maxUnavailable"] == 1
    # Two of them do not fit on one node, so none may be added before one is gone.
    strategy = find(objects, "Deployment", "waggle-operator")["spec"]["strategy"]
    assert strategy["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}


def test_selectors_select_the_pods_of_one_release_and_part(helm: Helm) -> None:
    objects = helm.template({"commonLabels": {"team": "net"}})
    for kind, part in (("DaemonSet", "agent"), ("Deployment", "operator")):
        found = find(objects, kind, f"waggle-{part}")
        selector = found["spec"]["selector"]["matchLabels"]
        assert selector.items() <= pod(objects, part)["metadata"]["labels"].items()
        assert selector["app.kubernetes.io/component"] == part
        # It can never be changed, so it holds nothing that may.
        assert "team" not in selector
    assert all(o["metadata"]["labels"]["team"] == "net" for o in objects)


def test_without_an_operator_the_chart_has_no_object_of_it(helm: Helm) -> None:
    objects = helm.template({"operator": {"enabled": False}})
    assert not [o for o in objects if "operator" in o["metadata"]["name"]]
    subjects = find(objects, "RoleBinding", "waggle-secrets")["subjects"]
    assert [subject["name"] for subject in subjects] == ["waggle-agent"]


def test_the_secrets_of_a_dialect_in_its_own_namespace(helm: Helm) -> None:
    cells = {
        "cilium": {"enabled": False},
        "frrk8s": {"enabled": True, "namespace": "frr"},
        "antrea": {"enabled": True},
    }
    objects = helm.template({"cells": cells})
    roles = {
        o["metadata"]["name"]: (o["metadata"]["namespace"], o["rules"][0].get("resourceNames"))
        for o in objects
        if o["kind"] == "Role" and "secrets" in str(o["rules"])
    }
    assert roles == {
        "waggle-secrets-frrk8s": ("frr", None),
        "waggle-antrea-bgp-passwords": ("kube-system", ["antrea-bgp-passwords"]),
    }


@pytest.mark.parametrize(
    ("always_block", "granted"),
    [(["auto", "10.0.0.0/8"], True), (["10.0.0.0/8,auto"], True), (["10.0.0.0/8"], False)],
)
def test_service_cidrs_are_granted_with_always_block_auto(
    helm: Helm, always_block: list[str], granted: bool
) -> None:
    values = {
        "cells": {"frrk8s": {"enabled": True}},
        "agent": {"cells": {"frrk8s": {"alwaysBlock": always_block}}},
    }
    role = find(helm.template(values), "ClusterRole", "waggle-agent")
    rules = [rule for rule in role["rules"] if "servicecidrs" in rule["resources"]]
    wanted = {
        "apiGroups": ["networking.k8s.io"],
        "resources": ["servicecidrs"],
        "verbs": ["list", "watch"],
    }
    assert rules == [wanted] * granted


def test_secrets_of_one_namespace_or_of_none(helm: Helm) -> None:
    objects = helm.template({"secrets": {"namespace": "bgp", "create": True}})
    for kind in ("Role", "RoleBinding"):
        assert find(objects, kind, "waggle-secrets")["metadata"]["namespace"] == "bgp"
    namespace = find(objects, "Namespace", "bgp")
    # An uninstall must not take Secrets with it.
    assert namespace["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    (rule,) = find(objects, "Role", "waggle-secrets")["rules"]
    assert "resourceNames" not in rule
    objects = helm.template({"secrets": {"names": ["router-password"]}})
    (rule,) = find(objects, "Role", "waggle-secrets")["rules"]
    assert rule["resourceNames"] == ["router-password"]
    none = helm.template({"secrets": {"enabled": False}})
    assert not [o for o in none if "secrets" in str(o.get("rules"))]
    assert option(settings(none, "agent"), "resources", ResourcesOptions).secrets_namespace == ""


def test_the_image_is_named_by_version_tag_or_digest(helm: Helm) -> None:
    def image(**values: str) -> str:
        return str(container(helm.template({"image": values}), "agent")["image"])

    digest = "sha256:" + "0" * 64
    assert image(repository="r.example/waggle", tag="1") == "r.example/waggle:1"
    assert image(repository="r.example/waggle", digest=digest) == f"r.example/waggle@{digest}"
    version = yaml.safe_load((helm.chart / "Chart.yaml").read_text())["appVersion"]
    assert image() == f"waggle:{version}"
    pyproject = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert f'version = "{version}"' in pyproject
