"""F05: a list in which many objects are missing is applied once lists have confirmed it for a while."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from resources.kubernetes import Phase
from resources.source import Replace
from tests.resources.kubernetes.objects import service
from tests.resources.kubernetes.source.reading import SOON_SILENT, TIMEOUTS, reader, run
from tests.support.apiserver import ApiServer, text
from tests.support.wait import until

PATIENT = replace(TIMEOUTS, mass_withdraw_hold=60.0)
EMPTY = text(
    200,
    '{"kind": "ServiceList", "apiVersion": "v1", "metadata": {"resourceVersion": "900"}, "items": []}',
    "application/json",
)


def test_f05_a_server_restored_from_a_backup_is_confirmed_by_a_second_list(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            for name in ("web", "db"):
                server.put(service(name))
            async with reader(server, tmp_path, timeouts=SOON_SILENT) as observed:
                await until(lambda: observed.names() == {"web", "db"})
                await server.stop()
                server.version = 50
                server.history.clear()
                server.objects["services"].clear()
                server.put(service("web"))
                await server.start()
                await until(lambda: observed.names() == {"web"})
                back = [m for n, _, m in observed.messages if n == "Service" and "went back" in m]
                assert back
                server.put(service("new"))
                await until(lambda: observed.names() == {"web", "new"})

    run(scenario)


def test_f05_an_empty_list_deletes_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("web"))
            async with reader(server, tmp_path, timeouts=PATIENT) as observed:
                await until(lambda: observed.names() == {"web"})
                server.always("list", "services", EMPTY)
                await server.stop()
                server.version = 900
                server.compact()
                await server.start()
                await until(lambda: observed.phase() is Phase.HOLDING)
                assert observed.names() == {"web"}
                assert "Service" in observed.source.behind
                assert not observed.source.current
                server.always("list", "services", None)
                await until(lambda: observed.phase() is Phase.FOLLOWING)
                assert observed.names() == {"web"}
                assert all(
                    len(e.objects) for e in observed.events["Service"] if isinstance(e, Replace)
                )

    run(scenario)


def test_f05_lists_that_are_empty_over_the_hold_time_delete(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("web"))
            async with reader(server, tmp_path) as observed:
                await until(lambda: observed.names() == {"web"})
                await server.stop()
                server.objects["services"].clear()
                server.version = 1000
                server.compact()
                await server.start()
                await until(lambda: observed.names() == set())
                assert any(phase is Phase.HOLDING for _, phase, _ in observed.messages)

    run(scenario)


def test_f05_a_source_that_runs_again_confirms_an_empty_list_too(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("web"))
            observed = reader(server, tmp_path, timeouts=PATIENT)
            async with observed:
                await until(lambda: observed.names() == {"web"})
            server.once("list", "services", EMPTY)
            first = len(server.queries("list", "services"))
            async with observed:
                await until(lambda: len(server.queries("list", "services")) == first + 2)
                await until(lambda: observed.phase() is Phase.FOLLOWING)
                assert observed.names() == {"web"}

    run(scenario)
