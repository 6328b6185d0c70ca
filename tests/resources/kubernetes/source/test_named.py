"""Secrets by name: what is named is requested, each by itself; nothing else is, nor kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aiohttp import web
from msgspec.structs import replace

from resources.core import Secret
from resources.core.kinds import SECRET
from resources.kubernetes import Phase, of_cluster, of_node
from resources.source import Replace
from tests.resources.kubernetes.source.reading import SOON_SILENT, TIMEOUTS, reader, run
from tests.support.apiserver import ApiServer, status
from tests.support.kinds import KINDS
from tests.support.wait import until

WANTED = dict(of_node(KINDS, "n1").selections)


def secret(name: str, namespace: str = "bgp", **data: str) -> dict[str, Any]:
    return {"kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "data": data}


def test_nothing_is_read_before_the_names_are_known(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(secret("a"))
            async with reader(server, tmp_path, selections=WANTED) as observed:
                await until(lambda: bool(observed.events["Service"]))
                assert observed.events["Secret"] == []
                observed.source.follow(SECRET, [])
                await until(lambda: bool(observed.events["Secret"]))
                assert observed.events["Secret"] == [Replace(())]
        assert not [request for request in server.requests if request[1] == "secrets"]

    run(scenario)


def test_each_named_object_is_requested_by_itself_and_watched(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            for name in ("a", "b", "other"):
                server.put(secret(name))
            server.put(secret("a", "elsewhere"))
            async with reader(server, tmp_path, selections=WANTED) as observed:
                observed.source.follow(SECRET, [("bgp", "a"), ("bgp", "b"), ("bgp", "absent")])
                await until(lambda: observed.names("Secret") == {"a", "b"})
                assert observed.replacements("Secret") >= 1
                server.put(secret("absent"))
                await until(lambda: observed.names("Secret") == {"a", "b", "absent"})
                server.delete("Secret", "a", "bgp")
                await until(lambda: observed.names("Secret") == {"b", "absent"})
                await until(lambda: observed.phase("Secret/bgp/b") is Phase.FOLLOWING)
        selected = {q["fieldSelector"] for verb, what, q in server.requests if what == "secrets"}
        assert selected == {f"metadata.name={name}" for name in ("a", "b", "absent")}

    run(scenario)


def test_the_first_event_has_all_named_objects(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(secret("a"))
            server.put(secret("b"))
            server.once("list", "secrets", *[status(500, "", "not yet")] * 3)
            patient = replace(TIMEOUTS, forbidden_grace=60.0)
            async with reader(server, tmp_path, selections=WANTED, timeouts=patient) as observed:
                observed.source.follow(SECRET, [("bgp", "a"), ("bgp", "b")])
                await until(lambda: bool(observed.events["Secret"]))
                first = observed.events["Secret"][0]
                assert isinstance(first, Replace)
                assert {row.metadata.name for row in first.objects} == {"a", "b"}

    run(scenario)


def test_what_is_no_longer_named_is_forgotten_and_not_watched(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(secret("a"))
            server.put(secret("b"))
            async with reader(
                server, tmp_path, selections=WANTED, timeouts=SOON_SILENT
            ) as observed:
                observed.source.follow(SECRET, [("bgp", "a"), ("bgp", "b")])
                await until(lambda: observed.names("Secret") == {"a", "b"})
                observed.source.follow(SECRET, [("bgp", "b")])
                await until(lambda: observed.names("Secret") == {"b"})
                names = {one.status.name for one in observed.source.reflectors}
                assert "Secret/bgp/b" in names
                assert "Secret/bgp/a" not in names

                def watches(name: str) -> int:
                    found = server.queries("watch", "secrets")
                    return sum(one["fieldSelector"] == f"metadata.name={name}" for one in found)

                # Silent watches end soon and are resumed: that of the other one only.
                of_a, of_b = watches("a"), watches("b")
                await until(lambda: watches("b") >= of_b + 4)
                assert watches("a") <= of_a + 1
                # The other one is followed as before.
                server.delete("Secret", "b", "bgp")
                await until(lambda: observed.names("Secret") == set())

    run(scenario)


def test_a_name_without_a_namespace_is_not_requested(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(secret("a"))
            async with reader(server, tmp_path, selections=WANTED) as observed:
                observed.source.follow(SECRET, [("", "a"), ("bgp", "")])
                await until(lambda: observed.events["Secret"] == [Replace(())])
                assert server.queries("list", "secrets") == []

    run(scenario)


def test_an_object_that_may_not_be_read_delays_no_other(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(secret("b"))
            usual = server.usual

            async def refuse_a(request: web.Request) -> web.StreamResponse:
                refused = request.query["fieldSelector"] == "metadata.name=a"
                answer = status(403, "Forbidden", "no") if refused else usual
                return await answer(request)

            server.always("list", "secrets", refuse_a)
            async with reader(server, tmp_path, selections=WANTED) as observed:
                observed.source.follow(SECRET, [("bgp", "a"), ("bgp", "b")])
                await until(lambda: observed.names("Secret") == {"b"})
                await until(lambda: observed.phase("Secret/bgp/a") is Phase.FORBIDDEN)
                named = [one.status for one in observed.source.reflectors if one.status.object_name]
                assert {one.name: one.unread for one in named} == {
                    "Secret/bgp/a": True,
                    "Secret/bgp/b": False,
                }

    run(scenario)


def test_an_operator_reads_the_metadata_of_secrets_alone(tmp_path: Path) -> None:
    selections = dict(of_cluster(KINDS).selections)
    copy = {"kubectl.kubernetes.io/last-applied-configuration": '{"data":{"password":"c2VjcmV0"}}'}

    async def scenario() -> None:
        async with ApiServer() as server:
            made = secret("a", password="c2VjcmV0")
            made["metadata"]["annotations"] = copy
            server.put(made)
            async with reader(server, tmp_path, selections=selections) as observed:
                observed.source.follow(SECRET, [("bgp", "a"), ("bgp", "b")])
                await until(lambda: observed.names("Secret") == {"a"})
                made["metadata"] = {**made["metadata"], "name": "b"}
                server.put(made)
                await until(lambda: observed.names("Secret") == {"a", "b"})
                rows = [row for one in observed.source.reflectors for row in one.feed.rows.values()]
                secrets = [row for row in rows if isinstance(row, Secret)]
                assert [row.data for row in secrets] == [{}, {}]
                assert [row.metadata.annotations for row in secrets] == [{}, {}]

    run(scenario)


def test_without_an_api_server_nothing_waits_for_a_named_object(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.always("list", "secrets", status(500, "", "not now"))
            async with reader(server, tmp_path, selections=WANTED) as observed:
                observed.source.follow(SECRET, [("bgp", "a")])
                await until(lambda: "Secret/bgp/a" in observed.statuses)
                await until(lambda: observed.phase("Secret/bgp/a") is Phase.FAILING)
                assert observed.events["Secret"] == []
                observed.source.use_restored()
                assert observed.events["Secret"] == [Replace(())]
                server.put(secret("a"))
                server.always("list", "secrets", None)
                await until(lambda: observed.names("Secret") == {"a"})

    run(scenario)
