"""Objects that select nodes by labels: other nodes' objects are not stored, and labels change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resources.core.kinds import NODE
from resources.frrk8s.kinds import FRR_CONFIGURATION
from resources.kind import Kinds
from resources.kubernetes import of_node
from resources.source import Replace
from tests.resources.kubernetes.source.reading import Reader, reader, run
from tests.support.apiserver import ApiServer
from tests.support.wait import until

KINDS = Kinds((NODE, FRR_CONFIGURATION))
PLURAL = FRR_CONFIGURATION.plural


def configuration(name: str, **labels: str) -> dict[str, Any]:
    return {
        "kind": "FRRConfiguration",
        "apiVersion": "frrk8s.metallb.io/v1beta1",
        "metadata": {"name": name, "namespace": "frr-k8s-system"},
        "spec": {"nodeSelector": {"matchLabels": labels}} if labels else {},
    }


def node(name: str = "n1", **labels: str) -> dict[str, Any]:
    return {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "labels": labels}}


@pytest.fixture
def server() -> ApiServer:
    found = ApiServer(KINDS)
    found.put(node(rack="1"))
    found.put(configuration("all"))
    found.put(configuration("here", rack="1"))
    for i in range(5):
        found.put(configuration(f"elsewhere-{i}", rack="2"))
    return found


def agent(server: ApiServer, directory: Path) -> Reader:
    wanted = dict(of_node(KINDS, "n1").selections)
    return reader(server, directory, selections=wanted, kinds=KINDS, node="n1")


def names(observed: Reader) -> set[str]:
    return observed.names(FRR_CONFIGURATION.name)


def test_objects_of_other_nodes_are_not_stored(tmp_path: Path, server: ApiServer) -> None:
    async def scenario() -> None:
        async with server, agent(server, tmp_path) as observed:
            await until(lambda: bool(server.queries("watch", PLURAL)))
            assert names(observed) == {"all", "here"}
            assert observed.replacements(FRR_CONFIGURATION.name) == 1
            [feed] = [
                r.feed for r in observed.source.reflectors if r.feed.kind is FRR_CONFIGURATION
            ]
            assert len(feed.rows) == 2

    run(scenario)


def test_their_events_are_none_of_this_node(tmp_path: Path, server: ApiServer) -> None:
    async def scenario() -> None:
        async with server, agent(server, tmp_path) as observed:
            await until(lambda: bool(server.queries("watch", PLURAL)))
            server.put(configuration("elsewhere-0", rack="3"))
            server.put(configuration("elsewhere-6", rack="2"))
            server.delete("FRRConfiguration", "elsewhere-1", "frr-k8s-system")
            server.put(configuration("late", rack="1"))
            await until(lambda: "late" in names(observed))
            assert len(observed.events[FRR_CONFIGURATION.name]) == 2
            assert names(observed) == {"all", "here", "late"}

    run(scenario)


def test_an_object_that_selects_other_nodes_from_now_on_is_gone(
    tmp_path: Path, server: ApiServer
) -> None:
    async def scenario() -> None:
        async with server, agent(server, tmp_path) as observed:
            await until(lambda: bool(server.queries("watch", PLURAL)))
            server.put(configuration("here", rack="2"))
            await until(lambda: names(observed) == {"all"})
            server.put(configuration("here", rack="1"))
            await until(lambda: names(observed) == {"all", "here"})
            assert len(server.queries("list", PLURAL)) == 4  # The pages of one list.

    run(scenario)


def test_another_label_by_which_an_object_selects_lists_again(
    tmp_path: Path, server: ApiServer
) -> None:
    async def scenario() -> None:
        async with server, agent(server, tmp_path) as observed:
            await until(lambda: bool(server.queries("watch", PLURAL)))
            server.put(node(rack="2"))
            await until(lambda: names(observed) == {"all", *(f"elsewhere-{i}" for i in range(5))})
            # No longer selected, and so not missing: nothing waits for a confirmation.
            assert not observed.source.behind
            await until(lambda: len(server.queries("watch", PLURAL)) == 2)
            server.put(node(rack="1"))
            await until(lambda: names(observed) == {"all", "here"})

    run(scenario)


def test_a_label_by_which_no_object_selects_lists_nothing(
    tmp_path: Path, server: ApiServer
) -> None:
    async def scenario() -> None:
        async with server, agent(server, tmp_path) as observed:
            await until(lambda: bool(server.queries("watch", PLURAL)))
            lists = len(server.queries("list", PLURAL))
            server.put(node(rack="1", room="3"))
            await until(lambda: len(observed.events["Node"]) == 2)
            server.put(configuration("late"))
            await until(lambda: "late" in names(observed))
            assert len(server.queries("list", PLURAL)) == lists
            assert len(server.queries("watch", PLURAL)) == 1

    run(scenario)


def test_a_label_that_changes_while_a_list_is_read(tmp_path: Path, server: ApiServer) -> None:
    async def scenario() -> None:
        async with server, agent(server, tmp_path) as observed:
            await until(lambda: bool(server.queries("watch", PLURAL)))
            server.put(node(rack="2"))
            await until(lambda: len(server.queries("list", PLURAL)) > 4)
            server.put(node(rack="1"))
            await until(lambda: names(observed) == {"all", "here"} and not observed.source.behind)
            replaced = [e for e in observed.events["FRRConfiguration"] if isinstance(e, Replace)]
            assert {row.metadata.name for row in replaced[-1].objects} == {"all", "here"}

    run(scenario)


def test_a_node_that_does_not_exist_is_selected_by_what_selects_all(
    tmp_path: Path, server: ApiServer
) -> None:
    async def scenario() -> None:
        server.delete("Node", "n1")
        async with server, agent(server, tmp_path) as observed:
            await until(lambda: bool(server.queries("watch", PLURAL)))
            assert names(observed) == {"all"}
            server.put(node(rack="1"))
            await until(lambda: names(observed) == {"all", "here"})

    run(scenario)


def test_without_a_node_all_are_stored(tmp_path: Path, server: ApiServer) -> None:
    async def scenario() -> None:
        async with server, reader(server, tmp_path, kinds=KINDS) as observed:
            await until(lambda: bool(server.queries("watch", PLURAL)))
            assert len(names(observed)) == 7

    run(scenario)
