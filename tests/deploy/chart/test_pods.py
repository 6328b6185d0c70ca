"""The Pods: where they run, with which privileges, probes and image, and what selects them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cells.options import (
    HttpOptions,
    OperatorOptions,
)
from reconcilers.bfd.options import BfdOptions
from reconcilers.kernel.options import FibOptions
from tests.deploy.chart.rendered import container, find, option, pod, settings
from tests.support import plain_yaml
from tests.support.helm import Helm

pytestmark = pytest.mark.helm


def test_the_agent_runs_before_there_is_a_network(helm: Helm) -> None:
    spec = pod(helm.template(), "agent")["spec"]
    assert spec["hostNetwork"] is True
    # An empty key with Exists tolerates every taint, also the taints of a node that is not ready.
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


def test_routes_in_the_kernel_are_written_by_a_container_of_their_own(helm: Helm) -> None:
    """It alone has NET_ADMIN, and nothing else; the agent reaches it by a socket in a volume."""
    assert [c["name"] for c in pod(helm.template(), "agent")["spec"]["containers"]] == ["agent"]
    for capabilities, group in ((["NET_BIND_SERVICE"], 0), ([], 65532)):
        values = {"agent": {"kernelRoutes": {"enabled": True}, "capabilities": capabilities}}
        objects = helm.template(values)
        writer, agent = (container(objects, "agent", name) for name in ("kernel", "agent"))
        assert writer["securityContext"] == {
            "runAsNonRoot": False,
            "runAsUser": 0,
            "runAsGroup": group,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]},
        }
        assert "NET_ADMIN" not in agent["securityContext"]["capabilities"].get("add", [])
        (volume,) = writer["volumeMounts"]
        assert volume in agent["volumeMounts"]
        assert {"name": volume["name"], "emptyDir": {}} in pod(objects, "agent")["spec"]["volumes"]
        options = option(settings(objects, "agent"), "kernel", FibOptions)
        assert options.fib == "auto"
        assert writer["command"] == ["waggle-kernel"]
        assert writer["args"] == ["--socket", options.socket]
        assert str(options.socket).startswith(volume["mountPath"])
    for fib in (True, False):
        objects = helm.template({"agent": {"kernelRoutes": {"enabled": True, "fib": fib}}})
        assert option(settings(objects, "agent"), "kernel", FibOptions).fib is fib
        assert option(settings(objects, "operator"), "operator", OperatorOptions).fib is fib


def test_bfd_sessions_have_a_daemonset_of_their_own(helm: Helm) -> None:
    objects = helm.template({"agent": {"bfd": {"enabled": True, "leastInterval": 200}}})
    process, agent = (container(objects, part, part) for part in ("bfd", "agent"))
    capabilities = process["securityContext"]["capabilities"]
    assert capabilities == {"drop": ["ALL"], "add": ["IPC_LOCK", "NET_RAW", "SYS_NICE"]}
    options = option(settings(objects, "agent"), "bfd", BfdOptions)
    assert options.bfd
    assert f"--socket={options.socket}" in process["args"]
    assert "--least-interval=200" in process["args"]
    (volume,) = process["volumeMounts"]
    assert {**volume, "readOnly": True} in agent["volumeMounts"]
    for part in ("agent", "bfd"):
        (made,) = (v for v in pod(objects, part)["spec"]["volumes"] if v["name"] == "bfd")
        assert made["hostPath"]["path"].startswith("/run/"), "in memory: no disk delays a session"
    assert pod(objects, "bfd")["spec"]["automountServiceAccountToken"] is False


def test_a_change_of_the_agents_replaces_no_pod_with_bfd_sessions(helm: Helm) -> None:
    """Neither their settings nor, where it is pinned, their image; and none without its deletion."""
    bfd = {"enabled": True, "image": "example.com/waggle:1"}
    before = helm.template({"agent": {"bfd": bfd}})
    after = helm.template(
        {
            "agent": {"bfd": bfd, "podLabels": {"a": "b"}, "resources": {}},
            "image": {"tag": "2"},
            "cells": {"metallb": {"enabled": True}},
        }
    )
    assert pod(after, "agent") != pod(before, "agent")
    assert pod(after, "bfd") == pod(before, "bfd")
    assert find(after, "DaemonSet", "waggle-bfd")["spec"]["updateStrategy"] == {"type": "OnDelete"}


@pytest.mark.parametrize(
    ("values", "installs"),
    [
        ({}, False),
        ({"cells": {"metallb": {"enabled": True}}}, False),
        ({"cells": {"frrk8s": {"enabled": True}}}, True),
        ({"agent": {"cells": {"ovnk": {"enabled": True}}}}, True),
        (
            {
                "cells": {"frrk8s": {"enabled": True}},
                "agent": {
                    "kernelRoutes": {"enabled": False},
                    "capabilities": ["NET_ADMIN", "NET_BIND_SERVICE"],
                },
            },
            False,
        ),
    ],
)
def test_routes_are_installed_by_default_where_a_dialect_is_for_that(
    helm: Helm, values: dict[str, Any], *, installs: bool
) -> None:
    objects = helm.template(values)
    names = [each["name"] for each in pod(objects, "agent")["spec"]["containers"]]
    assert ("kernel" in names) is installs
    found = settings(objects, "agent")
    assert found.enabled["kernel"] is installs
    fib = option(settings(objects, "operator"), "operator", OperatorOptions).fib
    assert fib == ("auto" if installs else False)


def test_the_memory_of_an_agent_is_limited_to_one_gibibyte(helm: Helm) -> None:
    """Received routes cost memory: a router that sends too many ends the agent, and not the node."""
    resources = container(helm.template(), "agent")["resources"]
    assert resources["limits"] == {"memory": "1Gi"}
    assert resources["requests"]["memory"] == "192Mi"
    more = helm.template({"agent": {"resources": {"limits": {"memory": "3Gi"}}}})
    assert container(more, "agent")["resources"]["limits"] == {"memory": "3Gi"}


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


def test_the_image_is_named_by_version_tag_or_digest(helm: Helm) -> None:
    def image(**values: str) -> str:
        return str(container(helm.template({"image": values}), "agent")["image"])

    digest = "sha256:" + "0" * 64
    assert image(repository="r.example/waggle", tag="1") == "r.example/waggle:1"
    assert image(repository="r.example/waggle", digest=digest) == f"r.example/waggle@{digest}"
    version = plain_yaml.load((helm.chart / "Chart.yaml").read_text())["appVersion"]
    assert image() == f"waggle:{version}"
    pyproject = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    assert f'version = "{version}"' in pyproject
