"""The source against a server that follows a script: everything that an API server does to a client.

Names F01 to F08 are those of the list of failures that a speaker on a node has to survive. Times are
shortened; the order of things is not.
"""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import pytest
from kubernetes_asyncio.config import incluster_config  # imported here, as it takes seconds

from resources.kinds import KINDS, Kind
from resources.kubernetes import (
    Access,
    FeedStatus,
    KubernetesSource,
    Phase,
    Selection,
    Timing,
    of_node,
)
from resources.kubernetes import connection as connections
from resources.source import Delete, Event, Replace, SourceProblem, Upsert
from tests.support.apiserver import ApiServer, cut, event, status, stream, text

TIMING = Timing(
    page=2,
    connect=1.0,
    read=1.0,
    silence=0.15,
    first=0.005,
    longest=0.02,
    confirm=0.02,
    missing=0.03,
    grace=0.1,
    lasting=0.05,
)
SECRETS = "kube-system"


def service(name: str, kind: str = "LoadBalancer", namespace: str = "shop") -> dict[str, Any]:
    return {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"type": kind},
    }


def advertisement(name: str) -> dict[str, Any]:
    return {
        "kind": "CiliumBGPAdvertisement",
        "apiVersion": "cilium.io/v2",
        "metadata": {"name": name},
        "spec": {"advertisements": [{"advertisementType": "PodCIDR"}]},
    }


