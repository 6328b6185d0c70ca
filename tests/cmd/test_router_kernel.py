"""`kernel` of `waggle router`: what of the file and of the sessions the reconciler of routes reads."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cells.apply.session_readings import SessionReadings
from reconcilers.model import Peer, PrefixRule
from tests.support.looptime import run
from tests.support.wait import until
from waggle.commands.router.jobs import REPORT_SECONDS
from waggle.commands.router.kernel import RouterKernel
from waggle.router_config import load

HEAD = "asn: 65000\nrouterID: 192.0.2.1\nkernel: true\n"


def test_next_hops_of_neighbours_are_resolved_until_the_file_has_them_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "router.yaml"
    path.write_text(f"{HEAD}neighbors: [{{address: 192.0.2.2, asn: 65001}}]\n")
    config = load(path)
    options = config.fib()
    assert options is not None
    status = SimpleNamespace(instance="router", name="192.0.2.2", next_hops=("198.51.100.1",))
    speaker = SimpleNamespace(peers=lambda: [status])

    def readings(*given: Any) -> None:  # noqa: ANN401
        made.append(SessionReadings(*given))

    made: list[SessionReadings] = []
    monkeypatch.setattr("waggle.commands.router.kernel.SessionReadings", readings)

    async def scenario() -> None:
        kernel = RouterKernel(cast("Any", speaker), options, print)

        def next_hops() -> list[tuple[str, ...]]:
            rows = kernel._rows.intent.next_hops.all(kernel._rows.database.snapshot())
            return [row.addresses for row in rows]

        kernel.configure(config)
        reading = asyncio.create_task(made[0]._run())
        await until(lambda: next_hops() == [("198.51.100.1",)])
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reading
        path.write_text(HEAD)
        kernel.configure(load(path))
        assert not next_hops()

    asyncio.run(scenario())


def test_the_check_is_a_setting(tmp_path: Path) -> None:
    path = tmp_path / "router.yaml"
    path.write_text(HEAD.replace("true", "{check: false}"))
    options = load(path).fib()
    assert options is not None
    assert not options.check


class Kernel:
    """The part of a router that installs routes; no job of it runs."""

    def __init__(self, tmp_path: Path) -> None:
        self.lines: list[str] = []
        self._path = tmp_path / "router.yaml"
        self._path.write_text(HEAD)
        options = load(self._path).fib()
        assert options is not None
        self.kernel = RouterKernel(cast("Any", SimpleNamespace()), options, self.lines.append)
        self.rows = self.kernel._rows

    def configure(self, *neighbors: str, more: str = "") -> None:
        self._path.write_text(f"{HEAD}{more}neighbors: [{', '.join(neighbors)}]\n")
        self.kernel.configure(load(self._path))

    @property
    def peers(self) -> dict[str, Peer]:
        rows = self.rows.intent.peers.all(self.rows.database.snapshot())
        return {row.name: row for row in rows}


TOR = "{name: tor, address: 192.0.2.11, asn: 65001%s}"
POLICY = (
    "policies: {some: {terms: [{match: {prefixes: [{prefix: 10.0.0.0/8, ge: 16, le: 24}]}}]}}\n"
)


def test_the_instance_and_the_neighbours_come_from_the_file(tmp_path: Path) -> None:
    async def scenario() -> None:
        lab = Kernel(tmp_path)
        lab.configure(TOR % "", "{name: leaf, interface: eth7, asn: external}")
        (instance,) = lab.rows.intent.instances.all(lab.rows.database.snapshot())
        assert (instance.name, instance.local_asn, instance.vrf) == ("router", 65000, None)
        assert (instance.router_id, instance.dialect) == ("192.0.2.1", "router")
        assert lab.kernel._node.name == "192.0.2.1"
        tor, leaf = lab.peers["tor"], lab.peers["leaf"]
        assert (tor.instance, tor.address, tor.interface) == ("router", "192.0.2.11", None)
        assert (leaf.address, leaf.interface) == (None, "eth7")
        lab.configure("{name: leaf, interface: eth8, asn: external}")
        assert {name: peer.interface for name, peer in lab.peers.items()} == {"leaf": "eth8"}

    asyncio.run(scenario())


def test_what_a_neighbour_may_send_is_what_its_import_policy_names(tmp_path: Path) -> None:
    async def scenario() -> None:
        lab = Kernel(tmp_path)
        for policy, accepted in (
            (", import: all", None),
            (", import: none", ()),
            (", import: some", (PrefixRule("10.0.0.0/8", 16, 24),)),
        ):
            lab.configure(TOR % policy, more=POLICY)
            assert lab.peers["tor"].accept == accepted

    asyncio.run(scenario())


def test_what_becomes_wrong_is_a_line_and_so_is_its_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        lab = Kernel(tmp_path)
        scope = lab.kernel._jobs.health.scope("writer")
        task = asyncio.create_task(lab.kernel._jobs._report_problems())
        reports: list[Callable[[], None]] = [
            lambda: scope.ok("well"),
            lambda: scope.degraded("not permitted"),
            lambda: scope.degraded("not permitted"),
            lambda: scope.degraded("no such device"),
            lambda: scope.ok("well"),
            lambda: scope.ok("well"),
        ]
        for report in reports:
            report()
            await asyncio.sleep(REPORT_SECONDS + 0.001)
        task.cancel()
        assert lab.lines == [
            "kernel: not permitted",
            "kernel: no such device",
            "kernel: writer: ok",
        ]

    run(scenario())
