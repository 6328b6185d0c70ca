"""The programs against an API server that forbids something."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import kubernetes_asyncio  # noqa: F401  imported here, as it takes seconds
import pytest
from aiohttp import web

from cells.dialects.cell import DialectCell
from cells.hive import Level, load
from cells.hive.hive import Hive
from cells.operator.webhook import certificate
from cells.report import cell as report
from reconcilers.dialect import Dialect
from reconcilers.operator import writes
from reconcilers.ovnk.dialect import OvnkDialect
from reconcilers.report import events, statuses
from reconcilers.report.node_objects import objects
from resources.kind import Kinds
from tests.cells.hurry import hurry
from tests.reconcilers import build
from tests.reconcilers.antrea import build as antrea
from tests.reconcilers.frrk8s import build as frrk8s
from tests.support.apiserver import ApiServer, Object, status
from tests.support.kinds import KINDS
from tests.support.ports import free_port
from tests.support.wait import until
from waggle_agent.__main__ import CELLS as AGENT_CELLS
from waggle_operator.__main__ import CELLS as OPERATOR_CELLS

NODE = "n1"


FORBIDDEN = status(403, "Forbidden", "no")


DIALECTS: dict[str, type[Dialect]] = {
    cell.name: cell.dialect
    for cell in AGENT_CELLS
    if isinstance(cell, DialectCell) and cell.name != "ovnk"
}
"""Dialects of which the programs read and write something by default: ovnk follows."""


OVNK: type[Dialect] = OvnkDialect


METALLB = {"apiVersion": "metallb.io/v1beta1", "namespace": "metallb-system"}


WEBHOOK = "waggle-webhook"


NEEDS = {"metallb": ("frrk8s",)}
"""Dialects whose conditions depend on the objects of others."""


def everything() -> Kinds:
    return Kinds(KINDS, *(one.all_kinds() for one in (*DIALECTS.values(), OVNK)))


def metallb(kind: str, name: str, spec: Object, version: str = "v1beta1") -> Object:
    return {
        "apiVersion": f"metallb.io/{version}",
        "kind": kind,
        "metadata": {"name": name, "namespace": "metallb-system"},
        "spec": spec,
    }


def secret(namespace: str, name: str) -> Object:
    kind = "kubernetes.io/basic-auth"
    metadata = {"name": name, "namespace": namespace}
    return {"kind": "Secret", "metadata": metadata, "type": kind, "data": {"password": "cHc="}}


def frr_configuration(name: str = "a") -> Object:
    neighbor = {"address": "127.0.0.3", "port": 1, "asn": 64950, "passwordSecret": {"name": "k"}}
    return frrk8s.configuration(name, {"bgp": {"routers": [frrk8s.router(neighbor)]}})


def bgp_peer(name: str = "p") -> Object:
    spec = {"myASN": 64900, "peerASN": 64950, "peerAddress": "127.0.0.4", "peerPort": 1}
    return metallb("BGPPeer", name, {**spec, "passwordSecret": {"name": "m"}}, "v1beta2")


def peer_config(name: str, **spec: str) -> Object:
    return build.peer_config(name, transport={"peerPort": 1}, **spec)


def fill(server: ApiServer) -> None:
    """Put in a peer of each dialect, each with a password of a Secret."""
    antrea_peer = {"address": "127.0.0.5", "port": 1, "asn": 64640}
    policy = antrea.policy(peers=[antrea_peer], pod=True, listenPort=free_port("127.0.0.1"))
    config = build.cluster_config(peers=[build.peer(peerAddress="127.0.0.2")])
    config["metadata"].update(uid="uid-c", generation=1)
    put: list[Object] = [
        antrea.node(NODE, router_id=None),
        {"kind": "CiliumBGPClusterConfig", **config},
        {"kind": "CiliumBGPPeerConfig", **peer_config("pc", authSecretRef="auth")},
        {"kind": "CiliumBGPAdvertisement", **build.advertisement()},
        secret("kube-system", "auth"),
        frr_configuration(),
        secret("frr-k8s-system", "k"),
        bgp_peer(),
        metallb("IPAddressPool", "pool", {"addresses": ["198.18.30.0/24"]}),
        metallb("BGPAdvertisement", "all", {"ipAddressPools": ["pool"]}),
        secret("metallb-system", "m"),
        policy,
        secret("kube-system", "antrea-bgp-passwords"),
    ]
    for one in put:
        server.put(one)
    server.webhooks[WEBHOOK] = {
        "metadata": {"name": WEBHOOK},
        "webhooks": [{"name": "all", "clientConfig": {}}],
    }


def quicken(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)
    monkeypatch.setattr(report, "SETTLE_SECONDS", 0.1)
    monkeypatch.setattr(objects, "INTERVAL_SECONDS", 0.05)
    monkeypatch.setattr(statuses, "WRITE_INTERVAL_SECONDS", 0.05)
    monkeypatch.setattr(events, "WRITE_INTERVAL_SECONDS", 0.05)
    monkeypatch.setattr(writes, "FIRST_RETRY_SECONDS", 0.05)
    monkeypatch.setattr(writes, "WRITE_INTERVAL_SECONDS", 0.02)
    monkeypatch.setattr(certificate, "FIRST_INTERVAL", 0.05)


def forbid_read(server: ApiServer, plural: str) -> None:
    server.always("list", plural, FORBIDDEN)
    server.always("watch", plural, FORBIDDEN)


def forbid_secret(server: ApiServer, name: str) -> None:
    """Forbid to read one Secret, as a Role with names does."""

    async def answer(request: web.Request) -> web.StreamResponse:
        refused = request.query.get("fieldSelector") == f"metadata.name={name}"
        return await (FORBIDDEN if refused else server.usual)(request)

    server.always("list", "secrets", answer)
    server.always("watch", "secrets", answer)


@asynccontextmanager
async def program(
    cells: Any,  # noqa: ANN401
    server: ApiServer,
    directory: Path,
    *,
    dialects: Sequence[str] = (),
    **flags: object,
) -> AsyncIterator[Hive]:
    """Run an agent or an operator with every dialect of `DIALECTS`, and more ``dialects``."""
    given: dict[str, Any] = {
        "--kubeconfig": str(server.kubeconfig(directory / "kubeconfig")),
        "--secrets-namespace": "kube-system",
        "enable_cell": [*DIALECTS, *dialects],
        **{f"--{name.replace('_', '-')}": value for name, value in flags.items()},
    }
    off = [cell.name for cell in cells if cell.name in ("logging", "api")]
    hive = Hive(cells, load(cells, flags={**given, "disable_cell": off}))
    started = asyncio.Event()
    task = asyncio.create_task(hive.run(started.set))
    await started.wait()
    try:
        yield hive
    finally:
        hive.shutdown()
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()


def operator(
    server: ApiServer, directory: Path, *, dialects: Sequence[str] = (), **flags: object
) -> Any:  # noqa: ANN401
    return program(
        OPERATOR_CELLS,
        server,
        directory,
        dialects=dialects,
        operator_identity="a",
        lease_retry_seconds="0.05",
        # A process that a busy machine keeps from running goes on leading.
        renew_deadline_seconds="900",
        lease_duration_seconds="1000",
        **flags,
    )


def scenario(test: Callable[[ApiServer], Any]) -> None:
    async def whole() -> None:
        async with ApiServer(everything()) as server, asyncio.timeout(120):
            fill(server)
            await test(server)

    asyncio.run(whole())


def message(hive: Hive, scope: str) -> tuple[Level, str]:
    found = {"/".join(s.path): (s.level, s.message) for s in hive.health.report()}
    return found.get(scope, (Level.OK, ""))


async def reaches(current: Callable[[], set[str]], wanted: set[str]) -> None:
    """Wait until something is a set; the difference is what fails."""
    with suppress(AssertionError):
        await until(lambda: current() == wanted)
    here = current()
    assert here == wanted, f"missing: {sorted(wanted - here)}; besides: {sorted(here - wanted)}"
