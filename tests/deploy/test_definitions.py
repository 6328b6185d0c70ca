"""Definitions of other projects: the commands of the pages, on a cluster that has them, change none.

MetalLB's BGPPeer is served in two versions with a conversion webhook, and BGPPolicy is Antrea's; both
have objects. What the pages say about definitions is run as it stands there.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.generate import CHART
from tests.support.documents import documents
from tests.support.kubernetes import assets
from tests.support.kubernetes.accounts import CRDS, put
from tests.support.kubernetes.assets import Assets
from tests.support.kubernetes.server import KubeApiServer
from tests.support.wait import eventually

pytestmark = [pytest.mark.apiserver, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
THEIRS = ("bgppeers.metallb.io", "bgppolicies.crd.antrea.io")
PEERS = "/apis/metallb.io/v1beta2/namespaces/default/bgppeers"
POLICIES = "/apis/crd.antrea.io/v1alpha1/bgppolicies"
IN_PAGES = re.compile(
    r"kubectl (?:create|apply|delete|get crds)[^`\n]*(?:/crds|waggle crds)[^`\n]*"
)
"""Commands about definitions; `waggle crds ... | kubectl` begins otherwise."""
PIPED = re.compile(r"^waggle crds[^`\n]*\| kubectl[^`\n]*$", re.MULTILINE)
WARNED_OF = "kubectl delete -f deploy/helm/waggle/crds"
"""What docs/install.md warns of."""
PATIENCE = 60.0
"""Timeout of a command, in seconds."""


def commands(page: str) -> list[str]:
    """Return the commands of a page about definitions, in their order."""
    text = (ROOT / "docs" / page).read_text()
    matches = sorted(
        (match.start(), match[0])
        for pattern in (IN_PAGES, PIPED)
        for match in pattern.finditer(text)
        if match[0] != WARNED_OF
    )
    return [command for _, command in matches]


def definition(file: str, name: str) -> dict[str, Any]:
    """Return a definition of the chart."""
    found = documents((CHART / "crds" / file).read_text())
    return next(one for one in found if one["metadata"]["name"] == name)


def of_another_project(file: str, name: str) -> dict[str, Any]:
    """Return a definition as its own project has it: other schemas, and a second version."""
    crd = definition(file, name)
    spec = crd["spec"]
    group, (stored,) = spec["group"], spec["versions"]
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    older = {"name": "v1alpha0", "served": True, "storage": False}
    spec["versions"] = [
        {**version, "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}
        for version in (older, {"name": stored["name"], "served": True, "storage": True})
    ]
    service = {"name": "webhook", "namespace": "elsewhere", "path": "/convert"}
    webhook = {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]}
    spec["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    assert group in name
    return crd


@dataclass
class Shell:
    """A shell with the project, kubectl and waggle."""

    server: KubeApiServer
    directory: Path

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a command of a page."""
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            cwd=ROOT,
            env={
                "HOME": str(self.directory),
                "KUBECONFIG": str(self.server.kubeconfig),
                "PATH": f"{self.directory / 'bin'}:{os.environ['PATH']}",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )

    def installed(self) -> dict[str, dict[str, Any]]:
        """Return the definitions of the cluster by name, with what identifies a change."""
        items = self.server.request("GET", CRDS).body["items"]
        return {item["metadata"]["name"]: item for item in items}


@pytest.fixture
def shell(apiserver: KubeApiServer, tmp_path: Path) -> Iterator[Shell]:
    """A cluster with definitions and objects of MetalLB and of Antrea."""
    found = assets.find()
    assert isinstance(found, Assets)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "kubectl").symlink_to(found.kubectl)
    waggle = tmp_path / "bin" / "waggle"
    waggle.write_text(f'#!/bin/sh\nexec {sys.executable} -m waggle "$@"\n')
    waggle.chmod(0o755)
    made = Shell(apiserver, tmp_path)
    eventually(lambda: _check_none(apiserver), within=90)
    text = yaml.safe_dump_all(
        of_another_project(file, name)
        for file, name in zip(("metallb.yaml", "antrea.yaml"), THEIRS, strict=True)
    )
    # As MetalLB's own page has it applied: kubectl takes such definitions over when it applies
    # another definition by the server.
    apiserver.kubectl("apply", "-f", "-", text=text)
    peer = {"apiVersion": "metallb.io/v1beta2", "kind": "BGPPeer", "metadata": {"name": "theirs"}}
    policy = {
        "apiVersion": "crd.antrea.io/v1alpha1",
        "kind": "BGPPolicy",
        "metadata": {"name": "theirs"},
    }
    eventually(lambda: put(apiserver, PEERS, peer))
    eventually(lambda: put(apiserver, POLICIES, policy))
    yield made
    for name in made.installed():
        apiserver.request("DELETE", f"{CRDS}/{name}")
    eventually(lambda: _check_none(apiserver), within=90)


