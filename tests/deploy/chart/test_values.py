"""What helm makes of the values: which are accepted, and the objects that they add."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from deploy.generate import CHART, files
from tests.deploy.chart.rendered import container, find, pod
from tests.support import plain_yaml
from tests.support.helm import Helm

pytestmark = pytest.mark.helm


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


def test_the_committed_files_are_the_generated_ones(helm: Helm) -> None:
    for path, text in files(str(helm.program)).items():
        assert path.read_text() == text, f"{path} is not as generated: run `make manifests`"


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
        ({"serviceAddresses": {"allow": ["198.51.100.7"]}}, "allow"),
        ({"serviceAddresses": {"namespaces": "some"}}, "namespaces"),
        ({"agent": {"cells": {"intent": {"advertiseAllow": ["10.0.0.0/8"]}}}}, "advertiseAllow"),
        ({"agent": {"cells": {"cilium": {"nodeAddress": ["10.0.0.300"]}}}}, "nodeAddress"),
        ({"cells": {"telemetry": {"otlpEndpoint": "collector:4318"}}}, "otlpEndpoint"),
        ({"agent": {"probes": {"liveness": {"periodSeconds": 0}}}}, "periodSeconds"),
        ({"extraObjects": {"kind": "ConfigMap"}}, "extraObjects"),
        ({"metrics": {"prometheusRule": {"disabled": ["WaggleSesionDown"]}}}, "disabled"),
    ],
)
def test_invalid_values_are_rejected_by_name(
    helm: Helm, values: Mapping[str, Any], error: str
) -> None:
    with pytest.raises(ValueError, match=error):
        helm.template(values)


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
    "version", ["v1.29.0", "v1.29.15-gke.1503000", "v1.30.0+k3s1", "v1.31.2-eks-7f9249a", "v1.35.0"]
)
def test_the_chart_accepts_every_build_of_a_supported_version(helm: Helm, version: str) -> None:
    assert helm.template(version=version)
    # Helm compares no invalid version, as an API server without a release has.
    chart = plain_yaml.load((CHART / "Chart.yaml").read_text())
    assert "kubeVersion" not in chart


@pytest.mark.parametrize(
    ("version", "accepted"),
    [("v0.0.0", True), ("v0.0.0-master+abc", True), ("v0.5.0", False), ("v1.24.17", False)],
)
def test_an_api_server_that_does_not_know_its_version_is_accepted(
    helm: Helm, version: str, accepted: bool
) -> None:
    if accepted:
        assert helm.template(version=version)
    else:
        with pytest.raises(ValueError, match="kubeVersion"):
            helm.template(version=version)


def test_without_an_operator_the_chart_has_no_object_of_it(helm: Helm) -> None:
    objects = helm.template({"operator": {"enabled": False}})
    assert not [o for o in objects if "operator" in o["metadata"]["name"]]
    subjects = find(objects, "RoleBinding", "waggle-secrets")["subjects"]
    assert [subject["name"] for subject in subjects] == ["waggle-agent"]


def _enabled(helm: Helm, values: Mapping[str, Any], part: str) -> dict[str, bool]:
    config = find(helm.template(values), "ConfigMap", f"waggle-{part}")["data"]["config.yaml"]
    cells = plain_yaml.load(config)["cells"]
    return {name: cells[name]["enabled"] for name in cells if "enabled" in cells[name]}


def test_a_dialect_enables_the_dialect_that_it_feeds(helm: Helm) -> None:
    values = {"cells": {"metallb": {"enabled": True}}}
    for part in ("agent", "operator"):
        assert _enabled(helm, values, part) == {"frrk8s": True, "metallb": True}
    # The settings of the other one stay.
    values["cells"]["frrk8s"] = {"onConflict": "isolate"}  # type: ignore[dict-item]
    config = find(helm.template(values), "ConfigMap", "waggle-agent")["data"]["config.yaml"]
    assert plain_yaml.load(config)["cells"]["frrk8s"] == {"enabled": True, "onConflict": "isolate"}


def test_a_dialect_that_feeds_a_disabled_dialect_is_rejected_in_one_sentence(
    helm: Helm,
) -> None:
    values = {"cells": {"metallb": {"enabled": True}, "frrk8s": {"enabled": False}}}
    text = "cells.metallb needs cells.frrk8s, which is switched off; switch both on, or both off"
    with pytest.raises(ValueError, match=text):
        helm.template(values)


def test_policies_for_addresses_are_refused_where_they_would_have_no_effect(helm: Helm) -> None:
    values = {"addressPolicy": {"enabled": True}}
    with pytest.raises(ValueError, match=r"addressPolicy.enabled requires Kubernetes 1\.30"):
        helm.template(values, version="1.29.3")
    objects = helm.template(values, version="1.30.0")
    names = {o["metadata"]["name"] for o in objects if o["kind"] == "ValidatingAdmissionPolicy"}
    assert names >= {"waggle-service-addresses", "waggle-namespace-addresses"}
