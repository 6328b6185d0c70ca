"""What may not be read or written is the matter of one dialect: agent, operator and webhook go on.

Each permission is taken away in turn, before the start, while all API dialects are on. Never looks
inside the operator; of an agent the peers of the intent are compared.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import json
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import kubernetes_asyncio  # noqa: F401  imported here, as it takes seconds
import pytest
from aiohttp import web
from msgspec.structs import replace

from cells.dialects.cell import DialectCell
from cells.hive import Level, load
from cells.hive.hive import Hive
from cells.operator import cell as operator_cell
from cells.operator.webhook import certificate
from cells.report import cell as report
from cells.sources import kubernetes
from reconcilers.dialect import Dialect
from reconcilers.intent import dialect_readings
from reconcilers.operator import writes
from reconcilers.tables import IntentTables
from resources.core.kinds import NODE as NODE_KIND
from resources.core.kinds import SECRET
from resources.kind import Kind, Kinds
from statedb import Database
from tests.cells.hurry import QUICK, hurry
from tests.cmd.lab import free_port
from tests.reconcilers import build
from tests.reconcilers.antrea import build as antrea
from tests.reconcilers.frrk8s import build as frrk8s
from tests.support.apiserver import Answer, ApiServer, Object, status
from tests.support.kinds import KINDS
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
METALLB = {"apiVersion": "metallb.io/v1beta1", "namespace": "metallb-system"}
WEBHOOK = "waggle-webhook"
NEEDS = {"metallb": ("frrk8s",)}
"""Dialects whose conditions depend on the objects of others."""


def everything() -> Kinds:
    return Kinds(KINDS, *(one.all_kinds() for one in DIALECTS.values()))


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
    objects: list[Object] = [
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
    for one in objects:
        server.put(one)
    server.webhooks[WEBHOOK] = {
        "metadata": {"name": WEBHOOK},
        "webhooks": [{"name": "all", "clientConfig": {}}],
    }


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Second attempts within the time of a test."""
    quicken(monkeypatch)


