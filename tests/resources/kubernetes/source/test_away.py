"""F01 to F03: an API server that is away, or silent. What was known counts meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from resources.kubernetes import Access, KubernetesSource, Phase, Timeouts
from tests.resources.kubernetes.objects import service
from tests.resources.kubernetes.source.reading import SOON_SILENT, TIMEOUTS, Reader, reader, run
from tests.support.apiserver import ApiServer, stream
from tests.support.kinds import KINDS
from tests.support.wait import until

FAILS = {Phase.FAILING}


def test_f01_an_unreachable_api_server_deletes_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("web"))
            async with reader(server, tmp_path) as observed:
                await until(lambda: observed.names() == {"web"})
                before = len(observed.events["Service"])
                await server.stop()
                await until(lambda: observed.phase() is Phase.FAILING)
                message = observed.statuses["Service"].message
                assert message.startswith(f"cannot reach {server.url}: ")
                assert message.endswith("; the 1 known before are kept")
                server.delete("Service", "web", "shop")
                server.put(service("new"))
                await observed.fails_again()
                assert len(observed.events["Service"]) == before
                await server.start()
                await until(lambda: observed.names() == {"new"})
                await until(lambda: observed.phase() is Phase.FOLLOWING)
                assert observed.statuses["Service"].message == ""

    run(scenario)


def test_f01_an_outage_is_reported_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server, reader(server, tmp_path) as observed:
            await until(lambda: all(observed.events.values()))
            await server.stop()
            await until(lambda: observed.phase() is Phase.FAILING)
            await until(lambda: {one.status.phase for one in observed.source.reflectors} == FAILS)
            count = len(observed.messages)
            await observed.fails_again()
            assert len(observed.messages) <= count + len(KINDS)

    run(scenario)


def test_f02_an_api_server_unreachable_at_the_start_is_named_and_retried(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        server = ApiServer()
        await server.start()
        server.put(service("web"))
        await server.stop()
        async with reader(server, tmp_path) as observed:
            await until(lambda: bool(observed.statuses) and observed.phase() is Phase.FAILING)
            assert server.url in observed.statuses["Service"].message
            assert not any(observed.events.values())
            await server.start()
            await until(lambda: observed.names() == {"web"})
        await server.stop()

    run(scenario)


def test_f02_a_missing_kubeconfig_is_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        path = tmp_path / "later"
        async with ApiServer() as server:
            source = KubernetesSource(Access(str(path)), KINDS, {}, timeouts=TIMEOUTS)
            async with Reader(source) as observed:
                await until(lambda: bool(observed.statuses) and observed.phase() is Phase.FAILING)
                assert "later: No such file or directory" in observed.statuses["Service"].message
                path.write_text("clusters: [")
                await until(lambda: "No such file" not in observed.statuses["Service"].message)
                server.kubeconfig(path)
                await until(lambda: all(observed.events.values()))

    run(scenario)


def test_f03_a_half_open_connection_is_detected_and_the_watch_resumed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("web"))
            server.once("watch", "services", stream(then="hang"))
            async with reader(server, tmp_path, timeouts=SOON_SILENT) as observed:
                await until(lambda: observed.names() == {"web"})
                server.put(service("unseen"))
                await until(lambda: observed.names() == {"web", "unseen"})
                assert observed.replacements() == 1
                await until(lambda: observed.phase() is Phase.FOLLOWING)

    run(scenario)


def test_f03_a_hanging_list_times_out(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with ApiServer() as server:
            server.put(service("web"))
            server.once("list", "services", stream('{"kind": "Serv', then="hang"))
            timeouts = Timeouts(
                list_silence=0.1, watch_silence=0.2, first_retry=0.005, longest_retry=0.02
            )
            async with reader(server, tmp_path, timeouts=timeouts) as observed:
                await until(
                    lambda: ("Service", Phase.FAILING) in [m[:2] for m in observed.messages]
                )
                await until(lambda: observed.names() == {"web"})

    run(scenario)


def test_f03_repeatedly_silent_watches_lead_to_a_list(tmp_path: Path) -> None:
    """A proxy that keeps back what it should pass on."""

    async def scenario() -> None:
        async with ApiServer() as server:
            server.always("watch", "services", stream(then="hang"))
            async with reader(server, tmp_path, timeouts=SOON_SILENT) as observed:
                await until(lambda: observed.replacements() == 1)
                server.put(service("web"))
                await until(lambda: observed.names() == {"web"})

    run(scenario)
