"""What an agent may not read takes no peer of another dialect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cells.hive import Level
from cells.hive.hive import Hive
from reconcilers.intent import dialect_readings
from reconcilers.intent_tables import IntentTables
from resources.core.kinds import SECRET
from resources.kind import Kind
from speaker.nlri import prefix_to_text
from statedb import Database
from tests.cells.faults.permissions.programs import (
    DIALECTS,
    FORBIDDEN,
    NODE,
    forbid_read,
    forbid_secret,
    message,
    program,
    reaches,
    scenario,
)
from tests.cells.faults.permissions.test_webhook import hang
from tests.cells.hurry import QUICK, hurry
from tests.reconcilers import build
from tests.support.apiserver import Answer, ApiServer, status
from tests.support.wait import until
from waggle_agent.__main__ import CELLS as AGENT_CELLS


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


@pytest.mark.parametrize("mode", ["any", "annotated"])
def test_without_the_right_to_namespaces_a_dialect_goes_on_and_what_they_grant_is_a_problem(
    mode: str, tmp_path: Path
) -> None:
    """Pod networks are advertised; addresses of Services are, where no Namespace has to grant them."""

    def sent(hive: Hive) -> set[str]:
        snapshot, intent = hive.get(Database).snapshot(), hive.get(IntentTables)
        rows = intent.routes.all(snapshot)
        return {prefix_to_text(row.family, row.nlri) for row in rows}

    async def test(server: ApiServer) -> None:
        forbid_read(server, "namespaces")
        for name, address in (("granted", "198.51.100.10"), ("other", "203.0.113.9")):
            server.put({"kind": "Service", **build.service(name, address)})
        annotations = {"waggle.dev/service-addresses": "198.51.100.0/26"}
        server.put(
            {"kind": "Namespace", "metadata": {"name": "default", "annotations": annotations}}
        )
        flags = {"advertise_namespaces": mode, "node_name": NODE}
        async with program(AGENT_CELLS, server, tmp_path, **flags) as hive:
            await reaches(lambda: peers_of(hive), set(PEERS.values()))
            of_services = {"198.51.100.10/32", "203.0.113.9/32"} if mode == "any" else set[str]()
            await reaches(lambda: sent(hive), {"10.201.7.0/24", *of_services})
            level, text = message(hive, "intent")
            assert level is Level.DEGRADED
            assert "the annotations of Namespaces cannot be read: Services may use" in text
            server.always("list", "namespaces", None)
            server.always("watch", "namespaces", None)
            await reaches(lambda: sent(hive), {"10.201.7.0/24", "198.51.100.10/32"})
            await until(lambda: "Namespaces cannot be read" not in message(hive, "intent")[1])

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
def test_f06_a_dialect_that_has_been_read_does_not_wait_for_a_kind_of_another_dialect(
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