def quicken(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)
    monkeypatch.setattr(report, "SETTLE_SECONDS", 0.1)
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
    **flags: object,
) -> AsyncIterator[Hive]:
    """Run an agent or an operator with every dialect."""
    given: dict[str, Any] = {
        "--kubeconfig": str(server.kubeconfig(directory / "kubeconfig")),
        "--secrets-namespace": "kube-system",
        "enable_cell": list(DIALECTS),
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


def operator(server: ApiServer, directory: Path, **flags: object) -> Any:  # noqa: ANN401
    return program(
        OPERATOR_CELLS,
        server,
        directory,
        operator_identity="a",
        lease_retry_seconds="0.05",
        **flags,
    )


def scenario(test: Callable[[ApiServer], Any]) -> None:
    async def whole() -> None:
        async with ApiServer(everything()) as server, asyncio.timeout(40):
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
    assert current() == wanted


# The operator


def written(server: ApiServer) -> set[str]:
    """Return the dialects for which the operator has written something."""

    def has_conditions(plural: str) -> bool:
        rows = server.objects[plural].values()
        return any(row.get("status", {}).get("conditions") for row in rows)

    node = server.objects["nodes"]["", NODE]["metadata"]
    found = {
        "cilium": bool(server.objects["ciliumbgpnodeconfigs"]),
        "frrk8s": has_conditions("frrconfigurations"),
        "metallb": has_conditions("bgppeers"),
        "antrea": bool(node.get("annotations")),
    }
    return {name for name, is_written in found.items() if is_written}


def of_operator(dialect: type[Dialect]) -> tuple[Kind[Any], ...]:
    return dialect.read(dialect.operator_options_type(), operator=True)


def read_by_operator() -> list[Kind[Any]]:
    kinds = {kind.name: kind for one in DIALECTS.values() for kind in of_operator(one)}
    return [kind for kind in kinds.values() if kind not in (SECRET, NODE_KIND)]


def blocked_by(kind: Kind[Any]) -> set[str]:
    """Return the dialects that read a kind, and the dialects that depend on these."""
    found = {name for name, one in DIALECTS.items() if kind in of_operator(one)}
    of_frr = {name for name, needs in NEEDS.items() if found.intersection(needs)}
    return found | of_frr


@pytest.mark.parametrize("kind", read_by_operator(), ids=lambda kind: str(kind.plural))
def test_a_kind_that_an_operator_may_not_read_stops_its_own_dialect_alone(
    kind: Kind[Any], tmp_path: Path
) -> None:
    blocked = blocked_by(kind)
    if kind.name == "FRRK8sConfiguration":
        blocked.discard("metallb")

    async def test(server: ApiServer) -> None:
        forbid_read(server, kind.plural)
        async with operator(server, tmp_path) as hive:
            await reaches(lambda: written(server), DIALECTS.keys() - blocked)
            await until(lambda: message(hive, "operator")[0] is Level.DEGRADED)
            text = message(hive, "operator")[1]
            for name in DIALECTS:
                waits = f"nothing is written for {name}: {kind.name} cannot be read" in text
                assert waits is (name in blocked), text
            server.always("list", kind.plural, None)
            server.always("watch", kind.plural, None)
            await reaches(lambda: written(server), set(DIALECTS))
            await until(lambda: message(hive, "operator")[0] is Level.OK)

    scenario(test)


def test_an_operator_reads_the_secrets_of_peer_configs_and_no_others(tmp_path: Path) -> None:
    async def test(server: ApiServer) -> None:
        async with operator(server, tmp_path):
            await reaches(lambda: written(server), set(DIALECTS))
            await until(lambda: bool(auth_condition(server)))
        assert auth_condition(server) == "False"
        assert {query["fieldSelector"] for query in server.queries("list", "secrets")} == {
            "metadata.name=auth"
        }

    scenario(test)


def auth_condition(server: ApiServer) -> str:
    row = server.objects["ciliumbgppeerconfigs"]["", "pc"]
    found = row.get("status", {}).get("conditions", [])
    return next((str(one["status"]) for one in found if "Auth" in one["type"]), "")


def test_a_secret_that_may_not_be_read_is_neither_missing_nor_there(tmp_path: Path) -> None:
    async def test(server: ApiServer) -> None:
        forbid_secret(server, "auth")
        server.put({"kind": "CiliumBGPPeerConfig", **peer_config("other")})
        other = server.objects["ciliumbgppeerconfigs"]
        async with operator(server, tmp_path):
            await reaches(lambda: written(server), set(DIALECTS))
            await until(lambda: bool(other["", "other"].get("status")))
            assert auth_condition(server) == ""
            server.always("list", "secrets", None)
            server.always("watch", "secrets", None)
            await until(lambda: auth_condition(server) == "False")

    scenario(test)


WRITES = {
    "ciliumbgpnodeconfigs": "cilium",
    "frrconfigurations": "frrk8s",
    "bgppeers": "metallb",
    "nodes": "antrea",
}


@pytest.mark.parametrize("plural", WRITES)
def test_an_object_that_an_operator_may_not_write_stops_no_other(
    plural: str, tmp_path: Path
) -> None:
    async def test(server: ApiServer) -> None:
        server.always("patch", plural, FORBIDDEN)
        async with operator(server, tmp_path):
            await reaches(lambda: written(server), DIALECTS.keys() - {WRITES[plural]})
            server.always("patch", plural, None)
            await reaches(lambda: written(server), set(DIALECTS))

    scenario(test)


# The webhook


async def hang(_: web.Request) -> web.StreamResponse:
    """Answer nothing, as a conversion webhook that hangs."""
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


def test_a_kind_without_an_answer_stops_its_own_dialect_alone_in_the_operator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes, "FIRST_ANSWER_SECONDS", 0.2)
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
    for _ in range(200):
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


# An agent


