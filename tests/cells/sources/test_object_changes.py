"""``/v1/watch``: objects and their changes, live, over the socket of an agent."""

from __future__ import annotations

import asyncio
import base64
import re
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from reactivex import Observable
from reactivex.subject import Subject

from cells.api.client import AgentError, at_socket
from cells.declarations import DATABASE, RESOURCES
from cells.hive import Cell, Group, Wiring, load, provide
from cells.hive.hive import Hive
from cells.sources.object_changes import SLICE, find_kind, watch_stream
from resources import streams
from resources.ingest import Ingest
from resources.kind import Kind
from resources.source import Delete, Event, Replace, Source, SourceProblem, Upsert
from resources.tables import Tables
from resources.trace_links import TraceLinks
from statedb import Database
from tests.support.api import MadeUp, api_cell
from tests.support.kinds import KINDS, NODE, SECRET, SERVICE
from tests.support.wait import until

PASSWORD = "sesame-that-is-secret"


class ChosenSource:
    """A source of nodes, Services and Secrets whose events a test chooses."""

    name = "chosen"
    kinds: tuple[Kind[Any], ...] = (NODE, SERVICE, SECRET)

    def __init__(self, database: Database, tables: Tables) -> None:
        self._events: dict[str, Subject[Event]] = {kind.name: Subject() for kind in KINDS}
        self._problems: Subject[tuple[SourceProblem, ...]] = Subject()
        Ingest(database, tables, self, TraceLinks(), self.fail, self.kinds).subscribe()

    def fail(self, error: BaseException) -> None:
        raise error

    def events(self, kind: Kind[Any]) -> Observable[Event]:
        return streams.isolated(self._events[kind.name])

    def emit(self, kind: Kind[Any], event: Event) -> None:
        self._events[kind.name].on_next(event)

    @property
    def problems(self) -> Observable[tuple[SourceProblem, ...]]:
        return self._problems

    async def run(self) -> None:
        """Its events come from the test."""


def followers(hive: Hive) -> int:
    """Return the number of change iterators of the Nodes, which watches have."""
    return len(hive.get(Tables).nodes.log._followers)


SOURCE = Cell(
    name="source",
    description="Events that a test chooses.",
    wiring=Wiring(provides=(ChosenSource,), contributes=(provide(ChosenSource, as_=Source),)),
)


def obj(kind: Kind[Any], name: str, namespace: str = "", **more: Any) -> Any:  # noqa: ANN401 - a row
    return kind.decode({"metadata": {"name": name, "namespace": namespace}, **more})


class Client:
    """Reads a watch in a thread."""

    def __init__(self, path: Path, kinds: str, *, changes_only: bool = True) -> None:
        self.items: list[dict[str, Any]] = []
        self.error: AgentError | None = None
        query: dict[str, str | None] = {"kind": kinds, "changesOnly": str(changes_only).lower()}
        self._lines = at_socket(path).stream("/v1/watch", query)
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self) -> None:
        try:
            for item in self._lines:
                self.items.append(item)
        except AgentError as error:
            self.error = error

    def changes(self) -> list[tuple[str, str, str]]:
        return [
            (
                item["type"],
                item["kind"],
                "/".join(filter(None, (item.get("namespace"), item["name"]))),
            )
            for item in self.items
        ]


@asynccontextmanager
async def agent(path: Path) -> AsyncIterator[tuple[Hive, ChosenSource]]:
    api = api_cell(MadeUp())
    cells = (DATABASE, RESOURCES, SOURCE, api)
    hive = Hive(cells, load(cells, flags={"--api-socket": str(path)}))
    started = asyncio.Event()
    task = asyncio.create_task(hive.run(started.set))
    await started.wait()
    try:
        yield hive, hive.get(ChosenSource)
    finally:
        hive.shutdown()
        await task


def run(scenario: Callable[[Path], Awaitable[None]], tmp_path: Path) -> None:
    async def whole() -> None:
        async with asyncio.timeout(120):
            await scenario(tmp_path / "agent.sock")

    asyncio.run(whole())


