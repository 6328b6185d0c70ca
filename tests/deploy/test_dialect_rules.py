"""The rules of ClusterRoles that follow from the declarations of a dialect."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from cells.dialects.cell import agent_cell
from deploy import rbac
from reconcilers.antrea.dialect import AntreaDialect
from reconcilers.cilium.dialect import CiliumDialect
from reconcilers.dialect import (
    ClusterIntent,
    Dialect,
    NodeObjectKind,
    Operation,
    OptionalKinds,
    RbacRule,
    WrittenObjects,
)
from reconcilers.frrk8s.dialect import Frrk8sDialect
from reconcilers.metallb.dialect import MetalLBDialect
from resources.core.kinds import SERVICE
from tests.dialects.beacon.dialect import BeaconDialect
from tests.dialects.beacon.kinds import BEACON
from tests.dialects.lighthouse.dialect import LighthouseDialect
from tests.dialects.lighthouse.kinds import LIGHTHOUSE
from tests.reconcilers.admission.claims import ClaimDialect
from tests.support import plain_yaml
from tests.support.cells import entry


def rules(found: Iterable[str]) -> list[dict[str, Any]]:
    """Parse rules."""
    parsed: list[dict[str, Any]] = plain_yaml.load("".join(found)) or []
    return parsed


def test_kinds_are_read_and_statuses_written() -> None:
    cell = agent_cell(entry(BeaconDialect))
    read = {"apiGroups": ["test.waggle.dev"], "resources": ["beacons"], "verbs": ["list", "watch"]}
    services = {"apiGroups": [""], "resources": ["services"], "verbs": ["list", "watch"]}
    get = {**read, "verbs": ["get"]}
    patch = {**read, "resources": ["beacons/status"], "verbs": ["patch"]}
    assert rules(rbac.agent_rules(cell)) == [services, read]
    assert rules(rbac.report_rules(cell)) == [get, patch]
    # The operator needs the same for its conditions; Nodes are in the chart.
    assert rules(rbac.operator_rules(cell)) == [read, get, patch]


def test_what_an_agent_writes_names_its_node() -> None:
    class Writing(BeaconDialect):
        extensions = (
            RbacRule((BEACON,), ("create",), operator=True),
            RbacRule((SERVICE,), ("get",)),
            *BeaconDialect.extensions,
            WrittenObjects(
                (
                    NodeObjectKind(
                        LIGHTHOUSE, generate_name="of-{node}-", node_label="test.waggle.dev/node"
                    ),
                ),
                lambda *_: (),
            ),
        )

    beacon = {"kind": "Beacon", "resource": "beacons/status", "label": "", "name": "{node}"}
    assert written(BeaconDialect) == {"test.waggle.dev": [beacon]}
    names = {"label": "test.waggle.dev/node", "name": "of-{node}-*"}
    assert written(Writing)["test.waggle.dev"] == [
        beacon,
        {"kind": "Lighthouse", "resource": "lighthouses", **names},
        {"kind": "Lighthouse", "resource": "lighthouses/status", **names},
    ]


def written(dialect: type[Dialect]) -> dict[str, Any]:
    """Parse what an agent writes."""
    found: dict[str, Any] = plain_yaml.load("".join(rbac.written(agent_cell(entry(dialect)))))
    return found


def test_the_webhook_is_called_for_the_kinds_that_a_dialect_reviews() -> None:
    assert rules(rbac.webhooks(agent_cell(entry(BeaconDialect)))) == []
    (webhook,) = rules(rbac.webhooks(agent_cell(entry(ClaimDialect))))
    assert webhook == {
        "dialect": "claims",
        "rules": [
            {
                "apiGroups": ["claims.example"],
                "apiVersions": ["v1"],
                "resources": ["claims"],
                "operations": ["CREATE", "UPDATE"],
            }
        ],
    }


def test_definitions_of_kinds_with_several_versions_are_migrated() -> None:
    assert rules(rbac.migration_rules(agent_cell(entry(BeaconDialect)))) == []
    definitions, status, objects = rules(rbac.migration_rules(agent_cell(entry(LighthouseDialect))))
    assert definitions["resourceNames"] == ["lighthouses.test.waggle.dev"]
    assert status["resources"] == ["customresourcedefinitions/status"]
    assert (objects["resources"], objects["verbs"]) == (["lighthouses"], ["list", "patch"])


def test_rules_apply_where_the_cell_and_the_option_are_on() -> None:
    class Storing(BeaconDialect):
        extensions = (RbacRule((BEACON,), ("create",), operator=True, option="store"),)

    off, on = (
        rbac.template([agent_cell(entry(Storing))]),
        rbac.template([agent_cell(entry(Storing, on_by_default=True))]),
    )
    assert '{{- if eq (toString (.beacon).enabled) "true" }}' in off
    assert '{{- if ne (toString (.beacon).enabled) "false" }}' in on
    option = off.partition("{{- if (.beacon).store }}\n")[2].partition("{{- end }}")[0]
    assert rules(option)[0]["verbs"] == ["create"]


def test_an_operator_may_write_where_its_option_has_the_word() -> None:
    class Generating(BeaconDialect):
        extensions = (
            Operation(
                lambda *_: ClusterIntent(),
                condition_kinds=(BEACON,),
                generated_kinds=(LIGHTHOUSE,),
                option="mode",
                value="generate",
            ),
        )

    text = "".join(rbac.operator_rules(agent_cell(entry(Generating))))
    always, _, optional = text.partition(
        '{{- if contains "generate" (toString (.beacon).mode) }}\n'
    )
    assert [rule["verbs"] for rule in rules(always)] == [["list", "watch"]]
    verbs = [rule["verbs"] for rule in rules(optional.partition("{{- end }}")[0])]
    assert verbs == [["get", "create", "patch", "delete"], ["get"], ["patch"]]


def test_a_kind_of_an_option_is_granted_where_the_option_has_the_word() -> None:
    class Optional(BeaconDialect):
        extensions = (OptionalKinds((SERVICE,), bool, option="store", value="all"),)

    text = "".join(rbac.agent_rules(agent_cell(entry(Optional))))
    always, _, optional = text.partition('{{- if contains "all" (toString (.beacon).store) }}\n')
    assert "services" not in always
    (rule,) = rules(optional.partition("{{- end }}")[0])
    assert (rule["resources"], rule["verbs"]) == (["services"], ["list", "watch"])


@pytest.mark.parametrize(
    ("dialect", "listed"),
    [
        pytest.param(
            CiliumDialect, {"services", "endpointslices", "ciliumbgpadvertisements"}, id="Cilium"
        ),
        # The operator reads BGPSessionStates already, and ServiceBGPStatuses, in their namespace.
        pytest.param(Frrk8sDialect, {"services"}, id="FRR-k8s"),
        pytest.param(MetalLBDialect, {"services"}, id="MetalLB"),
        pytest.param(AntreaDialect, set(), id="Antrea"),
    ],
)
def test_the_operator_lists_what_events_on_services_are_made_of_and_no_more(
    dialect: type[Dialect], listed: set[str]
) -> None:
    text = "".join(rbac.operator_rules(agent_cell(entry(dialect))))
    granted = rules(line for line in text.splitlines(keepends=True) if not line.startswith("{{"))
    of_events = {
        resource
        for rule in granted
        if rule["verbs"] == ["list"] and rule["apiGroups"] != ["apps"]
        for resource in rule["resources"]
    }
    assert of_events == listed
    writes = [rule for rule in granted if rule["resources"] == ["events"]]
    assert [rule["verbs"] for rule in writes] == ([["create", "patch"]] if listed else [])