def agent(server: ApiServer, directory: Path, on_conflict: str = "isolate") -> Any:  # noqa: ANN401
    return program(AGENT_CELLS, server, directory, node_name=NODE, on_conflict=on_conflict)


def peers_of(hive: Hive) -> set[str]:
    """Return the addresses of the peers that an agent has."""
    snapshot = hive.get(Database).snapshot()
    return {str(peer.address) for peer in hive.get(IntentTables).peers.all(snapshot)}


PEERS = {
    "cilium": "127.0.0.2",
    "frrk8s": "127.0.0.3",
    "metallb": "127.0.0.4",
    "antrea": "127.0.0.5",
}


def read_by_agent() -> list[Kind[Any]]:
    kinds = {
        kind.name: kind
        for one in DIALECTS.values()
        for kind in one.read(one.options_type(), operator=False)
    }
    return [kind for kind in kinds.values() if kind is not SECRET]


@pytest.mark.parametrize("kind", read_by_agent(), ids=lambda kind: str(kind.plural))
def test_a_kind_that_an_agent_may_not_read_takes_no_peer_of_another_dialect(
    kind: Kind[Any], tmp_path: Path
) -> None:
    async def test(server: ApiServer) -> None:
        forbid_read(server, kind.plural)
        others = {PEERS[name] for name, one in DIALECTS.items() if kind not in one.kinds}
        async with agent(server, tmp_path) as hive:
            await until(lambda: others <= peers_of(hive))
            server.always("list", kind.plural, None)
            server.always("watch", kind.plural, None)
            await reaches(lambda: peers_of(hive), set(PEERS.values()))

    scenario(test)


def failing_kinds() -> list[Any]:
    """Return each kind of a dialect; merged kinds with each mode of conflicts."""
    merged = {kind.name for name in ("frrk8s", "metallb") for kind in DIALECTS[name].kinds}
    return [
        pytest.param(kind, mode, id=f"{kind.plural}-{mode}")
        for kind in read_by_agent()
        if kind.custom
        for mode in (("keep", "clear", "isolate") if kind.name in merged else ("isolate",))
    ]


