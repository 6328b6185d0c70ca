"""What the operator may not do stops reviews of its own dialect alone."""

from __future__ import annotations

import asyncio
import copy
import functools
import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from cells.hive import Level
from cells.operator import cell as operator_cell
from cells.sources import api_server
from tests.cells.faults.permissions.programs import (
    DIALECTS,
    FORBIDDEN,
    WEBHOOK,
    bgp_peer,
    forbid_read,
    frr_configuration,
    message,
    operator,
    quicken,
    reaches,
    scenario,
)
from tests.cells.faults.permissions.test_operator import of_operator, read_by_operator, written
from tests.support.apiserver import ApiServer, Object
from tests.support.ports import free_port
from tests.support.wait import until


async def hang(_: web.Request) -> web.StreamResponse:
    """Answer nothing, as a conversion webhook that hangs."""
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


def test_a_kind_without_an_answer_stops_its_own_dialect_alone_in_the_operator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_server, "FIRST_ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(operator_cell, "UNREAD_SECONDS", 0.1)

    async def test(server: ApiServer) -> None:
        server.always("list", "ciliumbgpclusterconfigs", hang)
        port = free_port("127.0.0.1")
        async with webhook(server, tmp_path, port):
            await reaches(lambda: written(server), DIALECTS.keys() - {"cilium"})
            await until_reviewed(port, {"frrk8s", "metallb"})

    scenario(test)


def review(value: Object) -> bytes:
    group, _, version = value["apiVersion"].partition("/")
    request = {
        "uid": "0-1",
        "kind": {"group": group, "version": version, "kind": value["kind"]},
        "operation": "CREATE",
        "object": value,
    }
    head = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    return json.dumps({**head, "request": request}).encode()


async def answers(port: int) -> set[str]:
    """Return the dialects of which the webhook reviews an object."""
    found = set()
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    connector = aiohttp.TCPConnector(ssl=tls, force_close=True)
    async with aiohttp.ClientSession(f"https://127.0.0.1:{port}", connector=connector) as session:
        for name, value in (("frrk8s", frr_configuration("b")), ("metallb", bgp_peer("q"))):
            with suppress(aiohttp.ClientConnectionError):
                async with session.post(f"/validate/{name}", data=review(value)) as answer:
                    if answer.status == 200:
                        found.add(name)
    return found


async def until_reviewed(port: int, wanted: set[str]) -> None:
    found: set[str] = set()
    for _ in range(1200):
        found = await answers(port)
        if found == wanted:
            return
        await asyncio.sleep(0.05)
    assert found == wanted


def webhook(server: ApiServer, directory: Path, port: int) -> Any:  # noqa: ANN401
    return operator(
        server,
        directory,
        webhook=f"127.0.0.1:{port}",
        webhook_configuration=WEBHOOK,
        webhook_secret=WEBHOOK,
        webhook_names=["localhost"],
        operator_deployment="waggle-operator",
    )


def forbid(server: ApiServer, verb: str, plural: str) -> None:
    server.always(verb, plural, FORBIDDEN)


def reviews() -> Iterator[tuple[str, Callable[[ApiServer], None], set[str]]]:
    """Yield what is forbidden, and the dialects whose objects are reviewed all the same."""
    both = {"frrk8s", "metallb"}
    for kind in read_by_operator():
        own = {name for name, one in DIALECTS.items() if kind in of_operator(one)}
        yield kind.plural, functools.partial(forbid_read, plural=kind.plural), both - own
    for verb, plural in (
        ("list", "secrets"),
        ("list", "daemonsets"),
        ("list", "services"),
        ("get", "configmaps"),
        ("patch", "configmaps"),
        ("get", "deployments"),
        ("create", "events"),
        ("create", "leases"),
        ("get", "leases"),
        ("update", "leases"),
        ("get", "validatingwebhookconfigurations"),
        ("patch", "validatingwebhookconfigurations"),
        ("update", "secrets"),
    ):
        yield f"{verb} {plural}", functools.partial(forbid, verb=verb, plural=plural), both


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Object, Object]:
    """The stored certificate and the published authority of an operator that ran before."""
    found: list[Object] = []

    async def run(server: ApiServer) -> None:
        port = free_port("127.0.0.1")
        async with webhook(server, tmp_path_factory.mktemp("published"), port):
            await until_reviewed(port, {"frrk8s", "metallb"})
        found.extend((server.objects["secrets"]["kube-system", WEBHOOK], server.webhooks[WEBHOOK]))

    with pytest.MonkeyPatch.context() as patch:
        quicken(patch)
        scenario(run)
    certificate, configuration = found
    return certificate, configuration


@pytest.mark.parametrize(
    ("forbids", "reviewed"), [pytest.param(*rest, id=name) for name, *rest in reviews()]
)
def test_what_the_operator_may_not_do_stops_reviews_of_its_own_dialect_alone(
    forbids: Callable[[ApiServer], None],
    reviewed: set[str],
    published: tuple[Object, Object],
    tmp_path: Path,
) -> None:
    async def test(server: ApiServer) -> None:
        port = free_port("127.0.0.1")
        certificate, configuration = copy.deepcopy(published)
        server.put({"kind": "Secret", **certificate})
        server.webhooks[WEBHOOK] = configuration
        forbids(server)
        async with webhook(server, tmp_path, port):
            await until_reviewed(port, reviewed)

    scenario(test)


@pytest.mark.parametrize("verb", ["get", "create"])
def test_a_certificate_that_may_not_be_stored_or_read_stops_no_write(
    verb: str, tmp_path: Path
) -> None:
    """Objects are not reviewed without one; all else of the operator goes on, and reviews follow."""

    async def test(server: ApiServer) -> None:
        server.always(verb, "secrets", FORBIDDEN)
        port = free_port("127.0.0.1")
        async with webhook(server, tmp_path, port) as hive:
            await reaches(lambda: written(server), set(DIALECTS))
            await until(lambda: message(hive, "webhook")[0] is Level.DEGRADED)
            server.always(verb, "secrets", None)
            await until_reviewed(port, {"frrk8s", "metallb"})

    scenario(test)
