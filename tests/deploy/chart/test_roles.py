"""The roles, Secrets and admission policies follow the settings of the programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from cells.dialects.cell import DialectCell
from cells.options import (
    ResourcesOptions,
)
from reconcilers.dialect import Rival
from tests.deploy.chart.rendered import find, option, settings
from tests.support.helm import Helm
from waggle_operator.__main__ import CELLS as OPERATOR_CELLS

pytestmark = pytest.mark.helm


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
        rivals = cell.dialect.each(Rival) if isinstance(cell, DialectCell) else ()
        for namespace, _, name in (r.config_map.partition("/") for r in rivals if r.config_map):
            role = find(objects, "Role", f"waggle-operator-{name}")
            assert role["metadata"]["namespace"] == namespace
            (rule,) = role["rules"]
            assert (rule["resources"], rule["resourceNames"]) == (["configmaps"], [name])
            assert rule["verbs"] == ["get"]


def test_the_secrets_of_a_dialect_in_its_own_namespace(helm: Helm) -> None:
    cells = {
        "cilium": {"enabled": False},
        "frrk8s": {"enabled": True, "namespace": "frr"},
        "antrea": {"enabled": True},
    }

    def roles(**of_dialects: list[str]) -> dict[str, Any]:
        objects = helm.template({"cells": cells, "secrets": {"ofDialects": of_dialects}})
        readers = [
            subject["name"]
            for o in objects
            if o["kind"] == "RoleBinding" and "password" in o["metadata"]["name"]
            for subject in o["subjects"]
        ]
        assert readers == ["waggle-agent"]
        return {
            o["metadata"]["name"]: (o["metadata"]["namespace"], o["rules"][0].get("resourceNames"))
            for o in objects
            if o["kind"] == "Role" and "secrets" in str(o["rules"])
        }

    named = {"waggle-antrea-bgp-passwords": ("kube-system", ["antrea-bgp-passwords"])}
    assert roles() == named
    assert roles(frrk8s=["tor"]) == {"waggle-secrets-frrk8s": ("frr", ["tor"]), **named}
    # A dialect that is switched off keeps its names.
    assert roles(metallb=["tor"]) == named
    known = r"secrets\.ofDialects\.frr8s: no API dialect .* known: frrk8s, metallb"
    with pytest.raises(ValueError, match=known):
        roles(frr8s=["tor"])


def test_agents_read_no_secret_beside_passwords(helm: Helm) -> None:
    def namespace(**secrets: Any) -> tuple[str, Any]:  # noqa: ANN401
        role = find(helm.template({"secrets": secrets}), "Role", "waggle-secrets")
        return role["metadata"]["namespace"], role["rules"][0].get("resourceNames")

    # A namespace of their own: none of the release's, with the key of the webhook's authority.
    assert namespace() == ("waggle-bgp-secrets", None)
    assert namespace(namespace="bgp") == ("bgp", None)
    for shared in ("waggle-system", "kube-system", "default"):
        assert namespace(namespace=shared, names=["tor"]) == (shared, ["tor"])
        with pytest.raises(ValueError, match=f"secrets.names: .* of namespace {shared}"):
            namespace(namespace=shared)


def test_namespaces_are_made_that_the_release_writes_to(helm: Helm) -> None:
    def made(**values: Any) -> set[str]:  # noqa: ANN401
        found = [o for o in helm.template(values) if o["kind"] == "Namespace"]
        kept = [o["metadata"]["annotations"]["helm.sh/resource-policy"] for o in found]
        assert set(kept) <= {"keep"}, "an uninstallation must not delete objects and passwords"
        return {o["metadata"]["name"] for o in found}

    on = {name: {"enabled": True} for name in ("frrk8s", "metallb", "antrea")}
    own = {"waggle-bgp-secrets"}
    assert made() == own
    assert made(cells=on) == own | {"frr-k8s-system", "metallb-system"}
    assert made(cells=on, namespace={"ofDialects": False}) == own
    assert made(cells={**on, "frrk8s": {"enabled": True, "namespace": "metallb-system"}}) == own | {
        "metallb-system"
    }
    assert made(secrets={"create": False}) == made(secrets={"enabled": False}) == set()


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
