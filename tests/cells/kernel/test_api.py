"""The routes of the kernel in the local API."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from cells.api.resource import BadRequestError, NoBody
from cells.kernel.api import approve_action, kernel_route_resource
from cells.options import NodeOptions
from cells.state.node import ThisNode
from reconcilers.kernel.writer.protocol_messages import Reason
from reconcilers.model import ObjectRef, Peer
from speaker.api import NO_PATHS, BestPathChange
from speaker.nlri import IPV4_UNICAST
from tests.reconcilers.kernel.build import internal, paths
from tests.reconcilers.kernel.build import path as of_peer
from tests.reconcilers.kernel.memory_writer import MemoryWriter
from tests.reconcilers.kernel.reconciler.reconciler_in_memory import (
    BOTH,
    MAIN,
    ONE,
    PREFIX,
    Agent,
    hops,
    wire,
)


def rows(agent: Agent, **query: str) -> list[dict[str, Any]]:
    resource = kernel_route_resource(ThisNode(NodeOptions(name="n1")), agent.kernel)
    found = [item for items in resource.read(query) for item in items]
    return [msgspec.to_builtins(item) for item in found]


def test_a_route_has_its_next_hops_and_peers() -> None:
    agent = Agent().start().table(ONE, PREFIX)
    assert rows(agent) == [
        {
            "node": "n1",
            "instance": "main",
            "table": 254,
            "metric": 20,
            "family": "ipv4-unicast",
            "prefix": PREFIX,
            "type": "unicast",
            "nextHops": [{"via": "10.88.0.1", "interface": "eth0"}],
            "peers": ["10.88.0.1"],
            "state": "Installed",
        }
    ]


def test_a_route_has_the_objects_that_configure_the_peers_of_its_best_paths() -> None:
    spine, leaf = (
        ObjectRef("FRRConfiguration", "frr-k8s-system", name) for name in ("spine", "leaf")
    )
    agent = Agent().start()
    with agent.db.write(agent.intent.peers) as txn:
        for address, origins in (("10.88.0.1", (spine,)), ("10.88.0.2", (spine, leaf))):
            row = Peer("main", address, address, None, 64701, origins=origins)
            agent.intent.peers.upsert(txn, row)
    agent.table(ONE, PREFIX).change(BOTH, "20.0.0.0/8")
    found = {row["prefix"]: [one["name"] for one in row["origins"]] for row in rows(agent)}
    assert found == {PREFIX: ["spine"], "20.0.0.0/8": ["spine", "leaf"]}


def states(agent: Agent, **query: str) -> dict[str, str]:
    return {row["prefix"]: row.get("reason") or row["state"] for row in rows(agent, **query)}


def test_each_state_and_reason() -> None:
    writer = MemoryWriter()
    writer.kernel[MAIN, wire("192.0.2.0/24")] = hops("10.88.0.1")
    writer.foreign.add((MAIN, wire("198.51.100.0/24")))
    agent = Agent(writer, deferred=True).start()
    agent.table(ONE, PREFIX, "198.51.100.0/24", "127.0.0.0/8")
    agent.change(paths(of_peer("192.0.2.9", address="10.88.0.1")), "20.0.0.0/8")
    late = BestPathChange(IPV4_UNICAST, NO_PATHS, ONE, (wire("21.0.0.0/8"),))
    agent.kernel.best_paths("main", [late])
    agent.round()
    assert states(agent) == {
        PREFIX: "Installed",
        "198.51.100.0/24": str(Reason.OCCUPIED),
        "127.0.0.0/8": "Martian",
        "20.0.0.0/8": "NextHop",
        "21.0.0.0/8": "Pending",
        "192.0.2.0/24": "Stale",
    }


def test_the_state_of_a_route_that_a_check_removed_is_withheld_until_it_is_approved() -> None:
    agent = Agent().start().table(ONE, PREFIX, "20.0.0.0/8")
    removed: Any = {MAIN: {wire(PREFIX)}}
    agent.kernel.withheld.withhold(removed)
    assert states(agent) == {PREFIX: "Withheld", "20.0.0.0/8": "Installed"}
    item = next(row for row in rows(agent) if row["prefix"] == PREFIX)
    assert item["message"] == "removed by a check, and not approved yet"
    check: Any = SimpleNamespace(approve=lambda: removed)
    action = approve_action(ThisNode(NodeOptions(name="n1")), agent.kernel, check)
    resource = kernel_route_resource(ThisNode(NodeOptions(name="n1")), agent.kernel)
    assert (action.path, action.kind) == ("/v1/kernel-routes/approve", "KernelRouteList")
    assert (resource.path, resource.kind) == ("/v1/kernel-routes", "KernelRouteList")
    run: Any = action.run
    (answered,) = asyncio.run(run(NoBody()))
    assert (answered.prefix, answered.state) == (PREFIX, "NotInstalled")


def test_a_route_whose_next_hop_is_not_known_yet_is_pending_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writer = MemoryWriter()
    agent = Agent(writer).start()
    monkeypatch.setattr(writer, "resolve", lambda _: None)
    agent.table(paths(internal("10.88.0.77")), PREFIX)
    (item,) = rows(agent)
    assert item["state"] == "Pending"
    assert "reason" not in item
    assert "10.88.0.77" in item["message"]


def test_a_prefix_or_the_longest_match_of_an_address_is_selected() -> None:
    agent = Agent().start().table(ONE, PREFIX, "203.0.0.0/16")
    assert list(states(agent, prefix="203.0.0.0/16")) == ["203.0.0.0/16"]
    assert list(states(agent, prefix="203.0.113.7")) == [PREFIX]
    assert list(states(agent, prefix="203.0.7.7")) == ["203.0.0.0/16"]
    assert list(states(agent, prefix="203.0.0.7/16")) == ["203.0.0.0/16"], "host bits do not matter"
    assert not states(agent, prefix="20.0.0.1")
    assert not states(agent, family="ipv6-unicast")


@pytest.mark.parametrize("query", [{"family": "ipv5"}, {"prefix": "10.0.0.1/33"}, {"prefix": "x"}])
def test_a_parameter_that_cannot_be_read_is_named(query: dict[str, str]) -> None:
    with pytest.raises(BadRequestError, match=next(iter(query))):
        rows(Agent().start(), **query)
