"""A whole agent in this process: manifests in, and the real speaker's engine on wires in memory.

All cells of the program without sockets, in virtual time: whatever a changed file causes has
happened when `RunningAgent.settle` returns. How long the agent keeps its event loop is measured.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from structlog.testing import capture_logs

from cells.declarations import MANIFESTS, SPEAKER
from cells.hive import load, provide
from cells.hive.hive import Hive
from cells.options import ManifestsOptions
from cells.sources.resources import MassWithdrawHold
from cells.speaker.events import SpeakerEvents
from cells.speaker.sessions import Sessions
from reconcilers.intent.render import problems
from reconcilers.intent_tables import IntentTables
from resources.manifests.source import ManifestsSource
from resources.source import Source
from resources.tables import Tables
from speaker.api import SpeakerPort
from speaker.nlri import IPV4_UNICAST
from statedb import Database
from tests.speaker.network import Host
from tests.support.cells import rewired
from tests.support.engine_speaker import EngineSpeaker
from tests.support.looptime import VirtualTimeLoop
from tests.support.peer_routers import add_routers
from waggle_agent.__main__ import CELLS

NODE = "n1"
ADDRESS = "192.0.2.1"
QUIET_SECONDS = 0.3
"""Virtual time in which all rounds after a change are over."""


class MeasuredLoop(VirtualTimeLoop):
    """Virtual time, and the longest turn in seconds of processor time."""

    def __init__(self) -> None:
        super().__init__()
        self._longest = 0.0

    def _run_once(self) -> None:
        began = time.thread_time()
        super()._run_once()  # type: ignore[misc]
        self._longest = max(self._longest, time.thread_time() - began)

    def longest_turn(self) -> float:
        """Return the longest turn since the last call."""
        longest, self._longest = self._longest, 0.0
        return longest


class Session(NamedTuple):
    """A session as its router sees it."""

    established: bool
    flaps: int
    prefixes: tuple[str, ...]


class RunningAgent:
    """The agent of the node `NODE`."""

    def __init__(self, hive: Hive, directory: Path, loop: MeasuredLoop) -> None:
        self.hive = hive
        self.loop = loop
        self.database = hive.get(Database)
        self.intent = hive.get(IntentTables)
        self._tables = hive.get(Tables)
        self._directory = directory
        speaker = hive.get(SpeakerPort)  # type: ignore[type-abstract]
        assert isinstance(speaker, EngineSpeaker)
        self.speaker = speaker
        self.routers: dict[str, Host] = {}
        """By address."""

    def write(self, name: str, *objects: Mapping[str, Any]) -> None:
        """Put objects in place as one file."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        fresh = self._directory / f".{name}.new"
        fresh.write_text(text)
        fresh.replace(self._directory / name)

    def remove(self, name: str) -> None:
        """Delete a file."""
        (self._directory / name).unlink()

    async def settle(self) -> None:
        """Let everything happen that follows from the changes."""
        await asyncio.sleep(QUIET_SECONDS)
        self.speaker.network.run(0.1)
        self.speaker.host.writes.clear()

    async def connect(self) -> None:
        """Add a router for each peer, and let the sessions come up."""
        await self.settle()
        network = self.speaker.network
        add_routers(self.routers, network, self.intent, self.database.snapshot(), ADDRESS)
        network.run(5)

    def sessions(self) -> dict[str, Session]:
        """Return the sessions as the routers see them, by the router's address."""
        return {address: _session(host) for address, host in self.routers.items()}

    def problems(self) -> list[dict[str, Any]]:
        """Return the problems, with the problems of files."""
        return problems(self.database.snapshot(), self._tables, self.intent)


def _session(host: Host) -> Session:
    status = host.status("agent")
    prefixes = tuple(sorted(host.received(IPV4_UNICAST, "agent")))
    return Session(status.established, status.flaps, prefixes)


def run(
    directory: Path,
    scenario: Callable[[RunningAgent], Awaitable[None]],
    **flags: Any,  # noqa: ANN401
) -> None:
    """Run an agent while the scenario lasts. No job may fail, and no error be logged."""
    directory.mkdir(exist_ok=True)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, MeasuredLoop)
        hive = _hive(directory, loop, flags)
        started = asyncio.Event()
        task = asyncio.create_task(hive.run(started.set))
        task.add_done_callback(lambda _: started.set())
        await started.wait()
        try:
            await scenario(RunningAgent(hive, directory, loop))
            assert not any(hive.supervisor.restarts.values()), hive.supervisor.restarts
        finally:
            hive.shutdown()
            await task

    with (
        capture_logs() as lines,
        mock.patch("asyncio.to_thread", _at_once),
        asyncio.Runner(loop_factory=MeasuredLoop) as runner,
    ):
        runner.run(main())
    errors = [line for line in lines if line["log_level"] in ("error", "critical")]
    assert not errors, errors


async def _at_once(work: Callable[..., Any], *args: object) -> Any:  # noqa: ANN401
    """Do the work of a thread, for which virtual time does not wait."""
    return work(*args)


def _hive(directory: Path, loop: MeasuredLoop, flags: Mapping[str, Any]) -> Hive:
    def speaker() -> EngineSpeaker:
        return EngineSpeaker(address=ADDRESS)

    def source(
        options: ManifestsOptions, tables: Tables, hold: MassWithdrawHold
    ) -> ManifestsSource:
        paths = options.directory or ()
        return ManifestsSource(paths, tables.kinds, hold=hold.seconds, clock=loop.time)

    others = {
        MANIFESTS.name: rewired(
            MANIFESTS, provides=(source,), contributes=(provide(source, as_=Source),)
        ),
        SPEAKER.name: rewired(
            SPEAKER,
            provides=(SpeakerEvents, provide(speaker, as_=SpeakerPort), Sessions),
            invokes=(Sessions,),
            contributes=(),
        ),
    }
    cells = tuple(others.get(cell.name, cell) for cell in CELLS)
    given = {
        "--manifests": [str(directory)],
        "--node-name": NODE,
        "enable_cell": ["frrk8s", "metallb"],
        "disable_cell": ["logging", "api", "host"],
        **flags,
    }
    return Hive(cells, load(cells, flags=given))
