"""A kind that the API server lacks, and an invalid object, are the matter of one dialect.

As a permission that is missing: definitions of another release, and objects that an older definition
without a schema has stored.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reconcilers.ovnk.dialect import OvnkDialect
from resources.kind import Kind
from tests.cells.faults.permissions import test_operator_roles as of_ovnk
from tests.cells.faults.permissions.programs import DIALECTS, operator, reaches, scenario
from tests.cells.faults.permissions.test_agent import PEERS, agent, peers_of, read_by_agent
from tests.cells.faults.permissions.test_operator import blocked_by, read_by_operator, written
from tests.support.apiserver import ApiServer
from tests.support.wait import until

Kinds = list[Kind[Any]]
Fault = Callable[[ApiServer, Kind[Any]], None]


def lacks(server: ApiServer, kind: Kind[Any]) -> None:
    server.served[kind.plural] = ()


def has_another_version(server: ApiServer, kind: Kind[Any]) -> None:
    server.served[kind.plural] = ("v9",)


def break_one(server: ApiServer, kind: Kind[Any]) -> None:
    """Store an object of which nothing but its name can be read."""
    namespace = {"namespace": NAMESPACES.get(kind.group, "default")} if kind.namespaced else {}
    metadata = {"name": "broken", "labels": 7, "uid": "uid-broken", **namespace}
    server.put({"kind": kind.name, "metadata": metadata, "spec": 7})


NAMESPACES = {"frrk8s.metallb.io": "frr-k8s-system", "metallb.io": "metallb-system"}
ABSENT: tuple[Fault, ...] = (lacks, has_another_version)
OF_AGENT = [kind for kind in read_by_agent() if kind.custom]
OF_OPERATOR = [kind for kind in read_by_operator() if kind.custom]
OF_OVNK = [kind for kind in OvnkDialect.cluster_kinds if kind.custom]
CLEANED = {f"no {one.kind.plural} of a node that is gone" for one in of_ovnk.STATES}


def by_group(kinds: Kinds) -> list[Kinds]:
    """Return the kinds of each API group, of all of which an object is broken at once."""
    groups: dict[str, Kinds] = {}
    for kind in kinds:
        groups.setdefault(kind.group, []).append(kind)
    return list(groups.values())


def group(kinds: Kinds) -> str:
    return kinds[0].group


def plural(value: object) -> str:
    return str(value.plural if isinstance(value, Kind) else getattr(value, "__name__", ""))


@pytest.mark.parametrize("fault", ABSENT, ids=plural)
@pytest.mark.parametrize("kind", OF_AGENT, ids=plural)
def test_a_kind_that_the_api_server_lacks_takes_no_peer_of_another_dialect(
    kind: Kind[Any], fault: Fault, tmp_path: Path
) -> None:
    async def test(server: ApiServer) -> None:
        fault(server, kind)
        others = {PEERS[name] for name, one in DIALECTS.items() if kind not in one.kinds}
        async with agent(server, tmp_path) as hive:
            await until(lambda: others <= peers_of(hive))

    scenario(test)


@pytest.mark.parametrize("kinds", by_group(OF_AGENT), ids=group)
def test_invalid_objects_take_no_peer(kinds: Kinds, tmp_path: Path) -> None:
    async def test(server: ApiServer) -> None:
        for kind in kinds:
            break_one(server, kind)
        async with agent(server, tmp_path) as hive:
            await reaches(lambda: peers_of(hive), set(PEERS.values()))

    scenario(test)


@pytest.mark.parametrize("kind", OF_OPERATOR, ids=plural)
def test_a_kind_that_the_api_server_lacks_stops_its_own_dialect_alone(
    kind: Kind[Any], tmp_path: Path
) -> None:
    async def test(server: ApiServer) -> None:
        has_another_version(server, kind)
        async with operator(server, tmp_path):
            await until(lambda: written(server) >= DIALECTS.keys() - blocked_by(kind))

    scenario(test)


@pytest.mark.parametrize("kinds", by_group(OF_OPERATOR), ids=group)
def test_invalid_objects_stop_no_write_of_the_operator(kinds: Kinds, tmp_path: Path) -> None:
    async def test(server: ApiServer) -> None:
        for kind in kinds:
            break_one(server, kind)
        async with operator(server, tmp_path):
            await reaches(lambda: written(server), set(DIALECTS))

    scenario(test)


@pytest.mark.parametrize("kinds", by_group(OF_OVNK), ids=group)
def test_invalid_objects_of_ovn_kubernetes_stop_nothing(kinds: Kinds, tmp_path: Path) -> None:
    async def test(server: ApiServer) -> None:
        of_ovnk.fill(server)
        for kind in kinds:
            break_one(server, kind)
        wanted = of_ovnk.ALL - CLEANED
        async with of_ovnk.run(server, tmp_path):
            await until(lambda: of_ovnk.found(server) >= wanted)

    scenario(test)
