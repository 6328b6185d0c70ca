"""BGPPolicies on a real API server with Antrea's definition, by accounts of the chart's roles."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cells.dialects import cilium, frrk8s, metallb
from cells.dialects.antrea import DIALECT
from cells.dialects.cell import agent_cell
from deploy import rbac
from resources.antrea.kinds import BGP_POLICY
from resources.frrk8s.kinds import FRR_CONFIGURATION
from tests.cmd.lab import established, routers
from tests.dialects import antrea_definition as definitions
from tests.reconcilers.antrea.build import NODE, ROUTER_ID, node, policy, secret
from tests.support import plain_yaml
from tests.support.agent import Agent
from tests.support.daemon import Daemon
from tests.support.kubernetes.accounts import (
    CRDS,
    NAMESPACE,
    access,
    define,
    grant,
    put,
    rules,
    rules_without_dialects,
    undefine,
)
from tests.support.kubernetes.server import KubeApiServer
from tests.support.ports import free_port
from tests.support.wait import eventually

pytestmark = [pytest.mark.apiserver, pytest.mark.program, pytest.mark.timeout(300)]

POLICIES = "/apis/crd.antrea.io/v1alpha1/bgppolicies"
EGRESSES = "/apis/crd.antrea.io/v1beta1/egresses"
SECRETS = "/api/v1/namespaces/kube-system/secrets"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/waggle-operator"
MANAGER = "waggle-operator-antrea"
READS = ("get", "list", "watch")
OTHERS = (cilium.DIALECT, frrk8s.DIALECT, metallb.DIALECT)
"""Dialects that are off here."""
QUIET = 3.0
"""Seconds in which a second write would have come."""


def serves(server: KubeApiServer, *paths: str) -> None:
    assert all(server.request("GET", path).ok for path in paths)


@pytest.fixture
def server(apiserver: KubeApiServer) -> Iterator[KubeApiServer]:
    """Define the kinds as Antrea does, one of another dialect, and put in the Node with its status."""
    others = define(apiserver, [FRR_CONFIGURATION])
    for definition in (definitions.BGP_POLICY, definitions.EGRESS):
        put(apiserver, CRDS, definition)
    eventually(lambda: serves(apiserver, POLICIES, EGRESSES))
    value = node(router_id=None)
    status = value.pop("status")
    value["metadata"].pop("uid")
    put(apiserver, "/api/v1/nodes", value)
    answer = apiserver.request(
        "PATCH", f"/api/v1/nodes/{NODE}/status", {"status": status}, "merge-patch+json"
    )
    assert answer.ok, answer.body
    yield apiserver
    names = [d["metadata"]["name"] for d in (definitions.BGP_POLICY, definitions.EGRESS)]
    undefine(apiserver, [*names, *others])
    for path in (f"/api/v1/nodes/{NODE}", f"{SECRETS}/antrea-bgp-passwords", LEASE):
        apiserver.request("DELETE", path)


def apply(server: KubeApiServer, value: dict[str, Any]) -> str:
    """Apply an object with kubectl."""
    value = {**value, "metadata": {"name": value["metadata"]["name"]}}
    return server.kubectl("apply", "-f", "-", text=json.dumps(value))


def of_dialect(part: str) -> list[dict[str, Any]]:
    """Return the rules that the chart adds for BGPPolicies, everywhere."""
    made = {"agent": rbac.agent_rules, "operator": rbac.operator_rules}[part]
    found: list[dict[str, Any]] = plain_yaml.load("".join(made(agent_cell(DIALECT))))
    return found


def of_others() -> list[dict[str, Any]]:
    """Return what the chart grants agents to count objects of the dialects that are off."""
    cells = [agent_cell(entry) for entry in OTHERS]
    found = plain_yaml.load("".join(line for cell in cells for line in rbac.counting_rules(cell)))
    return list(found)


ONE_SECRET = {
    "apiGroups": [""],
    "resources": ["secrets"],
    "resourceNames": ["antrea-bgp-passwords"],
    "verbs": ["list", "watch"],
}
"""What the chart adds in the namespace of the passwords, for agents."""


def account(server: KubeApiServer, part: str, path: Path) -> Path:
    """Make an account with what the chart grants a part for BGPPolicies; return its kubeconfig."""
    name = f"antrea-{part}"
    counting = of_others() if part == "agent" else []
    grant(server, name, "Cluster", [*rules_without_dialects(part), *of_dialect(part), *counting])
    leases = [r for r in rules(part, "") if r["resources"] != ["secrets"]]
    grant(server, name, "", [*leases, *([ONE_SECRET] if part == "agent" else [])])
    return access(server, name, path)


def check_permissions(server: KubeApiServer, part: str, since: int) -> None:
    """Check that no request was refused, and that each permission of the dialect was used."""
    counts = server.request_counts(f"antrea-{part}", NAMESPACE, since)
    # Each account may discover what is served.
    requests = {r: n for r, n in counts.items() if not r.resource.startswith("/")}
    assert not [str(request) for request in requests if request.status in (401, 403)]
    used = {(r.verb, r.group, r.resource) for r in requests}
    granted = {
        (verb, group, resource)
        for rule in [*of_dialect(part), *([ONE_SECRET] if part == "agent" else [])]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert not granted - used
    written = {(r.verb, r.resource): n for r, n in requests.items() if r.verb not in READS}
    # The operator's own: its Lease, the Events, the addresses of the cluster.
    own = ("events", "leases", "configmaps")
    of_nodes = {key: n for key, n in written.items() if key[1] not in own}
    assert of_nodes == ({("patch", "nodes"): 1} if part == "operator" else {})


VALID = policy()["spec"]
PEER = VALID["bgpPeers"][0]
REJECTED: dict[str, dict[str, Any]] = {
    "spec.nodeSelector": {**VALID, "nodeSelector": None},
    "spec.localASN": {**VALID, "localASN": 65536},
    "spec.listenPort": {**VALID, "listenPort": 0},
    "spec.advertisements.service.ipTypes[0]": {
        **VALID,
        "advertisements": {"service": {"ipTypes": ["NodePort"]}},
    },
    "spec.bgpPeers[0].asn": {**VALID, "bgpPeers": [{"address": "10.30.4.1"}]},
    "spec.bgpPeers[0].address": {**VALID, "bgpPeers": [{**PEER, "address": "rtr1.example.test"}]},
    "spec.bgpPeers[0].multihopTTL": {**VALID, "bgpPeers": [{**PEER, "multihopTTL": 256}]},
    "spec.bgpPeers[0].gracefulRestartTimeSeconds": {
        **VALID,
        "bgpPeers": [{**PEER, "gracefulRestartTimeSeconds": 0}],
    },
}


def test_what_the_original_definition_rejects(server: KubeApiServer) -> None:
    for field, spec in REJECTED.items():
        with pytest.raises(RuntimeError) as caught:
            apply(server, {**policy("bad"), "spec": spec})
        assert field in str(caught.value)
    apply(server, policy("twice", peers=[PEER, PEER]))
    apply(server, {**policy("no-peers"), "spec": {"nodeSelector": {}, "localASN": 64620}})


def test_our_own_definition_takes_what_the_rules_take(apiserver: KubeApiServer) -> None:
    names = define(apiserver, [BGP_POLICY])
    try:
        proposed = {"holdTimeSeconds": 30, "gracefulRestartEnabled": False, "asn": 4200000000}
        apply(apiserver, policy("next", localASN=4200000001, peers=[{**PEER, **proposed}]))
        apply(apiserver, {**policy("no-peers"), "spec": {"nodeSelector": {}, "localASN": 64620}})
        wrong = {**PEER, "holdTimeSeconds": 30, "keepaliveIntervalSeconds": 30}
        rejected = REJECTED | {
            "spec.localASN": {**VALID, "localASN": 4294967295},
            "spec.bgpPeers[0].keepaliveIntervalSeconds": {**VALID, "bgpPeers": [wrong]},
        }
        for field, spec in rejected.items():
            with pytest.raises(RuntimeError) as caught:
                apply(apiserver, {**policy("bad"), "spec": spec})
            assert field in str(caught.value)
    finally:
        undefine(apiserver, names)


def test_policies_are_applied_and_the_annotation_alone_is_written_once(
    server: KubeApiServer, tmp_path: Path
) -> None:
    before = server.request("GET", f"{CRDS}/bgppolicies.crd.antrea.io").body["metadata"]
    since = server.audited
    own_port = free_port("::")
    with routers(tmp_path, 1) as (port,):
        peers = [{"address": "127.0.0.2", "asn": 65000, "port": port}]
        apply(server, policy("edge", pod=True, localASN=65001, listenPort=own_port, peers=peers))
        keys = secret({"10.30.4.1-64600": "unused"})
        put(server, SECRETS, keys)
        switches = ("--enable-cell", "antrea", "--disable-cell", "cilium")
        operator = Daemon(
            "waggle-operator",
            [
                *(sys.executable, "-m", "waggle_operator", *switches),
                *("--kubeconfig", account(server, "operator", tmp_path / "operator-access")),
                *("--lease-duration-seconds", "300", "--renew-deadline-seconds", "290"),
            ],
            log=tmp_path / "operator.log",
        )
        agent = Agent(
            None,
            tmp_path / "agent",
            node=NODE,
            arguments=switches,
            kubeconfig=account(server, "agent", tmp_path / "agent-access"),
        )
        operator.start()
        agent.start()
        try:
            agent.wait_ready()
            established(agent, 1)
            eventually(lambda: _check_routes(agent, "10.201.7.0/24"))
            eventually(lambda: _check_annotation(server, "10.30.4.17"), context=operator.tail)
            written = _node(server)["metadata"]
            (ours,) = (e for e in written["managedFields"] if e["manager"] == MANAGER)
            fields: dict[str, Any] = {"f:metadata": {"f:annotations": {f"f:{ROUTER_ID}": {}}}}
            assert (ours["operation"], ours["fieldsV1"]) == ("Apply", fields)
            _check_readable(agent)
            eventually(lambda: _check_event(server))
            server.kubectl("annotate", "--overwrite", "node", NODE, f"{ROUTER_ID}=10.255.0.7")
            eventually(lambda: _check_router_id(agent, "10.255.0.7"))
            time.sleep(QUIET)
            _check_annotation(server, "10.255.0.7")
            stored = server.request("GET", f"{POLICIES}/edge").body
            managers = {entry["manager"] for entry in stored["metadata"]["managedFields"]}
            assert (managers, "status" in stored) == ({"kubectl-client-side-apply"}, False)
            after = server.request("GET", f"{CRDS}/bgppolicies.crd.antrea.io").body["metadata"]
            assert after["generation"] == before["generation"]
            for part in ("agent", "operator"):
                eventually(lambda: check_permissions(server, part, since))  # noqa: B023
        finally:
            agent.stop()
            operator.stop()


def _node(server: KubeApiServer) -> dict[str, Any]:
    found: dict[str, Any] = server.request("GET", f"/api/v1/nodes/{NODE}").body
    return found


def _check_event(server: KubeApiServer) -> None:
    """Check that the session is an Event of the policy."""
    events = server.request("GET", EVENTS).body["items"]
    found = [e["reason"] for e in events if e["regarding"].get("kind") == "BGPPolicy"]
    assert found, [e["regarding"] for e in events]


def _check_annotation(server: KubeApiServer, expected: str) -> None:
    assert _node(server)["metadata"].get("annotations", {}).get(ROUTER_ID) == expected


def _check_routes(agent: Agent, *prefixes: str) -> None:
    assert [route["prefix"] for route in agent.routes("advertised")] == list(prefixes)


def _check_router_id(agent: Agent, expected: str) -> None:
    from cells.api.client import at_socket

    status, body = at_socket(agent.socket).get_plain("/bgppolicy", {})
    assert (status, json.loads(body)["routerID"]) == (200, expected)


def _check_readable(agent: Agent) -> None:
    """Check that every kind can be read, the Secret included."""
    reports = {".".join(item["path"]): item for item in agent.ask("/v1/health")}
    wrong = {
        path: item.get("message")
        for path, item in reports.items()
        if path.startswith("kubernetes") and item["level"] not in ("ok", "stopped")
    }
    assert wrong == {}
