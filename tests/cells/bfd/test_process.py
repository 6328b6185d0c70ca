"""How the agent has its BFD process: started in a directory of its own, or in another container."""

from __future__ import annotations

import asyncio
import random
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from cells.bfd import cell
from cells.bfd.cell import ALONE_SECONDS, BfdProcessJob
from cells.hive import Health, HealthTree
from cells.hive.jobs import Jobs, Supervisor
from cells.hive.lifecycle import Lifecycle
from reconcilers.bfd.options import BfdOptions
from tests.support.looptime import run


class Child:
    """In place of the process that keeps the BFD process running."""

    def __init__(self, *given: Any, **named: Any) -> None:  # noqa: ANN401
        self.given, self.named = given, named
        self.runs = 0

    async def run(self) -> None:
        """Count."""
        self.runs += 1


def job(**options: Any) -> Any:  # noqa: ANN401
    jobs: dict[str, Any] = {}
    client = cast("Any", "the client")
    BfdProcessJob(
        client,
        BfdOptions(**options),
        HealthTree(),
        cast("Any", SimpleNamespace(add=lambda name, run, **_: jobs.__setitem__(name, run))),
    )
    return jobs["process"]


def test_the_process_survives_the_agent_by_its_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Child] = []

    def child(*given: Any, **named: Any) -> Child:  # noqa: ANN401
        made.append(Child(*given, **named))
        return made[-1]

    monkeypatch.setattr(cell, "ChildProcess", child)
    directory = tmp_path / "run" / "bfd"
    run(job(directory=str(directory), least_interval=50.0)())
    (process,) = made
    name, command, client, health = process.given
    assert (name, client(), health.path) == ("waggle-bfd", "the client", ("process",))
    assert command == (
        *(sys.executable, "-m", "waggle_bfd", "--state-directory", str(directory)),
        *("--least-interval", "50", "--alone", str(ALONE_SECONDS)),
    )
    assert process.named == {"survives": directory / "bfd.sock"}
    assert process.runs == 1
    assert directory.stat().st_mode & 0o777 == 0o700


def test_a_directory_that_is_there_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell, "ChildProcess", Child)
    run(job(directory=str(tmp_path))())


def test_with_a_socket_the_process_is_another_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []

    async def connected(*arguments: Any) -> None:  # noqa: ANN401
        given.extend(arguments)

    monkeypatch.setattr(cell, "stay_connected", connected)
    directory = tmp_path / "none"
    run(job(directory=str(directory), socket="/run/bfd.sock")())
    path, client, health, name = given
    assert (path, client(), health.path, name) == (
        "/run/bfd.sock",
        "the client",
        ("process",),
        "waggle-bfd",
    )
    assert not directory.exists()


def test_a_directory_that_cannot_be_made_ends_no_agent(tmp_path: Path) -> None:
    """/run of a plain user, a link to itself, a file: BGP has nothing to do with it."""
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    ends: list[Exception] = []

    async def scenario(directory: Path) -> str:
        health, lifecycle = Health(), Lifecycle()
        supervisor = Supervisor(ends.append, random.Random(1))  # noqa: S311
        jobs = Jobs("bfd", supervisor, lifecycle, health)
        BfdProcessJob(cast("Any", None), BfdOptions(directory=str(directory)), HealthTree(), jobs)
        async with asyncio.TaskGroup() as group:
            supervisor.bind(group)
            await lifecycle.start()
            # Five restarts take three seconds.
            await asyncio.sleep(20)
            status = health.scope("process").status
            assert status is not None
            await lifecycle.stop()
        return status.message

    with capture_logs() as logs:
        for name, reason in (("file", "Not a directory"), ("loop", "Too many levels of symbolic")):
            assert reason in run(scenario(tmp_path / name / "bfd"))
    assert ends == []
    assert max(line["attempt"] for line in logs) > 5
