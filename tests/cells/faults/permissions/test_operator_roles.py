"""Each permission of the operator's role is taken away in turn: all that does not need it goes on.

Permissions without which nothing stops are taken away together, by verb.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from cells.dialects.cell import DialectCell
from cells.operator import abandoned, leader_check
from reconcilers.antrea.node_facts import ROUTER_ID_ANNOTATION
from reconcilers.dialect import WrittenObjects
from reconcilers.ovnk.dialect import OvnkDialect
from tests.cells.faults.permissions.programs import NODE, operator, reaches, scenario
from tests.cells.faults.permissions.roles import Permission, forbid, is_used, permissions, permit
from tests.cells.faults.permissions.test_operator import read_by_operator
from tests.reconcilers.metallb.test_node_objects import service
from tests.reconcilers.ovnk import operator_cluster as ovn
from tests.support.apiserver import ApiServer, merged
from tests.support.wait import until
from waggle_operator.__main__ import CELLS as OPERATOR_CELLS

GENERATED = {
    "ciliumbgpnodeconfigs",
    "configmaps",
    "frrconfigurations",
    "leases",
    "network-attachment-definitions",
    "nodes",
}
"""What the operator writes the objects of, or annotates."""
REPORTED = {
    "bgpadvertisements",
    "bgppeers",
    "ciliumbgpclusterconfigs",
    "ciliumbgppeerconfigs",
    "frrconfigurations",
    "ipaddresspools",
    "routeadvertisements",
}
"""What the operator writes conditions of."""
STATES = [
    kind
    for cell in OPERATOR_CELLS
    if isinstance(cell, DialectCell)
    for own in cell.dialect.each(WrittenObjects)
    for kind in own.kinds
]
"""The objects that agents write about their nodes."""
ALL = {
    *GENERATED,
    *(f"{plural}/status" for plural in REPORTED),
    *(f"no {kind.kind.plural} of a node that is gone" for kind in STATES),
    "owner of leases",
}
OF_OVNK = {"frrconfigurations", "network-attachment-definitions", "routeadvertisements/status"}
OF_FRRK8S = {"bgpadvertisements", "bgppeers", "frrconfigurations", "ipaddresspools"}
ELSEWHERE = {("read", kind.plural) for kind in read_by_operator()}
"""What `test_operator` forbids."""
NOT_USED = {
    "bfdprofiles",
    "ciliumbgpadvertisements",
    "ciliumbgpnodeconfigoverrides",
    "ciliumbgppeeringpolicies",
    "ciliumloadbalancerippools",
    "clusteruserdefinednetworks",
    "communities",
    "customresourcedefinitions",
    "egressips",
    "endpointslices",
    "events",
    "pods",
    "vteps",
}
"""Kinds of which no object is there to be read, converted, reported on or migrated. The operator
goes on, without having made the request."""
NOT_USED_VERBS = {
    ("create", "ciliumbgpclusterconfigs"),
    ("create", "ciliumbgppeerconfigs"),
    ("create", "routeadvertisements"),
    ("delete", "ciliumbgpclusterconfigs"),
    ("delete", "ciliumbgpnodeconfigs"),
    ("delete", "ciliumbgppeerconfigs"),
    ("delete", "frrconfigurations"),
    ("delete", "routeadvertisements"),
    ("get", "ciliumbgpnodeconfigs"),
    ("patch", "ciliumbgpclusterconfigs"),
    ("patch", "ciliumbgppeerconfigs"),
    ("patch", "routeadvertisements"),
}
"""As `NOT_USED`: nothing is converted, and nothing that was generated is superfluous."""
STOPS = {
    **{("read", kind.plural): OF_OVNK for kind in OvnkDialect.cluster_kinds},
    ("read", "nodes"): ALL - {"leases", "owner of leases"},
    ("get", "nodes"): {"nodes"},
    ("read", "namespaces"): OF_OVNK,
    ("read", "frrconfigurations"): {*OF_OVNK, *(f"{plural}/status" for plural in OF_FRRK8S)},
    ("read", "pods"): set(),
    ("get", "configmaps"): {"configmaps"},
    ("get", "leases"): ALL,
    ("create", "leases"): ALL,
    ("update", "leases"): set(),
    ("get", "deployments"): {"owner of leases"},
}
"""What needs a permission, where it does not follow from its verb and resource."""
OF_ROLE = permissions("operator", OPERATOR_CELLS)
FORBIDDEN_IN_TURN = sorted(OF_ROLE - ELSEWHERE)


OWNER_ONCE = {"owner of leases"}
"""The owner is read at the start."""


def run(server: ApiServer, directory: Path) -> Any:  # noqa: ANN401
    return operator(
        server,
        directory,
        dialects=["ovnk"],
        ovnk="generate",
        ovnk_cluster_subnets="10.244.0.0/16/24",
        operator_deployment="waggle-operator",
    )


def fill(server: ApiServer) -> None:
    """Put in networks of OVN-Kubernetes, a Service, and objects about a node that is gone."""
    own = server.objects["nodes"]["", NODE]
    server.put(merged({"kind": "Node", **own}, ovn.node(NODE, {"default": ["10.244.0.0/24"]})))
    server.put(ovn.source(labels={"use": "x"}))
    server.put(ROUTE_ADVERTISEMENTS)
    for one in service("web", "198.18.30.5"):
        server.put(one)
    for kind in STATES:
        name = (kind.name or "{node}-1").format(node="gone")
        labels = {kind.node_label: "gone"} if kind.node_label else {}
        metadata = {"name": name, "labels": labels, "uid": f"uid-{kind.kind.plural}"}
        if kind.kind.namespaced:
            of_metallb = kind.kind.group == "metallb.io"
            metadata["namespace"] = "metallb-system" if of_metallb else "frr-k8s-system"
        server.put({"kind": kind.kind.name, "metadata": metadata})
    server.deployments["waggle-operator"] = {"metadata": {"name": "waggle-operator", "uid": "d"}}


ROUTE_ADVERTISEMENTS = {
    "apiVersion": "k8s.ovn.org/v1",
    "kind": "RouteAdvertisements",
    "metadata": {"name": "default", "uid": "uid-ra", "generation": 1},
    "spec": {
        "targetVRF": "default",
        "advertisements": ["PodNetwork"],
        "nodeSelector": {},
        "frrConfigurationSelector": {"matchLabels": {"use": "x"}},
        "networkSelectors": [{"networkSelectionType": "DefaultNetwork"}],
    },
}


def found(server: ApiServer) -> set[str]:
    """Return what the operator has done, as in `ALL`."""
    rows = server.objects
    written = ("ciliumbgpnodeconfigs", "configmaps", "network-attachment-definitions")
    here = {plural for plural in written if rows[plural]}
    if any(name.startswith("ovnk-generated") for _, name in rows["frrconfigurations"]):
        here.add("frrconfigurations")
    if ROUTER_ID_ANNOTATION in rows["nodes"]["", NODE]["metadata"]["annotations"]:
        here.add("nodes")
    here |= {
        f"{plural}/status"
        for plural in REPORTED
        if any((row.get("status") or {}).get("conditions") for row in rows[plural].values())
    }
    here |= {
        f"no {kind.kind.plural} of a node that is gone"
        for kind in STATES
        if not rows[kind.kind.plural]
    }
    here |= {"leases"} if server.leases else set()
    owned = any(lease["metadata"].get("ownerReferences") for lease in server.leases.values())
    return here | ({"owner of leases"} if owned else set())


def may_stop(permission: Permission) -> set[str]:
    """Return what needs a permission."""
    verb, resource = permission
    if permission in STOPS:
        return STOPS[permission]
    if verb in ("create", "patch"):
        return {resource}
    if verb == "get":
        return {f"{resource}/status"}
    return {f"no {resource} of a node that is gone"}


def test_each_permission_of_the_role_is_forbidden_in_turn() -> None:
    at_once = forbidden_at_once()
    assert {*itertools.chain(*at_once)} | ELSEWHERE == OF_ROLE | ELSEWHERE
    for together in at_once:
        assert len(together) == 1 or not set.union(*map(may_stop, together)) & ALL
        # The API server of a test has one answer to a verb and a plural.
        plurals = [resource.partition("/")[0] for _, resource in together]
        assert len(set(plurals)) == len(plurals)
    assert OF_ROLE >= NOT_USED_VERBS
    assert {resource.partition("/")[0] for _, resource in OF_ROLE} >= NOT_USED


def forbidden_at_once() -> list[tuple[Permission, ...]]:
    """Return what is forbidden in each test.

    Permissions of one verb, without which nothing stops, are forbidden together: all that goes on
    without any of them needs none of them.
    """
    alone = [one for one in FORBIDDEN_IN_TURN if may_stop(one) & ALL]
    others = [one for one in FORBIDDEN_IN_TURN if one not in alone]
    verbs = itertools.groupby(others, key=lambda one: one[0])
    return [*((one,) for one in alone), *(tuple(group) for _, group in verbs)]


def spelled(permissions: tuple[Permission, ...]) -> str:
    more = f" and {len(permissions) - 1} others" if len(permissions) > 1 else ""
    return " ".join(permissions[0]) + more


@pytest.mark.parametrize("permissions", forbidden_at_once(), ids=spelled)
def test_what_an_operator_may_not_do_stops_nothing_that_does_not_need_it(
    permissions: tuple[Permission, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(abandoned, "POLL_INTERVAL_SECONDS", 0.1)
    monkeypatch.setattr(abandoned, "UNREAD_SECONDS", 0.1)
    monkeypatch.setattr(leader_check, "RETRY_SECONDS", 0.1)

    async def test(server: ApiServer) -> None:
        fill(server)
        for permission in permissions:
            forbid(server, permission)
        async with run(server, tmp_path):
            stopped = set.union(*map(may_stop, permissions)) & ALL
            await reaches(lambda: found(server) | stopped, ALL)
            for permission in filter(needed, permissions):
                await until(lambda: is_used(server, permission))  # noqa: B023  awaited here
            for permission in permissions:
                permit(server, permission)
            await reaches(lambda: found(server) | OWNER_ONCE, ALL)

    scenario(test)


def needed(permission: Permission) -> bool:
    return permission[1].partition("/")[0] not in NOT_USED and permission not in NOT_USED_VERBS
