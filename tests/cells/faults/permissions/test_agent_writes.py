"""What an agent may not write stops no other write."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cells.faults.permissions.programs import FORBIDDEN, NODE, reaches, scenario
from tests.cells.faults.permissions.test_agent import agent
from tests.support.apiserver import ApiServer, Object


def written_by_agent(server: ApiServer) -> set[str]:
    """Return the kinds of which an agent has written an object, or a status."""
    states = ("frrnodestates", "bgpsessionstates", "configurationstates")
    found = {plural for plural in states if server.objects[plural]}
    if server.objects["ciliumbgpnodeconfigs"]["", NODE].get("status"):
        found.add("ciliumbgpnodeconfigs")
    return found | ({"events"} if server.events else set())


FORBIDDEN_WRITES = {
    "frrnodestates": "create",
    "bgpsessionstates": "create",
    "configurationstates": "create",
    "events": "create",
    "ciliumbgpnodeconfigs": "patch",
}
"""The verb of an agent's first write of each kind."""


def node_config() -> Object:
    """Make the NodeConfig that the operator writes for the ClusterConfig of `fill`.

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


@pytest.mark.parametrize("plural", FORBIDDEN_WRITES)
def test_what_an_agent_may_not_write_stops_no_other_write(plural: str, tmp_path: Path) -> None:
    async def test(server: ApiServer) -> None:
        # An Event: the Secret of an FRRConfiguration is missing.
        server.delete("Secret", "k", "frr-k8s-system")
        server.put(node_config())
        server.always(FORBIDDEN_WRITES[plural], plural, FORBIDDEN)
        async with agent(server, tmp_path):
            await reaches(lambda: written_by_agent(server), FORBIDDEN_WRITES.keys() - {plural})

    scenario(test)
