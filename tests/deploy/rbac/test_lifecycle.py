"""The chart on a real API server, in an administrator's order: install, upgrade, uninstall."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from cells.dialects.cell import DialectCell
from reconcilers.dialect import WrittenObjects
from tests.deploy.rbac.cluster_with_accounts import CILIUM, Object
from tests.support.helm import Helm
from tests.support.kubernetes.accounts import RBAC, put
from tests.support.kubernetes.server import KubeApiServer
from waggle_agent.__main__ import CELLS as AGENT_CELLS

pytestmark = [pytest.mark.apiserver, pytest.mark.helm, pytest.mark.timeout(300)]

RELEASE = "waggle-lifecycle"
"""The namespace of the release: other tests of the server have theirs."""
ROOT = Path(__file__).parents[3]
DIALECTS = [cell.dialect for cell in AGENT_CELLS if isinstance(cell, DialectCell)]
OWN = ("waggle-bgp-secrets", "frr-k8s-lifecycle", "metallb-lifecycle")
METALLB = (
    "cells.cilium.enabled=false",
    "cells.frrk8s.enabled=true",
    "cells.frrk8s.namespace=frr-k8s-lifecycle",
    "cells.metallb.enabled=true",
    "cells.metallb.namespace=metallb-lifecycle",
)


class Chart:
    """A release of the chart on the server; helm is run as the administrator."""

    validated: ClassVar[set[tuple[str, ...]]] = set()
    """Values with which helm has compared all objects with the server's schemas, which takes long."""

    def __init__(self, helm: Helm, server: KubeApiServer) -> None:
        self.server = server
        self._helm = helm

    def helm(self, verb: str, *values: str, install: bool = True) -> str:
        """Run helm with values; raises ValueError with its error."""
        chart = [str(self._helm.chart)] if install else []
        settings = [f"--set={value}" for value in values]
        where = (f"--kubeconfig={self.server.kubeconfig}", f"--namespace={RELEASE}")
        flags = ["--skip-crds"] if install else []
        if install and values in self.validated:
            flags.append("--disable-openapi-validation")
        printed = self._helm.run(verb, "waggle", *chart, *where, *flags, *settings)
        if install:
            self.validated.add(values)
        return printed

    def exists(self, namespace: str) -> bool:
        """Return whether a namespace exists and is not being deleted."""
        answer = self.server.request("GET", f"/api/v1/namespaces/{namespace}")
        return answer.ok and "deletionTimestamp" not in answer.body["metadata"]

    def agent(self, path: str) -> int:
        """Return the status of what an agent reads with the token of its Pod."""
        token = self.server.token("waggle-agent", RELEASE, node="n1")
        return self.server.request("GET", path, token=token).status


@pytest.fixture
def chart(helm: Helm, apiserver: KubeApiServer, definitions: list[Object]) -> Iterator[Chart]:
    del definitions
    made = Chart(helm, apiserver)
    create(apiserver, RELEASE)
    yield made
    with contextlib.suppress(ValueError):
        made.helm("uninstall", install=False)
    for namespace in (RELEASE, *OWN):
        # Nothing finishes the deletion of a namespace here: the next test has other objects in them.
        for plural in ("secrets", "roles", "rolebindings"):
            root = RBAC if plural != "secrets" else "/api/v1"
            apiserver.request("DELETE", f"{root}/namespaces/{namespace}/{plural}")
        finish(apiserver, namespace)


def create(server: KubeApiServer, namespace: str) -> None:
    """Create a namespace, as another project does."""
    value = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    answer = server.request("POST", "/api/v1/namespaces", value)
    assert answer.ok, answer.body


def finish(server: KubeApiServer, namespace: str) -> None:
    """Delete a namespace: no controller does it here."""
    path = f"/api/v1/namespaces/{namespace}"
    if server.request("DELETE", path).status == 404:
        return
    value = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    body = {**value, "spec": {"finalizers": []}}
    server.request("PUT", f"{path}/finalize", body)


def secret(server: KubeApiServer, namespace: str, name: str) -> None:
    value = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}
    put(server, f"/api/v1/namespaces/{namespace}/secrets", {**value, "stringData": {"a": "b"}})


def test_the_token_of_an_agent_reads_no_secret_beside_passwords(chart: Chart) -> None:
    chart.helm("install", "operator.webhook.enabled=true")
    secret(chart.server, RELEASE, "waggle-webhook")
    secret(chart.server, "waggle-bgp-secrets", "router")
    of_release = f"/api/v1/namespaces/{RELEASE}/secrets"
    # The release's own, and that with the key of the webhook's authority.
    releases = chart.server.request("GET", of_release).body["items"]
    assert any(one["type"] == "helm.sh/release.v1" for one in releases)
    assert chart.agent(of_release) == 403
    assert chart.agent(f"{of_release}?fieldSelector=metadata.name=waggle-webhook") == 403
    assert chart.agent(f"{of_release}/waggle-webhook") == 403
    assert chart.agent("/api/v1/secrets") == 403
    assert chart.agent("/api/v1/namespaces/waggle-bgp-secrets/secrets") == 200


