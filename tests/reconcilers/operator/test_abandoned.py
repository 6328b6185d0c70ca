"""Objects of nodes that do not exist are deleted once two passes have found them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from types import SimpleNamespace
from typing import Any

from reconcilers.operator.abandoned import AbandonedObjects
from resources.kubernetes import StatusError
from tests.reconcilers.report.node_objects.build import (
    NODE_LABEL,
    ONE_OF_A_NODE,
    PATH,
    SESSIONS,
)


class Api:
    """An API server with objects, as their metadata."""

    def __init__(self, *objects: Mapping[str, Any]) -> None:
        self.objects = list(objects)
        self.deleted: list[tuple[str, str]] = []
        self.fails: StatusError | None = None

    async def metadata(self, path: str) -> AsyncIterator[list[Mapping[str, Any]]]:
        assert path == PATH
        if self.fails is not None:
            raise self.fails
        yield self.objects

    async def delete(self, path: str, uid: str) -> None:
        self.deleted.append((path.rpartition("/")[2], uid))


def labelled(name: str, node: str, uid: str = "") -> dict[str, Any]:
    return {"name": name, "uid": uid or f"uid-{name}", "labels": {NODE_LABEL: node}}


def abandoned(*kinds: Any) -> AbandonedObjects:  # noqa: ANN401
    options = SimpleNamespace(namespace="here")
    dialect: Any = SimpleNamespace(options=options, node_object_kinds=kinds)
    return AbandonedObjects([dialect])


def test_objects_of_nodes_that_are_gone_are_deleted_by_the_second_pass() -> None:
    api = Api(labelled("a", "n1"), labelled("b", "gone"), {"name": "c", "uid": "x"})
    passes = abandoned(SESSIONS)
    assert asyncio.run(passes.run(api, {"n1"})) == ()
    assert api.deleted == []
    (deleted,) = asyncio.run(passes.run(api, {"n1"}))
    assert (deleted.kind, deleted.name) == ("Session", "b")
    assert api.deleted == [("b", "uid-b")]


def test_a_node_that_comes_back_and_an_object_that_is_made_again_are_left() -> None:
    api = Api(labelled("a", "n1"), labelled("b", "n2"))
    passes = abandoned(SESSIONS)
    asyncio.run(passes.run(api, {"n3"}))
    api.objects[1] = labelled("b", "n2", "another")
    assert [one.name for one in asyncio.run(passes.run(api, {"n1"}))] == []
    assert api.deleted == []


def test_without_a_node_nothing_is_deleted() -> None:
    api = Api(labelled("a", "n1"))
    passes = abandoned(SESSIONS)
    for _ in range(3):
        asyncio.run(passes.run(api, set()))
    assert api.deleted == []


def test_of_objects_of_a_fixed_name_only_those_of_the_pattern_count() -> None:
    api = Api(*({"name": name, "uid": name} for name in ("state-n1", "state-n2", "controller")))
    passes = abandoned(ONE_OF_A_NODE)
    for _ in range(2):
        asyncio.run(passes.run(api, {"n1"}))
    assert api.deleted == [("state-n2", "state-n2")]


def test_a_kind_that_is_not_installed_or_may_not_be_read_has_none() -> None:
    for code in (403, 404):
        api = Api()
        api.fails = StatusError(code, "no")
        assert asyncio.run(abandoned(SESSIONS).run(api, {"n1"})) == ()
    assert not AbandonedObjects([]).needed
