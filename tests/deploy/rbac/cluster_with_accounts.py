"""The API server with the objects of the plain manifests, and the programs with their accounts.

The server records the requests of each account: what was rejected, and what of a role was used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.generate import NAMESPACE
from tests.cmd.lab import NODE
from tests.support.daemon import Daemon
from tests.support.kubernetes.accounts import RBAC
from tests.support.kubernetes.server import Answer, KubeApiServer, Request
from tests.support.wait import eventually

CILIUM = "/apis/cilium.io/v2"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
CLUSTER_WIDE = {
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "ValidatingAdmissionPolicy": f"{ADMISSION}/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": f"{ADMISSION}/validatingadmissionpolicybindings",
}
"""Where the objects of the manifests are that are in no namespace, and go after a test."""
QUICK_COUNTS = """
import sys
from reconcilers.target import write_spread
from waggle_agent.__main__ import main
assert write_spread.COUNT_INTERVAL_SECONDS > 1
write_spread.COUNT_INTERVAL_SECONDS = 1.0
sys.exit(main())
"""
"""The agent, but that it may write a count again after a second instead of a minute."""

QUICK_SERVICES = """
import sys
from cells.operator import service_events
from reconcilers.report import service_events as rules
from reconcilers.target import write_spread
from waggle_operator.__main__ import main
assert min(write_spread.COUNT_INTERVAL_SECONDS, rules.GRACE_SECONDS) > 1
write_spread.COUNT_INTERVAL_SECONDS = service_events.POLL_INTERVAL_SECONDS = rules.GRACE_SECONDS = 1.0
sys.exit(main())
"""
"""The operator, but that it compares Services every second, and a count is written again after one."""

Object = dict[str, Any]
Grant = tuple[str, str, str, str]
"""Verb, group, resource, namespace (empty: everywhere)."""


def granted(objects: list[Object], part: str) -> set[Grant]:
    """List what the roles grant that the account of a part is bound to."""
    roles = {(o["kind"], o["metadata"]["name"]): o for o in objects}
    found: set[Grant] = set()
    for binding in objects:
        if binding["kind"] not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        if f"waggle-{part}" not in [subject["name"] for subject in binding["subjects"]]:
            continue
        role = roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
        namespace = binding["metadata"].get("namespace", "")
        for rule in role["rules"]:
            found |= {
                (verb, group, resource, namespace)
                for verb in rule["verbs"]
                for group in rule["apiGroups"]
                for resource in rule["resources"]
            }
    return found


def settings(objects: list[Object], part: str) -> str:
    """Give the configuration file that the manifests have for a part."""
    (found,) = [
        o["data"]["config.yaml"]
        for o in objects
        if (o["kind"], o["metadata"]["name"]) == ("ConfigMap", f"waggle-{part}")
    ]
    return str(found)


def node(name: str, **labels: str) -> Object:
    """Spell a Node."""
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def cilium(kind: str, value: Object) -> Object:
    """Spell an object of Cilium's group."""
    return {"apiVersion": "cilium.io/v2", "kind": kind, **value}


def owned_by(name: str, uid: str) -> Object:
    kind = {"apiVersion": "cilium.io/v2alpha1", "kind": "CiliumBGPPeeringPolicy"}
    return {**kind, "name": name, "uid": uid, "controller": True}


def post(server: KubeApiServer, kind: str, name: str, spec: Object, owner: Object) -> None:
    """Create an object as another operator does."""
    value = {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": spec}
    path = f"{CILIUM}/{kind.lower()}s?fieldManager=cilium-operator"
    answer = server.request("POST", path, cilium(kind, value))
    assert answer.ok, answer.body


def check_denied(answer: Answer, reason: str = "") -> None:
    assert answer.status == 403, answer.body
    assert "ValidatingAdmissionPolicy" in answer.body["message"]
    assert reason in answer.body["message"]


@dataclass
class Cluster:
    """The API server with the objects of the plain manifests."""

    server: KubeApiServer
    directory: Path
    started: list[Daemon]
    since: int
    """Where the record of requests was when it began."""
    anywhere: frozenset[str] = frozenset({"events"})
    """Resources with permissions for every namespace: Events are where their object is."""

    def used(self, part: str) -> set[Grant]:
        """Return the requests of an account; fails if one was rejected."""
        recorded = self.server.requests_by(f"waggle-{part}", NAMESPACE, self.since)
        # Discovery is granted to every account, by the API server's own role system:discovery.
        requests = [r for r in recorded if r.status in (401, 403) or not r.resource.startswith("/")]
        refused = sorted(str(request) for request in requests if request.status in (401, 403))
        assert not refused
        found = {(r.verb, r.group, r.resource, self._where(r)) for r in requests}
        # An object that comes to be by apply: a patch, for which the server wants `create` as well.
        found |= {
            ("create", r.group, r.resource, self._where(r))
            for r in requests
            if (r.verb, r.status) == ("patch", 201)
        }
        return found

    def _where(self, request: Request) -> str:
        return "" if request.resource in self.anywhere else request.namespace

    def run(
        self, part: str, configuration: str, port: int, *arguments: str, code: str = ""
    ) -> Daemon:
        """Start a program as its Pod would, but for where the API server is and where it listens.

        ``code``: what Python runs instead of the program's module.
        """
        config = self.directory / f"{part}.yaml"
        config.write_text(configuration)
        token = self.server.token(f"waggle-{part}", NAMESPACE, node=NODE)
        access = self.server.access_with(token, self.directory / f"{part}.kubeconfig")
        program = ["-c", code] if code else ["-m", f"waggle_{part}"]
        command: list[str | Path] = [sys.executable, *program, "--config", config]
        command += ["--kubeconfig", access, "--http-address", f"127.0.0.1:{port}", *arguments]
        daemon = Daemon(part, command, log=self.directory / f"{part}.log")
        daemon.start()
        self.started.append(daemon)
        return daemon

    def stop(self) -> None:
        """Stop what runs."""
        while self.started:
            self.started.pop().stop()

    def until_used(self, part: str, grants: set[Grant], daemon: Daemon) -> None:
        """Wait until an account has made use of all that it is granted."""

        def checked() -> None:
            unused = sorted(grants - self.used(part))
            assert not unused, unused

        self.soon(checked, daemon)

    def soon(self, check: Callable[[], None], daemon: Daemon) -> None:
        """Wait until something holds; a program that has ended is started again meanwhile."""

        def checked() -> None:
            if not daemon.running:
                # As the kubelet would: on a busy machine an operator can lose its Lease.
                daemon.start()
            check()

        eventually(checked, interval=0.2, context=daemon.tail)