def _check_none(server: KubeApiServer) -> None:
    _check_left(server, set())


def _check_left(server: KubeApiServer, names: set[str]) -> None:
    """Check which definitions are left; a server tries again to remove one when it is changed.

    It does not by itself where it had been changing the definition: "storage is (re)initializing".
    """
    items = server.request("GET", CRDS).body["items"]
    for item in items:
        if "deletionTimestamp" in item["metadata"]:
            again = {"metadata": {"annotations": {"again": item["metadata"]["resourceVersion"]}}}
            path = f"{CRDS}/{item['metadata']['name']}"
            server.request("PATCH", path, again, "merge-patch+json")
    assert {item["metadata"]["name"] for item in items} == names


def _versions(installed: dict[str, dict[str, Any]]) -> dict[str, tuple[str, int]]:
    return {
        name: (installed[name]["metadata"]["uid"], installed[name]["metadata"]["generation"])
        for name in THEIRS
    }


def test_the_pages_name_the_definitions_of_one_dialect() -> None:
    all_commands = [line for page in (ROOT / "docs").glob("*.md") for line in commands(page.name)]
    assert len(all_commands) >= 5
    for line in all_commands:
        assert re.search(r"crds/\w+\.yaml|waggle crds [a-z]|--ours", line), line
        assert not re.search(r"kubectl (apply|delete) [^|]*-f deploy", line), line


def test_installation_upgrade_and_uninstallation_leave_the_definitions_of_others(
    shell: Shell,
) -> None:
    before = _versions(shell.installed())
    install, upgrade, uninstall = (
        next(line for line in commands("install.md") if word in line)
        for word in ("kubectl create", "force-conflicts", "--ours")
    )
    assert shell.run(install).returncode == 0
    with_metallb = shell.run(next(c for c in commands("metallb.md") if "kubectl create" in c))
    assert (
        'customresourcedefinitions.apiextensions.k8s.io "bgppeers.metallb.io" already exists'
        in (with_metallb.stderr)
    )
    for line in [c for page in ("cilium.md", "frrk8s.md") for c in commands(page)]:
        # Of a second time: what is there stays.
        assert "AlreadyExists" in shell.run(line).stderr, line
    ours = set(shell.installed()) - set(THEIRS)
    assert {"ciliumbgpclusterconfigs.cilium.io", "communities.metallb.io"} <= ours

    for dialect in ("cilium", "metallb antrea"):
        done = shell.run(upgrade.replace("crds cilium", f"crds {dialect}"))
        assert done.returncode == 0, done.stderr
    assert "skipped: bgppeers.metallb.io is installed, and is not Waggle's" in done.stderr
    assert _versions(shell.installed()) == before

    done = shell.run(f"{uninstall} --wait=false")
    assert done.returncode == 0, done.stderr
    eventually(lambda: _check_left(shell.server, set(THEIRS)), within=90)
    assert _versions(shell.installed()) == before
    for path in (PEERS, POLICIES):
        assert shell.server.request("GET", f"{path}/theirs").ok


def test_a_definition_that_another_project_applied_over_ours_is_theirs(shell: Shell) -> None:
    (install,) = (c for c in commands("metallb.md") if "kubectl create" in c)
    shell.run(install)
    theirs = of_another_project("metallb.yaml", "communities.metallb.io")
    shell.server.kubectl(
        "apply", "--server-side", "--force-conflicts", "-f", "-", text=json.dumps(theirs)
    )
    listed = shell.run("kubectl get crds -o json | waggle crds --installed - --ours -o name")
    assert "bgpadvertisements.metallb.io" in listed.stdout
    assert "communities.metallb.io" not in listed.stdout
    assert "skipped: communities.metallb.io" in listed.stderr