def test_present_objects_come_first_then_each_change(tmp_path: Path) -> None:
    async def scenario(path: Path) -> None:
        async with agent(path) as (_, source):
            source.emit(NODE, Replace((obj(NODE, "n1"), obj(NODE, "n2"))))
            source.emit(SERVICE, Replace((obj(SERVICE, "web", "shop"),)))
            client = Client(path, "nodes,Service", changes_only=False)
            await until(lambda: len(client.items) == 3)
            changed = obj(NODE, "n1", spec={"podCIDR": "10.0.0.0/24"})
            source.emit(NODE, Upsert(changed))
            source.emit(NODE, Upsert(changed))
            await until(lambda: len(client.items) == 4)
            source.emit(SERVICE, Delete(("shop", "web")))
            await until(lambda: len(client.items) == 5)
        await asyncio.to_thread(client.thread.join)
        assert sorted(client.changes()[:3]) == [
            ("ADDED", "Node", "n1"),
            ("ADDED", "Node", "n2"),
            ("ADDED", "Service", "shop/web"),
        ]
        assert client.changes()[3:] == [
            ("MODIFIED", "Node", "n1"),
            ("DELETED", "Service", "shop/web"),
        ]
        assert client.items[0].keys() == {"eventTime", "type", "kind", "name"}
        # Kubernetes's form of a time with milliseconds.
        assert re.fullmatch(r"[-\dT:]+(\.\d{3}(000)?)?Z", client.items[0]["eventTime"])

    run(scenario, tmp_path)


def test_the_first_slice_of_a_watch_reads_no_more_objects_than_it_shows() -> None:
    database = Database()
    tables = Tables(database)
    source = ChosenSource(database, tables)
    example = obj(SERVICE, "web", "shop")
    rows = [
        msgspec.structs.replace(
            example, metadata=msgspec.structs.replace(example.metadata, name=f"s{number}")
        )
        for number in range(10 * SLICE)
    ]
    source.emit(SERVICE, Replace(tuple(rows)))
    read = 0
    all_rows = tables.services.all

    def counted(snapshot: Any) -> Any:  # noqa: ANN401
        nonlocal read
        for row in all_rows(snapshot):
            read += 1
            yield row

    tables.services.all = counted  # type: ignore[assignment,method-assign]

    async def scenario() -> None:
        watch = watch_stream(Group([source]), database, tables).read({"kind": "services"})
        for number in range(1, 11):
            assert len(await anext(watch)) == SLICE
            assert read == number * SLICE
        await watch.aclose()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("present", "changes", "left"),
    [
        (False, [Upsert, Upsert], ["ADDED"]),
        (True, [Upsert, Upsert], ["MODIFIED"]),
        (True, [Upsert, Delete], ["DELETED"]),
        (True, [Delete, Upsert], ["MODIFIED"]),
        (False, [Upsert, Delete, Upsert], ["ADDED"]),
        (True, [Delete, Upsert, Delete], ["DELETED"]),
        (False, [Upsert, Delete], []),
        (True, [Upsert], ["MODIFIED"]),
    ],
)
def test_changes_of_one_object_conflate(
    present: bool, changes: list[type[Event]], left: list[str]
) -> None:
    database = Database()
    tables = Tables(database)
    source = ChosenSource(database, tables)
    if present:
        source.emit(NODE, Upsert(obj(NODE, "n")))

    async def scenario() -> None:
        watch = watch_stream(Group([source]), database, tables).read(
            {"kind": "nodes", "changesOnly": "true"}
        )
        first = asyncio.create_task(anext(watch))
        await asyncio.sleep(0)
        for number, change in enumerate(changes):
            row = obj(NODE, "n", spec={"podCIDR": f"10.{number}.0.0/24"})
            source.emit(NODE, Upsert(row) if change is Upsert else Delete(row.key))
        source.emit(NODE, Upsert(obj(NODE, "other")))
        found = [(item.type, item.name) for item in await first]
        assert found == [*((word, "n") for word in left), ("ADDED", "other")]
        await watch.aclose()

    asyncio.run(scenario())


