"""Each permission of the agent's role is taken away in turn, and all that does not need it goes on."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from cells.hive.hive import Hive
from tests.cells.faults.permissions.programs import (
    DIALECTS,
    NODE,
    program,
    reaches,
    scenario,
)
from tests.cells.faults.permissions.roles import Permission, forbid, is_used, permissions, permit
from tests.cells.faults.permissions.test_agent import PEERS, peers_of, read_by_agent
from tests.reconcilers.metallb.test_node_objects import service
from tests.support.apiserver import ApiServer, Object
from tests.support.wait import until
from waggle_agent.__main__ import CELLS as AGENT_CELLS

STATES = ("frrnodestates", "bgpsessionstates", "configurationstates", "servicebgpstatuses")
"""The kinds of the objects that an agent writes about its node."""
ALL = {
    *PEERS.values(),
    *(f"{what} of {plural}" for plural in STATES for what in ("object", "status", "owner")),
    "status of ciliumbgpnodeconfigs",
    "events",
}
ELSEWHERE = {("read", kind.plural) for kind in read_by_agent()}
"""What `test_agent` forbids."""
NOT_NEEDED = {
    ("read", "servicecidrs"): "read for alwaysBlock `auto` of FRR-k8s alone",
    ("patch", "events"): "the series of a session's Event: no session comes up here",
}
"""Permissions that the agent of these tests has no use for, and the reason."""
OF_ROLE = permissions("agent", AGENT_CELLS)
FORBIDDEN_IN_TURN = sorted(OF_ROLE - ELSEWHERE - NOT_NEEDED.keys())


def agent(server: ApiServer, directory: Path, **flags: object) -> Any:  # noqa: ANN401
    return program(
        AGENT_CELLS,
        server,
        directory,
        dialects=["ovnk"],
        node_name=NODE,
        cluster_addresses_namespace="waggle-system",
        ovnk="generate",
        **flags,
    )


def found(server: ApiServer, hive: Hive) -> set[str]:
    """Return the peers of an agent, and what it has written, as in `ALL`."""
    uid = server.objects["nodes"]["", NODE]["metadata"]["uid"]
    here = peers_of(hive)
    for plural in STATES:
        rows = server.objects[plural].values()
        owners = [row["metadata"].get("ownerReferences", [{}])[0].get("uid") for row in rows]
        here |= {f"object of {plural}"} if rows else set()
        here |= {f"status of {plural}"} if any("status" in row for row in rows) else set()
        here |= {f"owner of {plural}"} if owners and set(owners) == {uid} else set()
    if server.objects["ciliumbgpnodeconfigs"]["", NODE].get("status"):
        here.add("status of ciliumbgpnodeconfigs")
    return here | ({"events"} if server.events else set())


def may_stop(permission: Permission) -> set[str]:
    """Return what needs a permission."""
    verb, resource = permission
    plural = resource.partition("/")[0]
    if plural == "events":
        return {"events"} if verb == "create" else set()
    words = {
        "create": ("object", "status", "owner"),
        "list": ("object", "status", "owner"),
        "get": ("status",),
        "delete": (),
        "read": (),
        "patch": ("status",) if resource.endswith("/status") else ("owner",),
    }[verb]
    return {f"{word} of {plural}" for word in words}


def fill(server: ApiServer) -> None:
    """Put in a Service that MetalLB's peer gets, and a NodeConfig, whose status the agent writes."""
    for one in (*service("web", "198.18.30.5"), node_config()):
        server.put(one)
    own = server.objects["nodes"]["", NODE]
    server.put({**own, "kind": "Node", "metadata": {**own["metadata"], "uid": "uid-node"}})


def node_config() -> Object:
    """Make the NodeConfig that the operator writes for the ClusterConfig of `programs.fill`.

    An agent reports its status where it is in the API server, and generates no object there.
    """
    neighbor = {"name": "p", "peerASN": 65010, "peerAddress": "127.0.0.2"}
    instance = {
        "name": "i",
        "localASN": 65001,
        "peers": [{**neighbor, "peerConfigRef": {"name": "pc"}}],
    }
    return {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumBGPNodeConfig",
        "metadata": {"name": NODE, "uid": "uid-node-config"},
        "spec": {"bgpInstances": [instance]},
    }


def set_owners(server: ApiServer, uid: str) -> None:
    """Give all objects another owner: as the agent of a Node that was replaced finds them."""
    for plural in STATES:
        for row in list(server.objects[plural].values()):
            changed = copy.deepcopy(row)
            changed["metadata"]["ownerReferences"][0]["uid"] = uid
            server.put(changed)


def test_each_permission_of_the_role_is_forbidden_in_turn() -> None:
    assert {*FORBIDDEN_IN_TURN} | ELSEWHERE | NOT_NEEDED.keys() == OF_ROLE
    assert set(DIALECTS) == set(PEERS)


@pytest.mark.parametrize(
    "permission",
    [one for one in FORBIDDEN_IN_TURN if one[0] != "delete"],
    ids=" ".join,
)
def test_what_an_agent_may_not_do_stops_nothing_that_does_not_need_it(
    permission: Permission, tmp_path: Path
) -> None:
    async def test(server: ApiServer) -> None:
        fill(server)
        if permission[0] == "patch" and "/" not in permission[1]:
            async with agent(server, tmp_path) as hive:
                await until(lambda: found(server, hive) >= ALL - {"events"})
            set_owners(server, "uid-former")
        forbid(server, permission)
        since = len(server.paths)
        async with agent(server, tmp_path) as hive:
            await until(lambda: found(server, hive) >= ALL - {"events"} - may_stop(permission))
            await until(lambda: is_used(server, permission, since))
            if permission != ("create", "events"):
                permit(server, permission)
                await reaches(lambda: found(server, hive) | {"events"}, ALL)

    scenario(test)


@pytest.mark.parametrize(
    "permission", [one for one in FORBIDDEN_IN_TURN if one[0] == "delete"], ids=" ".join
)
def test_an_object_that_an_agent_may_not_delete_keeps_no_other(
    permission: Permission, tmp_path: Path
) -> None:
    """With reports off an agent deletes what it has written."""

    def left(server: ApiServer) -> set[str]:
        return {plural for plural in STATES if server.objects[plural]}

    async def test(server: ApiServer) -> None:
        fill(server)
        async with agent(server, tmp_path) as hive:
            await until(lambda: found(server, hive) >= ALL - {"events"})
        forbid(server, permission)
        async with agent(server, tmp_path, status_report="false") as hive:
            await reaches(lambda: left(server), {permission[1]})
            await until(lambda: set(PEERS.values()) <= peers_of(hive))
            permit(server, permission)
            await reaches(lambda: left(server), set())

    scenario(test)