class Reader:
    """Runs a source, and keeps what it told."""

    def __init__(self, source: KubernetesSource, kinds: tuple[Kind[Any], ...] = KINDS) -> None:
        self.source = source
        self.events: dict[str, list[Event]] = {kind.name: [] for kind in kinds}
        self.statuses: dict[str, FeedStatus] = {}
        self.messages: list[tuple[str, Phase, str]] = []
        self.problems: tuple[SourceProblem, ...] = ()
        for kind in kinds:
            source.events(kind).subscribe(self.events[kind.name].append)
        source.statuses.subscribe(self._statuses)
        source.problems.subscribe(self._problems)
        self._task: asyncio.Task[None] | None = None

    def _statuses(self, statuses: tuple[FeedStatus, ...]) -> None:
        for found in statuses:
            before = self.statuses.get(found.name)
            if before is None or (before.phase, before.message) != (found.phase, found.message):
                self.messages.append((found.name, found.phase, found.message))
            self.statuses[found.name] = found

    def _problems(self, problems: tuple[SourceProblem, ...]) -> None:
        self.problems = problems

    def names(self, kind: str = "Service") -> set[str]:
        """What somebody who followed the events has."""
        found: dict[tuple[str, str], str] = {}
        for told in self.events[kind]:
            match told:
                case Replace(objects):
                    found = {row.key: row.metadata.name for row in objects}
                case Upsert(row):
                    found[row.key] = row.metadata.name
                case Delete(key):
                    del found[key]
        return set(found.values())

    def replacements(self, kind: str = "Service") -> int:
        return sum(isinstance(told, Replace) for told in self.events[kind])

    def phase(self, name: str = "Service") -> Phase:
        return self.statuses[name].phase

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self.source.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        assert not self._task.done(), self._task.exception()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def until(check: Callable[[], bool], seconds: float = 10.0) -> None:
    """Let the loop turn until something holds."""
    async with asyncio.timeout(seconds):
        while not check():  # noqa: ASYNC110  what is waited for is no one's event
            await asyncio.sleep(0.002)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run a scenario in a loop of its own."""

    async def main() -> None:
        async with asyncio.timeout(30):
            await scenario()

    asyncio.run(main())


def reader(
    server: ApiServer,
    directory: Path,
    *,
    timing: Timing = TIMING,
    selections: dict[str, Selection] | None = None,
) -> Reader:
    access = Access(str(server.kubeconfig(directory / "kubeconfig")))
    return Reader(KubernetesSource(access, selections or {}, timing=timing))


# What a healthy server says


def test_everything_is_listed_in_pages_and_then_followed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            for i in range(7):
                server.put(service(f"s{i}"))
            async with reader(server, tmp_path) as told:
                await until(lambda: all(told.events.values()))
                assert told.names() == {f"s{i}" for i in range(7)}
                assert all(isinstance(events[0], Replace) for events in told.events.values())
                assert [q.get("limit") for q in server.asked("list", "services")] == ["2"] * 4
                server.put(service("late"))
                server.put(service("s0", "ClusterIP"))
                server.delete("Service", "s1", "shop")
                await until(
                    lambda: told.names() == {"late", *(f"s{i}" for i in (0, 2, 3, 4, 5, 6))}
                )
                assert told.replacements() == 1
                assert len(told.events["Service"]) == 4

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
            async with reader(server, tmp_path) as told:
                await until(lambda: len(server.asked("watch", "services")) >= 2)
                second = server.asked("watch", "services")[1]
                assert second["resourceVersion"] == "5000"
                server.put(service("late"))
                await until(lambda: told.names() == {"web", "late"})
                assert told.replacements() == 1

    run(scenario)


def test_only_what_is_needed_is_asked_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            for name in ("n1", "n2"):
                server.put({"kind": "Node", "metadata": {"name": name}})
            for namespace in (SECRETS, "bgp", "shop"):
                server.put({"kind": "Secret", "metadata": {"name": "k", "namespace": namespace}})
            wanted = dict(of_node("n1", [SECRETS, "bgp"]).selections)
            async with reader(server, tmp_path, selections=wanted) as told:
                await until(lambda: all(told.events.values()))
                assert told.names("Node") == {"n1"}
                (secrets,) = told.events["Secret"]
                assert isinstance(secrets, Replace)
                found = {row.metadata.namespace for row in secrets.objects}
                assert found == {SECRETS, "bgp"}
                server.put({"kind": "Secret", "metadata": {"name": "new", "namespace": "bgp"}})
                await until(lambda: len(told.events["Secret"]) == 2)
                assert told.statuses.keys() >= {"Secret/kube-system", "Secret/bgp"}

    run(scenario)


def test_a_kind_in_several_namespaces_is_told_when_all_have_been_read(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            wanted = {"Secret": Selection(namespaces=("a", "b"))}
            server.once("list", "secrets", *[status(500, "", "not yet")] * 3)
            async with reader(server, tmp_path, selections=wanted) as told:
                await until(lambda: bool(told.events["Secret"]))
                phases = {told.phase("Secret/a"), told.phase("Secret/b")}
                assert phases == {Phase.FOLLOWING}
                assert told.replacements("Secret") == 1

    run(scenario)


def test_an_object_of_several_mebibytes_comes_through(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("small"))
            async with reader(server, tmp_path) as told:
                await until(lambda: told.names() == {"small"})
                big = service("big")
                big["metadata"]["annotations"] = {"text": "x" * (6 << 20)}
                server.put(big)
                await until(lambda: told.names() == {"small", "big"})

    run(scenario)


def test_an_invalid_object_is_told_and_the_others_are_unaffected(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("good"))
            server.put(service("bad", "Mail"))
            async with reader(server, tmp_path) as told:
                await until(lambda: bool(told.problems) and told.names() == {"good"})
                assert "Service/shop/bad: spec.type" in str(told.problems[0])
                server.put(service("bad", "ClusterIP"))
                await until(lambda: told.names() == {"good", "bad"})
                await until(lambda: not told.problems)

    run(scenario)


# What goes wrong


def test_f01_an_api_server_that_is_away_takes_nothing_away(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("web"))
            async with reader(server, tmp_path) as told:
                await until(lambda: told.names() == {"web"})
                before = len(told.events["Service"])
                await server.stop()
                await until(lambda: told.phase() is Phase.FAILING)
                message = told.statuses["Service"].message
                assert message.startswith(f"cannot reach {server.url}: ")
                assert message.endswith("; the 1 known before still count")
                server.delete("Service", "web", "shop")
                server.put(service("new"))
                await asyncio.sleep(0.3)
                assert len(told.events["Service"]) == before
                await server.start()
                await until(lambda: told.names() == {"new"})
                await until(lambda: told.phase() is Phase.FOLLOWING)
                assert told.statuses["Service"].message == ""

    run(scenario)


def test_f01_an_outage_is_not_told_again_with_every_attempt(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server, reader(server, tmp_path) as told:
            await until(lambda: all(told.events.values()))
            await server.stop()
            await until(lambda: told.phase() is Phase.FAILING)
            await asyncio.sleep(0.1)
            count = len(told.messages)
            await asyncio.sleep(0.3)
            assert len(told.messages) <= count + len(KINDS)

    run(scenario)


def test_f02_an_api_server_that_is_away_at_the_start_is_named_and_waited_for(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        server = ApiServer()
        await server.start()
        server.put(service("web"))
        await server.stop()
        async with reader(server, tmp_path) as told:
            await until(lambda: bool(told.statuses) and told.phase() is Phase.FAILING)
            assert server.url in told.statuses["Service"].message
            assert not any(told.events.values())
            await server.start()
            await until(lambda: told.names() == {"web"})
        await server.stop()

    run(scenario)


def test_f02_a_kubeconfig_that_is_not_there_yet_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        path = tmp_path / "later"
        async with ApiServer() as server:
            source = KubernetesSource(Access(str(path)), {}, timing=TIMING)
            async with Reader(source) as told:
                await until(lambda: bool(told.statuses) and told.phase() is Phase.FAILING)
                assert "later: No such file or directory" in told.statuses["Service"].message
                path.write_text("clusters: [")
                await until(lambda: "No such file" not in told.statuses["Service"].message)
                server.kubeconfig(path)
                await until(lambda: all(told.events.values()))

    run(scenario)


def test_f03_a_connection_that_died_half_is_noticed_and_resumed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("web"))
            server.once("watch", "services", stream(then="hang"))
            async with reader(server, tmp_path) as told:
                await until(lambda: told.names() == {"web"})
                server.put(service("unseen"))
                await until(lambda: told.names() == {"web", "unseen"}, seconds=2)
                assert told.replacements() == 1
                assert told.phase() is Phase.FOLLOWING

    run(scenario)


def test_f03_a_list_that_hangs_is_given_up(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("web"))
            server.once("list", "services", stream('{"kind": "Serv', then="hang"))
            timing = Timing(read=0.1, silence=0.2, first=0.005, longest=0.02)
            async with reader(server, tmp_path, timing=timing) as told:
                await until(lambda: ("Service", Phase.FAILING) in [m[:2] for m in told.messages])
                await until(lambda: told.names() == {"web"})

    run(scenario)


def test_f03_watches_that_never_say_anything_lead_to_a_list(tmp_path: Path) -> None:
    """A proxy that keeps back what it should pass on."""

    async def scenario() -> None:
        async with ApiServer() as server:
            server.always("watch", "services", stream(then="hang"))
            async with reader(server, tmp_path) as told:
                await until(lambda: told.replacements() == 1)
                server.put(service("web"))
                await until(lambda: told.names() == {"web"}, seconds=5)

    run(scenario)


def test_bookmarks_keep_a_quiet_watch_alive(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.bookmark_every = 0.05
            async with reader(server, tmp_path) as told:
                await until(lambda: all(told.events.values()))
                await asyncio.sleep(0.6)
                assert len(server.asked("watch", "services")) == 1

    run(scenario)


@pytest.mark.parametrize("how", ["event", "status"])
def test_f04_410_leads_to_a_list_that_shows_what_is_gone(tmp_path: Path, how: str) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            for name in ("web", "old"):
                server.put(service(name))
            gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
            answers = {
                "event": stream(event("ERROR", gone)),
                "status": status(410, "Expired", "too old resource version"),
            }
            server.once("watch", "services", cut)
            async with reader(server, tmp_path) as told:
                await until(lambda: told.names() == {"web", "old"})
                server.once("watch", "services", answers[how])
                server.delete("Service", "old", "shop")
                server.put(service("new"))
                await until(lambda: told.names() == {"web", "new"})
                await until(lambda: told.phase() is Phase.FOLLOWING)

    run(scenario)


def test_f04_compaction_between_watches_loses_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("web"))
            async with reader(server, tmp_path) as told:
                await until(lambda: told.names() == {"web"})
                await server.stop()
                server.delete("Service", "web", "shop")
                server.put(service("new"))
                server.compact()
                await server.start()
                await until(lambda: told.names() == {"new"})
                assert told.replacements() == 2

    run(scenario)


def test_f04_410_in_the_middle_of_a_list_begins_it_anew_in_one_piece(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            for i in range(5):
                server.put(service(f"s{i}"))
            async with reader(server, tmp_path) as told:
                await until(lambda: all(told.events.values()))
                first = len(server.asked("list", "services"))
                expired = status(410, "Expired", "the provided continue parameter is too old")
                server.once("list", "services", server.usual, server.usual, expired)
                await server.stop()
                server.put(service("late"))
                server.compact()
                await server.start()
                await until(lambda: told.replacements() == 2)
                assert told.names() == {"late", *(f"s{i}" for i in range(5))}
                asked = server.asked("list", "services")[first:]
                assert "limit" not in asked[-1]
                assert "continue" not in asked[-1]

    run(scenario)


def test_f04_429_is_waited_for_as_long_as_the_server_says(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("web"))
            answer = status(429, "TooManyRequests", "slow down", {"Retry-After": "1"})
            server.once("list", "services", answer)
            loop = asyncio.get_running_loop()
            async with reader(server, tmp_path) as told:
                began = loop.time()
                await until(lambda: told.names() == {"web"})
                assert loop.time() - began >= 1.0
                assert len(server.asked("list", "services")) == 2
                failing = [m for n, p, m in told.messages if n == "Service" and p is Phase.FAILING]
                assert failing == [f"{server.url} answers 429: slow down"]

    run(scenario)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (status(500, "InternalError", "etcd is sad"), "answers 500: etcd is sad"),
        (text(503, "upstream connect error"), "answers 503: upstream connect error"),
        (text(502, "<html>Bad Gateway</html>", "text/html"), "answers 502: a web page"),
        (text(200, "<html>Log in</html>", "text/html"), "text/html instead of JSON"),
        (text(200, '{"kind": "Status"}', "application/json"), "a list that is not understood"),
        (text(200, '{"kind": "ServiceList", "meta', "application/json"), "not understood"),
        (text(200, '{"kind": "ServiceList", "metadata": {}}', "application/json"), "`items`"),
        (
            text(
                200,
                '{"kind": "Pod", "metadata": {"resourceVersion": "5"}, "items": []}',
                "application/json",
            ),
            "Pod in place of a list",
        ),
        (
            text(
                200,
                '{"kind": "ServiceList", "items": [], '
                '"metadata": {"resourceVersion": "999", "remainingItemCount": 3}}',
                "application/json",
            ),
            "says that there is more, and not where",
        ),
        (cut, ": the connection was closed"),
        (text(404, "page not found"), "answers 404"),
    ],
    ids=[
        "500",
        "503",
        "502-html",
        "200-html",
        "status",
        "cut-json",
        "no-items",
        "pod",
        "half",
        "cut",
        "404",
    ],
)
def test_f04_a_list_that_fails_takes_nothing_away(
    tmp_path: Path, answer: Callable[..., Any], said: str
) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("web"))
            async with reader(server, tmp_path) as told:
                await until(lambda: told.names() == {"web"})
                server.always("list", "services", answer)
                await server.stop()
                server.put(service("new"))
                server.compact()
                await server.start()
                await until(lambda: any(said in m for n, _, m in told.messages if n == "Service"))
                assert told.names() == {"web"}
                server.always("list", "services", None)
                await until(lambda: told.names() == {"web", "new"})
                await until(lambda: told.phase() is Phase.FOLLOWING)

    run(scenario)


@pytest.mark.parametrize(
    "answer",
    [
        stream("upstream connect error\n"),
        stream('{"type": "ADDED", "object": {"meta', then="cut"),
        stream('{"type": "ADDED", "object": {"meta'),
        stream("<html>\n</html>\n", then="hang"),
        text(200, "<html>", "text/html"),
        status(500, "InternalError", "no"),
        stream(event("ERROR", {"kind": "Status", "code": 500, "message": "decoding"})),
        stream(event("ERROR", {"kind": "Status", "code": 429, "message": "busy"})),
        stream(event("NONSENSE", {"metadata": {"resourceVersion": "100000"}})),
        cut,
    ],
    ids=[
        "text",
        "cut",
        "truncated",
        "html",
        "html-type",
        "500",
        "error-500",
        "429",
        "type",
        "abort",
    ],
)
def test_f04_a_watch_that_fails_goes_on(tmp_path: Path, answer: Callable[..., Any]) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("web"))
            server.once("watch", "services", answer, answer)
            async with reader(server, tmp_path) as told:
                await until(lambda: told.names() == {"web"})
                server.put(service("new"))
                await until(lambda: told.names() == {"web", "new"})
                await until(lambda: told.phase() is Phase.FOLLOWING)

    run(scenario)


def test_f04_an_event_that_is_never_understood_is_passed_by_a_list(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.always("watch", "services", stream("{\n"))
            async with reader(server, tmp_path) as told:
                await until(lambda: all(told.events.values()))
                server.put(service("web"))
                await until(lambda: told.names() == {"web"})

    run(scenario)


def test_a_watch_that_ends_at_once_is_not_begun_at_once(tmp_path: Path) -> None:
    """A server that closes every watch costs requests at the pace of the pauses, not a busy loop."""

    async def scenario() -> None:
        async with ApiServer() as server:
            server.always("watch", "services", stream())
            timing = Timing(first=0.1, longest=0.1)
            async with reader(server, tmp_path, timing=timing) as told:
                await until(lambda: all(told.events.values()))
                await asyncio.sleep(0.6)
                assert len(server.asked("watch", "services")) <= 12

    run(scenario)


def test_a_watch_that_lies_about_order_is_not_believed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            stored = server.put(service("web"))
            server.put(service("other"))
            server.once("watch", "services", stream(event("DELETED", stored), then="hang"))
            async with reader(server, tmp_path) as told:
                await until(lambda: told.replacements() == 2)
                assert told.names() == {"web", "other"}
                assert not any(isinstance(e, Delete) for e in told.events["Service"])

    run(scenario)


def test_f05_a_server_restored_from_a_backup_is_believed_after_two_complete_lists(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            for name in ("web", "db"):
                server.put(service(name))
            async with reader(server, tmp_path) as told:
                await until(lambda: told.names() == {"web", "db"})
                await server.stop()
                server.version = 50
                server.history.clear()
                server.objects["services"].clear()
                server.put(service("web"))
                await server.start()
                await until(lambda: told.names() == {"web"})
                back = [m for n, _, m in told.messages if n == "Service" and "went back" in m]
                assert back
                server.put(service("new"))
                await until(lambda: told.names() == {"web", "new"})

    run(scenario)


def test_f05_one_empty_list_takes_nothing_away_two_do(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("web"))
            async with reader(server, tmp_path) as told:
                await until(lambda: told.names() == {"web"})
                empty = text(
                    200,
                    '{"kind": "ServiceList", "metadata": {"resourceVersion": "900"}, "items": []}',
                    "application/json",
                )
                server.once("list", "services", empty)
                await server.stop()
                server.version = 900
                server.compact()
                await server.start()
                await until(lambda: told.replacements() == 2)
                assert told.names() == {"web"}
                assert all(len(e.objects) for e in told.events["Service"] if isinstance(e, Replace))
                await server.stop()
                server.objects["services"].clear()
                server.version = 1000
                server.compact()
                await server.start()
                await until(lambda: told.names() == set())
                assert told.replacements() == 3

    run(scenario)


def test_f05_a_source_that_is_run_again_wants_an_empty_list_confirmed_too(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("web"))
            told = reader(server, tmp_path)
            async with told:
                await until(lambda: told.names() == {"web"})
            empty = text(
                200,
                '{"kind": "ServiceList", "metadata": {"resourceVersion": "900"}, "items": []}',
                "application/json",
            )
            server.once("list", "services", empty)
            first = len(server.asked("list", "services"))
            async with told:
                await until(lambda: told.replacements() == 2)
                assert told.names() == {"web"}
                assert len(server.asked("list", "services")) == first + 2

    run(scenario)


def test_f06_a_forbidden_kind_is_named_and_the_others_work(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("web"))
            refusal = 'secrets is forbidden: User "x" cannot list resource "secrets"'
            server.always("list", "secrets", status(403, "Forbidden", refusal))
            wanted = {"Secret": Selection(namespaces=(SECRETS,))}
            async with reader(server, tmp_path, selections=wanted) as told:
                await until(lambda: told.names() == {"web"})
                await until(lambda: told.phase("Secret/kube-system") is Phase.FORBIDDEN)
                message = told.statuses["Secret/kube-system"].message
                assert message == f"may not list secrets in namespace kube-system: {refusal}"
                assert not told.events["Secret"]
                # The start does not wait for ever for a role that nobody grants.
                await until(lambda: told.events["Secret"] == [Replace(())])
                server.always("list", "secrets", None)
                server.put({"kind": "Secret", "metadata": {"name": "k", "namespace": SECRETS}})
                await until(lambda: told.names("Secret") == {"k"})

    run(scenario)


def test_f06_what_was_known_counts_when_it_becomes_forbidden(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("web"))
            async with reader(server, tmp_path) as told:
                await until(lambda: told.names() == {"web"})
                for verb in ("list", "watch"):
                    server.always(verb, "services", status(403, "Forbidden", "no"))
                await server.stop()
                await server.start()
                await until(lambda: told.phase() is Phase.FORBIDDEN)
                await asyncio.sleep(0.3)
                assert told.names() == {"web"}
                assert "the 1 known before still count" in told.statuses["Service"].message

    run(scenario)


def test_f06_a_crd_that_is_missing_leaves_its_dialect_idle_until_it_comes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("web"))
            server.put(advertisement("pods"))
            server.served["ciliumbgpadvertisements"] = ()
            async with reader(server, tmp_path) as told:
                await until(lambda: all(told.events.values()))
                found = told.statuses["CiliumBGPAdvertisement"]
                assert found.phase is Phase.MISSING
                assert "no ciliumbgpadvertisements.cilium.io" in found.message
                assert told.names("CiliumBGPAdvertisement") == set()
                server.served["ciliumbgpadvertisements"] = ("v2",)
                await until(lambda: told.names("CiliumBGPAdvertisement") == {"pods"})
                assert told.phase("CiliumBGPAdvertisement") is Phase.FOLLOWING

    run(scenario)


def test_f13_a_crd_of_an_older_version_is_read_in_that(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(advertisement("pods"))
            server.served["ciliumbgpadvertisements"] = ("v2alpha1",)
            async with reader(server, tmp_path) as told:
                await until(lambda: told.names("CiliumBGPAdvertisement") == {"pods"})
                # And after an upgrade in the newer one, without anything gone in between.
                server.served["ciliumbgpadvertisements"] = ("v2",)
                await server.stop()
                await server.start()
                server.put(advertisement("late"))
                await until(lambda: told.names("CiliumBGPAdvertisement") == {"pods", "late"})
                assert told.replacements("CiliumBGPAdvertisement") == 2

    run(scenario)


def test_f06_a_crd_that_goes_while_nobody_looks_takes_nothing_away(tmp_path: Path) -> None:
    """Its objects go one by one when it is deleted; a 404 alone is no deletion of anything."""

    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(advertisement("pods"))
            async with reader(server, tmp_path) as told:
                await until(lambda: told.names("CiliumBGPAdvertisement") == {"pods"})
                server.served["ciliumbgpadvertisements"] = ()
                await server.stop()
                await server.start()
                await until(lambda: told.phase("CiliumBGPAdvertisement") is Phase.FAILING)
                await until(lambda: "any more" in told.statuses["CiliumBGPAdvertisement"].message)
                assert told.names("CiliumBGPAdvertisement") == {"pods"}

    run(scenario)


# Who we are to it


@pytest.fixture
def _renewed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "RENEW_PAUSE", 0.0)


@pytest.mark.usefixtures("_renewed_at_once")
def test_f07_a_rotated_token_is_read_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        token = tmp_path / "token"
        token.write_text("one")
        async with ApiServer() as server:
            server.token = "one"
            config = server.kubeconfig(tmp_path / "kubeconfig", token_file=token)
            source = KubernetesSource(Access(str(config)), {}, timing=TIMING)
            async with Reader(source) as told:
                await until(lambda: all(told.events.values()))
                server.token = "two"
                await server.stop()
                await server.start()
                await until(lambda: "answers 401" in told.statuses["Service"].message)
                token.write_text("two")
                server.put(service("web"))
                await until(lambda: told.names() == {"web"})
                assert not [m for _, _, m in told.messages if "one" in m.split()]

    run(scenario)


def test_f07_the_pods_own_token_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the cluster: address from the environment, token and CA from the service account's files."""

    async def scenario() -> None:
        authority, context = authority_and_server(tmp_path, "in-cluster")
        token = tmp_path / "token"
        token.write_text("one")
        for name, value in (
            ("SERVICE_TOKEN_FILENAME", str(token)),
            ("SERVICE_CERT_FILENAME", str(authority)),
            ("TOKEN_REFRESH_PERIOD", timedelta(0)),
        ):
            monkeypatch.setattr(incluster_config, name, value)
        server = ApiServer()
        await server.start(context)
        server.token = "one"
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
        source = KubernetesSource(Access(connections.IN_CLUSTER), {}, timing=TIMING)
        async with Reader(source) as told:
            await until(lambda: all(told.events.values()))
            server.token = "two"
            token.write_text("two")
            await server.stop()
            await server.start(context)
            server.put(service("web"))
            await until(lambda: told.names() == {"web"})
        await server.stop()

    run(scenario)


