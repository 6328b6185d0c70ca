"""Values become settings of the programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cells.options import (
    ClaimsOptions,
    HttpOptions,
    KubernetesOptions,
    LoggingOptions,
    NodeOptions,
    OperatorOptions,
    ResourcesOptions,
    SnapshotOptions,
)
from reconcilers.cilium.options import CiliumOperatorOptions, CiliumOptions
from reconcilers.intent.options import IntentOptions
from tests.deploy.chart.rendered import container, option, pod, settings
from tests.support.helm import Helm

pytestmark = pytest.mark.helm


def test_without_values_both_programs_have_their_settings(helm: Helm) -> None:
    objects = helm.template()
    of_agent, of_operator = settings(objects, "agent"), settings(objects, "operator")
    for found in (of_agent, of_operator):
        assert option(found, "kubernetes", KubernetesOptions).kubeconfig == "in-cluster"
        assert (
            option(found, "resources", ResourcesOptions).secrets_namespace == "waggle-bgp-secrets"
        )
    assert option(of_agent, "http", HttpOptions).address == "127.0.0.1:9877"
    assert option(of_operator, "http", HttpOptions).address == "0.0.0.0:9878"
    assert option(of_operator, "operator", OperatorOptions).lease_namespace == "waggle-system"
    assert option(of_operator, "operator", OperatorOptions).identity == "pod-1"


def test_what_services_may_use_is_a_setting_of_the_agents(helm: Helm) -> None:
    plain = settings(helm.template(), "agent")
    assert option(plain, "intent", IntentOptions) == IntentOptions()
    # The operator publishes the addresses of other nodes in its namespace.
    assert option(plain, "node", NodeOptions).cluster_addresses == "waggle-system"
    given = {
        "allow": ["198.51.100.0/24", "2001:db8::/32"],
        "permit": ["198.51.100.7/32"],
        "namespaces": "annotated",
        "serviceCidr": ["10.96.0.0/12"],
    }
    values = {"serviceAddresses": given, "operator": {"enabled": False}}
    found = settings(helm.template(values), "agent")
    assert option(found, "intent", IntentOptions) == IntentOptions(
        advertise_allow=("198.51.100.0/24", "2001:db8::/32"),
        advertise_permit=("198.51.100.7/32",),
        advertise_namespaces="annotated",
        service_cidr=("10.96.0.0/12",),
    )
    assert option(found, "node", NodeOptions).cluster_addresses is None


def test_values_become_settings(helm: Helm) -> None:
    objects = helm.template(
        {
            "cells": {"logging": {"level": "debug", "format": "json"}},
            "routerIdAllocationIpPool": "10.0.0.0/24",
            "secrets": {"namespace": "bgp"},
            "agent": {
                "cells": {
                    "cilium": {"peeringPolicies": "first"},
                    "logging": {"level": "warning"},
                }
            },
            "operator": {
                "cells": {
                    "cilium": {"translatePeeringPolicies": True},
                    "operator": {"statusReport": False},
                }
            },
        }
    )
    of_agent, of_operator = settings(objects, "agent"), settings(objects, "operator")
    logs = option(of_agent, "logging", LoggingOptions)
    assert (logs.level, logs.format) == ("warning", "json")
    assert option(of_operator, "logging", LoggingOptions).level == "debug"
    intent = option(of_agent, "cilium", CiliumOptions)
    assert intent.peering_policies == "first"
    assert intent.router_id_allocation_ip_pool == "10.0.0.0/24"
    operated = option(of_operator, "operator", OperatorOptions)
    assert operated.status_report is False
    cilium = option(of_operator, "cilium", CiliumOperatorOptions)
    assert cilium.router_id_allocation_ip_pool == "10.0.0.0/24"
    assert cilium.translate_peering_policies is True
    assert option(of_agent, "resources", ResourcesOptions).secrets_namespace == "bgp"


def test_a_snapshot_is_kept_on_the_node_where_it_is_enabled(helm: Helm) -> None:
    objects = helm.template({"agent": {"snapshot": {"hostPath": "/var/lib/waggle"}}})
    found = settings(objects, "agent")
    snapshot = option(found, "snapshot", SnapshotOptions)
    assert snapshot.file is not None
    # Claims are kept beside it.
    claims = option(found, "claims", ClaimsOptions)
    assert claims.directory == str(Path(snapshot.file).parent)
    mounts = {m["mountPath"]: m["name"] for m in container(objects, "agent")["volumeMounts"]}
    name = mounts[str(Path(snapshot.file).parent)]
    (volume,) = [v for v in pod(objects, "agent")["spec"]["volumes"] if v["name"] == name]
    assert volume["hostPath"] == {"path": "/var/lib/waggle", "type": "DirectoryOrCreate"}
    # By default no file of the node is touched.
    volumes = pod(helm.template(), "agent")["spec"]["volumes"]
    assert not any("hostPath" in volume for volume in volumes)
    assert option(settings(helm.template(), "agent"), "claims", ClaimsOptions).directory is None


def test_a_change_of_settings_starts_new_pods(helm: Helm) -> None:
    def checksum(values: Mapping[str, Any]) -> str:
        annotations = pod(helm.template(values), "agent")["metadata"]["annotations"]
        return str(annotations["checksum/configuration"])

    assert checksum({}) == checksum({"operator": {"replicas": 3}})
    assert checksum({}) != checksum({"cells": {"logging": {"level": "debug"}}})
