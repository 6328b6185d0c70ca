"""``waggle plan --from-cluster``: manifests that are applied on top of the objects of a cluster."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from resources.core.kinds import NAMESPACE, SECRET
from resources.kind import Kind
from tests.cmd.lab import configuration, service
from tests.support.apiserver import BackgroundApiServer, status
from tests.support.kinds import KINDS
from tests.support.kubernetes.accounts import define, undefine
from tests.support.kubernetes.server import KubeApiServer
from waggle.__main__ import main

Objects = list[dict[str, Any]]
PASSWORD = "not-to-be-seen-anywhere"


def of_kind(kind: str, listed: Objects) -> dict[str, Any]:
    return next(item for item in listed if item["kind"] == kind)


def secret(password: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "bgp", "namespace": "kube-system"},
        "data": {"password": base64.b64encode(password.encode()).decode()},
    }


def objects() -> Objects:
    listed = [*configuration((1179, 1180)), service("web", "198.51.100.10"), secret(PASSWORD)]
    of_kind("CiliumBGPPeerConfig", listed)["spec"]["authSecretRef"] = "bgp"
    return listed


@pytest.fixture
def cluster() -> Iterator[BackgroundApiServer]:
    with BackgroundApiServer(KINDS) as server:
        server.put(*deepcopy(objects()))
        yield server


@pytest.fixture
def plan(cluster: BackgroundApiServer, tmp_path: Path) -> Callable[..., int]:
    """Return a function that plans these manifests on top of the cluster."""
    kubeconfig = cluster.kubeconfig(tmp_path / "kubeconfig")

    def run(change: Objects, *arguments: str) -> int:
        path = tmp_path / "change.yaml"
        path.write_text(yaml.safe_dump_all(change))
        access = ("--from-cluster", "--kubeconfig", str(kubeconfig))
        return main(["plan", "-f", str(path), *access, *arguments])

    return run


def test_manifests_that_a_cluster_has_change_nothing(
    plan: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    # As in a repository: without the status.
    web = service("web", "")
    del web["status"]
    assert plan([*configuration((1179, 1180))[1:2], web]) == 0
    assert capsys.readouterr().out == "Plan: no changes (1 node).\n"


def test_a_changed_object_and_a_changed_password_reset_sessions(
    plan: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    changed = of_kind("CiliumBGPPeerConfig", objects())
    changed["metadata"]["name"] = "tor-2"
    changed["spec"] |= {"timers": {"holdTimeSeconds": 30}, "transport": {"peerPort": 1180}}
    del changed["spec"]["authSecretRef"]
    assert plan([changed, secret(f"{PASSWORD}-2")]) == 1
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == "on node node-1:"
    assert lines[1] == "  ! session main/tor-1 (127.0.0.2) resets: password changes"
    assert lines[2].startswith("  ! session main/tor-2 (127.0.0.3) resets: ")
    assert PASSWORD not in out + err


def test_only_referenced_secrets_are_read(
    cluster: BackgroundApiServer, plan: Callable[..., int]
) -> None:
    assert plan([]) in (0, 2)
    of_secrets = [read for read in cluster.paths if "secrets" in read[1]]
    assert of_secrets == [("get", "/api/v1/namespaces/kube-system/secrets/bgp")]


def test_without_the_right_to_secrets_the_rest_is_planned(
    cluster: BackgroundApiServer, plan: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.always("get", SECRET.plural, status(403, "Forbidden", "no"))
    change = [service("new", "198.51.100.11")]
    assert plan(change, "-o", "json") == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["summary"]["routes"] == {"advertise": 2}
    (note,) = answer["notes"]
    assert note.startswith("not allowed to get the Secrets kube-system/bgp: ")
    assert plan(change) == 1
    assert note in capsys.readouterr().err


def test_a_secret_that_may_not_be_read_resets_no_session(
    cluster: BackgroundApiServer, plan: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.always("get", SECRET.plural, status(403, "Forbidden", "no"))
    assert plan([secret(PASSWORD)], "--no-reset") == 0
    out, err = capsys.readouterr()
    assert out == "Plan: no changes (1 node).\n"
    assert "whether a new password differs from the present one is not known" in err


def test_an_object_that_the_manifests_repair_is_a_solved_problem(
    cluster: BackgroundApiServer, plan: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    broken = of_kind("CiliumBGPPeerConfig", deepcopy(objects()))
    broken["spec"]["timers"] = {"holdTimeSeconds": 1}
    cluster.put(broken)
    plan([of_kind("CiliumBGPPeerConfig", objects())], "-o", "json")
    problems = json.loads(capsys.readouterr().out)["problems"]
    assert problems
    assert {problem["change"] for problem in problems} == {"solved"}


def test_without_the_right_to_a_kind_there_is_no_plan(
    cluster: BackgroundApiServer, plan: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.always("list", NAMESPACE.plural, status(403, "Forbidden", "no list of namespaces"))
    assert plan([service("new", "198.51.100.11")]) == 2
    assert capsys.readouterr().err == ("waggle plan: /api/v1/namespaces: no list of namespaces\n")


def test_with_prune_custom_resources_that_no_manifest_has_are_deleted(
    plan: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    listed = [value for value in objects() if value["kind"].startswith("Cilium")]
    kept = [value for value in listed if value["kind"] != "CiliumBGPAdvertisement"]
    assert plan(kept) == 0
    assert plan(kept, "--prune") == 1
    assert capsys.readouterr().out.endswith("Plan: 2 routes to withdraw, on 1 of 1 node.\n")


def test_an_object_of_an_unread_version_is_not_pruned(
    plan: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    listed = [value for value in objects() if value["kind"].startswith("Cilium")]
    of_kind("CiliumBGPAdvertisement", listed)["apiVersion"] = "cilium.io/v9"
    assert plan(listed, "--prune") == 2
    out = capsys.readouterr().out
    assert "cilium.io/v9 CiliumBGPAdvertisement is not read" in out
    assert "to withdraw" not in out


def test_flags_that_contradict_each_other_are_wrong_usage(
    plan: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan([], "--socket", str(tmp_path)) == 2
    assert "--socket: not with --from-cluster" in capsys.readouterr().err
    assert main(["plan", "-f", str(tmp_path), "--from", str(tmp_path), "--prune"]) == 2
    assert "--prune: only with --from-cluster" in capsys.readouterr().err


@pytest.mark.apiserver
def test_the_plan_of_a_real_cluster(
    apiserver: KubeApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = objects()
    by_name: dict[str, Kind[Any]] = {kind.name: kind for kind in KINDS}
    kinds = {by_name[value["kind"]]: None for value in listed}
    made = define(apiserver, [kind for kind in kinds if kind.custom])
    paths = []
    shop = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    apiserver.request("POST", "/api/v1/namespaces", shop)
    for value in listed:
        kind = by_name[value["kind"]]
        path = kind.path(kind.versions[0], value["metadata"].get("namespace", ""))
        assert apiserver.request("POST", path, value).ok
        paths.append(f"{path}/{value['metadata']['name']}")
        if "status" in value:
            own = f"{paths[-1]}/status"
            assert apiserver.request("PATCH", own, value, "merge-patch+json").ok
    try:
        change = tmp_path / "change.yaml"
        web = service("web", "")
        del web["status"], web["metadata"]["labels"]
        change.write_text(yaml.safe_dump_all([web, secret(f"{PASSWORD}-2")]))
        access = ("--from-cluster", "--kubeconfig", str(apiserver.kubeconfig))
        assert main(["plan", "-f", str(change), *access, "--node", "node-1"]) == 1
    finally:
        for path in paths:
            apiserver.request("DELETE", path)
        undefine(apiserver, made)
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "on node node-1:",
        "  ! session main/tor-1 (127.0.0.2) resets: password changes",
        "  - route 198.51.100.10/32 (Service/shop/web) from main/tor-1, main/tor-2",
        "Plan: 1 session to reset; 2 routes to withdraw, on 1 of 1 node.",
    ]
    assert PASSWORD not in out + err
