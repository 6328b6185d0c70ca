"""A state directory with files that cannot be used or written, and with two agents: nothing stops."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cells.hive import Level, StartError
from cells.hive.lifecycle import Lifecycle
from cells.options import ClaimsOptions
from cells.state import state_files
from cells.state.state_files import StateDirectory
from tests.cells.bad_input.agent_in_process import RunningAgent, run
from tests.cells.bad_input.test_objects import good, node
from tests.reconcilers.frrk8s.build import configuration, neighbor, router

STATE = "frrk8s.state"
ROUTER = "198.18.0.1"
CONFLICTING = configuration(
    "other", {"bgp": {"routers": [router(neighbor(address=ROUTER, port=1179))]}}
)


def agent(directory: Path, scenario: Callable[[RunningAgent], Any], name: str = "m") -> None:
    run(directory / name, scenario, **{"--state-directory": str(directory / "state")})


def peers(it: RunningAgent) -> list[str]:
    return sorted(peer.address or "" for peer in it.speaker.peers())


def degraded(it: RunningAgent) -> dict[str, str]:
    return {
        "/".join(scope.path): scope.message
        for scope in it.hive.health.report()
        if scope.level is Level.DEGRADED and "sessions" not in scope.path[0]
    }


async def begin(it: RunningAgent, *objects: Any) -> None:  # noqa: ANN401
    it.write("objects.json", node(), *objects)
    await it.settle()


def first_run(directory: Path) -> None:
    async def scenario(it: RunningAgent) -> None:
        await begin(it, good(0, "10.1.0.0/16"))
        assert peers(it) == [ROUTER]

    agent(directory, scenario)
    assert (directory / "state" / STATE).exists()


def cut(at: float) -> Callable[[Path], None]:
    def damage(file: Path) -> None:
        octets = file.read_bytes()
        file.write_bytes(octets[: int(len(octets) * at)])

    return damage


def other_head(**fields: str) -> Callable[[Path], None]:
    def damage(file: Path) -> None:
        line, _, rest = file.read_bytes().partition(b"\n")
        head = json.dumps({**json.loads(line), **fields}).encode()
        file.write_bytes(head + b"\n" + rest)

    return damage


def directory_in_its_place(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (cut(0), "it does not begin as it should"),
        (cut(0.1), "it does not begin as it should"),
        (cut(0.5), "its checksum differs"),
        (cut(0.99), "its checksum differs"),
        (other_head(node="n2"), "it is of another node: 'n2'"),
        (other_head(format="waggle-dialect-state/2"), "it is of another format"),
        (directory_in_its_place, "it is not a regular file"),
    ],
    ids=["empty", "a tenth", "half", "99 %", "another node", "a later version", "directory"],
)
def test_a_last_good_state_that_cannot_be_used_is_named_and_not_applied(
    tmp_path: Path, damage: Callable[[Path], None], reason: str
) -> None:
    first_run(tmp_path)
    damage(tmp_path / "state" / STATE)

    async def scenario(it: RunningAgent) -> None:
        (message,) = (text for path, text in degraded(it).items() if path.endswith("frrk8s"))
        assert f"{STATE} is not used: {reason}" in message
        await it.settle()
        assert peers(it) == [], "there is no earlier state, and the objects contradict each other"
        it.remove("other.json")
        await it.settle()
        assert peers(it) == [ROUTER]
        is_directory = (tmp_path / "state" / STATE).is_dir()
        assert any(STATE in text for text in degraded(it).values()) is is_directory

    (tmp_path / "m" / "other.json").write_text(json.dumps(CONFLICTING))
    agent(tmp_path, scenario)


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def read_only(*_: object) -> None:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


@pytest.mark.parametrize(
    ("fails", "reason"),
    [(full, "No space left on device"), (read_only, "Read-only file system")],
    ids=["full", "read-only"],
)
def test_a_state_that_cannot_be_written_is_named_until_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: Callable[..., None], reason: str
) -> None:
    async def scenario(it: RunningAgent) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(state_files, "write", fails)
            await begin(it, good(0, "10.1.0.0/16"))
            assert peers(it) == [ROUTER]
            found = [text for text in degraded(it).values() if reason in text]
            assert any(f"{STATE} cannot be written: {reason}" in text for text in found)
            assert not (tmp_path / "state" / STATE).exists()
        await begin(it, good(0, "10.2.0.0/16"))
        assert (tmp_path / "state" / STATE).exists()
        assert not any(STATE in text for text in degraded(it).values())

    agent(tmp_path, scenario)


def test_a_file_in_place_of_the_directory_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")

    async def scenario(it: RunningAgent) -> None:
        await begin(it, good(0, "10.1.0.0/16"))
        assert peers(it) == [ROUTER]
        assert any("cannot be written" in text for text in degraded(it).values())

    agent(tmp_path, scenario)


def test_an_agent_is_rejected_while_another_agent_uses_the_directory(tmp_path: Path) -> None:
    async def other() -> StateDirectory:
        directory = StateDirectory(ClaimsOptions(directory=str(tmp_path / "state")), Lifecycle())
        await directory.reserve()
        return directory

    first = asyncio.run(other())
    text = "--state-directory: another agent uses .*/state; stop it, or choose another directory"

    async def never(_: RunningAgent) -> None:
        raise AssertionError("it runs")

    with pytest.raises(StartError, match=text):
        agent(tmp_path, never)
    assert sorted(path.name for path in (tmp_path / "state").iterdir()) == ["lock"]
    asyncio.run(first.release())
    first_run(tmp_path)


def test_the_kernel_unlocks_the_directory_of_an_agent_that_is_killed(tmp_path: Path) -> None:
    source = f"""
import asyncio, time
from cells.hive.lifecycle import Lifecycle
from cells.options import ClaimsOptions
from cells.state.state_files import StateDirectory
directory = StateDirectory(ClaimsOptions(directory={str(tmp_path / "state")!r}), Lifecycle())
asyncio.run(directory.reserve())
print("locked", flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        next_one = StateDirectory(ClaimsOptions(directory=str(tmp_path / "state")), Lifecycle())
        with pytest.raises(StartError):
            asyncio.run(next_one.reserve())
        process.kill()
        process.wait()
    asyncio.run(next_one.reserve())
    asyncio.run(next_one.release())


def test_an_agent_takes_over_the_directory_of_an_ended_agent(tmp_path: Path) -> None:
    first_run(tmp_path)
    (tmp_path / "state" / STATE).unlink()
    first_run(tmp_path)
