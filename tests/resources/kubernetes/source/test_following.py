"""A healthy API server: lists in pages, watches that go on, and nothing that is not needed."""

from __future__ import annotations

from pathlib import Path

from resources.kubernetes import Phase, Selection, of_node
from resources.source import Replace
from tests.resources.kubernetes.objects import service
from tests.resources.kubernetes.source.reading import reader, run
from tests.support.apiserver import ApiServer, event, status, stream
from tests.support.kinds import KINDS
from tests.support.wait import until


def test_objects_are_listed_in_pages_and_then_watched(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            for i in range(7):
                server.put(service(f"s{i}"))
            async with reader(server, tmp_path) as observed:
                await until(lambda: all(observed.events.values()))
                assert observed.names() == {f"s{i}" for i in range(7)}
                assert all(isinstance(events[0], Replace) for events in observed.events.values())
                assert [q.get("limit") for q in server.queries("list", "services")] == ["2"] * 4
                server.put(service("late"))
                server.put(service("s0", "ClusterIP"))
                server.delete("Service", "s1", "shop")
                await until(
                    lambda: observed.names() == {"late", *(f"s{i}" for i in (0, 2, 3, 4, 5, 6))}
                )
                assert observed.replacements() == 1
                assert len(observed.events["Service"]) == 4

    run(scenario)


def test_a_watch_asks_for_bookmarks_and_for_an_end_at_a_random_time(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server, reader(server, tmp_path):
            await until(lambda: len([r for r in server.requests if r[0] == "watch"]) >= len(KINDS))
        watches = [query for verb, _, query in server.requests if verb == "watch"]
        assert {query["allowWatchBookmarks"] for query in watches} == {"true"}
        seconds = [int(query["timeoutSeconds"]) for query in watches]
        assert all(300 <= n <= 600 for n in seconds)
        assert len(set(seconds)) > 1

    run(scenario)


def test_a_watch_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("web"))
            mark = event("BOOKMARK", {"metadata": {"resourceVersion": "5000"}})
            server.once("watch", "services", stream(mark))
            server.version = 5000
            async with reader(server, tmp_path) as observed:
                await until(lambda: len(server.queries("watch", "services")) >= 2)
                second = server.queries("watch", "services")[1]
                assert second["resourceVersion"] == "5000"
                server.put(service("late"))
                await until(lambda: observed.names() == {"web", "late"})
                assert observed.replacements() == 1

    run(scenario)


def test_only_selected_objects_are_requested(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            for name in ("n1", "n2"):
                server.put({"kind": "Node", "metadata": {"name": name}})
            wanted = dict(of_node(KINDS, "n1").selections)
            async with reader(server, tmp_path, selections=wanted) as observed:
                await until(lambda: bool(observed.events["Node"]))
                assert observed.names("Node") == {"n1"}

    run(scenario)


def test_a_kind_in_several_namespaces_is_emitted_after_all_lists(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            wanted = {"Secret": Selection(namespaces=("a", "b"))}
            server.once("list", "secrets", *[status(500, "", "not yet")] * 3)
            async with reader(server, tmp_path, selections=wanted) as observed:
                await until(lambda: bool(observed.events["Secret"]))
                phases = {observed.phase("Secret/a"), observed.phase("Secret/b")}
                assert phases == {Phase.FOLLOWING}
                assert observed.replacements("Secret") == 1

    run(scenario)


def test_an_object_of_several_mebibytes_comes_through(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("small"))
            async with reader(server, tmp_path) as observed:
                await until(lambda: observed.names() == {"small"})
                big = service("big")
                big["metadata"]["annotations"] = {"text": "x" * (6 << 20)}
                server.put(big)
                await until(lambda: observed.names() == {"small", "big"})

    run(scenario)


def test_an_invalid_object_is_a_problem_and_others_are_unaffected(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("good"))
            server.put(service("bad", "Mail"))
            async with reader(server, tmp_path) as observed:
                await until(lambda: bool(observed.problems) and observed.names() == {"good"})
                assert "Service/shop/bad: spec.type" in str(observed.problems[0])
                server.put(service("bad", "ClusterIP"))
                await until(lambda: observed.names() == {"good", "bad"})
                await until(lambda: not observed.problems)

    run(scenario)
