"""The leader's check that deletes objects of nodes which are gone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from cells.hive import Group, HealthTree
from cells.operator.abandoned import POLL_INTERVAL_SECONDS, AbandonedObjectsCheck
from cells.sources.api_server import UNREAD_SECONDS
from reconcilers.dialect import Dialect, Unread
from resources.core.kinds import NODE
from resources.kubernetes import StatusError
from resources.tables import Tables
from statedb import Database
from tests.reconcilers.build import node
from tests.reconcilers.operator.test_abandoned import Api, dialect, labelled
from tests.reconcilers.report.node_objects.build import SESSIONS


class Leader:
    """A check with the Nodes that it knows."""

    def __init__(self, *nodes: str, kinds: tuple[Any, ...] = (SESSIONS,)) -> None:
        self.tree = HealthTree()
        database = Database()
        self.tables = Tables(database)
        kubernetes: Any = SimpleNamespace(unread=Unread())
        self.kubernetes = kubernetes
        with database.write(self.tables.nodes) as txn:
            for name in nodes:
                self.tables.nodes.upsert(txn, NODE.decode(node(name)))
        options: Any = SimpleNamespace(namespace="here")
        dialects = Group[Dialect]((dialect(options, kinds),))
        health = self.tree.scope("operator")
        self.check = AbandonedObjectsCheck(database, self.tables, dialects, self.kubernetes, health)

    def run(self, api: Api) -> float:
        return asyncio.run(self.check.run(cast("Any", api)))

    @property
    def health(self) -> Sequence[tuple[str, str, str]]:
        return [(s.path[-1], str(s.level), s.message) for s in self.tree.report() if s.message]


def test_what_is_deleted_is_logged_once_each() -> None:
    leader, api = Leader("n1"), Api(labelled("a", "n1"), labelled("b", "gone"))
    with capture_logs() as logs:
        assert leader.run(api) == POLL_INTERVAL_SECONDS
        assert leader.run(api) == POLL_INTERVAL_SECONDS
    assert [(line["event_name"], line["object"]) for line in logs] == [
        ("operator.abandoned", "Session/b")
    ]
    assert leader.health == [
        ("abandoned-objects", "ok", "objects of nodes that are gone are deleted")
    ]


@pytest.mark.parametrize(
    ("nodes", "unread"), [((), {}), (("n1",), {"nodes": "Node"})], ids=["none", "not all read"]
)
def test_without_the_nodes_nothing_is_deleted(
    nodes: tuple[str, ...], unread: dict[str, str]
) -> None:
    leader, api = Leader(*nodes), Api(labelled("b", "gone"))
    leader.kubernetes.unread = Unread(kinds={leader.tables.nodes.name: "Node"} if unread else {})
    for _ in range(2):
        assert leader.run(api) == UNREAD_SECONDS
    assert api.deleted == []
    assert leader.health == [("abandoned-objects", "ok", "waits for the Nodes")]


def test_an_object_that_stays_is_a_problem_of_the_health() -> None:
    leader, api = Leader("n1"), Api(labelled("b", "gone"))
    api.fails = StatusError(500, "no")
    with pytest.raises(StatusError):
        leader.run(api)
    ((_, level, message),) = leader.health
    assert level == "degraded"
    assert message.startswith("objects of nodes that are gone stay: ")


def test_without_objects_of_nodes_there_is_no_check() -> None:
    assert Leader("n1").check.needed
    assert not Leader("n1", kinds=()).check.needed
