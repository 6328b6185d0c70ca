"""The configuration of a node: the joint rows of all dialects, and what is written of them."""

from __future__ import annotations

from typing import Any

from reconcilers.dialect import NodeContext, NodeIntent
from reconcilers.intent.node_configuration import NodeConfiguration, Written
from reconcilers.intent.options import IntentOptions
from reconcilers.intent.peer_limits import PeerLimits
from reconcilers.intent_tables import IntentTables
from reconcilers.model import Instance, ObjectRef, Peer, PendingDialect, Problem
from reconcilers.sliced_work import Pieces, finish
from resources.tables import Tables
from statedb import Database

NODE = "n1"
INSTANCE = Instance("main", None, 65001, "192.0.2.9")
FAILED = Problem((ObjectRef("Node", "", NODE),), "", "cannot be compiled", dialect="ant")


def peer(name: str = "tor", address: str | None = "192.0.2.1", **fields: Any) -> Peer:  # noqa: ANN401
    return Peer("main", name, address, None, 65010, **fields)


class Node:
    """A configuration and its tables."""

    def __init__(self) -> None:
        self.db = Database()
        self.intent = IntentTables(self.db)
        pieces, options = Pieces(), IntentOptions()
        limits = PeerLimits(self.intent, options, NODE, pieces)
        resources = Tables(self.db, [])
        self.configuration = NodeConfiguration(resources, self.intent, options, {}, limits, pieces)

    def write(self, *problems: Problem, pending: str = "", **intents: NodeIntent) -> Written:
        """Compile the intents of dialects and write the rows."""
        snapshot = self.db.snapshot()
        rows = [PendingDialect(pending, ("beacons",))] if pending else []
        compiled = finish(
            self.configuration.compile(
                snapshot, intents, NodeContext(NODE), None, pending=rows, problems=problems
            )
        )
        with self.db.write(*self.intent.compiled) as txn:
            return finish(self.configuration.write(txn, snapshot, compiled))

    @property
    def peers(self) -> list[Peer]:
        """The peers that were written."""
        return list(self.intent.peers.all(self.db.snapshot()))


def intent(*peers: Peer) -> NodeIntent:
    return NodeIntent(instances=(INSTANCE,), peers=peers)


def test_rows_have_their_dialect_and_its_route_sets_the_name_of_it() -> None:
    node = Node()
    assert node.write(ant=intent(peer(route_set="all"))) == Written(peers=True, problems=False)
    (row,) = node.peers
    assert (row.dialect, row.route_set) == ("ant", "ant-all")


def test_an_equal_configuration_is_not_written_again() -> None:
    node = Node()
    node.write(ant=intent(peer()))
    before = node.peers
    assert node.write(ant=intent(peer())) == Written(peers=False, problems=False)
    assert node.peers[0] is before[0]


def test_of_two_dialects_with_one_address_the_owner_keeps_the_peer() -> None:
    node = Node()
    node.write(bee=intent(peer()))
    written = node.write(ant=intent(peer()), bee=intent(peer()))
    assert written == Written(peers=False, problems=True)
    assert [row.dialect for row in node.peers] == ["bee"]
    assert set(node.configuration.owners.values()) >= {"bee"}
    assert [problem.dialect for problem in node.configuration.problems] == ["ant"]


def test_a_dialect_that_has_not_been_read_keeps_its_claims() -> None:
    node = Node()
    node.write(bee=intent(peer()))
    node.write(ant=intent(peer()), pending="bee")
    assert node.peers == []


def test_a_peer_that_cannot_be_configured_is_a_problem_beside_the_given_ones() -> None:
    node = Node()
    node.write(FAILED, ant=intent(peer(), peer("none", address=None)))
    assert [row.name for row in node.peers] == ["tor"]
    first, second = node.configuration.problems
    assert first == FAILED
    assert second.message.startswith("peer 'none' is not configured")
