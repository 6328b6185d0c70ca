"""F07 and F08: tokens and authorities that are replaced while the source runs."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from kubernetes_asyncio.config import incluster_config  # imported here, as it takes seconds

from resources.kubernetes import Access, KubernetesSource
from resources.kubernetes import connection as connections
from tests.resources.kubernetes.objects import service
from tests.resources.kubernetes.source.reading import TIMEOUTS, Reader, run
from tests.support.apiserver import ApiServer
from tests.support.certificates import authority_and_server
from tests.support.kinds import KINDS
from tests.support.wait import until


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
            source = KubernetesSource(Access(str(config)), KINDS, {}, timeouts=TIMEOUTS)
            async with Reader(source) as observed:
                await until(lambda: all(observed.events.values()))
                server.token = "two"
                await server.stop()
                await server.start()
                await until(lambda: "answers 401" in observed.statuses["Service"].message)
                token.write_text("two")
                server.put(service("web"))
                await until(lambda: observed.names() == {"web"})
                assert not [m for _, _, m in observed.messages if "one" in m.split()]

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
        source = KubernetesSource(Access(connections.IN_CLUSTER), KINDS, {}, timeouts=TIMEOUTS)
        async with Reader(source) as observed:
            await until(lambda: all(observed.events.values()))
            server.token = "two"
            token.write_text("two")
            await server.stop()
            await server.start(context)
            server.put(service("web"))
            await until(lambda: observed.names() == {"web"})
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
        source = KubernetesSource(Access(str(config)), KINDS, {}, timeouts=TIMEOUTS)
        async with Reader(source) as observed:
            await until(lambda: observed.names() == {"web"})
            await server.stop()
            await server.start(second)
            await until(lambda: "certificate" in observed.statuses["Service"].message)
            assert observed.names() == {"web"}
            trusted.write_bytes(new.read_bytes())
            server.put(service("late"))
            await until(lambda: observed.names() == {"web", "late"})
        await server.stop()

    run(scenario)