@pytest.mark.usefixtures("_renewed_at_once")
def test_f08_a_rotated_authority_is_read_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        old, first = authority_and_server(tmp_path, "old")
        new, second = authority_and_server(tmp_path, "new")
        trusted = tmp_path / "ca.crt"
        trusted.write_bytes(old.read_bytes())
        server = ApiServer()
        await server.start(first)
        server.put(service("web"))
        config = server.kubeconfig(tmp_path / "kubeconfig", token="t", ca=str(trusted))
        source = KubernetesSource(Access(str(config)), {}, timing=TIMING)
        async with Reader(source) as told:
            await until(lambda: told.names() == {"web"})
            await server.stop()
            await server.start(second)
            await until(lambda: "certificate" in told.statuses["Service"].message)
            assert told.names() == {"web"}
            trusted.write_bytes(new.read_bytes())
            server.put(service("late"))
            await until(lambda: told.names() == {"web", "late"})
        await server.stop()

    run(scenario)


def authority_and_server(directory: Path, name: str) -> tuple[Path, ssl.SSLContext]:
    """Make a certificate for 127.0.0.1 that is its own authority."""
    certificate, key = directory / f"{name}.crt", directory / f"{name}.key"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "1"),
            *("-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", f"/CN={name}"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return certificate, context
