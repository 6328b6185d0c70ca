"""F02: an agent that starts while the API server is away goes on from what is on its disk.

Without a file it waits; an API server that answers replaces all of it.
"""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import kubernetes_asyncio  # noqa: F401  imported here, as it takes seconds
import pytest

from cells import declarations
from cells.dialects import cilium
from cells.dialects.cell import agent_cell
from cells.hive import Level, load
from cells.hive.hive import Hive
from cells.sources import snapshot
from cells.state import state_files
from resources.kubernetes import KubernetesSource
from resources.snapshot_codec import decode, encode
from resources.state_file import read, write
from resources.tables import Tables
from statedb import Database, ReadTxn, Table
from tests.cells.hurry import hurry
from tests.cells.sources.test_api_server import levels, names
from tests.reconcilers.build import peer_config
from tests.resources.kubernetes.objects import advertisement, service
from tests.support import kinds
from tests.support.apiserver import ApiServer, status, text
from tests.support.wait import until

CELLS = (
    declarations.METRICS,
    declarations.NODE,
    declarations.DATABASE,
    declarations.RESOURCES,
    agent_cell(cilium.DIALECT),
    declarations.KUBERNETES,
    declarations.SNAPSHOT,
)
EMPTY = (
    '{"kind": "ServiceList", "apiVersion": "v1", '
    '"metadata": {"resourceVersion": "900"}, "items": []}'
)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts and writes within the time of a test."""
    monkeypatch.setattr(snapshot, "PAUSE", 0.02)
    hurry(monkeypatch)


@asynccontextmanager
async def agent(
    server: ApiServer, directory: Path, name: str = "n1", after: float = 0.1, **flags: object
) -> AsyncIterator[Hive]:
    """Run as much of an agent as reads."""
    given = {
        "--kubeconfig": str(server.kubeconfig(directory / "kubeconfig")),
        "--node-name": name,
        "--snapshot-file": str(directory / "state" / "snapshot"),
        "--snapshot-after-seconds": str(after),
        **{f"--{flag.replace('_', '-')}": value for flag, value in flags.items()},
    }
    hive = Hive(CELLS, load(CELLS, flags=given))
    started = asyncio.Event()
    task = asyncio.create_task(hive.run(started.set))
    await started.wait()
    try:
        yield hive
    finally:
        hive.shutdown()
        await task


def run(scenario: Callable[[ApiServer], Awaitable[None]]) -> None:
    """Run a scenario with a server."""

    async def whole() -> None:
        async with ApiServer() as server, asyncio.timeout(120):
            await scenario(server)

    asyncio.run(whole())


def complete(hive: Hive) -> bool:
    tables, now = hive.get(Tables), hive.get(Database).snapshot()
    return all(table.initialized(now) for table in tables.resources)


def secrets(hive: Hive) -> int:
    tables, now = hive.get(Tables), hive.get(Database).snapshot()
    return tables.secrets.count(now)


async def lived(server: ApiServer, directory: Path) -> None:
    """Let an agent live for long enough to write its file, with one of everything."""
    for name in ("web", "db"):
        server.put(service(name))
    server.put(advertisement("pods"))
    server.put({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n1"}})
    secret = {
        "metadata": {"name": "k", "namespace": "kube-system"},
        "data": {"password": "aHVzaA=="},
    }
    server.put({"kind": "Secret", "apiVersion": "v1", **secret})
    async with agent(server, directory, after=30.0) as hive:
        await until(lambda: complete(hive) and names(hive) == {"web", "db"})
        await until(lambda: (directory / "state" / "snapshot").exists())


def test_f02_an_agent_that_starts_without_api_server_goes_on_from_its_disk(tmp_path: Path) -> None:
    async def scenario(server: ApiServer) -> None:
        await lived(server, tmp_path)
        await server.stop()
        async with agent(server, tmp_path) as hive:
            await until(lambda: complete(hive))
            assert names(hive) == {"web", "db"}
            level, message = levels(hive)["snapshot"]
            assert level is Level.DEGRADED
            assert message.startswith("no answer from the API server: the objects of 20")
            message = f"cannot reach {server.url}: "
            await until(lambda: levels(hive)["kubernetes/Service"][1].startswith(message))
            # One is deleted and one created meanwhile: seen once it is back.
            server.delete("Service", "web", "shop")
            server.put(service("new"))
            await server.start()
            await until(lambda: names(hive) == {"db", "new"})
            await until(lambda: levels(hive)["snapshot"][0] is Level.OK)

    run(scenario)


def test_f02_what_is_in_a_file_has_been_confirmed_by_the_api_server(tmp_path: Path) -> None:
    async def scenario(server: ApiServer) -> None:
        path = tmp_path / "state" / "snapshot"

        def confirmed() -> float:
            return decode(path.read_bytes(), kinds.KINDS.without(kinds.SECRET)).confirmed

        server.put({"kind": "CiliumBGPPeerConfig", **peer_config("p", authSecretRef="k")})
        server.always("list", "secrets", status(500, "", "not now"))
        async with agent(server, tmp_path, after=30.0) as hive:
            await until(lambda: "answers 500" in levels(hive)["kubernetes/Secret/kube-system/k"][1])
            # Secrets are not in the file, which may be written before one is requested.
            assert not path.exists() or confirmed() > 0
            server.always("list", "secrets", None)
            await until(path.exists)
        assert confirmed() > 0

    run(scenario)


def test_f02_no_secret_is_in_the_file_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    async def scenario(server: ApiServer) -> None:
        await lived(server, tmp_path)
        path = tmp_path / "state" / "snapshot"
        found = path.read_bytes()
        assert b"hush" not in found
        assert b"aHVzaA==" not in found
        assert b"Secret" not in found
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        await server.stop()
        async with agent(server, tmp_path) as hive:
            await until(lambda: complete(hive))
            assert secrets(hive) == 0

    run(scenario)


async def fails_again(hive: Hive) -> None:
    """Wait until every kind could not be read some more times."""
    failures = {one: one.failures for one in hive.get(KubernetesSource).reflectors}
    await until(lambda: all(one.failures >= n + 3 for one, n in failures.items()))


def test_f02_without_a_file_an_agent_waits_and_names_the_server(tmp_path: Path) -> None:
    async def scenario(server: ApiServer) -> None:
        server.put(service("web"))
        await server.stop()
        async with agent(server, tmp_path) as hive:
            await until(lambda: "kubernetes/Service" in levels(hive))
            await until(lambda: server.url in levels(hive)["kubernetes/Service"][1])
            await fails_again(hive)
            assert not complete(hive)
            assert not (tmp_path / "state").exists()
            await server.start()
            await until(lambda: names(hive) == {"web"})

    run(scenario)


def test_f02_with_an_api_server_nothing_of_the_file_is_advertised(tmp_path: Path) -> None:
    async def scenario(server: ApiServer) -> None:
        await lived(server, tmp_path)
        server.delete("Service", "web", "shop")
        async with agent(server, tmp_path, after=30.0) as hive:
            seen: set[str] = set()
            tables = hive.get(Tables)
            tables.services.observable.subscribe(lambda _: seen.update(names(hive)))
            await until(lambda: complete(hive) and names(hive) == {"db"})
            # As at the time from which on the file would be used.
            assert hive.get(KubernetesSource).use_restored() == ()
            assert names(hive) == seen == {"db"}

    run(scenario)


def test_f02_an_empty_list_removes_rows_of_the_file_only_when_lists_confirm_it(
    tmp_path: Path,
) -> None:
    async def scenario(server: ApiServer) -> None:
        await lived(server, tmp_path)
        server.once("list", "services", text(200, EMPTY, "application/json"))
        async with agent(server, tmp_path, after=30.0, mass_withdraw_hold="2") as hive:
            await until(lambda: complete(hive))
            assert names(hive) == {"web", "db"}
            await until(lambda: len(server.queries("list", "services")) >= 3)
            await until(lambda: levels(hive)["kubernetes/Service"][0] is Level.OK)
            assert names(hive) == {"web", "db"}
            server.always("list", "services", text(200, EMPTY, "application/json"))
        async with agent(server, tmp_path, after=30.0, mass_withdraw_hold="2") as hive:
            await until(lambda: complete(hive))
            assert names(hive) == {"web", "db"}
            await until(lambda: names(hive) == set())

    run(scenario)


def test_f02_a_crd_deleted_meanwhile_is_deleted_after_the_hold_time(
    tmp_path: Path,
) -> None:
    async def scenario(server: ApiServer) -> None:
        await lived(server, tmp_path)
        server.served["ciliumbgpadvertisements"] = ()
        async with agent(server, tmp_path, mass_withdraw_hold="0.1") as hive:
            await until(lambda: complete(hive))
            kind = "kubernetes/CiliumBGPAdvertisement"
            await until(lambda: levels(hive)[kind][0] is Level.STOPPED)
            tables, db = hive.get(Tables), hive.get(Database)
            await until(lambda: tables.of(kinds.ADVERTISEMENT).count(db.snapshot()) == 0)
            assert len(server.queries("list", "")) >= 3

    run(scenario)


def _of_another_node(path: Path) -> None:
    found = decode(read(path) or b"", kinds.KINDS)
    write(path, encode("n2", found.confirmed, found.rows))


def _old(path: Path) -> None:
    found = decode(read(path) or b"", kinds.KINDS)
    write(path, encode(found.node, found.confirmed - 8 * 86400, found.rows))


def _damaged(path: Path) -> None:
    octets = path.read_bytes()
    write(path, [octets[:-20]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_of_another_node, "is not used: it belongs to the node 'n2'"),
        (_old, "is not used: it is 192 hours old"),
        (_damaged, "is not used: it does not end as it should"),
        (lambda path: path.chmod(0o666), "is not used: others may write to it"),
    ],
    ids=["another-node", "old", "damaged", "open-to-others"],
)
def test_f02_an_untrusted_file_is_named_and_not_used(
    tmp_path: Path, change: Callable[[Path], None], message: str
) -> None:
    async def scenario(server: ApiServer) -> None:
        await lived(server, tmp_path)
        change(tmp_path / "state" / "snapshot")
        await server.stop()
        async with agent(server, tmp_path) as hive:
            await until(lambda: message in levels(hive)["snapshot"][1])
            await fails_again(hive)
            assert not complete(hive)
            await server.start()
            await until(lambda: complete(hive) and names(hive) == {"web", "db"})
            # And is replaced by the objects of the API server.
            await until(lambda: levels(hive)["snapshot"][0] is Level.OK)

    run(scenario)


def test_f24_a_full_disk_is_named_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:  # noqa: ANN401
        raise OSError(28, "No space left on device")

    async def scenario(server: ApiServer) -> None:
        server.put(service("web"))
        with monkeypatch.context() as patched:
            patched.setattr(state_files, "write", full)
            async with agent(server, tmp_path) as hive:
                await until(lambda: complete(hive))
                message = "cannot be written: No space left on device"
                await until(lambda: message in levels(hive)["snapshot"][1])
                server.put(service("new"))
                await until(lambda: names(hive) == {"web", "new"})
                patched.setattr(state_files, "write", write)
                server.put(service("more"))
                await until(lambda: levels(hive)["snapshot"][0] is Level.OK)

    run(scenario)


def test_the_file_follows_the_tables_and_an_outage_does_not_renew_its_time(
    tmp_path: Path,
) -> None:
    async def scenario(server: ApiServer) -> None:
        path = tmp_path / "state" / "snapshot"

        def kept() -> set[str]:
            octets = read(path)
            rows = decode(octets, kinds.KINDS).rows["Service"] if octets else ()
            return {row.metadata.name for row in rows}

        server.put(service("web"))
        async with agent(server, tmp_path) as hive:
            await until(lambda: kept() == {"web"})
            server.put(service("new"))
            await until(lambda: kept() == {"web", "new"})
            await server.stop()
            await until(lambda: levels(hive)["kubernetes/Service"][0] is Level.DEGRADED)
            before = path.stat().st_mtime_ns
        # Nothing has changed since it was written, so it is left alone.
        assert path.stat().st_mtime_ns == before
        then = decode(read(path) or b"", kinds.KINDS).confirmed
        await asyncio.sleep(0.05)
        async with agent(server, tmp_path) as hive:
            await until(lambda: complete(hive))
            await until(lambda: levels(hive)["snapshot"][0] is Level.DEGRADED)
            await until(lambda: path.stat().st_mtime_ns != before)
        assert decode(read(path) or b"", kinds.KINDS).confirmed == then
        assert kept() == {"web", "new"}

    run(scenario)


def test_f02_one_kind_that_is_missing_is_not_an_api_server_that_is_away(tmp_path: Path) -> None:
    async def scenario(server: ApiServer) -> None:
        await lived(server, tmp_path)
        server.served["ciliumbgpadvertisements"] = ()
        async with agent(server, tmp_path, after=0.5) as hive:
            await until(lambda: complete(hive))
            await until(lambda: levels(hive)["kubernetes/Service"][1].startswith("listed"))
            await until(lambda: levels(hive)["snapshot"][0] is Level.DEGRADED)
            await until(
                lambda: levels(hive)["snapshot"][1].startswith(
                    "of CiliumBGPAdvertisement the objects of 20"
                )
            )
            assert levels(hive)["kubernetes"][0] is Level.OK

    run(scenario)


def test_once_all_is_read_no_table_is_asked_before_a_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    initialized = Table.initialized

    def recorded(table: Table[Any], txn: ReadTxn) -> bool:
        asked.append(table.name)
        return initialized(table, txn)

    async def scenario(server: ApiServer) -> None:
        path = tmp_path / "state" / "snapshot"
        server.put(service("web"))
        async with agent(server, tmp_path) as hive:
            await until(path.exists)
            before = path.stat().st_mtime_ns
            monkeypatch.setattr(Table, "initialized", recorded)
            server.put(service("new"))
            await until(lambda: names(hive) == {"web", "new"})
            await until(lambda: path.stat().st_mtime_ns != before)
            assert asked == []

    run(scenario)