@pytest.mark.parametrize(("kind", "on_conflict"), failing_kinds())
def test_f06_a_kind_whose_lists_alone_fail_takes_no_peer_of_another_dialect(
    kind: Kind[Any], on_conflict: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hurry(monkeypatch, replace(QUICK, failing_grace=0.1))

    async def test(server: ApiServer) -> None:
        server.always(
            "list", kind.plural, status(500, "InternalError", "conversion webhook failed")
        )
        others = {PEERS[name] for name, one in DIALECTS.items() if kind not in one.kinds}
        async with agent(server, tmp_path, on_conflict) as hive:
            await until(lambda: others <= peers_of(hive))
            server.always("list", kind.plural, None)
            await reaches(lambda: peers_of(hive), set(PEERS.values()))

    scenario(test)


WITH = {
    "ciliumbgpadvertisements": ("cilium",),
    "bgppolicies": ("antrea",),
    "bgppeers": ("frrk8s", "metallb"),
}
"""The dialects that wait for a kind: MetalLB feeds FRR-k8s, and both are one configuration."""


@pytest.mark.parametrize(
    ("plural", "answer"),
    [
        ("ciliumbgpadvertisements", hang),
        ("bgppolicies", status(500, "InternalError", "conversion webhook failed")),
        ("bgppeers", FORBIDDEN),
    ],
    ids=["hangs", "fails", "forbidden"],
)
def test_f06_a_dialect_that_has_been_read_does_not_wait_for_a_kind_of_another_one(
    plural: str, answer: Answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hurry(monkeypatch, replace(QUICK, forbidden_grace=600.0))
    monkeypatch.setattr(dialect_readings, "WAIT_SECONDS", 0.2)
    others = {PEERS[name] for name in DIALECTS if name not in WITH[plural]}

    async def test(server: ApiServer) -> None:
        server.always("list", plural, answer)
        async with agent(server, tmp_path) as hive:
            await reaches(lambda: peers_of(hive), others)
            assert message(hive, "intent")[0] is Level.DEGRADED
            assert not hive.readiness.ready
            server.always("list", plural, None)
            if answer is not hang:
                await reaches(lambda: peers_of(hive), set(PEERS.values()))

    scenario(test)


@pytest.mark.parametrize("on_conflict", ["keep", "clear", "isolate"])
@pytest.mark.parametrize("name", ["auth", "k", "m", "antrea-bgp-passwords"])
def test_a_secret_that_an_agent_may_not_read_takes_no_other_peer(
    name: str, on_conflict: str, tmp_path: Path
) -> None:
    owner = dict(zip(("auth", "k", "m", "antrea-bgp-passwords"), PEERS.values(), strict=True))[name]

    async def test(server: ApiServer) -> None:
        forbid_secret(server, name)
        async with agent(server, tmp_path, on_conflict) as hive:
            await until(lambda: set(PEERS.values()) - {owner} <= peers_of(hive))
            server.always("list", "secrets", None)
            server.always("watch", "secrets", None)
            await reaches(lambda: peers_of(hive), set(PEERS.values()))

    scenario(test)


def test_an_agent_opens_no_session_without_a_password_that_it_may_not_read(tmp_path: Path) -> None:
    def down(hive: Hive) -> set[str]:
        peers = hive.get(IntentTables).peers.all(hive.get(Database).snapshot())
        return {peer.down_reason or "" for peer in peers if peer.dialect == "antrea"}

    async def test(server: ApiServer) -> None:
        forbid_secret(server, "antrea-bgp-passwords")
        async with agent(server, tmp_path) as hive:
            text = "Secret kube-system/antrea-bgp-passwords could not be read"
            await until(lambda: down(hive) == {text})
            server.delete("Secret", "antrea-bgp-passwords", "kube-system")
            server.always("list", "secrets", None)
            server.always("watch", "secrets", None)
            # Without the Secret no peer has a password, as in Antrea.
            await reaches(lambda: down(hive), {""})

    scenario(test)


# What an agent writes


def written_by_agent(server: ApiServer) -> set[str]:
    """Return the kinds of which an agent has written an object, or a status."""
    states = ("frrnodestates", "bgpsessionstates", "configurationstates")
    found = {plural for plural in states if server.objects[plural]}
    if server.objects["ciliumbgpnodeconfigs"]["", NODE].get("status"):
        found.add("ciliumbgpnodeconfigs")
    return found | ({"events"} if server.events else set())


FORBIDDEN_WRITES = {
    "frrnodestates": "create",
    "bgpsessionstates": "create",
    "configurationstates": "create",
    "events": "create",
    "ciliumbgpnodeconfigs": "patch",
}
"""The verb of an agent's first write of each kind."""


def node_config() -> Object:
    """Make the NodeConfig that the operator writes for the ClusterConfig of `fill`.

    An agent reports its status where it is in the API server, and generates no object there.
    """
    neighbor = {"name": "p", "peerASN": 65010, "peerAddress": "127.0.0.2"}
    instance = {
        "name": "i",
        "localASN": 65001,
        "peers": [{**neighbor, "peerConfigRef": {"name": "pc"}}],
    }
    return {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumBGPNodeConfig",
        "metadata": {"name": NODE, "uid": "uid-node-config"},
        "spec": {"bgpInstances": [instance]},
    }


@pytest.mark.parametrize("plural", FORBIDDEN_WRITES)
def test_what_an_agent_may_not_write_stops_no_other_write(plural: str, tmp_path: Path) -> None:
    async def test(server: ApiServer) -> None:
        # An Event: the Secret of an FRRConfiguration is missing.
        server.delete("Secret", "k", "frr-k8s-system")
        server.put(node_config())
        server.always(FORBIDDEN_WRITES[plural], plural, FORBIDDEN)
        async with agent(server, tmp_path):
            await reaches(lambda: written_by_agent(server), FORBIDDEN_WRITES.keys() - {plural})

    scenario(test)