def test_a_list_of_many_objects_is_shown_in_slices() -> None:
    database = Database()
    tables = Tables(database)
    source = ChosenSource(database, tables)
    count = 10 * SLICE
    nodes = [obj(NODE, f"n{number}") for number in range(count)]
    source.emit(NODE, Replace(tuple(nodes[: count // 2])))

    async def scenario() -> None:
        watch = watch_stream(Group([source]), database, tables).read(
            {"kind": "nodes", "changesOnly": "true"}
        )
        first = asyncio.create_task(anext(watch))
        await asyncio.sleep(0)
        source.emit(NODE, Replace(tuple(nodes[count // 4 :])))
        items = list(await first)
        while len(items) < count * 3 // 4:
            found = await anext(watch)
            assert len(found) <= SLICE
            items += found
        types = Counter(item.type for item in items)
        assert types == {"DELETED": count // 4, "ADDED": count // 2}
        await watch.aclose()

    asyncio.run(scenario())


def test_an_agent_that_stops_ends_its_watches_at_once(tmp_path: Path) -> None:
    async def scenario(path: Path) -> None:
        async with agent(path) as (hive, _):
            client = Client(path, "nodes")
            await until(lambda: followers(hive) == 1)
            hive.shutdown()
            await asyncio.to_thread(client.thread.join)
        assert client.error is not None
        assert client.error.code == "AgentStopped"

    run(scenario, tmp_path)


def test_a_client_that_leaves_is_unsubscribed_though_nothing_changes(tmp_path: Path) -> None:
    async def scenario(path: Path) -> None:
        async with agent(path) as (hive, _):
            _, writer = await asyncio.open_unix_connection(path)
            writer.write(b"GET /v1/watch?kind=nodes HTTP/1.1\r\nHost: x\r\n\r\n")
            await until(lambda: followers(hive) == 1)
            writer.close()
            await until(lambda: followers(hive) == 0)

    run(scenario, tmp_path)


def test_a_client_that_does_not_read_holds_up_no_other_and_is_sent_the_last_state(
    tmp_path: Path,
) -> None:
    rounds = 200

    async def scenario(path: Path) -> None:
        async with agent(path) as (hive, source):
            reader, writer = await asyncio.open_unix_connection(path, limit=1024)
            writer.write(b"GET /v1/watch?kind=nodes HTTP/1.1\r\nHost: x\r\n\r\n")
            await until(lambda: followers(hive) == 1)
            quick = Client(path, "nodes")
            await until(lambda: followers(hive) == 2)
            for number in range(rounds):
                for index in range(100):
                    cidr = {"podCIDR": f"10.{number}.0.0/24"}
                    source.emit(NODE, Upsert(obj(NODE, f"n{index}", spec=cidr)))
                await asyncio.sleep(0)
            source.emit(NODE, Upsert(obj(NODE, "last")))
            await until(lambda: quick.items and quick.items[-1]["name"] == "last")
            octets = b""
            while b'"last"' not in octets:
                octets += await reader.read(65536)
            # What a socket's buffers hold, and one change for each object after that.
            assert octets.count(b"MODIFIED") < rounds * 100 / 2
            writer.close()
        await asyncio.to_thread(quick.thread.join)

    run(scenario, tmp_path)


def test_a_secret_is_named_and_its_values_are_not_shown(tmp_path: Path) -> None:
    def secret(value: str) -> Any:  # noqa: ANN401 - a row
        data = {"password": base64.b64encode(value.encode()).decode()}
        return obj(SECRET, "sesame", "kube-system", data=data)

    async def scenario(path: Path) -> None:
        async with agent(path) as (_, source):
            source.emit(SECRET, Replace((secret(PASSWORD),)))
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(b"GET /v1/watch?kind=secrets HTTP/1.1\r\nHost: x\r\n\r\n")
            octets = await reader.readuntil(b"sesame")
            source.emit(SECRET, Upsert(secret(PASSWORD[::-1])))
            octets += await reader.readuntil(b"MODIFIED")
            octets += await reader.readuntil(b"}")
            writer.close()
        for value in (PASSWORD, PASSWORD[::-1]):
            for form in (value.encode(), base64.b64encode(value.encode())):
                assert form not in octets

    run(scenario, tmp_path)


@pytest.mark.parametrize("word", ["services", "service", "Service", "SERVICES"])
def test_a_kind_is_found_as_kubectl_finds_it(word: str) -> None:
    assert find_kind(word, KINDS) is SERVICE


def test_a_kind_may_be_spelled_with_its_group() -> None:
    assert find_kind("ciliumbgpnodeconfigs.cilium.io", KINDS).name == "CiliumBGPNodeConfig"


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("servces", "NotFound", "there is no kind servces (did you mean services?)"),
        ("namespaces", "NotFound", "this agent does not read Namespace objects"),
        ("", "BadRequest", "name a kind, for example services"),
    ],
)
def test_a_kind_that_cannot_be_watched_is_refused(
    tmp_path: Path, query: str, code: str, message: str
) -> None:
    async def scenario(path: Path) -> None:
        async with agent(path):
            client = Client(path, query)
            await asyncio.to_thread(client.thread.join)
        assert client.error is not None
        assert (client.error.code, str(client.error)) == (code, message)

    run(scenario, tmp_path)
