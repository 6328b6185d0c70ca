"""In every scenario: each route that a session is to carry is sent, or has the reason why it is not.

In memory, with routers that support less than the scenario's peers may need: no IPv6 next hops for IPv4
(RFC 8950), or one family; and on a node that has no IPv6 address to be a next hop. A route that is
missing at a router is explained, shows in the status of the session, and is a problem.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from cells.api.model import ExplainItem
from cells.hive import Group
from cells.options import NodeOptions
from cells.serve.explain import AgentExplanations
from cells.serve.peer_names import PeerNames
from cells.state.node import ThisNode
from reconcilers.compile_manifests import CompiledManifests, kinds_of
from reconcilers.intent.unsent_routes import unsent_routes, write_unsent_routes
from reconcilers.model import Peer
from resources.cilium.ciliumnode import CiliumNode
from resources.core import Node
from resources.manifests.load import Loaded, load
from resources.source import Replace
from speaker.api import PeerConfig, PeerStatus
from speaker.nlri import IPV4_UNICAST, IPV6_UNICAST, Family
from tests.speaker.network import EXTENDED_NEXT_HOP, Host, Network
from tests.support import scenario
from tests.support.engine_speaker import EngineSpeaker
from tests.support.scenario import Scenario
from tests.support.speaker_reconcilers import runner

OWN = ("10.255.255.1", "fd00:ffff::1")
ROUTERS = ("both families", "the family of the session", "both families, an IPv4 node")
SECONDS = 8.0
"""Virtual: longer than the delays of all first attempts."""


class Cluster:
    """One step of a scenario as an agent in memory, and a router for each of its peers."""

    def __init__(self, described: Scenario, loaded: Loaded, routers: str) -> None:
        if routers == ROUTERS[2]:
            replacements = [(kind, _without_ipv6(event)) for kind, event in loaded.replacements]
            loaded = loaded._replace(replacements=replacements)
        self.made = CompiledManifests(loaded, described.dialects, described.settings)
        self._node = described.node
        self._routers = routers
        self.network = Network()
        self.speaker = EngineSpeaker(self.network, OWN[0])
        self.speaker.host.other_address = OWN[1]
        self.routers: dict[tuple[str, str], Host] = {}
        db, intent = self.made.db, self.made.intent
        self._runner = runner(db, intent, self.made.resources, self.speaker)
        self._runner.run(self.network.now)
        for row in intent.peers.all(db.snapshot()):
            self._add_router(row)
        self.network.run(SECONDS)
        write_unsent_routes(db, intent, unsent_routes(self.speaker.peers()))
        self.made._compiler.run()

    def _add_router(self, row: Peer) -> None:
        instance = self.made.intent.instances.get(self.made.db.snapshot(), row.instance)
        if row.address is None or instance is None or row.address in self.network.hosts:
            return
        asn = row.peer_asn if isinstance(row.peer_asn, int) and row.peer_asn else 65099
        if row.peer_asn == "internal":
            asn = row.local_asn or instance.local_asn
        host = self.network.host(row.address, row.address, asn)
        host.withheld = (EXTENDED_NEXT_HOP,)
        own = IPV6_UNICAST if ":" in row.address else IPV4_UNICAST
        host.peer(
            PeerConfig(
                name="agent",
                address=self.speaker.host.address_towards(row.address),
                families=(own,) if self._routers == ROUTERS[1] else (IPV4_UNICAST, IPV6_UNICAST),
                import_="all",
            )
        )
        self.routers[row.instance, row.name] = host

    def explained(self) -> list[ExplainItem]:
        """Return what ``waggle explain --all`` answers."""
        explanations = AgentExplanations(
            ThisNode(NodeOptions(name=self._node)),
            self.speaker,
            self.made.db,
            self.made.intent,
            cast("Any", self.made),
            Group(),
            PeerNames(self.made.db, self.made.intent),
        )
        slices = explanations.explain(None, peer=None, instance=None)
        return [item for items in slices for item in items]

    def check(self) -> None:
        """Assert the invariant for each Established session."""
        explained = self.explained()
        problems = [one["message"] for one in self.made.document()["problems"]]
        up = {(s.instance, s.name): s for s in self.speaker.peers() if s.established}
        for instance in self.made.document()["instances"]:
            for peer in instance["peers"]:
                key = (instance["name"], peer["name"])
                if key not in up or key not in self.routers:
                    continue
                of_peer = [one for one in explained if (one.instance, one.peer) == key]
                for text in {route["prefix"] for route in peer["advertise"]}:
                    family = IPV6_UNICAST if ":" in text else IPV4_UNICAST
                    items = [one for one in of_peer if text in one.advertised_prefixes]
                    context = (self._routers, key, text)
                    if text in self.routers[key].received(family):
                        assert all(one.advertised for one in items), context
                        continue
                    reason = _status_reason(up[key], family)
                    assert reason, context
                    assert {(one.advertised, one.message) for one in items} == {(False, reason)}
                    what = f"{family} routes are not advertised"
                    assert f"peer '{peer['name']}': {what}: {reason}" in problems


def _without_ipv6(event: Replace[Any]) -> Replace[Any]:
    """Return the objects of a kind; Nodes and CiliumNodes without IPv6 addresses of the node."""
    return Replace(tuple(map(_as_ipv4_node, event.objects)))


def _as_ipv4_node(row: object) -> object:
    if isinstance(row, Node):
        listed = tuple(one for one in row.status.addresses if ":" not in one.address)
        return replace(row, status=replace(row.status, addresses=listed))
    if isinstance(row, CiliumNode):
        own = tuple(one for one in row.spec.addresses if ":" not in one.ip)
        return replace(row, spec=replace(row.spec, addresses=own))
    return row


def _status_reason(status: PeerStatus, family: Family) -> str:
    (found,) = (one for one in status.families if one.family == family)
    assert found.left_out
    assert found.obstacle
    return found.note


OF_IPV6_NODE = re.compile(r"(?:address|ip): ['\"]?[0-9a-f]+:[0-9a-f:]+")
"""An address of a Node or CiliumNode in a manifest."""


def routers_of(directory: Path) -> tuple[str, ...]:
    """Return the routers to try; without IPv6 addresses a node is an IPv4 node already."""
    texts = (path.read_text() for path in directory.rglob("*.yaml"))
    return ROUTERS if any(map(OF_IPV6_NODE.search, texts)) else ROUTERS[:2]


@pytest.mark.parametrize("directory", scenario.directories(), ids=lambda path: path.name)
def test_each_route_is_sent_or_has_a_reason(directory: Path, tmp_path: Path) -> None:
    described = scenario.load(directory)
    kinds = kinds_of(described.dialects)
    for step in described.steps:
        scenario.carry_out(directory, step, tmp_path)
        loaded = load([str(tmp_path)], kinds)
        for routers in routers_of(directory):
            Cluster(described, loaded, routers).check()
