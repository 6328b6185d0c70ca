"""`kernel` of `waggle router`: what of the file and of the sessions the reconciler of routes reads."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from tests.support.wait import until
from waggle.commands.router.config import load
from waggle.commands.router.kernel import RouterKernel

HEAD = "asn: 65000\nrouterID: 192.0.2.1\nkernel: true\n"


def test_next_hops_of_neighbours_are_resolved_until_the_file_has_them_no_more(
    tmp_path: Path,
) -> None:
    path = tmp_path / "router.yaml"
    path.write_text(f"{HEAD}neighbors: [{{address: 192.0.2.2, asn: 65001}}]\n")
    config = load(path)
    options = config.fib()
    assert options is not None
    status = SimpleNamespace(instance="router", name="192.0.2.2", next_hops=("198.51.100.1",))
    speaker = SimpleNamespace(peers=lambda: [status])

    async def scenario() -> None:
        kernel = RouterKernel(cast("Any", speaker), options, print)

        def next_hops() -> list[tuple[str, ...]]:
            rows = kernel._intent.next_hops.all(kernel._database.snapshot())
            return [row.addresses for row in rows]

        kernel.configure(config)
        reading = asyncio.create_task(kernel._read_sessions())
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
