"""Accounts on an API server with exactly the permissions of a role, and objects applied by a user.

The roles are the chart's, as they are in the plain manifests.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from deploy.generate import MANIFESTS
from resources.crds.generate import custom_resource_definition, defined
from resources.kind import Kind
from tests.support.documents import documents
from tests.support.kinds import KINDS
from tests.support.kubernetes.server import KubeApiServer
from tests.support.wait import eventually

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
NAMESPACE = "kube-system"
ACCOUNTS = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"

Rules = Sequence[dict[str, Any]]
"""The rules of a Role."""


def rules(part: str, scope: str) -> Rules:
    """Return what the chart grants to ``agent`` or ``operator``, everywhere or in a namespace.

    ``scope`` is "Cluster" or "", as for `grant`.
    """
    objects = documents(MANIFESTS.read_text())
    roles = {
        o["roleRef"]["name"]
        for o in objects
        if o["kind"] == f"{scope}RoleBinding"
        and f"waggle-{part}" in [subject["name"] for subject in o["subjects"]]
    }
    return [
        rule
        for o in objects
        if o["kind"] == f"{scope}Role" and o["metadata"]["name"] in roles
        for rule in o["rules"]
    ]


def rules_without_dialects(part: str) -> Rules:
    """Return the cluster-wide rules of a part that it has with any API dialects.

    They include the reports of dialects that are off, which an operator deletes.
    """
    shared = {"nodes", "namespaces", "events", "servicecidrs", "daemonsets"}
    return [
        rule
        for rule in rules(part, "Cluster")
        if shared.issuperset(rule["resources"]) or rule["verbs"] == ["list", "delete"]
    ]


def put(server: KubeApiServer, path: str, value: dict[str, Any]) -> dict[str, Any]:
    """Apply an object as a person does."""
    answer = server.request(
        "PATCH",
        f"{path}/{value['metadata']['name']}?fieldManager=person&force=true",
        value,
        kind="apply-patch+yaml",
    )
    assert answer.ok, answer.body.get("message")
    return answer.body


def apply(server: KubeApiServer, objects: Iterable[dict[str, Any]]) -> None:
    """Apply objects of any kind, in their order; to start kubectl takes ten times as long."""
    for value in objects:
        kind, namespace = value["kind"].lower(), value["metadata"].get("namespace")
        plural = f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
        root = "/api/v1" if value["apiVersion"] == "v1" else f"/apis/{value['apiVersion']}"
        place = f"{root}/namespaces/{namespace}" if namespace else root
        put(server, f"{place}/{plural}", value)


def define(server: KubeApiServer, kinds: Iterable[Kind[Any]] = KINDS) -> list[str]:
    """Put the definitions of kinds in, and wait until they are served; their names."""
    made = [custom_resource_definition(kind) for kind in defined(kinds)]
    for crd in made:
        put(server, CRDS, crd)
    for kind in defined(kinds):
        # The server answers 404 for a moment after a definition is established.
        path = kind.path(kind.versions[0])
        eventually(functools.partial(_check_served, server, path))
    return [crd["metadata"]["name"] for crd in made]


def undefine(server: KubeApiServer, names: Iterable[str]) -> None:
    """Take definitions away, and with them all objects; return when they are gone."""
    paths = [f"{CRDS}/{name}" for name in names]
    for path in paths:
        server.request("DELETE", path)
    for path in paths:
        # What replaces an object that is still going goes with it.
        eventually(functools.partial(_delete, server, path))


def grant(server: KubeApiServer, account: str, scope: str, rules: Rules) -> None:
    """Give an account a ClusterRole (``scope`` "Cluster") or a Role of its namespace ("")."""
    place = RBAC if scope else f"{RBAC}/namespaces/{NAMESPACE}"
    version = "rbac.authorization.k8s.io/v1"
    role = {
        "apiVersion": version,
        "kind": f"{scope}Role",
        "metadata": {"name": account},
        "rules": list(rules),
    }
    put(server, f"{place}/{scope.lower()}roles", role)
    binding = {
        "apiVersion": version,
        "kind": f"{scope}RoleBinding",
        "metadata": {"name": account},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": f"{scope}Role",
            "name": account,
        },
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}],
    }
    put(server, f"{place}/{scope.lower()}rolebindings", binding)


def access(server: KubeApiServer, account: str, path: Path) -> Path:
    """Make an account, and write a kubeconfig with its token."""
    put(
        server,
        ACCOUNTS,
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}},
    )
    wish = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = server.request("POST", f"{ACCOUNTS}/{account}/token", wish)
    assert token.ok, token.body
    content = json.loads(server.kubeconfig.read_text())
    content["users"][0]["user"] = {"token": token.body["status"]["token"]}
    path.write_text(json.dumps(content))
    return path


def _delete(server: KubeApiServer, path: str) -> None:
    """Delete until there is nothing.

    Of a definition that was changed just before, the server cannot list the objects ("storage is
    (re)initializing"). It does not continue the deletion until the next request.
    """
    answer = server.request("DELETE", path)
    # Its condition Terminating has the reason.
    conditions = answer.body.get("status")
    if isinstance(conditions, dict):
        conditions = conditions.get("conditions")
    assert answer.status == 404, f"{path}: {answer.status}: {conditions}"


def _check_served(server: KubeApiServer, path: str) -> None:
    answer = server.request("GET", path)
    assert answer.ok, f"{path}: {answer.body.get('message')}"
