"""Stored versions (C55): every object is written once, then the definition forgets the old version."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import kubernetes_asyncio  # noqa: F401  imported here, as it takes seconds
import pytest

from resources.kubernetes import Access, Connection, KubernetesError, Migration, Writer, migrate
from tests.resources.kubernetes.objects import advertisement
from tests.support.apiserver import ApiServer, Object, status
from tests.support.kinds import ADVERTISEMENT

NAME = "ciliumbgpadvertisements.cilium.io"
PLURAL = "ciliumbgpadvertisements"


def definition(*stored: str, storage: str = "v2") -> Object:
    """Build as much of a definition as matters."""
    versions = [{"name": v, "served": True, "storage": v == storage} for v in ("v2", "v2alpha1")]
    return {
        "metadata": {"name": NAME, "resourceVersion": "7"},
        "spec": {"versions": versions},
        "status": {"storedVersions": list(stored)},
    }


def fill(server: ApiServer, count: int, *stored: str, **more: Any) -> None:  # noqa: ANN401
    for number in range(count):
        server.put(advertisement(f"a{number}") | {"apiVersion": "cilium.io/v2alpha1"})
    server.definitions[NAME] = definition(*stored, **more)


def versions(server: ApiServer) -> list[str]:
    return [obj["apiVersion"] for obj in server.objects[PLURAL].values()]


def stored(server: ApiServer) -> list[str]:
    found: list[str] = server.definitions[NAME]["status"]["storedVersions"]
    return found


def writes(server: ApiServer) -> int:
    return len([verb for verb, _, _ in server.requests if verb not in ("get", "list")])


def run(
    directory: Path,
    scenario: Callable[[ApiServer, Callable[..., Awaitable[Migration | None]]], Awaitable[None]],
) -> None:
    """Run a scenario with a server and with what migrates advertisements on it."""

    async def whole() -> None:
        async with ApiServer() as server, asyncio.timeout(200):
            connection = Connection(Access(str(server.kubeconfig(directory / "kubeconfig"))))
            writer = Writer(connection, "waggle-operator")

            def go(allowed: Callable[[], bool] = lambda: True) -> Awaitable[Migration | None]:
                return migrate(writer, ADVERTISEMENT, allowed)

            try:
                await scenario(server, go)
            finally:
                await connection.close()

    asyncio.run(whole())


def test_c55_objects_of_the_old_version_are_rewritten_and_it_is_dropped(
    tmp_path: Path,
) -> None:
    async def scenario(server: ApiServer, go: Callable[..., Any]) -> None:
        fill(server, 3, "v2alpha1", "v2")
        assert await go() == Migration("CiliumBGPAdvertisement", 3, ("v2alpha1",))
        assert versions(server) == ["cilium.io/v2"] * 3
        assert stored(server) == ["v2"]

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("names", "storage"),
    [(("v2",), "v2"), (("v2alpha1",), "v2alpha1"), (("v2alpha1", "v2"), "v2alpha1")],
    ids=["present", "still-stored-as-before", "stored-as-before-again"],
)
def test_c55_without_old_versions_nothing_is_written(
    tmp_path: Path, names: tuple[str, ...], storage: str
) -> None:
    async def scenario(server: ApiServer, go: Callable[..., Any]) -> None:
        fill(server, 1, *names, storage=storage)
        assert await go() is None
        assert writes(server) == 0

    run(tmp_path, scenario)


def test_a_kind_without_a_definition_is_not_migrated(tmp_path: Path) -> None:
    async def scenario(server: ApiServer, go: Callable[..., Any]) -> None:
        assert await go() is None
        assert [verb for verb, _, _ in server.requests] == ["get"]

    run(tmp_path, scenario)


def test_an_object_deleted_during_a_migration_is_skipped(tmp_path: Path) -> None:
    async def scenario(server: ApiServer, go: Callable[..., Any]) -> None:
        fill(server, 3, "v2alpha1", "v2")
        server.once("patch", PLURAL, server.usual, status(404, "NotFound", "gone"))
        assert await go() is not None
        assert stored(server) == ["v2"]

    run(tmp_path, scenario)


def test_a_rejected_object_is_named_and_the_old_version_stays_listed(
    tmp_path: Path,
) -> None:
    async def scenario(server: ApiServer, go: Callable[..., Any]) -> None:
        fill(server, 3, "v2alpha1", "v2")
        server.once("patch", PLURAL, status(422, "Invalid", "spec.x: required"))
        with pytest.raises(KubernetesError) as raised:
            await go()
        assert str(raised.value) == (
            "CiliumBGPAdvertisement/a0 cannot be rewritten: 422: spec.x: required"
        )
        assert sorted(versions(server)) == ["cilium.io/v2", "cilium.io/v2", "cilium.io/v2alpha1"]
        assert stored(server) == ["v2alpha1", "v2"]
        # It is right by now.
        assert await go() is not None
        assert stored(server) == ["v2"]

    run(tmp_path, scenario)


def test_a_definition_changed_during_a_migration_is_migrated_again(tmp_path: Path) -> None:
    async def scenario(server: ApiServer, go: Callable[..., Any]) -> None:
        fill(server, 1, "v2alpha1", "v2")

        async def changed(request: Any) -> Any:  # noqa: ANN401
            server.definitions[NAME]["metadata"]["resourceVersion"] = "8"
            return await server.usual(request)

        server.once("patch", PLURAL, changed)
        with pytest.raises(KubernetesError, match="409"):
            await go()
        assert stored(server) == ["v2alpha1", "v2"]

    run(tmp_path, scenario)


def test_a_migration_stops_with_the_loss_of_leadership(tmp_path: Path) -> None:
    async def scenario(server: ApiServer, go: Callable[..., Any]) -> None:
        fill(server, 5, "v2alpha1", "v2")
        answers = iter([True, True, False])
        with pytest.raises(KubernetesError, match="another operator leads"):
            await go(lambda: next(answers))
        assert writes(server) == 2
        assert stored(server) == ["v2alpha1", "v2"]

    run(tmp_path, scenario)


def test_a_response_in_pieces_is_read_completely(tmp_path: Path) -> None:
    async def scenario(server: ApiServer, go: Callable[..., Any]) -> None:
        fill(server, 1, "v2alpha1", "v2")
        server.definitions[NAME]["spec"]["text"] = "x" * (2 << 20)
        assert await go() is not None

    run(tmp_path, scenario)
