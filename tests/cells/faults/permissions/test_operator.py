"""What an operator may not read or write stops its own dialect alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cells.hive import Level
from reconcilers.dialect import Dialect
from resources.core.kinds import NODE as NODE_KIND
from resources.core.kinds import SECRET
from resources.kind import Kind
from tests.cells.faults.permissions.programs import (
    DIALECTS,
    FORBIDDEN,
    NEEDS,
    NODE,
    forbid_read,
    forbid_secret,
    message,
    operator,
    peer_config,
    reaches,
    scenario,
)
from tests.support.apiserver import ApiServer
from tests.support.wait import until


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
