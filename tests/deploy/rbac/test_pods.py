"""Pod security: the Pods of each part in namespaces of two standards."""

from __future__ import annotations

import pytest

from tests.support.helm import Helm
from tests.support.kubernetes.accounts import put
from tests.support.kubernetes.server import KubeApiServer

pytestmark = [pytest.mark.apiserver, pytest.mark.program, pytest.mark.timeout(300)]


@pytest.mark.helm
def test_pods_are_admitted_in_the_namespaces_of_the_chart(
    apiserver: KubeApiServer, helm: Helm
) -> None:
    """The answer of the API server to Pods of each part, in namespaces of two standards."""
    objects = helm.template({"operator": {"hostNetwork": False}})
    standards = {"strict": "restricted", "open": "privileged"}
    for name, standard in standards.items():
        labels = {"pod-security.kubernetes.io/enforce": standard}
        metadata = {"name": f"pods-{name}", "labels": labels}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        put(apiserver, "/api/v1/namespaces", namespace)
    admitted = {}
    for kind in ("DaemonSet", "Deployment"):
        (template,) = [o["spec"]["template"] for o in objects if o["kind"] == kind]
        metadata = {**template["metadata"], "name": kind.lower()}
        value = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        for name in standards:
            path = f"/api/v1/namespaces/pods-{name}/pods?dryRun=All"
            answer = apiserver.request("POST", path, value)
            assert answer.ok or "violates PodSecurity" in answer.body["message"], answer.body
            admitted[kind, name] = answer.ok
    assert admitted == {
        ("DaemonSet", "strict"): False,
        ("DaemonSet", "open"): True,
        ("Deployment", "strict"): True,
        ("Deployment", "open"): True,
    }
