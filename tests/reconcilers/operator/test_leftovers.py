"""Objects that agents wrote for a dialect that is off are deleted; other programs' objects stay."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from reconcilers.operator.leftovers import delete_leftovers
from resources.kubernetes import StatusError
from resources.kubernetes.errors import Unreachable
from tests.reconcilers.report.node_objects.build import ONE_OF_A_NODE, SESSIONS

AGENT = "waggle-agent"
ALL = "/apis/test.waggle.dev/v1/sessions"


def metadata(name: str, *managers: str, namespace: str = "here") -> dict[str, Any]:
    fields = [{"manager": manager, "operation": "Update"} for manager in managers]
    own = {"name": name, "uid": f"uid-{name}", "managedFields": fields}
    return {**own, "namespace": namespace}


class Api:
    """An API server with objects, as their metadata."""

    def __init__(self, *objects: Mapping[str, Any]) -> None:
        self.objects = list(objects)
        self.deleted: list[tuple[str, str]] = []
        self.errors: list[Exception] = []
        """Of the next lists."""

    async def metadata(self, path: str) -> AsyncIterator[list[Mapping[str, Any]]]:
        assert path == ALL, "objects of every namespace"
        if self.errors:
            raise self.errors.pop(0)
        yield self.objects

    async def delete(self, path: str, uid: str) -> None:
        self.deleted.append((path, uid))


def test_objects_that_agents_alone_have_written_are_deleted_in_every_namespace() -> None:
    api = Api(
        metadata("a", AGENT),
        metadata("b", AGENT, AGENT, namespace="there"),
        metadata("of-another", "frr-k8s"),
        metadata("taken-over", AGENT, "frr-k8s"),
        metadata("unknown"),
    )
    deleted = asyncio.run(delete_leftovers(api, [SESSIONS], AGENT))
    root = "/apis/test.waggle.dev/v1/namespaces"
    assert api.deleted == [
        (f"{root}/here/sessions/a", "uid-a"),
        (f"{root}/there/sessions/b", "uid-b"),
    ]
    assert [(one.kind, one.name) for one in deleted] == [("Session", "a"), ("Session", "b")]


@pytest.mark.parametrize("code", [403, 404, 500])
def test_an_unreadable_kind_keeps_no_objects_of_other_kinds(code: int) -> None:
    api = Api(metadata("a", AGENT))
    api.errors = [StatusError(code, "no")]
    kinds = [SESSIONS, ONE_OF_A_NODE]
    assert len(asyncio.run(delete_leftovers(api, kinds, AGENT))) == 1


def test_an_api_server_that_does_not_answer_is_an_error() -> None:
    api = Api()
    api.errors = [Unreachable("server", "refused")]
    with pytest.raises(Unreachable):
        asyncio.run(delete_leftovers(api, [SESSIONS], AGENT))
