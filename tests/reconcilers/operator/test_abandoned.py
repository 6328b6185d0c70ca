"""Objects of nodes that do not exist are deleted once two passes have found them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from reconcilers.dialect import WrittenObjects
from reconcilers.operator.abandoned import AbandonedObjects
from resources.kubernetes import Access, Connection, StatusError, Writer, writer
from tests.reconcilers.report.node_objects.build import (
    KIND,
    NODE_LABEL,
    ONE_OF_A_NODE,
    PATH,
    SESSIONS,
)
from tests.support.apiserver import ApiServer


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


def dialect(options: Any, kinds: tuple[Any, ...]) -> Any:  # noqa: ANN401
    written = WrittenObjects(kinds, lambda *_: ())
    return SimpleNamespace(options=options, each=lambda _: (written,))


def abandoned(*kinds: Any) -> AbandonedObjects:  # noqa: ANN401
    options = SimpleNamespace(namespace="here")
    return AbandonedObjects([dialect(options, kinds)])


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


def test_objects_of_a_fixed_name_are_ignored_unless_they_match_the_pattern() -> None:
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


def test_an_error_of_one_kind_or_object_delays_no_other() -> None:
    class Refusing(Api):
        async def metadata(self, path: str) -> AsyncIterator[list[Mapping[str, Any]]]:
            if path != PATH:
                raise StatusError(500, "conversion")
            yield self.objects

        async def delete(self, path: str, uid: str) -> None:
            if path.endswith("/a"):
                raise StatusError(403, "not this one")
            await super().delete(path, uid)

    api = Refusing(labelled("a", "gone"), labelled("b", "gone"))
    elsewhere = replace(SESSIONS, option="elsewhere")
    options = SimpleNamespace(namespace="here", elsewhere="there")
    passes = AbandonedObjects([dialect(options, (elsewhere, SESSIONS))])
    for _ in range(2):
        asyncio.run(passes.run(api, {"n1"}))
        assert passes.failure is not None
        assert passes.failure.status == 500
    assert api.deleted == [("b", "uid-b")]


def test_a_list_of_several_pages_is_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PAGE", 3)

    async def scenario() -> None:
        async with ApiServer([KIND]) as server, asyncio.timeout(200):
            for number in range(10):
                metadata = labelled(f"s{number}", f"n{number % 5}")
                server.put(
                    {
                        "apiVersion": "test.waggle.dev/v1",
                        "kind": "Session",
                        "metadata": {**metadata, "namespace": "here"},
                    }
                )
            connection = Connection(Access(str(server.kubeconfig(tmp_path / "kubeconfig"))))
            client = Writer(connection, "waggle-operator")
            passes = abandoned(SESSIONS)
            nodes = {"n0", "n1", "n2"}
            try:
                assert await passes.run(client, nodes) == ()
                deleted = await passes.run(client, nodes)
            finally:
                await connection.close()
            assert [one.name for one in deleted] == ["s3", "s4", "s8", "s9"]
            left = {name for _, name in server.objects["sessions"]}
            assert left == {f"s{number}" for number in range(10) if number % 5 < 3}
            lists = [query for verb, _, query in server.requests if verb == "list"]
            assert len(lists) == 2 * 4
            assert all(query["limit"] == "3" for query in lists)

    asyncio.run(scenario())