def test_an_upgrade_to_metallb_makes_the_namespaces_that_are_missing(chart: Chart) -> None:
    chart.helm("install")
    assert [name for name in OWN if chart.exists(name)] == ["waggle-bgp-secrets"]
    # As where MetalLB's own controller was installed before.
    create(chart.server, "metallb-lifecycle")
    secret(chart.server, "metallb-lifecycle", "webhook-server-cert")
    secret(chart.server, "metallb-lifecycle", "tor")
    for _ in range(2):
        notes = chart.helm("upgrade", *METALLB, "secrets.ofDialects.metallb={tor}")
        assert all(map(chart.exists, OWN))
    theirs = chart.server.request("GET", "/api/v1/namespaces/metallb-lifecycle").body
    assert "helm" not in str(theirs), "a namespace of another owner is left as it is"
    unnamed = (
        "Passwords in Secrets of namespace {} are not read: name the Secrets in secrets.ofDialects."
    )
    assert unnamed.format("metallb-lifecycle") not in notes
    assert f"{unnamed.format('frr-k8s-lifecycle')}frrk8s." in notes
    secrets = "/api/v1/namespaces/metallb-lifecycle/secrets?fieldSelector=metadata.name="
    assert chart.agent(f"{secrets}tor") == 200
    assert chart.agent(f"{secrets}webhook-server-cert") == 403
    chart.helm("uninstall", install=False)
    # With what they contain.
    assert all(map(chart.exists, OWN))
    chart.helm("install", *METALLB)


def test_an_upgrade_takes_no_password_from_a_session(chart: Chart) -> None:
    chart.helm("install")
    server = chart.server
    config = {"apiVersion": "cilium.io/v2", "kind": "CiliumBGPPeerConfig"}
    spec = {"authSecretRef": "router", "families": [{"afi": "ipv4", "safi": "unicast"}]}
    value = {**config, "metadata": {"name": "lifecycle"}, "spec": spec}
    put(server, f"{CILIUM}/ciliumbgppeerconfigs", value)
    try:
        # The former place of the password.
        secret(server, RELEASE, "router")
        with pytest.raises(
            ValueError, match="CiliumBGPPeerConfig lifecycle refers to Secret router"
        ):
            chart.helm("upgrade")
        chart.helm("upgrade", f"secrets.namespace={RELEASE}", "secrets.names={router}")
        assert chart.agent(f"/api/v1/namespaces/{RELEASE}/secrets") == 403
        secret(server, "waggle-bgp-secrets", "router")
        chart.helm("upgrade", "secrets.namespace=", "secrets.names={}")
    finally:
        server.request("DELETE", f"{CILIUM}/ciliumbgppeerconfigs/lifecycle")
    # A Role as the chart had it, for every Secret of MetalLB's namespace.
    chart.helm("upgrade", *METALLB, "secrets.ofDialects.metallb={tor}")
    roles = f"{RBAC}/namespaces/metallb-lifecycle/roles/waggle-secrets-metallb"
    rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["list", "watch"]}]
    assert server.request("PATCH", roles, {"rules": rules}, "merge-patch+json").ok
    with pytest.raises(ValueError, match=r"secrets\.ofDialects\.metallb: name the Secrets of "):
        chart.helm("upgrade", *METALLB)
    chart.helm("upgrade", *METALLB, "secrets.ofDialects.metallb={tor}")


def test_the_commands_of_the_documentation_delete_what_agents_leave(chart: Chart) -> None:
    chart.helm("install", *METALLB)
    server = chart.server
    written = [own for dialect in DIALECTS for own in dialect.each(WrittenObjects)]
    kinds = [kind.kind for own in written for kind in own.kinds]
    assert kinds
    for kind in kinds:
        namespace = "metallb-lifecycle" if kind.namespaced else ""
        metadata = {"name": "left", "labels": {"metallb.io/node": "n1"}}
        value = {"apiVersion": kind.api_versions[0], "kind": kind.name, "metadata": metadata}
        path = kind.path(kind.versions[0], namespace)
        assert server.request("POST", f"{path}?fieldManager=waggle-agent", value).ok
    chart.helm("uninstall", install=False)

    def left() -> set[str]:
        lists = {kind.plural: server.request("GET", kind.path(kind.versions[0])) for kind in kinds}
        return {plural for plural, answer in lists.items() if answer.body["items"]}

    assert left() == {kind.plural for kind in kinds}
    page = (ROOT / "docs" / "install.md").read_text()
    commands = re.findall(r"(?m)^kubectl (delete \S+ --all --all-namespaces)\b", page)
    for command in commands:
        server.kubectl(*command.split())
    assert left() == set()
